// SPDX-License-Identifier: BSD-3-Clause
// Lines of `tocsin status`: states, findings, links, the view and the latest events.
#include "show/summary.h"

#include "show/event_line.h"
#include "show/paint.h"

#include <lib/fact.h>
#include <lib/hostlist.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_COLUMNS 60 // columns for a list of names in a line
#define NAMES_MAX 100000

int64_t summary_number(const json_t *object, const char *key) {
	return json_integer_value(json_object_get(object, key));
}

int summary_gather(struct contact *contact, struct summary *summary) {
	int err = contact_json(contact, "HEALTH", &summary->health);

	if (err == 0 && summary_number(summary->health, "left") > 0)
		err = contact_json(contact, "PEERS left", &summary->left);
	if (err == 0)
		err = contact_json(contact, "LINKS", &summary->links);
	if (err == 0)
		err = contact_json(contact, "EVENTS", &summary->events);
	return err;
}

void summary_fini(struct summary *summary) {
	json_decref(summary->health);
	json_decref(summary->left);
	json_decref(summary->links);
	json_decref(summary->events);
	*summary = (struct summary){.health = NULL};
}

void summary_headline(const json_t *health, char text[static FRAME_LINE_BYTES]) {
	int64_t alive = summary_number(health, "alive");
	int64_t doubted = summary_number(health, "suspect") + summary_number(health, "unreachable");
	int64_t missing = summary_number(health, "missing");
	int64_t members = alive + summary_number(health, "dead") + missing;

	snprintf(
		text, FRAME_LINE_BYTES,
		"%s: %" PRId64 " of %" PRId64 " agents answer; cluster %s, as %s sees it",
		fact_word(health, "grade"), alive - doubted, members, fact_word(health, "cluster"),
		fact_word(health, "node")
	);
}

// Names.

// Shorten a host list to "n[1-3,7] and 12 more" if it is too long. The list is cut at the last
// comma that fits, and an open bracket is closed, so that the list stays valid.
static void list_shorten(char *text, int64_t total, char out[static FRAME_LINE_BYTES]) {
	struct hostlist *shown = NULL;
	size_t at = NAMES_COLUMNS - 1;
	bool inside = false;
	int64_t count = 0;

	if (strlen(text) <= NAMES_COLUMNS) {
		snprintf(out, FRAME_LINE_BYTES, "%s", text);
		return;
	}
	while (at > 0 && text[at] != ',')
		at--;
	text[at] = '\0';
	for (size_t n = 0; n < at; n++)
		inside = text[n] == '[' || (inside && text[n] != ']');
	if (inside)
		memcpy(text + at, "]", 2);
	if (hostlist_expand(text, strlen(text), NAMES_MAX, NULL, &shown) == 0)
		count = hostlist_count(shown);
	hostlist_destroy(shown);
	snprintf(
		out, FRAME_LINE_BYTES, "%s%sand %" PRId64 " more", text, text[0] != '\0' ? " " : "",
		total - count
	);
}

static char *names_join(const char *const *names, uint32_t count) {
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (stream == NULL)
		return NULL;
	for (uint32_t n = 0; n < count; n++)
		fprintf(stream, "%s%s", n > 0 ? "," : "", names[n]);
	return fclose(stream) == 0 ? text : NULL;
}

// List the names of the rows whose member `key` equals `value`, or is true if `value` is NULL.
static void rows_join_names(
	const json_t *rows, const char *key, const char *value, char out[static FRAME_LINE_BYTES]
) {
	scoped_mem const char **names = calloc(json_array_size(rows) + 1, sizeof(*names));
	scoped_mem char *text = NULL;
	uint32_t count = 0;
	const json_t *row;
	size_t n;

	snprintf(out, FRAME_LINE_BYTES, "?");
	if (names == NULL)
		return;
	json_array_foreach(rows, n, row) {
		const json_t *member = json_object_get(row, key);
		bool wanted = value == NULL ? json_is_true(member) : fact_is(row, key, value);

		if (wanted && fact_word(row, "node")[0] != '\0')
			names[count++] = fact_word(row, "node");
	}
	// Names that are invalid in Slurm are not compressed.
	if (hostlist_compress(names, count, &text) != 0)
		text = names_join(names, count);
	if (text != NULL)
		list_shorten(text, count, out);
}

static void add_state(
	struct frame *frame, const char *state, int64_t count, const char *names, const char *note
) {
	if (count > 0)
		frame_add(frame, FRAME_TEXT, "%-11s %6" PRId64 "  %s%s", state, count, names, note);
}

// Describe a partition side without a majority, which declares no node dead by silence.
static void add_minority_side(const json_t *waiting, struct frame *frame) {
	int64_t reached = summary_number(waiting, "reached");
	int64_t of = summary_number(waiting, "of");

	frame_add(
		frame, FRAME_TEXT,
		"This side reaches %" PRId64 " of %" PRId64
		" agents, %s: it declares none of the other %" PRId64 " dead.",
		reached, of, 2 * reached > of ? "too few with a vote" : "no more than half",
		summary_number(waiting, "misses")
	);
	frame_add(
		frame, FRAME_TEXT, "  If they are gone for good: %s", fact_word(waiting, "command")
	);
}

// Add text in as many lines as needed, broken at blanks. It is never cut, because the remedy is at
// its end.
static void add_wrapped_text(struct frame *frame, const char *head, const char *text) {
	size_t columns = frame->columns > 40 ? frame->columns : 40;

	while (*text != '\0') {
		size_t room = columns - strlen(head);
		size_t size = strlen(text);

		if (size > room) {
			size = room;
			while (size > 0 && text[size] != ' ')
				size--;
			if (size == 0)
				size = room; // a single long word
		}
		frame_add(frame, FRAME_TEXT, "%s%.*s", head, (int)size, text);
		text += size;
		text += strspn(text, " ");
		head = "  ";
	}
}

// Add what is wrong with the whole cluster, or with the node that answers.
static void add_problems(const json_t *health, struct frame *frame) {
	const json_t *strangers = json_object_get(health, "strangers");
	const json_t *waiting = json_object_get(health, "waiting"), *mistakes, *mistake;
	int64_t silent = summary_number(health, "suspect") + summary_number(health, "unreachable");
	char age[SHOW_BYTES];
	size_t n;

	if (json_is_object(waiting))
		add_minority_side(waiting, frame);
	else if (json_is_true(json_object_get(health, "brake")) && silent > 0)
		frame_add(
			frame, FRAME_TEXT,
			"The brake is on: too many agents fell silent at once, so none of them is "
			"declared dead."
		);
	if (json_is_false(json_object_get(health, "joined")))
		frame_add(frame, FRAME_TEXT, "This node is not a member of a ring yet.");
	if (json_is_true(json_object_get(health, "alone")))
		frame_add(
			frame, FRAME_TEXT, "This node sees none of the nodes that it should see."
		);
	if (fact_word(health, "join_problem")[0] != '\0')
		frame_add(frame, FRAME_TEXT, "  %s", fact_word(health, "join_problem"));
	if (!fact_duration(strangers, "ago_ns", age)) // an older agent does not report it
		age[0] = '\0';
	if (summary_number(strangers, "count") > 0)
		frame_add(
			frame, FRAME_TEXT,
			"Rejected: %" PRId64
			" connections without the right key, the last from %s%s%s%s",
			summary_number(strangers, "count"), fact_word(strangers, "last"),
			age[0] != '\0' ? ", " : "", age, age[0] != '\0' ? " ago" : ""
		);
	if (fact_word(health, "address_problem")[0] != '\0')
		frame_add(
			frame, FRAME_TEXT, "Others cannot connect to this node: tocsin why %s",
			fact_word(health, "node")
		);
	mistakes = json_object_get(health, "mistakes");
	json_array_foreach(mistakes, n, mistake) {
		if (json_is_string(mistake))
			add_wrapped_text(frame, "Misconfigured: ", json_string_value(mistake));
	}
}

void summary_states(const struct summary *summary, struct frame *frame) {
	static const char *const states[] = {"dead", "unreachable", "suspect"};
	const json_t *health = summary->health;
	const json_t *rows = json_object_get(health, "findings");
	scoped_mem char *missing = strdup(fact_word(health, "missing_nodes"));
	char names[FRAME_LINE_BYTES] = "";

	for (size_t n = 0; n < sizeof(states) / sizeof(states[0]); n++) {
		rows_join_names(rows, "state", states[n], names);
		add_state(frame, states[n], summary_number(health, states[n]), names, "");
	}
	if (missing != NULL)
		list_shorten(missing, summary_number(health, "missing"), names);
	add_state(
		frame, "missing", summary_number(health, "missing"), names, ": expected, not seen"
	);
	rows_join_names(rows, "maint", NULL, names);
	add_state(frame, "maintenance", summary_number(health, "maint"), names, "");
	rows_join_names(json_object_get(summary->left, "peers"), "state", "left", names);
	add_state(frame, "left", summary_number(health, "left"), names, "");
	add_problems(health, frame);
}

// Rows.

#define PIPE_EVIDENCE_COLUMNS 43 // on a terminal the frame cuts; tocsin health shows all of it

void summary_findings(const json_t *health, size_t rows_max, struct frame *frame) {
	const json_t *rows = json_object_get(health, "findings");
	size_t count = json_array_size(rows);
	size_t shown = count <= rows_max ? count : rows_max - 1;

	if (count == 0 || rows_max == 0)
		return;
	frame_add(
		frame, FRAME_HEAD, "%-18s %-11s %-13s %-11s %s", "NODE", "AGENT", "VERDICT", "FOR",
		"EVIDENCE"
	);
	for (size_t n = 0; n < shown; n++) {
		char age[SHOW_BYTES], cut[SHOW_BYTES], shown_evidence[FRAME_LINE_BYTES];
		char evidence[FRAME_LINE_BYTES];
		const json_t *row = json_array_get(rows, n);
		const char *node = fact_word(row, "node");
		bool maint = json_is_true(json_object_get(row, "maint"));

		fact_duration(row, "for_ns", age); // null for a node that never joined
		show_truncated(node, 18, cut);
		snprintf(
			evidence, sizeof(evidence), "%s%s%s", maint ? "in maintenance" : "",
			maint && fact_word(row, "evidence")[0] != '\0' ? ": " : "",
			fact_word(row, "evidence")
		);
		paint_cut(
			evidence, frame_is_whole(frame) ? PIPE_EVIDENCE_COLUMNS : sizeof(evidence),
			shown_evidence, sizeof(shown_evidence)
		);
		frame_add(
			frame, FRAME_TEXT, "%-18s %-11s %-13.13s %-11s %s",
			frame_is_whole(frame) ? node : cut, fact_word(row, "state"),
			fact_word(row, "verdict"), age, shown_evidence
		);
	}
	if (shown < count)
		frame_add(frame, FRAME_TEXT, "and %zu more: tocsin health", count - shown);
}

// Add how many agents have which version, if the versions differ.
static void add_versions(const json_t *versions, struct frame *frame) {
	scoped_mem char *text = NULL;
	size_t size = 0, n;
	const json_t *row;
	FILE *stream;

	if (json_array_size(versions) < 2)
		return;
	stream = open_memstream(&text, &size);
	if (stream == NULL)
		return;
	json_array_foreach(versions, n, row)
		fprintf(stream, "%s%s on %" PRId64, n > 0 ? ", " : "",
			fact_known(row, "version") ? fact_name(row, "version") : "others",
			summary_number(row, "count"));
	if (fclose(stream) == 0)
		frame_add(frame, FRAME_TEXT, "mixed  versions %s: tocsin peers --versions", text);
}

// The members include those that are suspect or unreachable.
void summary_view(const json_t *health, struct frame *frame) {
	int64_t members = summary_number(health, "alive");

	frame_add(
		frame, FRAME_TEXT, "view   number %" PRId64 ", digest %s, %" PRId64 " member%s",
		summary_number(health, "view"), fact_word(health, "digest"), members,
		members == 1 ? "" : "s"
	);
	add_versions(json_object_get(health, "versions"), frame);
}

// Describe the first link with this use: the peer, and the round trip or what is wrong.
static void
format_link_use(const json_t *rows, const char *use, char text[static FRAME_LINE_BYTES]) {
	size_t length = strlen(use);
	char took[SHOW_BYTES];
	const json_t *row;
	size_t n;

	text[0] = '\0';
	json_array_foreach(rows, n, row) {
		const json_t *mean = json_object_get(row, "rtt_mean_ns");
		const char *state = fact_word(row, "state");
		const char *mine = fact_word(row, "mine");

		while (*mine != '\0' && (strncmp(mine, use, length) != 0 ||
					 (mine[length] != ' ' && mine[length] != '\0')))
			mine += strcspn(mine, " ") + (mine[strcspn(mine, " ")] == ' ');
		if (*mine == '\0')
			continue;
		snprintf(took, sizeof(took), "no round trip yet");
		// The last round trip of a link that is down or late would look healthy.
		if (strcmp(state, "down") == 0)
			snprintf(took, sizeof(took), "lost");
		else if (strcmp(state, "delayed") == 0)
			snprintf(took, sizeof(took), "late");
		else if (json_is_integer(mean) && json_integer_value(mean) >= 0)
			show_duration((uint64_t)json_integer_value(mean), took);
		snprintf(text, FRAME_LINE_BYTES, "; %s %s (%s)", use, fact_word(row, "node"), took);
		return;
	}
}

void summary_links(const json_t *links, struct frame *frame) {
	const json_t *rows = json_object_get(links, "links");
	char next[FRAME_LINE_BYTES], prev[FRAME_LINE_BYTES];
	size_t up = 0, delayed = 0, down = 0, n;
	const json_t *row;

	json_array_foreach(rows, n, row) {
		const char *state = fact_word(row, "state");

		up += strcmp(state, "up") == 0;
		delayed += strcmp(state, "delayed") == 0;
		down += strcmp(state, "down") == 0;
	}
	format_link_use(rows, "next", next);
	format_link_use(rows, "prev", prev);
	frame_add(
		frame, FRAME_TEXT, "links  %zu up, %zu late, %zu lost%s%s", up, delayed, down, next,
		prev
	);
}

void summary_events(const json_t *events, size_t rows_max, struct frame *frame) {
	const json_t *rows = json_object_get(events, "events");
	size_t count = json_array_size(rows);
	size_t first = count;

	for (size_t found = 0; first > 0 && found < rows_max; first--)
		found += event_line_matters(json_array_get(rows, first - 1));
	for (size_t n = first; n < count; n++) {
		const json_t *row = json_array_get(rows, n);
		// An event with a sentence is cut; tocsin events and tocsin why show all of it.
		bool whole = frame_is_whole(frame) && fact_word(row, "text")[0] == '\0';
		char line[EVENT_LINE_BYTES];

		if (!event_line_matters(row))
			continue;
		event_line_format(row, whole, line);
		frame_add(frame, FRAME_TEXT, "%s", line);
	}
}
