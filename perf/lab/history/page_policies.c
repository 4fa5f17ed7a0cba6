// SPDX-License-Identifier: BSD-3-Clause
// Page of the cost of each idle policy under each load: sentences, two charts and a table.
#include "history/page_policies.h"

#include "history/policies.h"
#include "report/page_parts.h"

#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <page.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES PAGE_CELL_BYTES
#define TITLE_BYTES 160
#define POLICIES_MAX 4
#define LABEL_BYTES 32
#define CLIENT 0
#define SERVER 1
#define CPU_PERCENT_MIN 0.1 // lower limit of the chart; the tick clock cannot measure less

struct scene {
	struct page *page;
	const json_t *root;
	struct policies policies;
	char labels[POLICIES_ROWS_MAX][LABEL_BYTES];
};

// Read the rows and their runs. A row without a run has the reason.
static void read_rows(struct scene *scene) {
	const json_t *rows = json_object_get(scene->root, "rows");
	const json_t *runs = json_object_get(scene->root, "runs");
	size_t count = json_array_size(rows);

	if (count > POLICIES_ROWS_MAX)
		count = POLICIES_ROWS_MAX;
	for (size_t n = 0; n < count; n++) {
		struct policies_row *row = &scene->policies.rows[n];
		const json_t *json = json_array_get(rows, n), *run = json_array_get(runs, n);

		snprintf(row->policy, sizeof(row->policy), "%s", page_member_text(json, "policy"));
		snprintf(row->why, sizeof(row->why), "%s", page_member_text(json, "why"));
		row->rate = (uint32_t)json_integer_value(json_object_get(json, "rate_per_s"));
		if (json_is_object(run))
			policies_row_read(run, row);
	}
	scene->policies.count = (uint32_t)count;
}

static void format_arrival_rate(uint32_t rate, char text[static LABEL_BYTES]) {
	if (rate == 0)
		snprintf(text, LABEL_BYTES, "closed loop");
	else
		snprintf(text, LABEL_BYTES, "%u/s", rate);
}

// Format the label of a point, which has little room.
static void format_label(const struct policies_row *row, char text[static LABEL_BYTES]) {
	const char *behind = row->saturated ? ", saturated" : "";

	if (row->rate == 0)
		snprintf(text, LABEL_BYTES, "closed%s", behind);
	else
		snprintf(text, LABEL_BYTES, "%u/s%s", row->rate, behind);
}

// Return the processor time of both workers, in percent of one processor.
static double cpu_percent(const struct policies_row *row) {
	return 100 * (row->cpu[CLIENT] + row->cpu[SERVER]);
}

static void format_row(const struct policies_row *row, char text[static CELL_BYTES]) {
	char value[CELL_BYTES];

	page_format_us(row->p50_ns, value);
	snprintf(
		text, CELL_BYTES, "%s (p50 %.24s us at %.1f %% of a processor)", row->policy, value,
		cpu_percent(row)
	);
}

// The valid runs of one load.
struct choice {
	const struct policies_row *fastest, *cheapest; // NULL: none
	uint32_t valid;
};

static struct choice choose_rows(const struct scene *scene, uint32_t rate) {
	struct choice choice = {.fastest = NULL};

	for (uint32_t n = 0; n < scene->policies.count; n++) {
		const struct policies_row *row = &scene->policies.rows[n];

		if (row->rate != rate || !row->measured)
			continue;
		if (row->saturated || !isfinite(row->p50_ns) || !isfinite(cpu_percent(row)))
			continue;
		choice.valid++;
		if (choice.fastest == NULL || row->p50_ns < choice.fastest->p50_ns)
			choice.fastest = row;
		if (choice.cheapest == NULL || cpu_percent(row) < cpu_percent(choice.cheapest))
			choice.cheapest = row;
	}
	return choice;
}

static void put_load_result(const struct scene *scene, uint32_t rate) {
	const struct choice choice = choose_rows(scene, rate);
	char load[LABEL_BYTES], fast[CELL_BYTES], cheap[CELL_BYTES];

	format_arrival_rate(rate, load);
	if (choice.valid > 0) {
		format_row(choice.fastest, fast);
		format_row(choice.cheapest, cheap);
	}
	if (choice.valid == 0)
		page_paragraph(scene->page, PAGE_PLAIN, "%s: no run has a valid median.", load);
	else if (choice.valid == 1)
		page_paragraph(
			scene->page, PAGE_PLAIN, "%s: %s alone has a valid median.", load, fast
		);
	else if (choice.fastest == choice.cheapest)
		page_paragraph(
			scene->page, PAGE_GOOD, "%s: %s is the fastest and the cheapest.", load,
			fast
		);
	else
		page_paragraph(
			scene->page, PAGE_PLAIN, "%s: %s is the fastest, %s the cheapest.", load,
			fast, cheap
		);
}

static void put_load_results(const struct scene *scene) {
	uint32_t saturated = 0;

	for (uint32_t n = 0; n < scene->policies.count; n++) {
		uint32_t rate = scene->policies.rows[n].rate;
		bool first = true;

		for (uint32_t before = 0; before < n; before++)
			first &= scene->policies.rows[before].rate != rate;
		if (first)
			put_load_result(scene, rate);
		saturated += scene->policies.rows[n].saturated;
	}
	if (saturated > 0)
		page_paragraph(
			scene->page, PAGE_BAD,
			"%u of %u runs %s saturated, and so not valid: operations were due faster "
			"than they were served, or the sender lagged.",
			saturated, scene->policies.count, saturated == 1 ? "is" : "are"
		);
}

// Points of one policy, one per load.
struct points {
	const char *name;
	uint32_t count;
	double x[POLICIES_LOADS_MAX], y[POLICIES_LOADS_MAX];
	const char *labels[POLICIES_LOADS_MAX];
};

static struct points *
points_of_policy(struct points points[static POLICIES_MAX], const char *policy) {
	for (uint32_t n = 0; n < POLICIES_MAX; n++) {
		if (points[n].name == NULL)
			points[n].name = policy;
		if (strcmp(points[n].name, policy) == 0)
			return points[n].count < POLICIES_LOADS_MAX ? &points[n] : NULL;
	}
	return NULL;
}

// Collect the points of all policies. Returns their number.
static uint32_t
collect_points(const struct scene *scene, bool is_tail, struct points points[static POLICIES_MAX]) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < scene->policies.count; n++) {
		const struct policies_row *row = &scene->policies.rows[n];
		double value_ns = is_tail ? row->p99_ns : row->p50_ns;
		struct points *of = points_of_policy(points, row->policy);

		if (!row->measured || of == NULL || !isfinite(value_ns) ||
		    !isfinite(cpu_percent(row)))
			continue;
		of->x[of->count] = fmax(cpu_percent(row), CPU_PERCENT_MIN);
		of->y[of->count] = value_ns / 1e3;
		of->labels[of->count++] = scene->labels[n];
		count++;
	}
	return count;
}

static void put_chart(const struct scene *scene, bool is_tail) {
	struct points points[POLICIES_MAX] = {{.name = NULL}};
	struct page_series series[POLICIES_MAX];
	uint32_t count = 0;

	if (collect_points(scene, is_tail, points) == 0) {
		page_paragraph(
			scene->page, PAGE_PLAIN, "No chart of %s: no run had enough samples.",
			is_tail ? "p99" : "p50"
		);
		return;
	}
	for (; count < POLICIES_MAX && points[count].name != NULL; count++)
		series[count] = (struct page_series){
			.name = points[count].name,
			.count = points[count].count,
			.x = points[count].x,
			.y = points[count].y,
			.labels = points[count].labels,
			.points = true,
		};
	page_curves(
		scene->page,
		&(struct page_curves){
			.caption = is_tail ? "p99 against processor time: lower left is better"
					   : "p50 against processor time: lower left is better",
			.x = {.label = "processor time of both workers, % of one processor",
			      .scale = PAGE_LOG},
			.y = {.label = is_tail ? "p99, us" : "p50, us", .scale = PAGE_LOG},
			.series_count = count,
			.series = series,
		}
	);
}

static void put_row(const struct scene *scene, const struct policies_row *row) {
	char load[LABEL_BYTES], texts[5][CELL_BYTES], sleeps[CELL_BYTES];
	const double times[3] = {row->p50_ns, row->p99_ns, row->max_ns};
	const char *says = row->saturated ? "saturated" : "";
	const char *cells[9] = {load,	  row->policy, texts[0], texts[1], texts[2],
				texts[3], texts[4],    sleeps,	 says};

	format_arrival_rate(row->rate, load);
	for (int n = 0; n < 3; n++) {
		snprintf(texts[n], CELL_BYTES, "n/a");
		if (row->measured && isfinite(times[n]))
			page_format_us(times[n], texts[n]);
	}
	for (int n = 0; n < 2; n++)
		snprintf(texts[3 + n], CELL_BYTES, "%.1f", 100 * row->cpu[n]);
	snprintf(
		sleeps, sizeof(sleeps), "%.0f, %.0f", row->sleeps_per_s[CLIENT],
		row->sleeps_per_s[SERVER]
	);
	if (!row->measured) {
		cells[5] = cells[6] = cells[7] = "";
		cells[8] = row->why;
	}
	page_table_row(scene->page, cells, 9);
}

static void put_table(const struct scene *scene) {
	static const char *const columns[9] = {
		"load",	    "policy",	"p50, us",	   "p99, us", "max, us",
		"client %", "server %", "sleeps a second", "",
	};

	page_heading(scene->page, "All runs");
	page_table_begin_noted(scene->page, columns, 9);
	for (uint32_t n = 0; n < scene->policies.count; n++)
		put_row(scene, &scene->policies.rows[n]);
	page_table_end(scene->page);
}

static void put_setup(const struct scene *scene, const json_t *run) {
	const json_t *environment = json_object_get(run, "environment");

	page_heading(scene->page, "Setup");
	page_paragraph(
		scene->page, PAGE_PLAIN, "Started %s by %s; each row is a run of its own.",
		page_member_text(scene->root, "started"), page_member_text(scene->root, "program")
	);
	if (run != NULL) {
		page_fold_begin(scene->page, "Both machines");
		page_facts(scene->page, "client", json_object_get(environment, "client"));
		page_facts(scene->page, "server", json_object_get(environment, "server"));
		page_fold_end(scene->page);
	}
	page_fold_begin(scene->page, "How to read this");
	page_paragraph(
		scene->page, PAGE_PLAIN,
		"Each point is one policy under one load. Its height is the round trip in a closed "
		"loop, or the response time under Poisson arrivals. Its place to the right is the "
		"cost: the share of a processor that the polling threads of client and server "
		"used, together up to 200 %%. spin always polls; window yields, then sleeps longer "
		"and longer; event sleeps until the device signals; adaptive spins as long as that "
		"pays."
	);
	page_fold_end(scene->page);
}

static const json_t *first_run(const json_t *root) {
	const json_t *runs = json_object_get(root, "runs");

	for (size_t n = 0; n < json_array_size(runs); n++) {
		if (json_is_object(json_array_get(runs, n)))
			return json_array_get(runs, n);
	}
	return NULL;
}

static int put_page(struct scene *scene) {
	const json_t *run = first_run(scene->root), *plan = json_object_get(run, "plan");
	const json_t *size = json_array_get(json_object_get(plan, "sizes_bytes"), 0);
	char title[TITLE_BYTES], bytes[PARSE_TEXT_BYTES];
	int err;

	format_size_bytes((uint64_t)json_integer_value(size), bytes);
	snprintf(
		title, sizeof(title), "Latency against processor time: %.20s%s%s",
		page_member_text(plan, "op"), run != NULL ? ", " : "no run",
		run != NULL ? bytes : ""
	);
	err = page_create(title, &scene->page);
	if (err != 0)
		return err;
	read_rows(scene);
	for (uint32_t n = 0; n < scene->policies.count; n++)
		format_label(&scene->policies.rows[n], scene->labels[n]);
	put_load_results(scene);
	put_chart(scene, false);
	put_chart(scene, true);
	put_table(scene);
	put_setup(scene, run);
	return 0;
}

int page_policies(const json_t *root, const char *path, struct lab_why *why) {
	struct scene *scene = calloc(1, sizeof(*scene));
	int err = scene != NULL ? 0 : -ENOMEM;

	if (err == 0) {
		scene->root = root;
		err = put_page(scene);
	}
	err = err != 0 ? lab_fail(why, err, "no memory for the page")
		       : page_save(scene->page, path, why);
	if (scene != NULL)
		page_destroy(scene->page);
	free(scene);
	return err;
}
