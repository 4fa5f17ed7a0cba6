// SPDX-License-Identifier: BSD-3-Clause
// Tests of generated meshes: the order of meetings, outliers and their causes, files and messages.
#include "mesh/mesh_flows.h"
#include "mesh/mesh_lead.h"
#include "mesh/mesh_output.h"
#include "mesh/mesh_start.h"
#include "mesh/mesh_wire.h"
#include "report/json.h"
#include "run/proof.h"

#include <lib/clock.h>
#include <lib/scoped.h>
#include <support/cmocka.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES 8
#define USUAL_NS 10000
#define SLOW_NS 25000
#define SAMPLES 1000
#define PATIENCE_NS UINT64_C(30000000000)

static void each_pair_meets_once_in_rounds_of_disjoint_pairs(void **state) {
	(void)state;
	for (uint32_t count = 2; count <= 65; count++) {
		bool *met = calloc((size_t)count * count, sizeof(*met));
		uint32_t pairs = 0;

		assert_non_null(met);
		for (uint32_t round = 0; round < mesh_rounds(count); round++) {
			struct mesh_pair these[MESH_NODES_MAX / 2];
			bool busy[65] = {false};
			uint32_t found = mesh_round(count, round, these);

			assert_int_equal(found, count / 2); // one process rests if the count is odd
			for (uint32_t n = 0; n < found; n++) {
				uint32_t one = these[n].one, other = these[n].other;

				assert_true(one < count && other < count && one != other);
				assert_false(busy[one] || busy[other]);
				busy[one] = busy[other] = true;
				assert_false(met[one * count + other]);
				met[one * count + other] = met[other * count + one] = true;
				pairs++;
			}
		}
		assert_int_equal(pairs, count * (count - 1) / 2);
		free(met);
	}
}

static void fill_cell(struct mesh_cell *cell, uint64_t value_ns) {
	assert_int_equal(mesh_histogram_create(&cell->kept), 0);
	for (uint32_t n = 0; n < SAMPLES; n++)
		histogram_record(cell->kept, value_ns + n % 16);
	for (int n = 0; n < MESH_QUANTILES; n++)
		cell->taus[n] = 1.5;
	mesh_cell_compute(cell);
}

// Two racks of four hosts with one process each. The device name differs between even and odd
// processes.
static void make_mesh(struct mesh *mesh, bool (*is_slow)(uint32_t from, uint32_t to)) {
	struct plan plan = plan_default;

	assert_int_equal(mesh_create(&plan, NODES, mesh), 0);
	for (uint32_t n = 0; n < NODES; n++) {
		struct mesh_node *node = &mesh->nodes[n];

		node->joined = true;
		node->processors = 2;
		snprintf(node->host, sizeof(node->host), "r%un%u", n / 4, n % 4);
		snprintf(node->rack, sizeof(node->rack), "r%un", n / 4);
		snprintf(node->device, sizeof(node->device), "mlx5_%u", n % 2);
	}
	for (uint32_t from = 0; from < NODES; from++) {
		for (uint32_t to = 0; to < NODES; to++) {
			if (from != to)
				fill_cell(
					mesh_cell(mesh, from, to),
					is_slow(from, to) ? SLOW_NS : USUAL_NS
				);
		}
	}
}

static bool none_is_slow(uint32_t from, uint32_t to) {
	(void)from;
	(void)to;
	return false;
}

static bool node_is_slow(uint32_t from, uint32_t to) {
	return from == 3 || to == 3;
}

static bool two_nodes_are_slow(uint32_t from, uint32_t to) {
	return from == 3 || to == 3 || from == 6 || to == 6;
}

static bool source_is_slow(uint32_t from, uint32_t to) {
	(void)to;
	return from == 5;
}

static bool target_is_slow(uint32_t from, uint32_t to) {
	(void)from;
	return to == 2;
}

static bool inside_is_slow(uint32_t from, uint32_t to) {
	return from >= 4 && to >= 4;
}

static bool pair_is_slow(uint32_t from, uint32_t to) {
	return from == 1 && to == 6;
}

static bool node_and_pair_are_slow(uint32_t from, uint32_t to) {
	return node_is_slow(from, to) || pair_is_slow(from, to);
}

static void what_stands_out_is_named_by_what_it_has_in_common(void **state) {
	static const struct {
		bool (*is_slow)(uint32_t from, uint32_t to);
		uint32_t outliers, causes;
		const char *says[2];
	} rows[] = {
		{none_is_slow, 0, 0, {NULL}},
		{node_is_slow,
		 14,
		 1,
		 {"process 3 (r0n3), from it and to it: 14 of 14, 2.50 times"}},
		{two_nodes_are_slow, 26, 2, {"process 3 (r0n3)", "process 6 (r1n2)"}},
		{source_is_slow, 7, 1, {"process 5 (r1n1), from it alone: 7 of 7"}},
		{target_is_slow, 7, 1, {"process 2 (r0n2), to it alone: 7 of 7"}},
		{inside_is_slow, 12, 1, {"inside of rack r1n: 12 of 12"}},
		{pair_is_slow, 1, 1, {"from process 1 (r0n1) to 6 (r1n2): 2.50 times"}},
		{node_and_pair_are_slow,
		 15,
		 2,
		 {"process 3 (r0n3), from it and to it", "from process 1"}},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct mesh_summary summary;
		struct mesh mesh;

		make_mesh(&mesh, rows[n].is_slow);
		assert_int_equal(mesh_summarize(&mesh, &summary), 0);
		assert_int_equal(summary.measured, NODES * (NODES - 1));
		assert_int_equal(summary.outliers, rows[n].outliers);
		assert_int_equal(summary.cause_count, rows[n].causes);
		for (uint32_t cause = 0; cause < rows[n].causes; cause++) {
			char text[LAB_WHY_BYTES];

			mesh_cause_format(&mesh, &summary.causes[cause], text, sizeof(text));
			assert_non_null(strstr(text, rows[n].says[cause]));
		}
		mesh_release(&mesh);
	}
}

// Without racks and with one device name, so that processes and pairs are the only causes.
static void make_small_mesh(struct mesh *mesh, uint32_t count, const uint64_t *values_ns) {
	assert_int_equal(mesh_create(&plan_default, count, mesh), 0);
	for (uint32_t from = 0; from < count; from++) {
		for (uint32_t to = 0; to < count; to++) {
			if (from != to)
				fill_cell(mesh_cell(mesh, from, to), *values_ns++);
		}
	}
}

// Half of all directions or more are those of one process.
static void one_slow_process_of_three_or_four_is_named_by_its_full_factor(void **state) {
	static const struct {
		uint32_t count, outliers;
		uint64_t values_ns[12];
		const char *says;
	} rows[] = {
		{3, 4, {80000, 10000, 80000, 80000, 10000, 80000}, "process 1 (): 4 of 4, 8.0"},
		{3, 4, {13000, 10000, 13000, 13000, 10000, 13000}, "process 1 (): 4 of 4, 1.3"},
		{4,
		 6,
		 {10000, 10000, 80000, 10000, 10000, 80000, 10000, 10000, 80000, 80000, 80000,
		  80000},
		 "process 3 (): 6 of 6, 8.0"},
		{4,
		 6,
		 {13000, 13000, 13000, 13000, 10000, 10000, 13000, 10000, 10000, 13000, 10000,
		  10000},
		 "process 0 (): 6 of 6, 1.3"},
		// All are alike, or the directions between the others differ, too.
		{3, 0, {10000, 10100, 10200, 10300, 10400, 10500}, NULL},
		{3, 0, {40000, 40000, 40000, 15000, 40000, 40000}, NULL},
		// One of four directions of process 1 is as fast as those between the others.
		{3, 0, {30000, 20000, 30000, 30000, 20000, 20000}, NULL},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct mesh_summary summary;
		char text[LAB_WHY_BYTES] = "";
		struct mesh mesh;

		make_small_mesh(&mesh, rows[n].count, rows[n].values_ns);
		assert_int_equal(mesh_summarize(&mesh, &summary), 0);
		assert_int_equal(summary.outliers, rows[n].outliers);
		assert_int_equal(summary.cause_count, rows[n].says != NULL);
		if (rows[n].says != NULL) {
			mesh_cause_format(&mesh, &summary.causes[0], text, sizeof(text));
			assert_true(summary.median_ns < 10200); // the baseline
			assert_non_null(strstr(text, strchr(rows[n].says, ':')));
			assert_memory_equal(text, rows[n].says, strlen("process 1"));
		}
		mesh_release(&mesh);
	}
}

static void a_slow_direction_with_a_wide_interval_is_undecided(void **state) {
	static const uint64_t usual[] = {10000, 10000, 10000, 10000, 10000, 10000};
	struct mesh_summary summary;
	struct mesh mesh;

	(void)state;
	make_small_mesh(&mesh, 3, usual);
	mesh_cell(&mesh, 0, 1)->quantiles[0].value_ns = 20000;
	mesh_cell(&mesh, 1, 0)->quantiles[0].known = false;
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(summary.outliers, 0);
	assert_int_equal(summary.undecided, 2);
	mesh_release(&mesh);
}

// Only cells between racks 0 and 1 are slow, of sixteen hosts in four racks.
static bool racks_are_slow(uint32_t from, uint32_t to) {
	return from / 4 != to / 4 && from / 4 + to / 4 == 1;
}

static bool rail_is_slow(uint32_t from, uint32_t to) {
	return from % 4 == 1 || to % 4 == 1;
}

static void racks_and_rails_are_told_from_nodes(void **state) {
	static const struct {
		bool (*is_slow)(uint32_t from, uint32_t to);
		const char *says;
	} rows[] = {
		{racks_are_slow, "between racks s0 and s1: 32 of 32"},
		{rail_is_slow, "devices named mlx5_1: 108 of 108"},
	};

	(void)state;
	for (size_t row = 0; row < 2; row++) {
		struct plan plan = plan_default;
		struct mesh_summary summary;
		char text[LAB_WHY_BYTES];
		struct mesh mesh;

		assert_int_equal(mesh_create(&plan, 16, &mesh), 0);
		for (uint32_t from = 0; from < 16; from++) {
			struct mesh_node *node = &mesh.nodes[from];

			snprintf(node->host, sizeof(node->host), "n%u", from);
			snprintf(node->rack, sizeof(node->rack), "s%u", from / 4);
			snprintf(node->device, sizeof(node->device), "mlx5_%u", from % 4);
			for (uint32_t to = 0; to < 16; to++) {
				if (from != to)
					fill_cell(
						mesh_cell(&mesh, from, to),
						rows[row].is_slow(from, to) ? SLOW_NS : USUAL_NS
					);
			}
		}
		assert_int_equal(mesh_summarize(&mesh, &summary), 0);
		assert_int_equal(summary.cause_count, 1);
		mesh_cause_format(&mesh, &summary.causes[0], text, sizeof(text));
		assert_non_null(strstr(text, rows[row].says));
		mesh_release(&mesh);
	}
}

// All samples of a fast direction may lie in one bucket of 0.8 %. Their position within the bucket
// is unknown.
static void an_interval_within_a_bucket_is_the_bucket(void **state) {
	struct mesh_cell cell = {.taus = {1, 1, 1}};
	const struct mesh_quantile *median = &cell.quantiles[0];

	(void)state;
	assert_int_equal(mesh_histogram_create(&cell.kept), 0);
	for (uint64_t n = 0; n < 1000; n++)
		histogram_record(cell.kept, 1000000 + n % 100 * 20);
	mesh_cell_compute(&cell);
	assert_true(median->low_ns <= 1000000 + 20 && median->high_ns >= 1000000 + 98 * 20);
	assert_true(median->low_ns < median->value_ns && median->value_ns < median->high_ns);
	histogram_destroy(cell.kept);
}

static void a_matrix_with_holes_is_summed_up(void **state) {
	struct mesh_summary summary;
	struct mesh_cell *hole;
	struct mesh mesh;

	(void)state;
	make_mesh(&mesh, node_is_slow);
	hole = mesh_cell(&mesh, 3, 0);
	histogram_destroy(hole->kept);
	memset(hole, 0, sizeof(*hole));
	snprintf(hole->why, sizeof(hole->why), "it took too long");
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(summary.measured, summary.wanted - 1);
	assert_int_equal(summary.causes[0].kind, MESH_NODE);
	assert_int_equal(summary.causes[0].of, 13);
	mesh_release(&mesh);
	// A mesh without any measured cell.
	assert_int_equal(mesh_create(&plan_default, 2, &mesh), 0);
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(summary.measured, 0);
	assert_int_equal(summary.median_ns, 0);
	mesh_release(&mesh);
}

static int verify(const json_t *root, struct lab_why *why) {
	char path[] = "/tmp/tocsin-lab-mesh-XXXXXX";
	scoped_fd int fd = mkstemp(path);
	json_t *read = NULL;
	int err;

	assert_true(fd >= 0);
	assert_int_equal(json_dumpfd(root, fd, JSON_COMPACT | JSON_REAL_PRECISION(17)), 0);
	why->text[0] = '\0';
	err = verify_load(path, why, &read);
	json_decref(read);
	unlink(path);
	return err;
}

static json_t *cell_of(json_t *root, size_t place) {
	return json_array_get(json_object_get(root, "cells"), place);
}

static void the_file_of_a_mesh_is_verified_and_a_change_named(void **state) {
	struct mesh_summary summary;
	struct lab_why why;
	struct mesh mesh;
	json_t *root;

	(void)state;
	make_mesh(&mesh, node_is_slow);
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(mesh_to_json(&mesh, &summary, &root), 0);
	mesh_release(&mesh);
	assert_int_equal(verify(root, &why), 0);
	json_object_set_new(
		json_object_get(json_object_get(cell_of(root, 5), "figures"), "p50"), "low_ns",
		json_integer(7)
	);
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "cells[5].figures.p50.low_ns is 7"));
	json_object_set_new(cell_of(root, 5), "count", json_integer(SAMPLES + 1));
	assert_int_equal(verify(root, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "cells[5]: taus, kept or why is missing or invalid"));
	json_object_set(cell_of(root, 5), "from", json_object_get(cell_of(root, 6), "from"));
	json_object_set(cell_of(root, 5), "to", json_object_get(cell_of(root, 6), "to"));
	json_object_set_new(cell_of(root, 5), "count", json_integer(SAMPLES));
	assert_int_equal(verify(root, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "cells[6] repeats the direction of an earlier cell"));
	json_object_set_new(root, "processes", json_array());
	assert_int_equal(verify(root, &why), -EBADMSG);
	json_decref(root);
}

static void rates_of_several_flows_are_summed_up_in_the_file(void **state) {
	struct mesh_pair pairs[MESH_NODES_MAX];
	struct mesh_summary summary;
	struct lab_why why;
	char text[LAB_WHY_BYTES];
	struct mesh mesh;
	json_t *root, *row;

	(void)state;
	make_mesh(&mesh, node_is_slow);
	mesh.plan.command = PLAN_BW;
	assert_int_equal(mesh_flows_create(&mesh, true, true), 0);
	assert_int_equal(mesh_flows_choose_round(&mesh, pairs), NODES / 2);
	for (uint32_t n = 0; n < NODES / 2; n++) // of two racks all pairs of a round can be apart
		assert_int_not_equal(pairs[n].one / 4, pairs[n].other / 4);
	mesh_flows_store(&mesh, MESH_FLOW_ALONE, 2, 5, 8192);
	mesh_flows_store(&mesh, MESH_FLOW_TOGETHER, 2, 5, 32768);
	mesh_flows_store(&mesh, MESH_FLOW_INCAST, 0, 6, 8192);
	mesh_flows_store(&mesh, MESH_FLOW_INCAST, 1, 6, 16384);
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	mesh_cause_format(&mesh, &summary.causes[0], text, sizeof(text));
	assert_string_equal(
		text, "process 3 (r0n3), from it and to it: 14 of 14, 40 % of the baseline"
	);
	assert_int_equal(mesh_to_json(&mesh, &summary, &root), 0);
	mesh_release(&mesh);
	assert_int_equal(verify(root, &why), 0);
	assert_int_equal(json_array_size(json_object_get(root, "congestion")), 1);
	row = json_array_get(json_object_get(root, "congestion"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "to")), 5);
	assert_true(
		json_number_value(json_object_get(row, "alone_gbits")) ==
		4 * json_number_value(json_object_get(row, "together_gbits"))
	);
	row = json_array_get(json_object_get(root, "incast"), 0);
	assert_int_equal((int)json_number_value(json_object_get(row, "gbits")), 1024 + 512);
	assert_true(json_number_value(json_object_get(row, "slowest_gbits")) == 512);
	json_object_set_new(row, "gbits", json_real(1));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "digests.incast"));
	json_object_set_new(json_object_get(root, "plan"), "op", json_string("push"));
	assert_int_equal(verify(root, &why), -EBADMSG);
	json_decref(root);
}

static void a_cause_that_was_changed_in_a_file_is_named(void **state) {
	struct mesh_summary summary;
	struct lab_why why;
	struct mesh mesh;
	json_t *root, *causes;

	(void)state;
	make_mesh(&mesh, node_is_slow);
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(mesh_to_json(&mesh, &summary, &root), 0);
	mesh_release(&mesh);
	causes = json_object_get(json_object_get(root, "summary"), "causes");
	json_object_set_new(json_array_get(causes, 0), "one", json_integer(4));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "summary.causes[0].one is 4"));
	json_decref(root);
}

// All directions share one histogram, with values far apart.
static void make_large_mesh(struct mesh *mesh, uint32_t count) {
	struct mesh_cell cell = {.taus = {1.5, 1.5, 1.5}};

	assert_int_equal(mesh_create(&plan_default, count, mesh), 0);
	assert_int_equal(mesh_histogram_create(&cell.kept), 0);
	for (uint64_t n = 0; n < SAMPLES; n++)
		histogram_record(cell.kept, 10000000 + n * n * 1000);
	mesh_cell_compute(&cell);
	for (uint32_t n = 0; n < count * count; n++) {
		if (n / count != n % count)
			mesh->cells[n] = cell;
	}
	for (uint32_t n = 0; n < count; n++)
		mesh->nodes[n].joined = true;
}

static void release_large_mesh(struct mesh *mesh) {
	for (uint32_t n = 2; n < mesh->count * mesh->count; n++)
		mesh->cells[n].kept = NULL;
	mesh_release(mesh);
}

static void the_file_of_any_mesh_is_bounded_and_what_stands_out_verified(void **state) {
	static const struct {
		uint32_t count;
		bool matrices;
	} rows[] = {{16, false}, {MESH_NODES_MAX, true}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct mesh_summary summary;
		struct lab_why why;
		struct mesh mesh;
		json_t *root;

		make_large_mesh(&mesh, rows[n].count);
		mesh_cell(&mesh, 1, 3)->quantiles[0].value_ns *= 10;
		mesh_cell(&mesh, 1, 3)->quantiles[0].low_ns *= 10;
		if (rows[n].matrices)
			mesh_cell(&mesh, 2, 3)->measured = false;
		assert_int_equal(mesh_summarize(&mesh, &summary), 0);
		assert_int_equal(summary.outliers, 1);
		if (!rows[n].matrices) // with stored histograms, figures are computed from them
			mesh_cell_compute(mesh_cell(&mesh, 1, 3));
		assert_int_equal(mesh_summarize(&mesh, &summary), 0);
		assert_int_equal(mesh_to_json(&mesh, &summary, &root), 0);
		release_large_mesh(&mesh);
		assert_int_equal(json_object_get(root, "matrices") != NULL, rows[n].matrices);
		assert_in_range(
			json_dumpb(root, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(17)), 1,
			RESULT_FILE_BYTES
		);
		(void)verify(root, &why);
		assert_string_equal(why.text, "");
		json_decref(root);
	}
}

static json_t *matrix_row(json_t *root, const char *key, size_t from) {
	return json_array_get(json_object_get(json_object_get(root, "matrices"), key), from);
}

static void a_matrix_that_was_changed_in_a_file_is_named(void **state) {
	struct mesh_summary summary;
	struct lab_why why;
	struct mesh mesh;
	json_t *root;

	(void)state;
	make_large_mesh(&mesh, MESH_NODES_MAX);
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(mesh_to_json(&mesh, &summary, &root), 0);
	release_large_mesh(&mesh);
	json_array_set_new(matrix_row(root, "p50_low_ns", 4), 7, json_integer(1));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "digests.matrices is"));
	json_array_set_new(matrix_row(root, "p50_ns", 4), 7, json_integer(1));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "summary.min_ns is"));
	json_array_set_new(matrix_row(root, "p50_ns", 4), 7, json_null());
	assert_int_equal(verify(root, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "matrices.p50_low_ns[4][7] is missing or invalid"));
	json_decref(root);
}

static void single_pairs_are_told_from_the_slowest_on(void **state) {
	struct mesh_summary summary;
	struct mesh mesh;

	(void)state;
	make_mesh(&mesh, none_is_slow);
	for (uint32_t n = 0; n < 3; n++) {
		struct mesh_cell *cell = mesh_cell(&mesh, 2 * n, 2 * n + 1);

		cell->quantiles[0].value_ns = cell->quantiles[0].low_ns = (n + 2) * USUAL_NS;
	}
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(summary.cause_count, 3);
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(summary.causes[n].one, 4 - 2 * n);
	mesh_release(&mesh);
}

static void of_two_directions_none_stands_out(void **state) {
	struct mesh_summary summary;
	struct mesh mesh;

	(void)state;
	assert_int_equal(mesh_create(&plan_default, 2, &mesh), 0);
	fill_cell(mesh_cell(&mesh, 0, 1), USUAL_NS);
	fill_cell(mesh_cell(&mesh, 1, 0), 8 * USUAL_NS);
	assert_int_equal(mesh_summarize(&mesh, &summary), 0);
	assert_int_equal(summary.outliers, 0);
	assert_int_equal(summary.cause_count, 0);
	assert_int_equal(summary.median_ns, (summary.min_ns + summary.max_ns) / 2);
	mesh_release(&mesh);
}

// Send an answer and return the received message; the test may then truncate it.
static struct channel_message
take_frame(struct channel *ends, enum channel_kind kind, const struct mesh_answer *answer) {
	struct channel_message message;
	struct lab_why why = {.text = ""};

	assert_int_equal(mesh_send_answer(&ends[0], kind, answer, &why), 0);
	assert_int_equal(channel_receive(&ends[1], deadline_never(), &message, &why), 0);
	return message;
}

static void an_answer_is_read_as_it_was_sent_or_refused(void **state) {
	static struct channel ends[2];
	struct mesh_answer answer = {.order = 9, .port = 4711, .device = "a", .their_device = "b"};
	struct mesh_answer read = {.order = 0};
	struct channel_message message;
	struct lab_why why = {.text = ""};
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ends[0].fd = fds[0];
	ends[1].fd = fds[1];
	ends[0].signal_fd = ends[1].signal_fd = -1;
	assert_int_equal(mesh_histogram_create(&answer.kept), 0);
	for (uint32_t n = 0; n < SAMPLES; n++)
		histogram_record(answer.kept, USUAL_NS + 37 * n);
	for (int n = 0; n < MESH_QUANTILES; n++)
		answer.taus[n] = 1 + n;
	message = take_frame(ends, CHANNEL_MESH_RESULT, &answer);
	assert_int_equal(mesh_read_answer(&message, &read, &why), 0);
	assert_int_equal(read.order, 9);
	assert_true(read.taus[2] == 3);
	assert_int_equal(
		histogram_percentile(read.kept, 500000), histogram_percentile(answer.kept, 500000)
	);
	histogram_destroy(read.kept);
	for (size_t size = 0; size < message.size; size++) {
		struct channel_message cut = {message.kind, message.bytes, size};

		assert_int_equal(mesh_read_answer(&cut, &read, &why), -EBADMSG);
	}
	answer.taus[1] = 0.5; // not a valid autocorrelation time
	message = take_frame(ends, CHANNEL_MESH_RESULT, &answer);
	assert_int_equal(mesh_read_answer(&message, &read, &why), -EBADMSG);
	histogram_clear(answer.kept);
	answer.taus[1] = 1;
	message = take_frame(ends, CHANNEL_MESH_RESULT, &answer); // no samples
	assert_int_equal(mesh_read_answer(&message, &read, &why), -EBADMSG);
	histogram_destroy(answer.kept);
	close(fds[0]);
	close(fds[1]);
}

// The sender of an order is not trusted, and may request more pairs than the plan allows.
static void an_order_of_a_plan_that_cannot_be_is_refused(void **state) {
	static const uint32_t pairs[] = {1, 0, 2, PLAN_PAIRS_MAX + 1, UINT32_MAX};
	static struct channel ends[2];
	struct channel_message message;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ends[0].fd = fds[0];
	ends[1].fd = fds[1];
	ends[0].signal_fd = ends[1].signal_fd = -1;
	for (size_t n = 0; n < sizeof(pairs) / sizeof(pairs[0]); n++) {
		struct mesh_order order = {.number = 3, .plan = plan_default}, read;
		struct lab_why why = {.text = ""};

		order.plan.pairs = pairs[n];
		assert_int_equal(mesh_send_order(&ends[0], CHANNEL_MESH_SERVE, &order, &why), 0);
		assert_int_equal(channel_receive(&ends[1], deadline_never(), &message, &why), 0);
		assert_int_equal(mesh_read_order(&message, &read, &why), n == 0 ? 0 : -EBADMSG);
	}
	close(fds[0]);
	close(fds[1]);
}

// Any host that can connect may claim to be a process of the mesh. So its texts may hold terminal
// escapes.
static void what_a_process_says_of_itself_gives_a_terminal_no_orders(void **state) {
	static const char hostile[] = "n\x1b[2J\a\n\xc2\x9b"
				      "1m";
	static const char harmless[] = "n?[2J???1m";
	static struct channel ends[2];
	struct mesh_join join = {.rank = 1, .count = 2}, joined;
	struct mesh_answer answer = {.order = 9}, read;
	struct channel_message message;
	struct lab_why why = {.text = ""};
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ends[0].fd = fds[0];
	ends[1].fd = fds[1];
	ends[0].signal_fd = ends[1].signal_fd = -1;
	memcpy(answer.why, hostile, sizeof(hostile));
	message = take_frame(ends, CHANNEL_MESH_FAILED, &answer);
	assert_int_equal(mesh_read_answer(&message, &read, &why), 0);
	assert_string_equal(read.why, harmless);
	memcpy(join.node.host, hostile, sizeof(hostile));
	memcpy(join.node.rack, hostile, sizeof(hostile));
	assert_int_equal(mesh_send_join(&ends[0], &join, &why), 0);
	assert_int_equal(channel_receive(&ends[1], deadline_never(), &message, &why), 0);
	assert_int_equal(mesh_read_join(&message, &joined, &why), 0);
	assert_string_equal(joined.node.host, harmless);
	assert_string_equal(joined.node.rack, harmless);
	(void)lab_fail(&why, -EINVAL, "%s \"is\" \\ none", hostile);
	assert_string_equal(why.text, "n?[2J???1m \"is\" \\ none");
	close(fds[0]);
	close(fds[1]);
}

// Run a lead that waits at most 1 ns for an answer. Its two members send only their join message,
// after a proof that an open gate does not ask for.
static void lead_two_that_are_silent(struct mesh *mesh) {
	const struct sock_addr here = channel_loopback();
	struct mesh_lead lead = {.patience_ns = PATIENCE_NS, .answer_ns = 1, .signal_fd = -1};
	const struct proof_secrets open_to_all = {.open = true};
	uint8_t knock[PROOF_MESSAGE_BYTES];
	struct channel_listener listener;
	struct lab_why why = {.text = ""};
	static struct channel members[2];

	lead.quiet = true;
	lead.listener = &listener;
	lead.secrets = &open_to_all;
	assert_int_equal(channel_bind(&here, &listener, &why), 0);
	assert_int_equal(channel_listen(&listener, &why), 0);
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct mesh_join join = {.version = TOCSIN_VERSION, .rank = rank, .count = 2};
		struct deadline soon = deadline_after(clock_monotonic_ns(), PATIENCE_NS);
		struct proof proof = {.secret = NULL};
		struct wire_writer writer;

		assert_int_equal(
			channel_connect(&listener.address, -1, soon, &members[rank], &why), 0
		);
		wire_writer_init(&writer, knock, sizeof(knock));
		proof_knock(&proof, &open_to_all, &writer);
		assert_int_equal(
			channel_send_written(&members[rank], CHANNEL_KNOCK, knock, &writer, &why), 0
		);
		assert_int_equal(mesh_send_join(&members[rank], &join, &why), 0);
	}
	assert_int_equal(mesh_lead_run(&lead, mesh, &why), 0);
	for (uint32_t rank = 0; rank < 2; rank++)
		channel_close(&members[rank]);
	channel_listener_close(&listener);
}

// A process that did not answer is not waited for again in its other meetings.
static void a_process_that_hangs_is_lost(void **state) {
	struct mesh mesh;

	(void)state;
	assert_int_equal(mesh_create(&plan_default, 2, &mesh), 0);
	lead_two_that_are_silent(&mesh);
	assert_false(mesh.nodes[0].lost);
	assert_true(mesh.nodes[1].lost);
	assert_string_equal(mesh_cell(&mesh, 0, 1)->why, "process 1: does not answer");
	assert_string_equal(mesh_cell(&mesh, 1, 0)->why, "process 1 left the mesh");
	mesh_release(&mesh);
}

// A direction that is slow in one run and usual in another does not stand out, in either order.
static void a_direction_stands_out_only_if_it_does_in_each_run(void **state) {
	static const double taus[MESH_QUANTILES] = {1.5, 1.5, 1.5};
	static const struct {
		uint64_t first_ns, second_ns;
		uint32_t outliers;
	} rows[] = {
		{SLOW_NS, USUAL_NS, 0},
		{USUAL_NS, SLOW_NS, 0},
		{SLOW_NS, SLOW_NS, 1},
	};

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct mesh_summary summary;
		struct mesh_cell *cell;
		struct mesh mesh;

		make_mesh(&mesh, none_is_slow);
		cell = mesh_cell(&mesh, 1, 2);
		for (int run = 0; run < 2; run++) {
			struct mesh_cell drawn = {.kept = NULL};

			fill_cell(&drawn, run == 0 ? rows[r].first_ns : rows[r].second_ns);
			cell->measured &= run > 0; // replace the run of make_mesh()
			mesh_cell_add_run(cell, drawn.kept, taus);
		}
		assert_int_equal(mesh_summarize(&mesh, &summary), 0);
		assert_int_equal(summary.outliers, rows[r].outliers);
		mesh_release(&mesh);
	}
}

// The listener is closed if another file is in the place of the rendezvous file.
static void a_lead_that_cannot_write_its_place_does_not_listen(void **state) {
	char path[] = "/tmp/tocsin-lab-mesh-XXXXXX";
	const struct mesh_options options = {.port = 0};
	const struct mesh_member member = {.place = path};
	struct channel_listener listener;
	struct lab_why why = {.text = ""};
	int fd = mkstemp(path), before;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "notes", 5), 5);
	before = dup(fd);
	close(before);
	assert_int_equal(mesh_publish_lead(&options, &member, "", &listener, &why), -EBADMSG);
	assert_int_equal(dup(fd), before); // the lowest free descriptor is the same
	close(before);
	close(fd);
	unlink(path);
}

static void a_direction_may_take_as_long_as_its_samples(void **state) {
	struct plan plan = plan_default;
	uint64_t few_ns;

	(void)state;
	plan.iterations = 1000;
	few_ns = mesh_direction_ns(&plan);
	assert_true(few_ns >= UINT64_C(60000000000));
	plan.iterations = 200000; // 1 ms each, as over a long distance
	assert_true(mesh_direction_ns(&plan) > few_ns + UINT64_C(200000000000));
	plan.iterations = 1000;
	plan.sizes[0] = PLAN_SIZE_BYTES_MAX; // 140 ms each, as with Soft-RoCE
	assert_true(mesh_direction_ns(&plan) > few_ns + UINT64_C(280000000000));
}

UNIT_GROUP(lab_mesh) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pair_meets_once_in_rounds_of_disjoint_pairs),
		cmocka_unit_test(what_stands_out_is_named_by_what_it_has_in_common),
		cmocka_unit_test(a_direction_stands_out_only_if_it_does_in_each_run),
		cmocka_unit_test(one_slow_process_of_three_or_four_is_named_by_its_full_factor),
		cmocka_unit_test(a_slow_direction_with_a_wide_interval_is_undecided),
		cmocka_unit_test(racks_and_rails_are_told_from_nodes),
		cmocka_unit_test(an_interval_within_a_bucket_is_the_bucket),
		cmocka_unit_test(a_matrix_with_holes_is_summed_up),
		cmocka_unit_test(the_file_of_a_mesh_is_verified_and_a_change_named),
		cmocka_unit_test(rates_of_several_flows_are_summed_up_in_the_file),
		cmocka_unit_test(a_cause_that_was_changed_in_a_file_is_named),
		cmocka_unit_test(the_file_of_any_mesh_is_bounded_and_what_stands_out_verified),
		cmocka_unit_test(a_matrix_that_was_changed_in_a_file_is_named),
		cmocka_unit_test(single_pairs_are_told_from_the_slowest_on),
		cmocka_unit_test(of_two_directions_none_stands_out),
		cmocka_unit_test(an_answer_is_read_as_it_was_sent_or_refused),
		cmocka_unit_test(an_order_of_a_plan_that_cannot_be_is_refused),
		cmocka_unit_test(what_a_process_says_of_itself_gives_a_terminal_no_orders),
		cmocka_unit_test(a_process_that_hangs_is_lost),
		cmocka_unit_test(a_lead_that_cannot_write_its_place_does_not_listen),
		cmocka_unit_test(a_direction_may_take_as_long_as_its_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
