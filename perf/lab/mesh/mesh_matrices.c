// SPDX-License-Identifier: BSD-3-Clause
// Conversion of the matrices of a mesh to JSON and back.
#include "mesh/mesh_matrices.h"

#include <jansson.h>

#include <errno.h>
#include <record.h>
#include <stddef.h>
#include <string.h>

#define FAILED_MAX 256 // reasons in a file
#define NO_QUANTILE (-1)

// A figure of a cell, and the quantile that it belongs to.
static const struct column {
	const char *key;
	size_t place;
	int quantile;
	bool is_first; // the first column of a group whose values are known together
	uint64_t max;
} columns[] = {
	{"count", offsetof(struct mesh_cell, count), NO_QUANTILE, true, RECORD_RAW_MAX},
	{"p50_ns", offsetof(struct mesh_cell, quantiles[0].value_ns), 0, true, HISTOGRAM_VALUE_MAX},
	{"p50_low_ns", offsetof(struct mesh_cell, quantiles[0].low_ns), 0, false,
	 HISTOGRAM_VALUE_MAX},
	{"p50_high_ns", offsetof(struct mesh_cell, quantiles[0].high_ns), 0, false,
	 HISTOGRAM_VALUE_MAX},
	{"p99_ns", offsetof(struct mesh_cell, quantiles[2].value_ns), 2, true, HISTOGRAM_VALUE_MAX},
	{"max_ns", offsetof(struct mesh_cell, max_ns), NO_QUANTILE, false, HISTOGRAM_VALUE_MAX},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static json_t *matrix_json(const struct column *column, const struct mesh *mesh) {
	json_t *matrix = json_array();
	int failed = 0;

	for (uint32_t from = 0; from < mesh->count; from++) {
		json_t *row = json_array();

		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);
			bool known = cell->measured && (column->quantile == NO_QUANTILE ||
							cell->quantiles[column->quantile].known);
			uint64_t value;

			memcpy(&value, (const char *)cell + column->place, sizeof(value));
			failed |= json_array_append_new(
				row, known ? json_integer((json_int_t)value) : json_null()
			);
		}
		failed |= json_array_append_new(matrix, row);
	}
	if (failed == 0)
		return matrix;
	json_decref(matrix);
	return NULL;
}

int mesh_matrices_put(json_t *root, const struct mesh *mesh) {
	json_t *matrices = json_object(), *failures = json_array();
	int failed = 0;

	for (size_t n = 0; n < COLUMNS; n++)
		failed |= json_object_set_new(
			matrices, columns[n].key, matrix_json(&columns[n], mesh)
		);
	failed |= json_object_set_new(root, "matrices", matrices);
	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);

			if (cell->measured || cell->why[0] == '\0' ||
			    json_array_size(failures) == FAILED_MAX)
				continue;
			failed |= json_array_append_new(
				failures, json_pack(
						  "{s:I s:I s:s}", "from", (json_int_t)from, "to",
						  (json_int_t)to, "why", cell->why
					  )
			);
		}
	}
	failed |= json_object_set_new(root, "failed", failures);
	return failed == 0 ? 0 : -ENOMEM;
}

bool mesh_has_matrices(const json_t *root) {
	return json_object_get(root, "matrices") != NULL;
}

static bool read_figure(const struct column *column, const json_t *value, struct mesh_cell *cell) {
	uint64_t number;

	if (json_is_null(value)) // the values of a quantile are either all known or all unknown
		return column->quantile == NO_QUANTILE ? !cell->measured
						       : !cell->quantiles[column->quantile].known;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > column->max)
		return false;
	number = (uint64_t)json_integer_value(value);
	memcpy((char *)cell + column->place, &number, sizeof(number));
	if (column->is_first && column->quantile == NO_QUANTILE)
		cell->measured = true;
	else if (column->is_first)
		cell->quantiles[column->quantile].known = cell->measured;
	return cell->measured &&
	       (column->quantile == NO_QUANTILE || cell->quantiles[column->quantile].known);
}

static int read_matrix(
	const struct column *column, const json_t *matrix, struct mesh *mesh, struct lab_why *why
) {
	for (uint32_t from = 0; from < mesh->count; from++) {
		const json_t *row = json_array_get(matrix, from);

		for (uint32_t to = 0; to < mesh->count; to++) {
			const json_t *value = json_array_get(row, to);
			bool fits = from == to
					    ? json_is_null(value)
					    : read_figure(column, value, mesh_cell(mesh, from, to));

			if (!fits)
				return lab_fail(
					why, -EBADMSG, "matrices.%s[%u][%u] is missing or invalid",
					column->key, from, to
				);
		}
	}
	return 0;
}

int mesh_matrices_read(const json_t *root, struct mesh *mesh, struct lab_why *why) {
	const json_t *matrices = json_object_get(root, "matrices");
	const json_t *failures = json_object_get(root, "failed");
	int err = 0;

	for (size_t n = 0; n < COLUMNS && err == 0; n++)
		err = read_matrix(
			&columns[n], json_object_get(matrices, columns[n].key), mesh, why
		);
	for (size_t n = 0; err == 0 && n < json_array_size(failures); n++) {
		const json_t *one = json_array_get(failures, n);
		json_int_t from = json_integer_value(json_object_get(one, "from"));
		json_int_t to = json_integer_value(json_object_get(one, "to"));
		const char *text = json_string_value(json_object_get(one, "why"));

		if (from < 0 || from >= mesh->count || to < 0 || to >= mesh->count ||
		    text == NULL || strlen(text) >= MESH_WHY_BYTES)
			return lab_fail(
				why, -EBADMSG,
				"failed[%zu]: from, to or why is missing or out of range", n
			);
		memcpy(mesh_cell(mesh, (uint32_t)from, (uint32_t)to)->why, text, strlen(text) + 1);
	}
	return err;
}
