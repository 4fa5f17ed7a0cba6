// SPDX-License-Identifier: BSD-3-Clause
// Page of a mesh, built from its JSON both after a measurement and from a stored file.
#include "mesh/page_mesh.h"

#include "mesh/mesh_output.h"
#include "report/json.h"
#include "report/page_parts.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <page.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES PAGE_CELL_BYTES
#define TITLE_BYTES 160
#define SLOWEST_SHOWN 10
#define FAILED_SHOWN 20
#define P99_NODES_MAX 128 // a page of a larger mesh has room for one matrix only
#define P99 2		  // index in mesh_per_million

// Properties of the mesh file that the page shows.
struct origin {
	const char *program, *started, *incomplete;
	const json_t *plan;
	uint64_t at_once, took_ns;
};

static bool mesh_is_via_agents(const struct origin *origin) {
	return strcmp(page_member_text(origin->plan, "policy"), "agent") == 0;
}

struct scene {
	struct page *page;
	const struct origin *origin;
	const struct mesh *mesh;
	const struct mesh_summary *summary;
	char (*names)[MESH_NAME_BYTES]; // of the processes
	char (*says)[LAB_WHY_BYTES];
	const char **name_of, **marks;
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

static void put_outliers(const struct scene *scene) {
	static const char *const columns[] = {"what stands out", "directions", "times the median"};
	const struct mesh_summary *summary = scene->summary;

	if (scene->known == 0) {
		page_paragraph(
			scene->page, PAGE_PLAIN, "No direction has enough samples for a median."
		);
		return;
	}
	if (scene->mesh->count == 2) {
		page_paragraph(
			scene->page, PAGE_PLAIN,
			"Two processes: neither of two directions can stand out from the other."
		);
		return;
	}
	if (summary->outliers == 0) {
		page_paragraph(
			scene->page, PAGE_GOOD,
			"Nothing stands out: no direction is more than a quarter above the median."
		);
		return;
	}
	page_paragraph(
		scene->page, PAGE_BAD,
		"%u of %u directions %s out: more than a quarter above the median.",
		summary->outliers, summary->measured, summary->outliers == 1 ? "stands" : "stand"
	);
	page_table_begin(scene->page, columns, 3);
	for (uint32_t n = 0; n < summary->cause_count && n < SLOWEST_SHOWN; n++) {
		const struct mesh_cause *cause = &summary->causes[n];
		char what[LAB_WHY_BYTES], cells[CELL_BYTES], ratio[CELL_BYTES];
		const char *row[3] = {what, cells, ratio};

		mesh_cause_format_subject(scene->mesh, cause, what, sizeof(what));
		if (cause->kind == MESH_PAIR)
			snprintf(cells, sizeof(cells), "1");
		else
			snprintf(cells, sizeof(cells), "%u of %u", cause->cells, cause->of);
		snprintf(ratio, sizeof(ratio), "%.2f", cause->ratio);
		page_table_row(scene->page, row, 3);
	}
	page_table_end(scene->page);
	if (summary->cause_count > SLOWEST_SHOWN)
		page_paragraph(
			scene->page, PAGE_PLAIN, "%u more are framed below.",
			summary->cause_count - SLOWEST_SHOWN + summary->unexplained
		);
}

static void put_head(const struct scene *scene) {
	const struct mesh *mesh = scene->mesh;
	uint64_t at_once = scene->origin->at_once;

	put_outliers(scene);
	if (scene->origin->incomplete[0] != '\0')
		page_paragraph(scene->page, PAGE_BAD, "Incomplete: %s", scene->origin->incomplete);
	if (scene->summary->measured < scene->summary->wanted)
		page_paragraph(
			scene->page, PAGE_BAD, "Not measured: %u of %u directions.",
			scene->summary->wanted - scene->summary->measured, scene->summary->wanted
		);
	if (mesh_is_via_agents(scene->origin))
		page_paragraph(
			scene->page, PAGE_PLAIN,
			"Measured by agents: the worker of each reads the memory of the others, "
			"beside its own probes."
		);
	if (mesh_is_shared_host(mesh))
		page_paragraph(
			scene->page, PAGE_PLAIN,
			"Shared host: processes share a machine, so the figures describe this "
			"machine more than a fabric. At most %" PRIu64
			" pair%s measured at a time.",
			at_once, at_once == 1 ? " was" : "s were"
		);
}

// Format the value of a cell, for example "16.4", and the names of its two processes.
static void format_direction(
	const struct scene *scene,
	uint32_t place,
	char value[static CELL_BYTES],
	char who[static CELL_BYTES]
) {
	page_format_us(cell_p50_ns(&scene->mesh->cells[place]), value);
	snprintf(
		who, CELL_BYTES, "%.40s to %.40s", scene->names[place / scene->mesh->count],
		scene->names[place % scene->mesh->count]
	);
}

static void put_tiles(const struct scene *scene) {
	char values[4][CELL_BYTES] = {"n/a", "n/a", "n/a"}, under[4][CELL_BYTES] = {"", "", ""};
	char took[SHOW_BYTES];

	if (scene->known > 0) {
		page_format_us((double)scene->summary->median_ns, values[0]);
		snprintf(under[0], CELL_BYTES, "of %u directions", scene->known);
		format_direction(scene, scene->slowest[scene->known - 1], values[1], under[1]);
		format_direction(scene, scene->slowest[0], values[2], under[2]);
	}
	show_duration(scene->origin->took_ns, took);
	snprintf(
		values[3], CELL_BYTES, "%u of %u", scene->summary->measured, scene->summary->wanted
	);
	snprintf(under[3], CELL_BYTES, "in %s", took);
	page_tiles(
		scene->page,
		(const struct page_tile[]){
			{"median p50, us", values[0], under[0]},
			{"fastest p50, us", values[1], under[1]},
			{"slowest p50, us", values[2], under[2]},
			{"directions", values[3], under[3]},
		},
		4
	);
}

// Round to 4 significant digits, or 3 on a page with many cells.
static double round_us(const struct mesh *mesh, uint64_t value_ns) {
	int figures = mesh->count <= P99_NODES_MAX ? 4 : 3;
	double us = (double)value_ns / 1e3;
	double unit = us > 0 ? pow(10, floor(log10(us)) + 1 - figures) : 1;

	return round(us / unit) * unit;
}

static void mark_cells(struct scene *scene) {
	const struct mesh *mesh = scene->mesh;
	const struct mesh_summary *summary = scene->summary;

	for (uint32_t n = 0; n < summary->cause_count; n++)
		mesh_cause_format(mesh, &summary->causes[n], scene->says[n], LAB_WHY_BYTES);
	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		const struct mesh_cause *cause;

		if (!mesh_cell_is_outlier(summary, &mesh->cells[n]))
			continue;
		cause = mesh_cause_find(mesh, summary, n / mesh->count, n % mesh->count);
		scene->marks[n] =
			cause != NULL ? scene->says[cause - summary->causes] : "stands out";
	}
}

static void put_matrix(struct scene *scene, int quantile, const char *caption) {
	const struct mesh *mesh = scene->mesh;

	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		const struct mesh_cell *cell = &mesh->cells[n];
		bool known = cell->measured && cell->quantiles[quantile].known;

		scene->values[n] = known ? round_us(mesh, cell->quantiles[quantile].value_ns) : NAN;
	}
	page_matrix(
		scene->page,
		&(struct page_matrix){
			.caption = caption,
			.unit = "us",
			.count = mesh->count,
			.names = scene->name_of,
			.values = scene->values,
			.marks = quantile == 0 ? scene->marks : NULL,
		}
	);
}

static void put_matrices(struct scene *scene) {
	const struct mesh *mesh = scene->mesh;
	bool has_p99 = false;

	if (scene->known == 0)
		return;
	mark_cells(scene);
	put_matrix(
		scene, 0,
		scene->summary->outliers > 0 ? "p50 of each direction; what stands out is framed"
					     : "p50 of each direction"
	);
	for (uint32_t n = 0; n < mesh->count * mesh->count; n++)
		has_p99 |= mesh->cells[n].measured && mesh->cells[n].quantiles[P99].known;
	if (has_p99 && mesh->count <= P99_NODES_MAX)
		put_matrix(scene, P99, "p99 of each direction");
}

static void format_quantile(const struct mesh_quantile *quantile, char text[static CELL_BYTES]) {
	if (quantile->known)
		page_format_us((double)quantile->value_ns, text);
	else
		snprintf(text, CELL_BYTES, "n/a");
}

static void put_slowest_row(const struct scene *scene, uint32_t place) {
	const struct mesh_cell *cell = &scene->mesh->cells[place];
	char texts[6][CELL_BYTES], low[CELL_BYTES], high[CELL_BYTES];
	const char *cells[6];

	format_direction(scene, place, texts[1], texts[0]);
	page_format_us((double)cell->quantiles[0].low_ns, low);
	page_format_us((double)cell->quantiles[0].high_ns, high);
	snprintf(texts[2], CELL_BYTES, "%.40s to %.40s", low, high);
	format_quantile(&cell->quantiles[P99], texts[3]);
	page_format_us((double)cell->max_ns, texts[4]);
	snprintf(
		texts[5], CELL_BYTES, "%.2f", cell_p50_ns(cell) / (double)scene->summary->median_ns
	);
	for (int n = 0; n < 6; n++)
		cells[n] = texts[n];
	page_table_row(scene->page, cells, 6);
}

static void put_slowest(const struct scene *scene) {
	static const char *const columns[6] = {
		"direction", "p50, us", "95 % interval", "p99, us", "max, us", "times the median",
	};

	if (scene->known == 0)
		return;
	page_heading(scene->page, "The slowest directions");
	page_table_begin(scene->page, columns, 6);
	for (uint32_t n = 0; n < scene->known && n < SLOWEST_SHOWN; n++)
		put_slowest_row(scene, scene->slowest[n]);
	page_table_end(scene->page);
}

static void put_failed(const struct scene *scene) {
	static const char *const columns[3] = {"from", "to", "why it was not measured"};
	const struct mesh *mesh = scene->mesh;
	uint32_t failed = scene->summary->wanted - scene->summary->measured, shown = 0;

	if (failed == 0)
		return;
	page_heading(scene->page, "What was not measured");
	page_table_begin_noted(scene->page, columns, 3);
	for (uint32_t n = 0; n < mesh->count * mesh->count && shown < FAILED_SHOWN; n++) {
		const struct mesh_cell *cell = &mesh->cells[n];
		const char *row[3] = {
			scene->names[n / mesh->count],
			scene->names[n % mesh->count],
			cell->why[0] != '\0' ? cell->why : "nobody tried",
		};

		if (cell->measured || n / mesh->count == n % mesh->count)
			continue;
		page_table_row(scene->page, row, 3);
		shown++;
	}
	page_table_end(scene->page);
	if (shown < failed)
		page_paragraph(scene->page, PAGE_PLAIN, "And %u more.", failed - shown);
}

// Format the median of a row or a column, and its highest value.
static void format_medians(
	const struct scene *scene, uint32_t who, bool is_source, char text[static CELL_BYTES]
) {
	const struct mesh *mesh = scene->mesh;
	double medians[MESH_NODES_MAX];
	char median[CELL_BYTES], most[CELL_BYTES];
	uint32_t known = 0;

	for (uint32_t n = 0; n < mesh->count; n++) {
		const struct mesh_cell *cell =
			is_source ? mesh_cell(mesh, who, n) : mesh_cell(mesh, n, who);

		if (n != who && cell_is_known(cell))
			medians[known++] = cell_p50_ns(cell);
	}
	if (known == 0) {
		snprintf(text, CELL_BYTES, "n/a");
		return;
	}
	qsort(medians, known, sizeof(medians[0]), doubles_compare);
	page_format_us(medians[(known - 1) / 2], median);
	page_format_us(medians[known - 1], most);
	snprintf(text, CELL_BYTES, "%.40s, most %.40s", median, most);
}

static void put_processes(const struct scene *scene) {
	static const char *const columns[7] = {
		"process", "host", "rack", "device", "processors", "from it: median p50, us",
		"to it",
	};

	page_fold_begin(scene->page, "Processes");
	page_table_begin(scene->page, columns, 7);
	for (uint32_t n = 0; n < scene->mesh->count; n++) {
		const struct mesh_node *node = &scene->mesh->nodes[n];
		char number[CELL_BYTES], processors[CELL_BYTES], from[CELL_BYTES], to[CELL_BYTES];
		const char *row[7] = {number,	  node->host, node->rack, node->device,
				      processors, from,	      to};

		snprintf(number, sizeof(number), "%u%s", n, node->lost ? " (lost)" : "");
		snprintf(processors, sizeof(processors), "%u", node->processors);
		format_medians(scene, n, true, from);
		format_medians(scene, n, false, to);
		page_table_row(scene->page, row, 7);
	}
	page_table_end(scene->page);
	page_fold_end(scene->page);
}

static void put_setup(const struct scene *scene) {
	page_heading(scene->page, "Setup");
	page_paragraph(
		scene->page, PAGE_PLAIN, "Started %s by %s.", scene->origin->started,
		scene->origin->program
	);
	put_processes(scene);
	page_fold_begin(scene->page, "Plan");
	page_facts(scene->page, "plan", scene->origin->plan);
	page_fold_end(scene->page);
	page_fold_begin(scene->page, "How to read this");
	page_paragraph(
		scene->page, PAGE_PLAIN,
		"Each cell is a direction: the process of the row measured, that of the column "
		"answered. A direction stands out if its median is more than 25 %% above the "
		"median of all directions and its 95 %% interval lies above that median. The "
		"largest group that explains it is named: a process, its row or column, racks, "
		"devices of one name, else the pair. A group explains what stands out if three "
		"quarters of its cells do."
	);
	page_fold_end(scene->page);
}

static int scene_reserve(struct scene *scene) {
	size_t count = scene->mesh->count, cells = count * count;

	scene->names = calloc(count, sizeof(*scene->names));
	scene->says = calloc(MESH_CAUSES_MAX, sizeof(*scene->says));
	scene->name_of = calloc(count, sizeof(*scene->name_of));
	scene->marks = calloc(cells, sizeof(*scene->marks));
	scene->values = calloc(cells, sizeof(*scene->values));
	scene->slowest = calloc(cells, sizeof(*scene->slowest));
	return scene->names != NULL && scene->says != NULL && scene->name_of != NULL &&
			       scene->marks != NULL && scene->values != NULL &&
			       scene->slowest != NULL
		       ? 0
		       : -ENOMEM;
}

static void scene_release(struct scene *scene) {
	page_destroy(scene->page);
	free(scene->names);
	free(scene->says);
	free(scene->name_of);
	free(scene->marks);
	free(scene->values);
	free(scene->slowest);
}

static int put_page(struct scene *scene) {
	const json_t *plan = scene->origin->plan;
	const json_t *size = json_array_get(json_object_get(plan, "sizes_bytes"), 0);
	char title[TITLE_BYTES], bytes[PARSE_TEXT_BYTES];
	int err = scene_reserve(scene);

	format_size_bytes((uint64_t)json_integer_value(size), bytes);
	snprintf(
		title, sizeof(title), "Mesh of %u %s: round trips of %.20s, %s", scene->mesh->count,
		mesh_is_via_agents(scene->origin) ? "nodes" : "processes",
		page_member_text(plan, "op"), bytes
	);
	if (err == 0)
		err = page_create(title, &scene->page);
	if (err != 0)
		return err;
	mesh_name_processes(scene->mesh, scene->names);
	for (uint32_t n = 0; n < scene->mesh->count; n++)
		scene->name_of[n] = scene->names[n];
	sort_slowest(scene);
	put_head(scene);
	put_tiles(scene);
	put_matrices(scene);
	put_slowest(scene);
	put_failed(scene);
	put_setup(scene);
	return 0;
}

static int page_draw(
	const struct origin *origin,
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
) {
	struct scene scene = {.origin = origin, .mesh = mesh, .summary = summary};
	int err = put_page(&scene);

	err = err != 0 ? lab_fail(why, err, "no memory for the page")
		       : page_save(scene.page, path, why);
	scene_release(&scene);
	return err;
}

static uint64_t member_number(const json_t *object, const char *key) {
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

int page_mesh_json(const json_t *root, const char *path, struct lab_why *why) {
	const struct origin origin = {
		.program = page_member_text(root, "program"),
		.started = page_member_text(root, "started"),
		.incomplete = page_member_text(root, "incomplete"),
		.plan = json_object_get(root, "plan"),
		.at_once = member_number(root, "at_once"),
		.took_ns = member_number(root, "took_ns"),
	};
	struct mesh_summary summary;
	struct mesh mesh = {.count = 0};
	int err = mesh_from_json(root, why, &mesh);

	if (err == 0) {
		err = mesh_summarize(&mesh, &summary);
		err = err != 0 ? lab_fail(why, err, "no memory for the page")
			       : page_draw(&origin, &mesh, &summary, path, why);
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
	json_t *plan = plan_to_json(&mesh->plan);
	char started[SHOW_BYTES];
	const struct origin origin = {
		.program = "tocsin-perf " TOCSIN_VERSION,
		.started = started,
		.incomplete = mesh->partial,
		.plan = plan,
		.at_once = mesh->at_once,
		.took_ns = mesh->took_ns,
	};
	int err;

	show_time(mesh->started_ns, started);
	err = plan == NULL ? lab_fail(why, -ENOMEM, "no memory for the page")
			   : page_draw(&origin, mesh, summary, path, why);
	json_decref(plan);
	return err;
}
