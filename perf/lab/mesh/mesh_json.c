// SPDX-License-Identifier: BSD-3-Clause
// Conversion of a mesh to JSON and back.
#include "mesh/mesh_flows.h"
#include "mesh/mesh_matrices.h"
#include "mesh/mesh_output.h"
#include "report/json.h"
#include "report/output.h"

#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TAU_MAX 1e9
// Space in a file for everything except the directions: processes, causes and failures.
#define OTHER_PARTS_BYTES ((size_t)256 << 10)

static const char *const quantile_keys[MESH_QUANTILES] = {"p50", "p90", "p99"};

static json_t *json_uint(uint64_t value) {
	return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

static json_t *nodes_json(const struct mesh *mesh) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < mesh->count; n++) {
		const struct mesh_node *node = &mesh->nodes[n];

		failed |= json_array_append_new(
			array,
			json_pack(
				"{s:I s:s s:s s:s s:s s:I s:b s:b}", "process", (json_int_t)n,
				"host", node->host, "machine", node->machine, "rack", node->rack,
				"device", node->device, "processors", (json_int_t)node->processors,
				"joined", node->joined, "lost", node->lost
			)
		);
	}
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *cell_json(const struct mesh *mesh, uint32_t from, uint32_t to) {
	const struct mesh_cell *cell = mesh_cell(mesh, from, to);
	const struct mesh_quantile *p50 = &cell->quantiles[0];
	json_t *figures;
	int failed = 0;

	if (!cell->measured)
		return json_pack(
			"{s:I s:I s:I s:s}", "from", (json_int_t)from, "to", (json_int_t)to,
			"count", (json_int_t)0, "why", cell->why
		);
	figures = json_pack(
		"{s:I s:I}", "min_ns", (json_int_t)cell->min_ns, "max_ns", (json_int_t)cell->max_ns
	);
	for (int n = 0; n < MESH_QUANTILES; n++) {
		const struct mesh_quantile *quantile = &cell->quantiles[n];

		failed |= json_object_set_new(
			figures, quantile_keys[n],
			quantile->known ? json_pack(
						  "{s:I s:I s:I}", "value_ns",
						  (json_int_t)quantile->value_ns, "low_ns",
						  (json_int_t)quantile->low_ns, "high_ns",
						  (json_int_t)quantile->high_ns
					  )
					: json_null()
		);
	}
	if (mesh_is_bandwidth(mesh))
		failed |= json_object_set_new(
			figures, "p50_gbits",
			p50->known ? json_real(mesh_gbits(p50->value_ns)) : json_null()
		);
	if (failed != 0) {
		json_decref(figures);
		return NULL;
	}
	return json_pack(
		"{s:I s:I s:I s:[f,f,f] s:o s:o}", "from", (json_int_t)from, "to", (json_int_t)to,
		"count", (json_int_t)cell->count, "taus", cell->taus[0], cell->taus[1],
		cell->taus[2], "kept", histogram_rows_to_json(cell->kept), "figures", figures
	);
}

static json_t *cells_json(const struct mesh *mesh) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count && failed == 0; to++) {
			if (from != to)
				failed |= json_array_append_new(array, cell_json(mesh, from, to));
		}
	}
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

// Store the histograms of all directions if they fit into a file, else the matrices of figures.
// Each histogram is built, measured and freed: all of them together may not fit into memory.
static int put_directions(json_t *root, const struct mesh *mesh) {
	size_t bytes = OTHER_PARTS_BYTES;

	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count && bytes <= RESULT_FILE_BYTES; to++) {
			json_t *cell = from != to ? cell_json(mesh, from, to) : json_null();

			if (cell == NULL)
				return -ENOMEM;
			bytes += json_dumpb(cell, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(17));
			bytes++; // for the comma
			json_decref(cell);
		}
	}
	return bytes <= RESULT_FILE_BYTES ? json_object_set_new(root, "cells", cells_json(mesh))
					  : mesh_matrices_put(root, mesh);
}

static json_t *summary_json(const struct mesh *mesh, const struct mesh_summary *summary) {
	json_t *causes = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < summary->cause_count; n++) {
		const struct mesh_cause *cause = &summary->causes[n];
		char says[LAB_WHY_BYTES];

		mesh_cause_format(mesh, cause, says, sizeof(says));
		failed |= json_array_append_new(
			causes, json_pack(
					"{s:s s:I s:I s:I s:I s:f s:s}", "kind",
					mesh_cause_name(cause->kind), "one", (json_int_t)cause->one,
					"other", (json_int_t)cause->other, "cells",
					(json_int_t)cause->cells, "of", (json_int_t)cause->of,
					"ratio", cause->ratio, "says", says
				)
		);
	}
	if (failed != 0) {
		json_decref(causes);
		return NULL;
	}
	return json_pack(
		"{s:I s:I s:I s:I s:I s:I s:I s:I s:o}", "wanted", (json_int_t)summary->wanted,
		"measured", (json_int_t)summary->measured, "median_ns",
		(json_int_t)summary->median_ns, "min_ns", (json_int_t)summary->min_ns, "max_ns",
		(json_int_t)summary->max_ns, "outliers", (json_int_t)summary->outliers, "undecided",
		(json_int_t)summary->undecided, "unexplained", (json_int_t)summary->unexplained,
		"causes", causes
	);
}

int mesh_to_json(
	const struct mesh *mesh, const struct mesh_summary *summary, struct json_t **ret_json
) {
	json_t *root = json_object();
	char started[SHOW_BYTES];
	int failed = 0;

	show_time(mesh->started_ns, started);
	failed |= json_object_set_new(root, "schema", json_string(MESH_JSON_SCHEMA));
	failed |= json_object_set_new(root, "program", json_string("tocsin-perf " TOCSIN_VERSION));
	failed |= json_object_set_new(root, "started", json_string(started));
	failed |= json_object_set_new(root, "incomplete", json_string(mesh->partial));
	failed |= json_object_set_new(root, "took_ns", json_uint(mesh->took_ns));
	failed |= json_object_set_new(root, "at_once", json_uint(mesh->at_once));
	failed |= json_object_set_new(root, "measured_again", json_uint(mesh->measured_again));
	failed |= json_object_set_new(root, "shared_host", json_boolean(mesh_is_shared_host(mesh)));
	failed |= json_object_set_new(root, "plan", plan_to_json(&mesh->plan));
	failed |= json_object_set_new(root, "processes", nodes_json(mesh));
	failed |= put_directions(root, mesh);
	failed |= mesh_flows_put(root, mesh);
	failed |= json_object_set_new(root, "summary", summary_json(mesh, summary));
	if (failed == 0)
		failed = json_add_digests(root);
	if (failed != 0) {
		json_decref(root);
		return -ENOMEM;
	}
	*ret_json = root;
	return 0;
}

int mesh_write_json(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
) {
	json_t *root;
	FILE *file;
	int err = mesh_to_json(mesh, summary, &root), failed;

	if (err != 0)
		return lab_fail(why, err, "no memory for JSON");
	err = output_open(path, why, &file);
	if (err != 0) {
		json_decref(root);
		return err;
	}
	failed = json_dumpf(root, file, JSON_COMPACT | JSON_REAL_PRECISION(17));
	fputc('\n', file);
	json_decref(root);
	err = output_close(path, file, why);
	return err == 0 && failed != 0 ? lab_fail(why, -EIO, "%s cannot be written", path) : err;
}

static bool get_text(const json_t *object, const char *key, char *text, size_t size) {
	const char *value = json_string_value(json_object_get(object, key));

	if (value == NULL || strlen(value) >= size)
		return false;
	memcpy(text, value, strlen(value) + 1);
	return true;
}

static bool get_number(const json_t *object, const char *key, uint64_t max, uint64_t *ret_value) {
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > max)
		return false;
	*ret_value = (uint64_t)json_integer_value(value);
	return true;
}

static int read_histogram(const json_t *json, struct mesh_cell *cell) {
	const json_t *taus = json_object_get(json, "taus");
	int err = mesh_histogram_create(&cell->kept);

	for (size_t n = 0; n < MESH_QUANTILES && err == 0; n++) {
		cell->taus[n] = json_number_value(json_array_get(taus, n));
		if (!(cell->taus[n] >= 1 && cell->taus[n] <= TAU_MAX))
			err = -EBADMSG;
	}
	if (err == 0)
		err = histogram_fill(json_object_get(json, "kept"), cell->count, cell->kept);
	if (err == 0)
		mesh_cell_compute(cell);
	return err;
}

static int read_cells(const json_t *cells, struct mesh *mesh, struct lab_why *why) {
	size_t size = (size_t)mesh->count * (mesh->count - 1);

	if (json_array_size(cells) != size)
		return lab_fail(
			why, -EBADMSG,
			"cells must have one entry for each ordered pair of processes"
		);
	for (size_t n = 0; n < size; n++) {
		const json_t *json = json_array_get(cells, n);
		uint64_t from, to, count;
		struct mesh_cell *cell;
		int err = 0;

		if (!get_number(json, "from", mesh->count - 1, &from) ||
		    !get_number(json, "to", mesh->count - 1, &to) ||
		    !get_number(json, "count", RECORD_RAW_MAX, &count) || from == to)
			return lab_fail(
				why, -EBADMSG,
				"cells[%zu]: from, to or count is missing or out of range", n
			);
		cell = mesh_cell(mesh, (uint32_t)from, (uint32_t)to);
		if (cell->kept != NULL)
			return lab_fail(
				why, -EBADMSG,
				"cells[%zu] repeats the direction of an earlier cell", n
			);
		cell->count = count;
		if (count > 0)
			err = read_histogram(json, cell);
		else if (!get_text(json, "why", cell->why, sizeof(cell->why)))
			err = -EBADMSG;
		if (err != 0)
			return lab_fail(
				why, err, "cells[%zu]: taus, kept or why is missing or invalid", n
			);
	}
	return 0;
}

// Read the parts of the plan that the figures and titles need; the other ones keep their default.
static int read_plan(const json_t *json, struct plan *plan, struct lab_why *why) {
	const char *command = json_string_value(json_object_get(json, "command"));
	const char *op = json_string_value(json_object_get(json, "op"));
	const json_t *sizes = json_object_get(json, "sizes_bytes");

	*plan = plan_default;
	if (command != NULL && strcmp(command, plan_command_name(PLAN_BW)) == 0)
		plan->command = PLAN_BW;
	if (op == NULL || plan_op_parse(op, &plan->op) != 0 || json_array_size(sizes) != 1 ||
	    json_integer_value(json_array_get(sizes, 0)) <= 0)
		return lab_fail(why, -EBADMSG, "plan: op or sizes_bytes is missing or invalid");
	plan->sizes[0] = (uint64_t)json_integer_value(json_array_get(sizes, 0));
	return 0;
}

int mesh_from_json(const json_t *root, struct lab_why *why, struct mesh *ret_mesh) {
	const json_t *nodes = json_object_get(root, "processes");
	size_t count = json_array_size(nodes);
	struct plan plan;
	int err;

	if (count < 2 || count > MESH_NODES_MAX)
		return lab_fail(
			why, -EBADMSG, "processes must be an array of 2 to %u entries",
			MESH_NODES_MAX
		);
	err = read_plan(json_object_get(root, "plan"), &plan, why);
	if (err == 0)
		err = mesh_create(&plan, (uint32_t)count, ret_mesh);
	if (err != 0)
		return err;
	for (uint32_t n = 0; n < ret_mesh->count; n++) {
		const json_t *json = json_array_get(nodes, n);
		struct mesh_node *node = &ret_mesh->nodes[n];
		uint64_t processors = 0;

		if (!get_text(json, "host", node->host, sizeof(node->host)) ||
		    !get_text(json, "rack", node->rack, sizeof(node->rack)) ||
		    !get_text(json, "device", node->device, sizeof(node->device)))
			return lab_fail(
				why, -EBADMSG,
				"processes[%u]: host, rack or device is missing or too long", n
			);
		(void)get_text(json, "machine", node->machine, sizeof(node->machine));
		(void)get_number(json, "processors", UINT32_MAX, &processors);
		node->processors = (uint32_t)processors;
		node->joined = json_is_true(json_object_get(json, "joined"));
		node->lost = json_is_true(json_object_get(json, "lost"));
	}
	return mesh_has_matrices(root) ? mesh_matrices_read(root, ret_mesh, why)
				       : read_cells(json_object_get(root, "cells"), ret_mesh, why);
}

int mesh_verify(json_t *root, struct lab_why *why) {
	struct mesh mesh = {.count = 0};
	struct mesh_summary summary;
	json_t *summed = NULL, *digests = NULL;
	int err = mesh_from_json(root, why, &mesh);

	if (err == 0)
		err = mesh_summarize(&mesh, &summary);
	if (err == 0) {
		summed = summary_json(&mesh, &summary);
		err = summed == NULL ? -ENOMEM : 0;
	}

	// In a file with matrices the figures of the directions are the stored data, so they
	// cannot be recomputed.
	if (err == 0 && !mesh_has_matrices(root)) {
		json_t *cells = cells_json(&mesh);

		err = cells == NULL
			      ? -ENOMEM
			      : verify_compare("cells", json_object_get(root, "cells"), cells, why);
		json_decref(cells);
	}
	if (err == 0)
		err = verify_compare("summary", json_object_get(root, "summary"), summed, why);
	if (err == 0)
		err = json_digests(root, &digests);
	if (err == 0)
		err = verify_compare("digests", json_object_get(root, "digests"), digests, why);
	json_decref(summed);
	json_decref(digests);
	mesh_release(&mesh);
	return err;
}
