// SPDX-License-Identifier: BSD-3-Clause
// Draws one screen of `tocsin top`: ring, links, counters and tables.
#include "show/top.h"

#include <lib/fact.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_ROWS_MAX 4 // maximum of ring rows with names; a larger ring shows only marks
#define LEGEND "+ alive  ? suspect  ~ unreachable  x dead  . left  m maintenance"

static void now_text(char text[static SHOW_BYTES]) {
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	show_time((int64_t)now.tv_sec * 1000000000, text);
	memcpy(text + 19, "Z", 2); // cut to whole seconds
}

// Ring.

static char peer_mark(const json_t *peer) {
	static const struct {
		const char *state;
		char mark;
	} marks[] = {
		{"alive", '+'}, {"suspect", '?'}, {"unreachable", '~'},
		{"dead", 'x'},	{"left", '.'},
	};

	if (json_is_true(json_object_get(peer, "maint")))
		return 'm';
	for (size_t n = 0; n < sizeof(marks) / sizeof(marks[0]); n++) {
		if (fact_is(peer, "state", marks[n].state))
			return marks[n].mark;
	}
	return '!';
}

// Compare peers in the order of the ring.
static int peers_compare(const void *left, const void *right) {
	const json_t *a = *(const json_t *const *)left;
	const json_t *b = *(const json_t *const *)right;
	int order = strcmp(fact_word(a, "host"), fact_word(b, "host"));

	return order != 0 ? order : strcmp(fact_word(a, "node"), fact_word(b, "node"));
}

static void add_names(const json_t **peers, size_t count, size_t width, struct frame *frame) {
	size_t per_row = frame->columns / width;
	char line[FRAME_LINE_BYTES] = "";
	size_t used = 0;

	for (size_t n = 0; n < count; n++) {
		char name[SHOW_BYTES];

		show_truncated(fact_word(peers[n], "node"), width - 2, name);
		used += (size_t)snprintf(
			line + used, sizeof(line) - used, "%c%-*s", peer_mark(peers[n]),
			(int)width - 1, name
		);
		if (n + 1 == count || (n + 1) % per_row == 0) {
			frame_add(frame, FRAME_MARKED, "%s", line);
			used = 0;
		}
	}
}

static void add_ring(const json_t *rows, struct frame *frame) {
	const json_t *sorted[TOP_DRAWN_MAX];
	char line[FRAME_LINE_BYTES];
	size_t columns = frame->columns < sizeof(line) - 1 ? frame->columns : sizeof(line) - 1;
	size_t width = 0, per_row, count = 0, n;
	const json_t *row;

	json_array_foreach(rows, n, row) {
		size_t length = strlen(fact_word(row, "node"));

		if (count == TOP_DRAWN_MAX)
			break;
		if (fact_is(row, "state", "missing"))
			continue; // a missing node has no position in the ring
		width = length + 3 > width ? length + 3 : width;
		sorted[count++] = row;
	}
	if (count == 0)
		return;
	if (width >= SHOW_BYTES)
		width = SHOW_BYTES - 1;
	// NOLINTNEXTLINE(bugprone-sizeof-expression): these are pointers
	qsort(sorted, count, sizeof(sorted[0]), peers_compare);
	frame_add(frame, FRAME_HEAD, "RING  " LEGEND);
	per_row = frame->columns / width;
	if (per_row > 0 && (count + per_row - 1) / per_row <= NAME_ROWS_MAX) {
		add_names(sorted, count, width, frame);
		return;
	}
	for (size_t at = 0; at < count; at += columns) {
		size_t used = 0;

		for (; used < columns && at + used < count; used++)
			line[used] = peer_mark(sorted[at + used]);
		line[used] = '\0';
		frame_add(frame, FRAME_MARKS, "%s", line);
	}
}

// Tables.

static void add_links(const json_t *links, size_t rows_max, struct frame *frame) {
	const json_t *rows = json_object_get(links, "links");
	size_t count = json_array_size(rows);
	size_t shown = count < rows_max ? count : rows_max;

	if (shown == 0)
		return;
	frame_add(
		frame, FRAME_HEAD, "%-20s %-8s %-12s %-12s %-10s %s", "LINK", "STATE", "ROUND TRIP",
		"SILENT FOR", "LOST", "USED AS"
	);
	for (size_t n = 0; n < shown; n++) {
		const json_t *row = json_array_get(rows, n);
		const json_t *mean = json_object_get(row, "rtt_mean_ns");
		char node[SHOW_BYTES], took[SHOW_BYTES] = "-", silent[SHOW_BYTES];
		int64_t silent_ns = summary_number(row, "silent_ns");

		show_truncated(fact_word(row, "node"), 20, node);
		if (json_is_integer(mean) && json_integer_value(mean) >= 0)
			show_duration((uint64_t)json_integer_value(mean), took);
		show_duration(silent_ns > 0 ? (uint64_t)silent_ns : 0, silent);
		frame_add(
			frame, FRAME_TEXT, "%-20s %-8s %-12s %-12s %-10" PRId64 " %s", node,
			fact_word(row, "state"), took, silent, summary_number(row, "reconnects"),
			fact_word(row, "mine")
		);
	}
}

// Fill the frame from the top. Of the free lines at its end, findings take at most half, links half
// of the rest, and events what is left.
void top_draw(const struct top_view *view, struct frame *frame) {
	const json_t *health = view->summary.health;
	const json_t *overlay = json_object_get(view->counters, "overlay");
	char now[SHOW_BYTES], line[FRAME_LINE_BYTES];
	char sent[SHOW_BYTES] = "-", received[SHOW_BYTES] = "-";
	size_t room;

	now_text(now);
	frame_add(frame, FRAME_TITLE, "tocsin top, q quits   %s   %s", now, view->place);
	if (view->trouble != NULL)
		frame_add(frame, FRAME_TEXT, "no answer: %s", view->trouble);
	if (health == NULL)
		return;
	summary_headline(health, line);
	frame_add(frame, FRAME_TEXT, "%s", line);
	summary_states(&view->summary, frame);
	summary_view(health, frame);
	summary_links(view->summary.links, frame);
	if (view->rates.sent_per_s >= 0)
		show_bytes((uint64_t)view->rates.sent_per_s, sent);
	if (view->rates.received_per_s >= 0)
		show_bytes((uint64_t)view->rates.received_per_s, received);
	frame_add(
		frame, FRAME_TEXT,
		"traffic %s/s out, %s/s in; suspicions %" PRId64 " (%" PRId64
		" cleared), deaths %" PRId64,
		sent, received, summary_number(overlay, "suspicions"),
		summary_number(overlay, "suspicions_cleared"),
		summary_number(overlay, "deaths_declared")
	);
	frame_add(frame, FRAME_TEXT, "%s", "");
	if (view->peers != NULL)
		add_ring(json_object_get(view->peers, "peers"), frame);

	room = frame_lines_left(frame);
	if (json_array_size(json_object_get(health, "findings")) > 0 && room > 4) {
		frame_add(frame, FRAME_TEXT, "%s", "");
		summary_findings(health, room / 2 - 1, frame);
	}
	room = frame_lines_left(frame);
	if (room > 6) {
		frame_add(frame, FRAME_TEXT, "%s", "");
		add_links(view->summary.links, room / 2 - 2, frame);
	}
	room = frame_lines_left(frame);
	if (room > 2) {
		frame_add(frame, FRAME_TEXT, "%s", "");
		frame_add(frame, FRAME_HEAD, "EVENTS");
		summary_events(view->summary.events, room - 2, frame);
	}
}

void top_format_line(const struct top_view *view, char text[static FRAME_LINE_BYTES]) {
	const json_t *health = view->summary.health;
	char now[SHOW_BYTES];

	now_text(now);
	if (view->trouble != NULL) {
		snprintf(text, FRAME_LINE_BYTES, "%s no answer: %s", now, view->trouble);
		return;
	}
	snprintf(
		text, FRAME_LINE_BYTES,
		"%s %s: alive %" PRId64 ", suspect %" PRId64 ", unreachable %" PRId64
		", dead %" PRId64 ", left %" PRId64 ", missing %" PRId64,
		now, fact_word(health, "grade"), summary_number(health, "alive"),
		summary_number(health, "suspect"), summary_number(health, "unreachable"),
		summary_number(health, "dead"), summary_number(health, "left"),
		summary_number(health, "missing")
	);
}
