// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/comms_share.c with a fake core and hand-made reports.
#include "overlay/inside.h"

#include <control/comms_share.h>
#include <lib/wire.h>
#include <ras/comms.h>
#include <support/cmocka.h>

#define MANY 400u
#define FEW_UID 7
#define MANY_UID 8

static struct {
	overlay_contribute_fn *contribute;
	void *ctx;
	uint32_t alive; // members of the cluster
	uint32_t cut;
	struct jobs_rank_report reports[1 + MANY];
} stage;

void overlay_contributor(
	struct overlay *overlay, enum ras_collect_kind kind, overlay_contribute_fn *fn, void *ctx
) {
	(void)overlay;
	assert_int_equal(kind, RAS_COLLECT_COMMS);
	stage.contribute = fn;
	stage.ctx = ctx;
}

const struct ras *overlay_ras(const struct overlay *overlay) {
	(void)overlay;
	return NULL;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.alive = stage.alive};
}

static uint32_t select_all(void *ctx, const struct jobs_rank_report **ret_reports, uint32_t max) {
	(void)ctx;
	assert_true(max >= 1 + MANY);
	for (uint32_t n = 0; n < 1 + MANY; n++)
		ret_reports[n] = &stage.reports[n];
	return 1 + MANY;
}

static void count_cut(void *ctx, uint32_t count) {
	(void)ctx;
	stage.cut += count;
}

// Return the number of rows in an answer of this node, and the user of the first row.
static uint32_t rows_in_cluster(uint32_t alive, uint64_t *ret_first_uid) {
	const struct comms_source source = {.select = select_all, .cut = count_cut};
	static uint8_t bytes[RAS_COLLECT_PART_BYTES_MAX];
	struct ras_contribution wanted = {.kind = RAS_COLLECT_COMMS};
	struct comms_share *share;
	uint32_t rows = 0;
	bool more = true;

	stage.alive = alive;
	stage.cut = 0;
	for (uint32_t n = 0; n < 1 + MANY; n++)
		stage.reports[n] = (struct jobs_rank_report
		){.comm_hash = n, .size = 1, .uid = n == 0 ? FEW_UID : MANY_UID};
	assert_int_equal(comms_share_create(NULL, &source, &share), 0);
	for (; more; wanted.part++) {
		struct wire_reader reader, row;
		struct wire_writer writer;
		struct ras_comm_rank rank;
		struct ras_comm head;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		more = stage.contribute(stage.ctx, &wanted, &writer);
		wire_reader_init(&reader, bytes, wire_writer_used(&writer));
		while (ras_comm_row_next(&reader, &row) == 0) {
			const struct ras_comm_rank none = {0};

			assert_int_equal(ras_comm_get(&row, &head), 0);
			if (rows++ == 0)
				*ret_first_uid = head.id.pid_hash;
			for (uint32_t n = 0; n < head.rank_count; n++)
				assert_int_equal(ras_comm_get_rank(&row, &head, &none, &rank), 0);
		}
	}
	comms_share_destroy(share);
	return rows;
}

static void a_node_alone_answers_with_all_ranks(void **state) {
	uint64_t first_uid = 0;

	(void)state;
	assert_int_equal(rows_in_cluster(1, &first_uid), 1 + MANY);
	assert_int_equal(stage.cut, 0);
}

static void a_node_of_many_stays_within_its_share_and_cuts_the_user_with_most(void **state) {
	const uint32_t alive = RAS_COLLECT_BYTES_MAX / 4096;
	uint64_t first_uid = 0;
	uint32_t rows = rows_in_cluster(alive, &first_uid);

	(void)state;
	assert_int_equal(first_uid, FEW_UID);
	assert_in_range(rows, 2, MANY / 2);
	assert_int_equal(stage.cut, 1 + MANY - rows);
}

UNIT_GROUP(comms_share) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_alone_answers_with_all_ranks),
		cmocka_unit_test(a_node_of_many_stays_within_its_share_and_cuts_the_user_with_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
