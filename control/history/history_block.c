// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads blocks of the history.
#include <control/history_block.h>
#include <lib/must.h>

#include <xxhash.h>

#include <errno.h>
#include <string.h>

#define MARK UINT32_C(0x48636f54) // "TocH"
#define HEADER_DIGEST_AT (HISTORY_HEADER_BYTES - 8)
#define ITEM_BYTES_MAX 1024
#define SECONDS_MAX (UINT32_C(366) * 86400)
#define UNIX_S_MAX (INT64_C(1) << 40) // bounds sums of times

// Writing.

void history_block_begin(
	struct history_block *block, enum history_tier tier, uint64_t owner, uint64_t sequence
) {
	memset(block, 0, sizeof(*block));
	block->used = HISTORY_HEADER_BYTES;
	block->tier = tier;
	block->owner = owner;
	block->sequence = sequence;
	block->first_s = INT64_MAX;
	block->last_s = INT64_MIN;
}

struct history_mark history_block_mark(const struct history_block *block) {
	return (struct history_mark){block->used, block->name_count, block->first_s, block->last_s};
}

void history_block_set_back(struct history_block *block, const struct history_mark *mark) {
	must(mark->used <= block->used);
	memset(block->bytes + mark->used, 0, block->used - mark->used);
	block->used = mark->used;
	block->name_count = mark->name_count;
	block->first_s = mark->first_s;
	block->last_s = mark->last_s;
}

// Append an item whose body was written to `body`.
static bool
item_append(struct history_block *block, enum history_kind kind, const struct wire_writer *body) {
	struct wire_writer writer;
	size_t size, used;

	must(wire_writer_finish(body, &size) == 0);
	wire_writer_init(&writer, block->bytes + block->used, HISTORY_BLOCK_BYTES - block->used);
	wire_put_u8(&writer, (uint8_t)kind);
	wire_put_varint(&writer, size);
	wire_put_bytes(&writer, body->data, size);
	if (wire_writer_finish(&writer, &used) != 0) {
		memset(block->bytes + block->used, 0, wire_writer_used(&writer));
		return false;
	}
	block->used += used;
	return true;
}

bool history_block_put_period(struct history_block *block, int64_t begin_s, uint32_t seconds) {
	uint8_t bytes[ITEM_BYTES_MAX];
	struct wire_writer body;

	must(seconds > 0 && seconds <= SECONDS_MAX);
	wire_writer_init(&body, bytes, sizeof(bytes));
	wire_put_i64(&body, begin_s);
	wire_put_varint(&body, seconds);
	if (!item_append(block, HISTORY_ITEM_PERIOD, &body))
		return false;
	if (begin_s < block->first_s)
		block->first_s = begin_s;
	if (begin_s + seconds > block->last_s)
		block->last_s = begin_s + seconds;
	return true;
}

static void put_text(struct wire_writer *writer, const char *text) {
	wire_put_string(writer, text, strlen(text));
}

// Return the number of a path in this block, or UINT32_MAX.
static uint32_t name_find(const struct history_block *block, uint64_t digest) {
	for (uint32_t n = 0; n < block->name_count; n++) {
		if (block->names[n] == digest)
			return n;
	}
	return UINT32_MAX;
}

bool history_block_put_path(
	struct history_block *block,
	const struct history_path_name *name,
	const struct history_bins *bins
) {
	struct history_mark before = history_block_mark(block);
	uint8_t bytes[ITEM_BYTES_MAX];
	struct wire_writer body;
	uint64_t digest;
	uint32_t number;

	wire_writer_init(&body, bytes, sizeof(bytes));
	wire_put_u64(&body, name->peer);
	put_text(&body, name->node);
	put_text(&body, name->device);
	put_text(&body, name->peer_device);
	digest = XXH3_64bits(bytes, wire_writer_used(&body));
	number = name_find(block, digest);
	if (number == UINT32_MAX) {
		if (block->name_count == HISTORY_PATHS_MAX ||
		    !item_append(block, HISTORY_ITEM_NAME, &body))
			return false;
		number = block->name_count++;
		block->names[number] = digest;
	}
	wire_writer_init(&body, bytes, sizeof(bytes));
	wire_put_varint(&body, number);
	history_bins_put(&body, bins);
	if (item_append(block, HISTORY_ITEM_PATH, &body))
		return true;
	history_block_set_back(block, &before);
	return false;
}

bool history_block_put_node(struct history_block *block, const struct history_node *node) {
	uint8_t bytes[ITEM_BYTES_MAX];
	struct wire_writer body;

	wire_writer_init(&body, bytes, sizeof(bytes));
	wire_put_u64(&body, node->id);
	put_text(&body, node->name);
	wire_put_u8(&body, node->state);
	wire_put_u8(&body, node->verdict);
	return item_append(block, HISTORY_ITEM_NODE, &body);
}

size_t history_block_seal(struct history_block *block) {
	struct wire_writer header;
	size_t used;

	wire_writer_init(&header, block->bytes, HISTORY_HEADER_BYTES);
	wire_put_u32(&header, MARK);
	wire_put_u16(&header, HISTORY_VERSION);
	wire_put_u8(&header, (uint8_t)block->tier);
	wire_put_u8(&header, 0);
	wire_put_u64(&header, block->owner);
	wire_put_u64(&header, block->sequence);
	wire_put_i64(&header, block->first_s);
	wire_put_i64(&header, block->last_s);
	wire_put_u32(&header, (uint32_t)block->used);
	wire_put_u32(&header, 0);
	wire_put_u64(
		&header,
		XXH3_64bits(block->bytes + HISTORY_HEADER_BYTES, block->used - HISTORY_HEADER_BYTES)
	);
	wire_put_u64(&header, XXH3_64bits(block->bytes, HEADER_DIGEST_AT));
	must(wire_writer_finish(&header, &used) == 0 && used == HISTORY_HEADER_BYTES);
	return block->used;
}

// Reading.

int history_header_read(const uint8_t *bytes, struct history_header *ret_header) {
	struct history_header header = {0};
	struct wire_reader reader;
	uint16_t version;
	uint32_t mark;

	wire_reader_init(&reader, bytes, HISTORY_HEADER_BYTES);
	mark = wire_get_u32(&reader);
	version = wire_get_u16(&reader);
	if (mark == 0)
		return -ENODATA;
	if (mark != MARK)
		return -EBADMSG;
	if (version != HISTORY_VERSION)
		return -EPROTONOSUPPORT;
	header.tier = (enum history_tier)wire_get_u8(&reader);
	(void)wire_get_u8(&reader);
	header.owner = wire_get_u64(&reader);
	header.sequence = wire_get_u64(&reader);
	header.first_s = wire_get_i64(&reader);
	header.last_s = wire_get_i64(&reader);
	header.used = wire_get_u32(&reader);
	(void)wire_get_u32(&reader);
	header.digest = wire_get_u64(&reader);
	if (wire_get_u64(&reader) != XXH3_64bits(bytes, HEADER_DIGEST_AT) ||
	    header.tier >= HISTORY_TIERS || header.sequence == 0 || header.sequence == UINT64_MAX ||
	    header.used < HISTORY_HEADER_BYTES || header.used > HISTORY_BLOCK_BYTES)
		return -EBADMSG;
	*ret_header = header;
	return 0;
}

int history_block_check(const uint8_t *bytes, const struct history_header *header) {
	return XXH3_64bits(bytes + HISTORY_HEADER_BYTES, header->used - HISTORY_HEADER_BYTES) ==
			       header->digest
		       ? 0
		       : -EBADMSG;
}

void history_reader_init(struct history_reader *reader, const uint8_t *bytes, size_t used) {
	wire_reader_init(&reader->items, bytes + HISTORY_HEADER_BYTES, used - HISTORY_HEADER_BYTES);
	reader->begin_s = 0;
	reader->seconds = 0;
	reader->name_count = 0;
}

static void read_period(struct history_reader *reader, struct wire_reader *body) {
	uint64_t seconds;

	reader->begin_s = wire_get_i64(body);
	seconds = wire_get_varint(body);
	if (seconds == 0 || seconds > SECONDS_MAX || reader->begin_s > UNIX_S_MAX ||
	    reader->begin_s < -UNIX_S_MAX)
		wire_reader_fail(body, -EBADMSG);
	reader->seconds = (uint32_t)seconds;
}

static void read_name(struct history_reader *reader, struct wire_reader *body) {
	struct history_path_name *name = &reader->names[reader->name_count];

	if (reader->name_count == HISTORY_PATHS_MAX) {
		wire_reader_fail(body, -EBADMSG);
		return;
	}
	name->peer = wire_get_u64(body);
	wire_get_name(body, name->node, sizeof(name->node));
	wire_get_name(body, name->device, sizeof(name->device));
	wire_get_name(body, name->peer_device, sizeof(name->peer_device));
	reader->name_count += wire_reader_ok(body);
}

static void
read_path(struct history_reader *reader, struct wire_reader *body, struct history_item *item) {
	uint64_t number = wire_get_varint(body);

	if (number >= reader->name_count || reader->seconds == 0) {
		wire_reader_fail(body, -EBADMSG);
		return;
	}
	item->path = &reader->names[number];
	item->bins = *body;
}

static void read_node(
	const struct history_reader *reader, struct wire_reader *body, struct history_item *item
) {
	if (reader->seconds == 0)
		wire_reader_fail(body, -EBADMSG);
	item->node.id = wire_get_u64(body);
	wire_get_name(body, item->node.name, sizeof(item->node.name));
	item->node.state = wire_get_u8(body);
	item->node.verdict = wire_get_u8(body);
}

bool history_reader_next(struct history_reader *reader, struct history_item *ret_item) {
	while (wire_reader_left(&reader->items) > 0) {
		uint8_t kind = wire_get_u8(&reader->items);
		uint64_t size = wire_get_varint(&reader->items);
		struct wire_reader body;
		bool is_known = true;

		wire_reader_nested(&reader->items, size, &body);
		if (kind == HISTORY_ITEM_PERIOD)
			read_period(reader, &body);
		else if (kind == HISTORY_ITEM_NAME)
			read_name(reader, &body);
		else if (kind == HISTORY_ITEM_PATH)
			read_path(reader, &body, ret_item);
		else if (kind == HISTORY_ITEM_NODE)
			read_node(reader, &body, ret_item);
		else
			is_known = false;
		// A newer agent may append members to a body, so its rest is ignored.
		wire_reader_fail(&reader->items, wire_reader_error(&body));
		if (!wire_reader_ok(&reader->items))
			return false;
		if (!is_known || kind == HISTORY_ITEM_NAME)
			continue;
		ret_item->kind = (enum history_kind)kind;
		ret_item->begin_s = reader->begin_s;
		ret_item->seconds = reader->seconds;
		return true;
	}
	return false;
}
