// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PAIRS: the RDMA pairs of a node, those that are not ready first.
#include "show/answers.h"
#include "show/congestion.h"
#include "show/gpu.h"

#include <records/pairs.h>
#include <records/shared.h>

const char no_device_words[] =
	"This agent measures with no RDMA device: `tocsin devices --explain` says why.\n";

void show_pairs(struct page *page, const json_t *answer) {
	const json_t *pairs = json_object_get(answer, "pairs"), *pair;
	bool without = fact_known(answer, "devices") && fact_number(answer, "devices") == 0;
	bool marked = false;
	size_t ready = 0, n;

	json_array_foreach(pairs, n, pair) {
		ready += fact_is(pair, "state", "ready");
		marked |= fact_is(pair, "state", "ready") && *congestion_mark(pair) != '\0';
	}
	page_print(page, "%zu pairs, %zu ready\n", json_array_size(pairs), ready);
	if (without)
		page_print(page, "%s", no_device_words);
	if (!without || json_array_size(pairs) > 0) {
		page_print(page, "\n");
		page_table(page, &pair_record, pairs, NULL);
	}
	if (marked)
		page_print(page, "%s", congestion_legend);
	gpus_print_devices(page, json_object_get(answer, "gpus"));
}
