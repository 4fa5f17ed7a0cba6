// SPDX-License-Identifier: BSD-3-Clause
// The answer that tells of a member's health, and the table over all members.
#include "collect/payload_rows.h"

#include <lib/wire.h>
#include <ras/payload.h>

struct ras_healths {
	struct payload_rows rows;
};

int ras_health_put(struct wire_writer *writer, const struct ras_health_row *row) {
	size_t reason_length = strnlen(row->reason, RAS_HEALTH_REASON_MAX);
	size_t evidence_length = strnlen(row->evidence, RAS_HEALTH_EVIDENCE_MAX);
	struct wire_writer before = *writer;
	size_t used;

	if (!wire_utf8_valid(row->reason, reason_length) ||
	    !wire_utf8_valid(row->evidence, evidence_length))
		return -EILSEQ;
	wire_put_u64(writer, row->subject);
	wire_put_u8(writer, row->verdict);
	wire_put_i64(writer, row->since_s);
	wire_put_string(writer, row->reason, reason_length);
	wire_put_string(writer, row->evidence, evidence_length);
	if (wire_writer_finish(writer, &used) == 0)
		return 0;
	*writer = before;
	return -EMSGSIZE;
}

int ras_health_get(struct wire_reader *reader, struct ras_health_row *ret_row) {
	struct ras_health_row row = {0};

	if (wire_reader_ok(reader) && wire_reader_left(reader) == 0)
		return -ENODATA;
	row.subject = wire_get_u64(reader);
	row.verdict = wire_get_u8(reader);
	row.since_s = wire_get_i64(reader);
	wire_get_string(reader, row.reason, sizeof(row.reason));
	wire_get_string(reader, row.evidence, sizeof(row.evidence));
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_row = row;
	return 0;
}

int ras_healths_create(const struct ras_memory *memory, struct ras_healths **ret_healths) {
	struct ras_healths *healths = memory->allocate(memory->ctx, sizeof(*healths));

	if (healths == NULL)
		return -ENOMEM;
	payload_rows_init(&healths->rows, memory, sizeof(struct ras_merged_health));
	*ret_healths = healths;
	return 0;
}

struct ras_healths *ras_healths_destroy(struct ras_healths *healths) {
	struct ras_memory memory;

	if (healths == NULL)
		return NULL;
	memory = healths->rows.memory;
	payload_rows_fini(&healths->rows);
	memory.release(memory.ctx, healths, sizeof(*healths));
	return NULL;
}

int ras_healths_add(struct ras_healths *healths, const struct ras_collected_part *part) {
	struct ras_merged_health merged = {.observer = part->node};
	uint32_t before = healths->rows.count;
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, part->payload, part->size);
	while ((err = ras_health_get(&reader, &merged.row)) == 0) {
		err = payload_rows_add(&healths->rows, &merged);
		if (err != 0)
			break;
	}
	if (err == -ENODATA)
		return 0;
	healths->rows.count = before;
	return err;
}

static int health_compare(const void *a, const void *b) {
	const struct ras_merged_health *left = a;
	const struct ras_merged_health *right = b;
	int order = payload_compare_u64(left->row.subject, right->row.subject);

	if (order == 0)
		order = payload_compare_u64(right->row.verdict, left->row.verdict);
	if (order == 0)
		order = payload_compare_u64(left->observer, right->observer);
	if (order == 0)
		order = payload_compare_i64(left->row.since_s, right->row.since_s);
	if (order == 0)
		order = strcmp(left->row.reason, right->row.reason);
	if (order == 0)
		order = strcmp(left->row.evidence, right->row.evidence);
	return order;
}

uint32_t ras_healths_settle(struct ras_healths *healths) {
	payload_rows_settle(&healths->rows, health_compare, health_compare);
	return healths->rows.count;
}

const struct ras_merged_health *ras_healths_at(const struct ras_healths *healths, uint32_t n) {
	must(n < healths->rows.count);
	return payload_rows_at(&healths->rows, n);
}
