// SPDX-License-Identifier: BSD-3-Clause
// page-sample: print a page with one chart of each kind, including a mesh of 64 nodes. Its texts
// contain HTML and scripts, to test the escaping.
#include <math.h>
#include <page.h>
#include <stdio.h>

#define NODES 64
#define POINTS 12
#define COLUMNS 100
#define ROWS 40
#define IMAGE "<img src=x onerror=\"document.title='taken'\">"
#define HOSTILE IMAGE "</script><script>document.title='taken'</script><b title=\"x\">&amp;\xff\x01"

static char names[NODES][16];
static const char *name_of[NODES], *marks[NODES * NODES];
static double values[NODES * NODES];

static void put_matrix(struct page *page) {
	for (int n = 0; n < NODES; n++) {
		snprintf(names[n], sizeof(names[n]), "node%02d", n);
		name_of[n] = names[n];
	}
	for (int n = 0; n < NODES * NODES; n++)
		values[n] = n % (NODES + 1) == 0 ? NAN : 2 + (n * 37 % 101) / 50.0;
	for (int n = 0; n < NODES; n++) {
		values[7 * NODES + n] *= 4;
		marks[7 * NODES + n] = "all of node07's paths: " HOSTILE;
	}
	name_of[9] = HOSTILE;
	page_matrix(
		page,
		&(struct page_matrix){
			.caption = "p50 from each node to each",
			.unit = "us",
			.count = NODES,
			.names = name_of,
			.values = values,
			.marks = marks,
		}
	);
}

// Latency against processor time, with the load as label of each point. x does not change
// monotonically.
static void put_policies(struct page *page) {
	static const char *const policies[] = {"spin", "event", "adaptive"};
	static const char *const loads[] = {"1k/s", "10k/s", "100k/s"};
	static const double x[3][3] = {{100, 100, 100}, {2, 18, 96}, {3, 20, 98}};
	static const double y[3][3] = {{2.1, 2.1, 2.4}, {14, 9, 4}, {9, 5, 2.8}};
	struct page_series series[3];

	for (int n = 0; n < 3; n++)
		series[n] = (struct page_series
		){.name = policies[n], .count = 3, .x = x[n], .y = y[n], .labels = loads};
	page_curves(
		page,
		&(struct page_curves){
			.caption = "What waiting costs",
			.x = {.label = "% of a processor"},
			.y = {.label = "p50, us", .scale = PAGE_LOG},
			.series_count = 3,
			.series = series,
		}
	);
}

static void put_percentiles(struct page *page) {
	double x[POINTS], y[POINTS], low[POINTS], high[POINTS];

	for (int n = 0; n < POINTS; n++) {
		x[n] = 1 - pow(10, -n / 3.0);
		y[n] = 2 + n * n / 10.0;
		low[n] = n < 9 ? y[n] * 0.9 : NAN;
		high[n] = n < 9 ? y[n] * 1.2 : NAN;
	}
	page_curves(
		page,
		&(struct page_curves){
			.caption = "Percentiles",
			.x = {.label = "share", .scale = PAGE_TAIL},
			.y = {.label = "us", .scale = PAGE_LOG},
			.series_count = 1,
			.series =
				&(struct page_series){
					.name = IMAGE, // valid UTF-8, as JSON requires
					.count = POINTS,
					.x = x,
					.y = y,
					.low = low,
					.high = high,
				},
		}
	);
}

static void put_course(struct page *page) {
	static uint64_t counts[COLUMNS * ROWS];
	double edges[COLUMNS + 1], line[COLUMNS];

	for (int n = 0; n <= COLUMNS; n++)
		edges[n] = n / 20.0;
	for (int n = 0; n < COLUMNS; n++) {
		line[n] = n < 50 ? 2 : 4;
		for (int row = 0; row < ROWS; row++)
			counts[n * ROWS + row] =
				(uint64_t)(row == (n < 50 ? 10 : 20) ? 1000 : row % 3);
	}
	page_course(
		page,
		&(struct page_course){
			.caption = "Along the run",
			.x_label = "seconds",
			.y_label = "us",
			.columns = COLUMNS,
			.rows = ROWS,
			.edges = edges,
			.low = 1,
			.high = 16,
			.counts = counts,
			.line_count = 1,
			.lines = &(struct page_series){.name = "p50", .count = COLUMNS, .y = line},
			.cut_count = 1,
			.cuts = &edges[50],
		}
	);
}

int main(void) {
	static const char *const columns[] = {"node", "p50, us", HOSTILE};
	static const char *const cells[] = {HOSTILE, "2.5", "worse"};
	static const struct page_tile tile = {"p50, us", "2.5", HOSTILE};
	struct page *page;
	int err;

	if (page_create("Sample " HOSTILE, &page) != 0)
		return 1;
	page_paragraph(page, PAGE_BAD, "Of node07 all paths are slow: %s.", HOSTILE);
	page_paragraph(page, PAGE_GOOD, "The others are alike.");
	page_tiles(page, &tile, 1);
	put_matrix(page);
	page_heading(page, "Policies");
	put_policies(page);
	put_percentiles(page);
	put_course(page);
	page_table_begin(page, columns, 3);
	page_table_row(page, cells, 3);
	page_table_end(page);
	page_fold_begin(page, HOSTILE);
	page_paragraph(page, PAGE_PLAIN, "Folded text.");
	page_fold_end(page);
	err = page_write(page, stdout);
	page_destroy(page);
	return err == 0 ? 0 : 1;
}
