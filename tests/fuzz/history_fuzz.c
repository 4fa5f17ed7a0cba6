// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the reader of history blocks: the input as a whole block, and as the items of a sound one.
#include <control/history_block.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

static uint8_t whole[HISTORY_BLOCK_BYTES];
static struct history_block copy;
static struct history_reader reader;

// Read all items. What was read must be writable again.
static void read_items(size_t used) {
	struct history_item item;

	history_block_begin(&copy, HISTORY_FINE, 1, 1);
	history_reader_init(&reader, whole, used);
	while (history_reader_next(&reader, &item)) {
		must(item.kind == HISTORY_ITEM_NODE || item.seconds > 0);
		if (item.kind == HISTORY_ITEM_PATH) {
			struct history_bins bins = {0};

			history_bins_get(&item.bins, &bins);
			must(bins.lost <= bins.sent);
			must(history_bins_percentile(&bins, 500) <= bins.max_ns);
			(void)history_block_put_path(&copy, item.path, &bins);
		} else if (item.kind == HISTORY_ITEM_PERIOD) {
			(void)history_block_put_period(&copy, item.begin_s, item.seconds);
		} else {
			(void)history_block_put_node(&copy, &item.node);
		}
	}
	must(history_block_seal(&copy) <= HISTORY_BLOCK_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct history_header header;

	if (size > HISTORY_BLOCK_BYTES - HISTORY_HEADER_BYTES)
		return 0;
	memset(whole, 0, sizeof(whole));
	memcpy(whole, data, size);
	if (history_header_read(whole, &header) == 0 && history_block_check(whole, &header) == 0)
		read_items(header.used);
	memset(whole, 0, HISTORY_HEADER_BYTES);
	memcpy(whole + HISTORY_HEADER_BYTES, data, size);
	read_items(HISTORY_HEADER_BYTES + size);
	return 0;
}
