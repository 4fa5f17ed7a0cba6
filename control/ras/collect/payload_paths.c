// SPDX-License-Identifier: BSD-3-Clause
// Rows of paths: encoding, decoding, and the merged table of all members.
#include "collect/payload_rows.h"

#include <lib/wire.h>
#include <ras/payload.h>

struct ras_paths {
	struct payload_rows rows;
};

#define PERMILLE_MAX 1000

int ras_path_put(struct wire_writer *writer, const struct ras_path_row *row) {
	size_t device_length = strnlen(row->device, RAS_PATH_DEVICE_MAX);
	size_t peer_device_length = strnlen(row->peer_device, RAS_PATH_DEVICE_MAX);
	struct wire_writer before = *writer;
	size_t used;

	if (!wire_utf8_valid(row->device, device_length) ||
	    !wire_utf8_valid(row->peer_device, peer_device_length))
		return -EILSEQ;
	wire_put_u64(writer, row->peer);
	wire_put_string(writer, row->device, device_length);
	wire_put_string(writer, row->peer_device, peer_device_length);
	wire_put_varint(writer, row->count);
	wire_put_varint(writer, row->lost);
	wire_put_varint(writer, row->min_ns);
	wire_put_varint(writer, row->median_ns);
	wire_put_varint(writer, row->mad_ns);
	wire_put_varint(writer, row->p99_ns);
	wire_put_varint(writer, row->baseline_ns);
	wire_put_varint(writer, row->for_s);
	wire_put_varint(writer, row->lost_permille);
	wire_put_u8(writer, row->seen);
	wire_put_u8(writer, row->steady);
	if (wire_writer_finish(writer, &used) == 0)
		return 0;
	*writer = before;
	return -EMSGSIZE;
}

static bool row_is_sound(const struct ras_path_row *row) {
	if (row->lost_permille > PERMILLE_MAX)
		return false;
	if (row->count == 0)
		return (row->min_ns | row->median_ns | row->mad_ns | row->p99_ns) == 0;
	return row->min_ns <= row->median_ns && row->median_ns <= row->p99_ns;
}

int ras_path_get(struct wire_reader *reader, struct ras_path_row *ret_row) {
	struct ras_path_row row = {0};
	uint64_t lost_permille;
	uint8_t steady;

	if (wire_reader_ok(reader) && wire_reader_left(reader) == 0)
		return -ENODATA;
	row.peer = wire_get_u64(reader);
	wire_get_string(reader, row.device, sizeof(row.device));
	wire_get_string(reader, row.peer_device, sizeof(row.peer_device));
	row.count = wire_get_varint(reader);
	row.lost = wire_get_varint(reader);
	row.min_ns = wire_get_varint(reader);
	row.median_ns = wire_get_varint(reader);
	row.mad_ns = wire_get_varint(reader);
	row.p99_ns = wire_get_varint(reader);
	row.baseline_ns = wire_get_varint(reader);
	row.for_s = wire_get_varint(reader);
	lost_permille = wire_get_varint(reader);
	row.lost_permille = lost_permille <= PERMILLE_MAX ? (uint32_t)lost_permille : UINT32_MAX;
	row.seen = wire_get_u8(reader);
	steady = wire_get_u8(reader);
	row.steady = steady == 1;
	if (wire_reader_ok(reader) && (steady > 1 || !row_is_sound(&row)))
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_row = row;
	return 0;
}

int ras_paths_create(const struct ras_memory *memory, struct ras_paths **ret_paths) {
	struct ras_paths *paths = memory->allocate(memory->ctx, sizeof(*paths));

	if (paths == NULL)
		return -ENOMEM;
	payload_rows_init(&paths->rows, memory, sizeof(struct ras_merged_path));
	*ret_paths = paths;
	return 0;
}

struct ras_paths *ras_paths_destroy(struct ras_paths *paths) {
	struct ras_memory memory;

	if (paths == NULL)
		return NULL;
	memory = paths->rows.memory;
	payload_rows_fini(&paths->rows);
	memory.release(memory.ctx, paths, sizeof(*paths));
	return NULL;
}

int ras_paths_add(struct ras_paths *paths, const struct ras_collected_part *part) {
	struct ras_merged_path merged = {.node = part->node};
	uint32_t before = paths->rows.count;
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, part->payload, part->size);
	while ((err = ras_path_get(&reader, &merged.row)) == 0) {
		err = payload_rows_add(&paths->rows, &merged);
		if (err != 0)
			break;
	}
	if (err == -ENODATA)
		return 0;
	paths->rows.count = before;
	return err;
}

static int path_key_compare(const void *a, const void *b) {
	const struct ras_merged_path *left = a;
	const struct ras_merged_path *right = b;
	int order = payload_compare_u64(left->node, right->node);

	if (order == 0)
		order = payload_compare_u64(left->row.peer, right->row.peer);
	if (order == 0)
		order = strcmp(left->row.device, right->row.device);
	if (order == 0)
		order = strcmp(left->row.peer_device, right->row.peer_device);
	return order;
}

// Order paths. Of one path the row with more probes comes first; the other fields break ties.
static int path_compare(const void *a, const void *b) {
	const struct ras_path_row *left = &((const struct ras_merged_path *)a)->row;
	const struct ras_path_row *right = &((const struct ras_merged_path *)b)->row;
	const uint64_t fields[][2] = {
		{right->count, left->count},
		{right->lost, left->lost},
		{left->min_ns, right->min_ns},
		{left->median_ns, right->median_ns},
		{left->mad_ns, right->mad_ns},
		{left->p99_ns, right->p99_ns},
		{left->baseline_ns, right->baseline_ns},
		{left->for_s, right->for_s},
		{left->lost_permille, right->lost_permille},
		{left->seen, right->seen},
		{left->steady, right->steady},
	};
	int order = path_key_compare(a, b);

	for (size_t n = 0; order == 0 && n < sizeof(fields) / sizeof(fields[0]); n++)
		order = payload_compare_u64(fields[n][0], fields[n][1]);
	return order;
}

uint32_t ras_paths_settle(struct ras_paths *paths) {
	payload_rows_settle(&paths->rows, path_compare, path_key_compare);
	return paths->rows.count;
}

uint32_t ras_paths_count(const struct ras_paths *paths) {
	return paths->rows.count;
}

const struct ras_merged_path *ras_paths_at(const struct ras_paths *paths, uint32_t n) {
	must(n < paths->rows.count);
	return payload_rows_at(&paths->rows, n);
}
