// SPDX-License-Identifier: BSD-3-Clause
// Page of a mesh, built from its JSON both after a measurement and from a stored file.
//
// The page has the JSON of the mesh without its directions. The member "page" has matrices that are
// rounded, so that a page of 256 processes stays small, and what is computed from all directions.
#include "mesh/page_mesh.h"

#include "mesh/mesh_output.h"
#include "report/page_parts.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <page.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_BYTES 160
#define HEADLINE_BYTES (LAB_WHY_BYTES + 160)
#define SLOWEST_SHOWN 10
#define FAILED_SHOWN 20
#define P99_NODES_MAX 128 // a page of a larger mesh has room for one matrix only
#define P99 2		  // index in mesh_per_million

struct scene {
	const struct mesh *mesh;
	const struct mesh_summary *summary;
	char (*names)[MESH_NAME_BYTES]; // of the processes
	double *values;
	uint32_t *slowest; // indexes of the known cells, slowest first
	uint32_t known;	   // number of known cells
};

static bool cell_is_known(const struct mesh_cell *cell) {
	return cell->measured && cell->quantiles[0].known;
}

static double cell_p50_ns(const struct mesh_cell *cell) {
	return (double)cell->quantiles[0].value_ns;
}

static int slowest_compare(const void *left, const void *right, void *ctx) {
	const struct mesh *mesh = ctx;
	const struct mesh_cell *one = &mesh->cells[*(const uint32_t *)left];
	const struct mesh_cell *other = &mesh->cells[*(const uint32_t *)right];

	if (cell_p50_ns(one) != cell_p50_ns(other))
		return cell_p50_ns(one) < cell_p50_ns(other) ? 1 : -1;
	return one < other ? -1 : 1;
}

static void sort_slowest(struct scene *scene) {
	const struct mesh *mesh = scene->mesh;

	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		if (cell_is_known(&mesh->cells[n]))
			scene->slowest[scene->known++] = n;
	}
	qsort_r(scene->slowest, scene->known, sizeof(scene->slowest[0]), slowest_compare,
		(void *)mesh);
}

// Return an array, or NULL if adding an element failed.
static json_t *array_unless_failed(json_t *array, int failed) {
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *names_json(const struct scene *scene) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < scene->mesh->count; n++)
		failed |= json_array_append_new(array, page_text(scene->names[n]));
	return array_unless_failed(array, failed);
}

static json_t *subjects_json(const struct scene *scene) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < scene->summary->cause_count && n < SLOWEST_SHOWN; n++) {
		char text[LAB_WHY_BYTES];

		mesh_cause_format_subject(
			scene->mesh, &scene->summary->causes[n], text, sizeof(text)
		);
		failed |= json_array_append_new(array, page_text(text));
	}
	return array_unless_failed(array, failed);
}

// Return a rate in Gbit/s or a time in microseconds, rounded to 4 significant digits, or to 3 on a
// page with many cells.
static double round_value(const struct mesh *mesh, uint64_t value_ns) {
	int figures = mesh->count <= P99_NODES_MAX ? 4 : 3;
	double value = mesh_is_bandwidth(mesh) ? mesh_gbits(value_ns) : (double)value_ns / 1e3;
	double unit = value > 0 ? pow(10, floor(log10(value)) + 1 - figures) : 1;

	return round(value / unit) * unit;
}

static json_t *matrix_json(const struct scene *scene, int quantile) {
	const struct mesh *mesh = scene->mesh;
	bool has_value = false;

	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		const struct mesh_cell *cell = &mesh->cells[n];
		bool known = cell->measured && cell->quantiles[quantile].known;

		has_value |= known;
		scene->values[n] =
			known ? round_value(mesh, cell->quantiles[quantile].value_ns) : NAN;
	}
	if (!has_value || (quantile == P99 && mesh->count > P99_NODES_MAX))
		return json_null();
	return page_numbers(scene->values, mesh->count * mesh->count);
}

// Convert outliers to pairs of a cell and the index of its cause. The index of an outlier without
// a cause is the number of causes.
static json_t *marks_json(const struct scene *scene) {
	const struct mesh_summary *summary = scene->summary;
	const struct mesh *mesh = scene->mesh;
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < mesh->count * mesh->count && scene->known > 0; n++) {
		const struct mesh_cause *cause;

		if (!mesh_cell_is_outlier(summary, &mesh->cells[n]))
			continue;
		cause = mesh_cause_find(mesh, summary, n / mesh->count, n % mesh->count);
		failed |= json_array_append_new(array, json_integer(n));
		failed |= json_array_append_new(
			array, json_integer(
				       cause != NULL ? cause - summary->causes
						     : (json_int_t)summary->cause_count
			       )
		);
	}
	return array_unless_failed(array, failed);
}

static json_t *direction_json(const struct scene *scene, uint32_t place) {
	const struct mesh_cell *cell = &scene->mesh->cells[place];
	const struct mesh_quantile *p50 = &cell->quantiles[0], *p99 = &cell->quantiles[P99];

	return json_pack(
		"{s:I s:I s:I s:I s:I s:o s:I s:f}", "from",
		(json_int_t)(place / scene->mesh->count), "to",
		(json_int_t)(place % scene->mesh->count), "p50_ns", (json_int_t)p50->value_ns,
		"p50_low_ns", (json_int_t)p50->low_ns, "p50_high_ns", (json_int_t)p50->high_ns,
		"p99_ns", p99->known ? json_integer((json_int_t)p99->value_ns) : json_null(),
		"max_ns", (json_int_t)cell->max_ns, "ratio",
		cell_p50_ns(cell) / (double)scene->summary->median_ns
	);
}

static json_t *slowest_pairs_to_json(const struct scene *scene) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < scene->known && n < SLOWEST_SHOWN; n++)
		failed |= json_array_append_new(array, direction_json(scene, scene->slowest[n]));
	return array_unless_failed(array, failed);
}

static json_t *failed_directions_json(const struct scene *scene) {
	const struct mesh *mesh = scene->mesh;
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		const struct mesh_cell *cell = &mesh->cells[n];
		uint32_t from = n / mesh->count, to = n % mesh->count;

		if (cell->measured || from == to || json_array_size(array) == FAILED_SHOWN)
			continue;
		failed |= json_array_append_new(
			array, json_pack(
				       "{s:I s:I s:o}", "from", (json_int_t)from, "to",
				       (json_int_t)to, "why", page_text(cell->why)
			       )
		);
	}
	return array_unless_failed(array, failed);
}

// Convert the median and the highest value of the row or column of each process.
static json_t *medians_json(const struct scene *scene, bool is_source) {
	const struct mesh *mesh = scene->mesh;
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t who = 0; who < mesh->count; who++) {
		double medians[MESH_NODES_MAX];
		uint32_t known = 0;

		for (uint32_t n = 0; n < mesh->count; n++) {
			const struct mesh_cell *cell =
				is_source ? mesh_cell(mesh, who, n) : mesh_cell(mesh, n, who);

			if (n != who && cell_is_known(cell))
				medians[known++] = cell_p50_ns(cell);
		}
		qsort(medians, known, sizeof(medians[0]), doubles_compare);
		failed |= json_array_append_new(
			array,
			known == 0
				? json_null()
				: json_pack("[f,f]", medians[(known - 1) / 2], medians[known - 1])
		);
	}
	return array_unless_failed(array, failed);
}

// Make the member "page".
static json_t *scene_json(const struct scene *scene, const json_t *root, const char *headline) {
	json_int_t took_ns = json_integer_value(json_object_get(root, "took_ns"));
	char took[SHOW_BYTES];

	show_duration(took_ns > 0 ? (uint64_t)took_ns : 0, took);
	return json_pack(
		"{s:s s:s s:I s:o s:o s:o s:o s:o s:o s:o s:o s:o s:o}", "headline", headline,
		"took", took, "known", (json_int_t)scene->known, "names", names_json(scene),
		"subjects", subjects_json(scene), "p50", matrix_json(scene, 0), "p99",
		matrix_json(scene, P99), "marks", marks_json(scene), "slowest",
		slowest_pairs_to_json(scene), "fastest",
		scene->known > 0 ? direction_json(scene, scene->slowest[scene->known - 1])
				 : json_null(),
		"failed", failed_directions_json(scene), "medians_from", medians_json(scene, true),
		"medians_to", medians_json(scene, false)
	);
}

static void
format_title(const struct mesh *mesh, const json_t *plan, char title[static TITLE_BYTES]) {
	const json_t *size = json_array_get(json_object_get(plan, "sizes_bytes"), 0);
	char bytes[PARSE_TEXT_BYTES];

	format_size_bytes((uint64_t)json_integer_value(size), bytes);
	snprintf(
		title, TITLE_BYTES, "Mesh of %u %s: %s of %.20s, %s", mesh->count,
		strcmp(page_member_text(plan, "policy"), "agent") == 0 ? "nodes" : "processes",
		mesh_is_bandwidth(mesh) ? "bandwidth" : "round trips", page_member_text(plan, "op"),
		bytes
	);
}

static int page_draw(
	const json_t *root,
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
) {
	struct scene scene = {.mesh = mesh, .summary = summary};
	size_t cells = (size_t)mesh->count * mesh->count;
	char title[TITLE_BYTES], headline[HEADLINE_BYTES];
	struct page page = {.title = title, .headline = headline, .kind = "mesh"};
	json_t *copy = json_copy((json_t *)root);
	int err = 0;

	scene.names = calloc(mesh->count, sizeof(*scene.names));
	scene.values = calloc(cells, sizeof(*scene.values));
	scene.slowest = calloc(cells, sizeof(*scene.slowest));
	if (scene.names == NULL || scene.values == NULL || scene.slowest == NULL || copy == NULL)
		err = -ENOMEM;
	if (err == 0) {
		mesh_name_processes(mesh, scene.names);
		sort_slowest(&scene);
		format_title(mesh, json_object_get(root, "plan"), title);
		snprintf(
			headline, sizeof(headline), "%u of %u directions stand out.",
			summary->outliers, summary->measured
		);
		(void)json_object_del(copy, "cells");
		(void)json_object_del(copy, "matrices");
		(void)json_object_del(copy, "failed");
		(void)json_object_del(copy, "digests");
		if (json_object_set_new(copy, "page", scene_json(&scene, root, headline)) != 0)
			err = -ENOMEM;
	}
	if (err == 0) {
		err = page_save(&page, copy, path, why);
	} else {
		json_decref(copy);
		err = lab_fail(why, err, "no memory for the page");
	}
	free(scene.names);
	free(scene.values);
	free(scene.slowest);
	return err;
}

int page_mesh_json(const json_t *root, const char *path, struct lab_why *why) {
	struct mesh_summary summary;
	struct mesh mesh = {.count = 0};
	int err = mesh_from_json(root, why, &mesh);

	if (err == 0) {
		err = mesh_summarize(&mesh, &summary);
		err = err != 0 ? lab_fail(why, err, "no memory for the page")
			       : page_draw(root, &mesh, &summary, path, why);
	}
	mesh_release(&mesh);
	return err;
}

int page_mesh(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
) {
	json_t *root;
	int err = mesh_to_json(mesh, summary, &root);

	if (err != 0)
		return lab_fail(why, err, "no memory for JSON");
	err = page_draw(root, mesh, summary, path, why);
	json_decref(root);
	return err;
}
