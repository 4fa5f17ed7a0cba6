// SPDX-License-Identifier: BSD-3-Clause
// Writes the pages /health, /health/node and /status.json from a snapshot.
#include "feeds/http/metrics_page.h"

#include <control/http.h>
#include <control/snapshot.h>
#include <dataplane/peer_table.h>
#include <lib/escape.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_SLOTS 512 // of one part: some 3 ms

bool page_is_down(const struct page_facts *facts) {
	const struct snapshot *snapshot = facts->snapshot;

	return snapshot->at_ns == 0 || facts->now_ns - snapshot->at_ns > HTTP_STALE_NS ||
	       !snapshot->view.joined;
}

// Make the part that both pages have: the grade of `tocsin health` with its reason, and the
// overlay. The grade is critical while the control loop does not run.
static json_t *status_head(const struct page_facts *facts) {
	const struct snapshot *snapshot = facts->snapshot;
	const struct ras_view *view = &snapshot->view;
	enum finding_grade grade = snapshot->finding.grade;
	const char *reason = snapshot->finding.reason;
	char digest[19];
	json_t *object;

	if (snapshot->at_ns == 0 || facts->now_ns - snapshot->at_ns > HTTP_STALE_NS) {
		grade = FINDING_CRITICAL;
		reason = snapshot->at_ns == 0 ? "Starting" : "ControlLoopStuck";
	}
	object = json_pack(
		"{s:s,s:s,s:s}", "grade", finding_grade_name(grade), "reason", reason, "version",
		facts->version
	);
	if (object == NULL || snapshot->at_ns == 0)
		return object;
	json_object_set_new(object, "node", json_string(snapshot->node));
	json_object_set_new(
		object, "age_ns", json_integer((json_int_t)(facts->now_ns - snapshot->at_ns))
	);
	snprintf(digest, sizeof(digest), "0x%016" PRIx64, view->digest);
	json_object_set_new(
		object, "overlay",
		json_pack(
			"{s:I,s:s,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "view",
			(json_int_t)view->number, "digest", digest, "joined", view->joined, "brake",
			view->brake, "alive",
			(int)(view->alive - view->suspect - view->unreachable), "suspect",
			(int)view->suspect, "unreachable", (int)view->unreachable, "dead",
			(int)view->dead, "left", (int)view->left, "expected",
			(int)snapshot->expected, "missing", (int)snapshot->missing
		)
	);
	return object;
}

static int json_write(json_t *object, FILE *out) {
	int err = object == NULL || json_dumpf(object, out, JSON_INDENT(2)) != 0 ? -ENOMEM : 0;

	json_decref(object);
	fputc('\n', out);
	return err;
}

int page_health(const struct page_facts *facts, FILE *out) {
	return json_write(status_head(facts), out);
}

// Write text that another agent may have sent as a part of one line.
static void line_write(const char *text, FILE *out) {
	size_t left = strlen(text);
	struct escape_unit unit;

	for (; left > 0; text += unit.taken_bytes, left -= unit.taken_bytes) {
		escape_next(text, left, &unit);
		if (escape_text_is_plain(text, unit.taken_bytes))
			fwrite(text, 1, unit.taken_bytes, out);
		else
			fputc('?', out);
	}
}

bool page_health_node(const struct page_facts *facts, FILE *out) {
	// Exit statuses by grade. node-problem-detector has none for a warning.
	static const int npd[] = {
		[FINDING_OK] = 0,
		[FINDING_WARNING] = 0,
		[FINDING_CRITICAL] = 1,
		[FINDING_UNKNOWN] = 2,
	};
	static const int nagios[] = {
		[FINDING_OK] = 0,
		[FINDING_WARNING] = 1,
		[FINDING_CRITICAL] = 2,
		[FINDING_UNKNOWN] = 3,
	};
	const struct snapshot *snapshot = facts->snapshot;
	const struct snapshot_self *own = &snapshot->own;
	enum finding_grade grade = own->grade;
	bool observes = snapshot->observes_only || own->maint;
	int drain = 2;

	if (page_is_down(facts)) {
		grade = FINDING_UNKNOWN;
		fputs("unknown: the agent has not joined, or its control loop hangs\n", out);
	} else {
		if (!observes && own->advice == VERDICT_ADVICE_DRAIN)
			drain = 1;
		else if (!observes && grade == FINDING_OK && own->advice == VERDICT_ADVICE_NOTHING)
			drain = 0;
		fprintf(out, "%s: %s%s%s%s %s", finding_grade_name(grade), snapshot->node,
			own->maint ? " in maintenance," : "",
			own->would == VERDICT_ADVICE_DRAIN ? " would be drained," : "",
			own->would == VERDICT_ADVICE_RESTART ? " would be restarted," : "",
			own->verdict);
		if (strcmp(own->reason, "None") != 0)
			fprintf(out, " %s", own->reason);
		fputs(own->evidence[0] != '\0' ? ": " : "", out);
		line_write(own->evidence, out);
		fputc('\n', out);
	}
	fprintf(out, "nagios %d\nnpd %d\ndrain %d\n", nagios[grade], npd[grade], drain);
	// A starting agent has no snapshot yet, so it does not say whether it only observes.
	if (!page_is_down(facts))
		fprintf(out, "act %d\n", !snapshot->observes_only);
	return drain == 1;
}

// Write the rows of some slots, one in a line.
static void rows_write(const struct peer_table *peers, struct page_cursor *cursor, FILE *out) {
	const struct peer_snapshot *snapshot = peer_table_snapshot(peers);
	uint32_t end = cursor->slot + STATUS_SLOTS;
	char address[SOCK_ADDR_TEXT_BYTES];

	if (end > peer_snapshot_view(snapshot)->slots_max)
		end = peer_snapshot_view(snapshot)->slots_max;
	for (; cursor->slot < end; cursor->slot++) {
		const struct peer_row *row = peer_snapshot_row(snapshot, cursor->slot);
		json_t *object;

		if (row == NULL)
			continue;
		sock_addr_format(&row->address, address);
		// JSON cannot hold a name that is not valid UTF-8. Then json_pack() fails, and the
		// peer is left out.
		object = json_pack(
			"{s:s,s:s,s:s,s:s,s:b,s:b,s:s,s:I}", "node", row->name, "host", row->host,
			"state", ras_state_name((enum ras_state)row->state), "cause",
			ras_cause_name((enum ras_cause)row->cause), "sole", row->sole, "maint",
			row->maint, "address", address, "start",
			(json_int_t)ras_incarnation_start(row->incarnation)
		);
		if (object == NULL)
			continue;
		fputs(cursor->has_rows ? ",\n    " : "\n    ", out);
		json_dumpf(object, out, 0); // an error of the stream is found when it is closed
		json_decref(object);
		cursor->has_rows = true;
	}
}

// Write the head and open the array of peers.
static int status_begin(const struct page_facts *facts, FILE *out) {
	const struct snapshot *snapshot = facts->snapshot;
	json_t *object = status_head(facts), *missing = json_array();
	char *text;

	for (uint32_t n = 0; n < snapshot->missing && n < SNAPSHOT_MISSING_MAX; n++)
		json_array_append_new(missing, json_string(snapshot->missing_names[n]));
	json_object_set_new(object, "missing_nodes", missing);
	text = json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	if (text == NULL)
		return -ENOMEM;
	// The rows follow inside of the object, before its closing brace.
	fprintf(out, "%.*s,\n  \"peers\": [", (int)strlen(text) - 2, text);
	free(text);
	return 0;
}

int page_status_part(const struct page_facts *facts, struct page_cursor *cursor, FILE *out) {
	int err;

	if (!cursor->begun) {
		if (facts->snapshot->at_ns == 0)
			return json_write(status_head(facts), out);
		err = status_begin(facts, out);
		if (err != 0)
			return err;
		cursor->begun = true;
	}
	rows_write(facts->peers, cursor, out);
	if (cursor->slot < peer_snapshot_view(peer_table_snapshot(facts->peers))->slots_max)
		return 1;
	fputs("\n  ]\n}\n", out);
	return 0;
}
