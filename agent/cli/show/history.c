// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of HISTORY: the states of the node as a row of characters, the paths as curves,
// and the events.
#include "show/history.h"

#include "show/answers.h"
#include "show/event_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 72
#define PATHS_SHOWN_MAX 16
#define LINE_BYTES 512
#define LEVELS 8

// Return whether the terminal shows UTF-8, according to the locale variables.
static bool terminal_has_utf8(void) {
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): the client has one thread
		const char *value = getenv(names[n]);

		if (value != NULL && value[0] != '\0')
			return strcasestr(value, "UTF-8") != NULL ||
			       strcasestr(value, "utf8") != NULL;
	}
	return false;
}

// Print one column of a curve: a level from 0 to LEVELS - 1.
static void print_level(struct page *page, bool utf8, uint32_t level) {
	static const char *const blocks[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[LEVELS] = {"_", ".", "-", "=", "+", "*", "%", "#"};

	page_print(page, "%s", utf8 ? blocks[level] : letters[level]);
}

struct range {
	uint64_t least_ns, most_ns; // medians
	uint64_t p99_ns;	    // the largest
	uint64_t sent, lost;
};

static struct range points_range(const json_t *points) {
	struct range range = {.least_ns = UINT64_MAX};
	const json_t *point;
	size_t n;

	json_array_foreach(points, n, point) {
		uint64_t median_ns = fact_number(point, "median_ns");
		uint64_t p99_ns = fact_number(point, "p99_ns");

		range.sent += fact_number(point, "sent");
		range.lost += fact_number(point, "lost");
		if (median_ns == 0)
			continue;
		if (median_ns < range.least_ns)
			range.least_ns = median_ns;
		if (median_ns > range.most_ns)
			range.most_ns = median_ns;
		if (p99_ns > range.p99_ns)
			range.p99_ns = p99_ns;
	}
	return range;
}

// Return the level of a latency. The scale is logarithmic and covers at least one doubling, so that
// noise looks flat.
static uint32_t latency_level(const struct range *range, uint64_t median_ns) {
	double low = log2((double)range->least_ns), high = log2((double)range->most_ns);
	double at = log2((double)median_ns) - low, span = high - low > 1 ? high - low : 1;
	long level = lround(at / span * (LEVELS - 1));

	return level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : (uint32_t)level;
}

// Print the curve of a path: a blank without probes, ! for a period in which none of them was
// answered.
static void print_curve(
	struct page *page, const json_t *points, const json_t *periods, const struct range *range
) {
	size_t columns = periods != NULL ? json_array_size(periods) : json_array_size(points);
	bool utf8 = terminal_has_utf8();
	size_t next = 0;

	for (size_t n = 0; n < columns && n < COLUMNS_MAX; n++) {
		const json_t *point = json_array_get(points, next);
		uint64_t median_ns = fact_number(point, "median_ns");

		if (point == NULL ||
		    (periods != NULL &&
		     !fact_is(point, "time", fact_word(json_array_get(periods, n), "time")))) {
			page_print(page, " ");
			continue;
		}
		next++;
		if (median_ns > 0)
			print_level(page, utf8, latency_level(range, median_ns));
		else
			page_print(page, "%s", fact_number(point, "lost") > 0 ? "!" : " ");
	}
}

void history_print_paths(struct page *page, const json_t *paths, const json_t *periods) {
	char least[SHOW_BYTES], most[SHOW_BYTES], p99[SHOW_BYTES], line[LINE_BYTES];
	const json_t *path;
	size_t n;

	json_array_foreach(paths, n, path) {
		const json_t *points = json_object_get(path, "points");
		struct range range = points_range(points);

		if (n == PATHS_SHOWN_MAX && !page->whole) {
			page_print(
				page, "%zu more paths: --json has all\n", json_array_size(paths) - n
			);
			break;
		}
		if (range.most_ns == 0) {
			snprintf(
				line, sizeof(line),
				"%.60s: %.31s reads %.31s, no answer; lost %" PRIu64 " of %" PRIu64,
				fact_name(path, "peer"), fact_name(path, "device"),
				fact_name(path, "peer_device"), range.lost, range.sent
			);
		} else {
			show_duration(range.least_ns, least);
			show_duration(range.most_ns, most);
			show_duration(range.p99_ns, p99);
			snprintf(
				line, sizeof(line),
				"%.60s: %.31s reads %.31s, median %s to %s, p99 up to %s, lost "
				"%" PRIu64 " of %" PRIu64,
				fact_name(path, "peer"), fact_name(path, "device"),
				fact_name(path, "peer_device"), least, most, p99, range.lost,
				range.sent
			);
		}
		page_wrap(page, 0, 4, line);
		page_print(page, "  ");
		print_curve(page, points, periods, &range);
		page_print(page, "\n");
	}
}

void history_print_events(struct page *page, const json_t *events) {
	const json_t *event;
	size_t n;

	if (json_array_size(events) == 0) {
		page_print(page, "\nNo event about the node was recorded in this time.\n");
		return;
	}
	page_print(page, "\n%s\n", event_line_head);
	json_array_foreach(events, n, event)
		event_line_print(event, page->whole, false, page->text);
}

// Return the character of a period.
static char period_character(const json_t *period) {
	if (!fact_holds(period, "kept"))
		return ' ';
	if (!fact_is(period, "state", "alive"))
		return fact_is(period, "state", "left")	     ? 'L'
		       : fact_is(period, "state", "suspect") ? 's'
		       : fact_is(period, "state", "dead")    ? 'D'
							     : 'u';
	return fact_is(period, "verdict", "healthy") ? '.' : 'v';
}

static void print_periods(struct page *page, const json_t *periods) {
	const json_t *period;
	const char *before = "";
	bool is_first = true;
	size_t n;

	page_print(page, "  ");
	json_array_foreach(periods, n, period) {
		if (n < COLUMNS_MAX)
			page_print(page, "%c", period_character(period));
	}
	page_print(page, "\n");
	// Print a line for each change of the verdict.
	json_array_foreach(periods, n, period) {
		const char *verdict = fact_word(period, "verdict");

		if (!fact_holds(period, "kept") || strcmp(verdict, before) == 0)
			continue;
		if (!is_first || strcmp(verdict, "healthy") != 0)
			page_print(
				page, "  from %s  %s, %s\n", fact_name(period, "time"),
				fact_name(period, "state"), verdict
			);
		before = verdict;
		is_first = false;
	}
}

void show_history(struct page *page, const json_t *answer) {
	const json_t *periods = json_object_get(answer, "periods");
	const json_t *paths = json_object_get(answer, "paths");
	char step[SHOW_BYTES];

	fact_duration(answer, "step_ns", step);
	page_print(
		page, "%s, as %s recorded it\n", fact_name(answer, "node"),
		fact_name(answer, "observer")
	);
	page_print(
		page, "  %s to %s, one character for each %s\n", fact_name(answer, "since"),
		fact_name(answer, "until"), step
	);
	if (!fact_holds(answer, "recorded"))
		page_print(page, "  no records: [history] size is 0, or the file cannot be used\n");
	else if (fact_known(answer, "oldest"))
		page_print(page, "  the oldest record is from %s\n", fact_name(answer, "oldest"));
	else
		page_print(page, "  there is no record yet\n");
	if (fact_number(answer, "damaged_blocks") > 0)
		page_print(
			page, "  %" PRIu64 " damaged blocks of the file were left out\n",
			fact_number(answer, "damaged_blocks")
		);
	page_print(
		page, "\nState (. healthy, v another verdict, s suspect, u unreachable, D dead, "
		      "L left)\n"
	);
	print_periods(page, periods);
	if (json_array_size(paths) > 0)
		page_print(page, "\nPaths (height: median latency; !: no answer)\n");
	history_print_paths(page, paths, periods);
	if (fact_holds(answer, "paths_cut"))
		page_print(page, "There are more paths than one answer holds.\n");
	history_print_events(page, json_object_get(answer, "events"));
}
