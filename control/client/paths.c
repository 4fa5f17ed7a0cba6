// SPDX-License-Identifier: BSD-3-Clause
// PATHS [node|*]: the paths that this node reads, the worst first; of one peer, with all that is
// remembered of them; or those of all nodes, as each reads them.
#include "client/paths.h"

#include "client/answers.h"
#include "client/congestion.h"
#include "client/gpus.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "nccl/status.h"

#include <lib/container.h>
#include <lib/must.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 40 // rows of text: the rest is counted
#define OWN_MAX 20000
#define NODE_WIDTH 12
#define DEVICES_WIDTH 13
#define TIME_WIDTH 7
#define BOTH_BYTES (2 * RAS_PATH_DEVICE_MAX + 2)

struct paths {
	struct listing listing;
	struct status status; // of the question to all
	bool all;
	struct ras_merged_path *own; // not of all
	uint32_t count;
	uint32_t counts[OBSERVATION_KIND_COUNT];
	uint32_t worst[SHOWN_MAX]; // in text: their places, in order
	bool marked;		   // a row said that there is congestion
};

// Rows.

enum observation_kind paths_kind(const struct ras_path_row *row) {
	return row->seen < OBSERVATION_KIND_COUNT ? (enum observation_kind)row->seen
						  : OBSERVATION_NO_PAIR;
}

// The larger, the worse; what is not known lies between the good and the bad.
static uint32_t paths_weight(enum observation_kind kind) {
	static const uint32_t weights[OBSERVATION_KIND_COUNT] = {
		[OBSERVATION_GOOD] = 0,	 [OBSERVATION_NO_PAIR] = 1,  [OBSERVATION_DEGRADED] = 2,
		[OBSERVATION_LOSSY] = 3, [OBSERVATION_STANDING] = 4, [OBSERVATION_SILENT] = 5,
	};

	return weights[kind];
}

static uint64_t path_badness(const struct ras_path_row *row) {
	if (row->seen == OBSERVATION_LOSSY)
		return row->lost_permille;
	if (row->seen == OBSERVATION_DEGRADED && row->baseline_ns > 0)
		return row->median_ns / (row->baseline_ns / 100 + 1);
	return row->median_ns;
}

bool paths_is_worse(const struct ras_merged_path *a, const struct ras_merged_path *b) {
	uint32_t weight_a = paths_weight(paths_kind(&a->row));
	uint32_t weight_b = paths_weight(paths_kind(&b->row));

	if (weight_a != weight_b)
		return weight_a > weight_b;
	return path_badness(&a->row) > path_badness(&b->row);
}

static const struct ras_merged_path *row_at(const struct paths *paths, uint32_t n) {
	return paths->all ? ras_paths_at(paths->status.answer->paths, n) : &paths->own[n];
}

// A place among the worst, behind those that are as bad.
static void keep_if_bad(struct paths *paths, uint32_t place) {
	const struct ras_merged_path *path = row_at(paths, place);
	uint32_t held = paths->listing.count, at = held;

	while (at > 0 && paths_is_worse(path, row_at(paths, paths->worst[at - 1])))
		at--;
	if (at == SHOWN_MAX)
		return;
	if (held == SHOWN_MAX)
		held--;
	memmove(&paths->worst[at + 1], &paths->worst[at], (held - at) * sizeof(paths->worst[0]));
	paths->worst[at] = place;
	paths->listing.count = held + 1;
}

static void count_rows(struct session *session, struct paths *paths) {
	for (uint32_t n = 0; n < paths->count; n++) {
		paths->counts[paths_kind(&row_at(paths, n)->row)]++;
		if (!session->json)
			keep_if_bad(paths, n);
	}
	if (session->json)
		paths->listing.count = paths->count;
}

// Text.

// "3 good, 1 degraded"; less what was shown, if that is given.
static void say_counts(struct session *session, const struct paths *paths, const uint32_t *shown) {
	const char *between = "";

	for (uint32_t weight = OBSERVATION_KIND_COUNT; weight-- > 0;) {
		for (uint32_t kind = 0; kind < OBSERVATION_KIND_COUNT; kind++) {
			uint32_t count = paths->counts[kind] - (shown != NULL ? shown[kind] : 0);

			if (paths_weight((enum observation_kind)kind) != weight || count == 0)
				continue;
			text_print(
				&session->out, "%s%u %s", between, count,
				observation_kind_name((enum observation_kind)kind)
			);
			between = ", ";
		}
	}
}

static void say_schedule(struct session *session) {
	const struct client_server *server = session->server;
	char interval[SHOW_BYTES], coverage[SHOW_BYTES];
	struct fabric_numbers numbers;

	if (server->fabric == NULL || server->fabric_calls->device_count(server->fabric) == 0) {
		text_print(&session->out, "%s", no_device_words);
		return;
	}
	server->fabric_calls->numbers(server->fabric, &numbers);
	if (numbers.probes.interval_ns == 0) {
		text_print(&session->out, "Nothing is probed: [probe] enabled is no.\n");
		return;
	}
	show_duration(numbers.probes.interval_ns, interval);
	show_duration(numbers.probes.coverage_ns, coverage);
	text_print(
		&session->out, "%" PRIu64 " to neighbours and itself, each probed every %s",
		numbers.probes.neighbours, interval
	);
	if (numbers.probes.targets > 0)
		text_print(
			&session->out, "; %" PRIu64 " others in turn, all of them in %s",
			numbers.probes.targets, coverage
		);
	text_print(&session->out, "\n");
}

static void say_reach(struct session *session, const struct paths *paths) {
	const struct overlay_answer *answer = paths->status.answer;

	text_print(
		&session->out, "%u paths, each as one end reads it, of %u of %u agents in %.3f s",
		paths->count, answer->result.answered, answer->result.member_count,
		status_seconds(&paths->status)
	);
	if (answer->result.truncated + answer->bad_parts > 0)
		text_print(
			&session->out, "; %u parts of answers were left out",
			answer->result.truncated + answer->bad_parts
		);
}

static void say_head(struct session *session, void *work) {
	const struct paths *paths = work;
	char self[NAMES_TEXT_BYTES];

	names_id(session_ras(session), ras_self_id(session_ras(session)), self);
	if (paths->all)
		say_reach(session, paths);
	else
		text_print(&session->out, "%u paths that %s reads", paths->count, self);
	text_print(&session->out, paths->count > 0 ? ": " : "");
	say_counts(session, paths, NULL);
	text_print(&session->out, "\n");
	if (!paths->all) {
		say_schedule(session);
		gpus_say_bad(session, 0, "Memory of GPUs that is not read as it should be:\n");
	}
	if (paths->count > 0)
		text_print(
			&session->out, "\n%-12s %-12s %-13s %-9s %-11s %-7s %-7s %-7s %s\n", "NODE",
			"READS", "DEVICES", "SEEN", "FOR", "MEDIAN", "USUAL", "P99", "LOST"
		);
}

void paths_show_age(uint64_t age_s, char text[static SHOW_BYTES]) {
	show_duration((age_s < UINT32_MAX ? age_s : UINT32_MAX) * RAS_NS_PER_SEC, text);
}

void paths_show_count(uint64_t count, char text[static SHOW_BYTES]) {
	const uint64_t thousand = 1000, million = 1000000;

	if (count < 100 * thousand)
		snprintf(text, SHOW_BYTES, "%" PRIu64, count);
	else if (count < 100 * million)
		snprintf(text, SHOW_BYTES, "%" PRIu64 "k", count / thousand);
	else
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 "M",
			count / million < 100 * thousand ? count / million : 100 * thousand - 1
		);
}

// Others may say any time.
static void show_time_of(uint64_t ns, char text[static SHOW_BYTES]) {
	char whole[SHOW_BYTES];

	snprintf(text, SHOW_BYTES, "-");
	if (ns == 0)
		return;
	show_duration(ns, whole);
	show_cell(whole, TIME_WIDTH, text);
}

static void show_devices(const struct ras_path_row *row, char text[static BOTH_BYTES]) {
	char own[RAS_PATH_DEVICE_MAX + 1], theirs[RAS_PATH_DEVICE_MAX + 1];

	names_text(row->device, strlen(row->device), own, sizeof(own));
	names_text(row->peer_device, strlen(row->peer_device), theirs, sizeof(theirs));
	snprintf(text, BOTH_BYTES, "%s>%s", own, theirs[0] != '\0' ? theirs : "?");
}

// Behind what a path is seen as. Of what others read their ports are not known here.
static const char *mark_of(struct session *session, const struct ras_merged_path *path) {
	return path->node == ras_self_id(session_ras(session))
		       ? congestion_mark(session, path->row.device)
		       : "";
}

static void say_row(struct session *session, void *work, uint32_t n) {
	struct paths *paths = work;
	const struct ras_merged_path *path = row_at(paths, paths->worst[n]);
	const struct ras_path_row *row = &path->row;
	char node[NAMES_TEXT_BYTES], peer[NAMES_TEXT_BYTES], devices[BOTH_BYTES];
	char node_cell[SHOW_BYTES], peer_cell[SHOW_BYTES], devices_cell[SHOW_BYTES];
	char age[SHOW_BYTES], median[SHOW_BYTES], usual[SHOW_BYTES], p99[SHOW_BYTES];
	char lost[SHOW_BYTES], sent[SHOW_BYTES], seen[SHOW_BYTES];
	const char *mark = mark_of(session, path);

	paths->marked = paths->marked || *mark != '\0';
	snprintf(seen, sizeof(seen), "%s%s", observation_kind_name(paths_kind(row)), mark);
	names_id(session_ras(session), path->node, node);
	names_id(session_ras(session), row->peer, peer);
	show_devices(row, devices);
	paths_show_age(row->for_s, age);
	show_time_of(row->median_ns, median);
	show_time_of(row->baseline_ns, usual);
	show_time_of(row->p99_ns, p99);
	paths_show_count(row->lost, lost);
	paths_show_count(row->count + row->lost, sent);
	text_print(
		&session->out, "%-12s %-12s %-13s %-9s %-11s %-7s %-7s %-7s %s/%s\n",
		session_cell(session, node, NODE_WIDTH, node_cell),
		session_cell(session, peer, NODE_WIDTH, peer_cell),
		session_cell(session, devices, DEVICES_WIDTH, devices_cell), seen, age, median,
		usual, p99, lost, sent
	);
}

static void say_tail(struct session *session, void *work) {
	const struct paths *paths = work;
	uint32_t shown[OBSERVATION_KIND_COUNT] = {0};

	if (paths->marked)
		text_print(&session->out, "%s", congestion_legend);
	if (paths->listing.count == paths->count)
		return;
	for (uint32_t n = 0; n < paths->listing.count; n++)
		shown[paths_kind(&row_at(paths, paths->worst[n])->row)]++;
	text_print(&session->out, "and %u more: ", paths->count - paths->listing.count);
	say_counts(session, paths, shown);
	text_print(&session->out, "\n");
}

// JSON.

// Others may say any number; JSON's integers are signed.
static json_t *json_number(uint64_t value) {
	return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}

static json_t *time_json(uint64_t ns) {
	return ns != 0 ? json_number(ns) : json_null();
}

json_t *paths_row_json(struct session *session, const struct ras_merged_path *path) {
	const struct ras_path_row *row = &path->row;
	char node[NAMES_TEXT_BYTES], peer[NAMES_TEXT_BYTES];

	names_id(session_ras(session), path->node, node);
	names_id(session_ras(session), row->peer, peer);
	return json_pack(
		"{s:o,s:o,s:o,s:o,s:s,s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i}", "node",
		peer_name_json(node), "peer", peer_name_json(peer), "device",
		peer_name_json(row->device), "peer_device", peer_name_json(row->peer_device),
		"seen", observation_kind_name(paths_kind(row)), "for_s", json_number(row->for_s),
		"steady", row->steady, "answered", json_number(row->count), "lost",
		json_number(row->lost), "min_ns", time_json(row->min_ns), "median_ns",
		time_json(row->median_ns), "mad_ns",
		row->median_ns != 0 ? json_number(row->mad_ns) : json_null(), "p99_ns",
		time_json(row->p99_ns), "baseline_ns", time_json(row->baseline_ns), "lost_permille",
		(int)row->lost_permille
	);
}

static json_t *counts_json(const struct paths *paths) {
	json_t *counts = json_object();

	for (uint32_t kind = 0; kind < OBSERVATION_KIND_COUNT; kind++)
		json_object_set_new(
			counts, observation_kind_name((enum observation_kind)kind),
			json_integer(paths->counts[kind])
		);
	return counts;
}

static json_t *own_facts(struct session *session) {
	const struct client_server *server = session->server;
	struct fabric_numbers numbers = {0};
	char self[NAMES_TEXT_BYTES];

	names_id(session_ras(session), ras_self_id(session_ras(session)), self);
	if (server->fabric != NULL)
		server->fabric_calls->numbers(server->fabric, &numbers);
	return json_pack(
		"{s:o,s:b,s:I,s:I,s:I,s:I}", "node", peer_name_json(self), "probing",
		numbers.probes.interval_ns != 0, "neighbours",
		(json_int_t)numbers.probes.neighbours, "others", (json_int_t)numbers.probes.targets,
		"interval_ns", (json_int_t)numbers.probes.interval_ns, "coverage_ns",
		(json_int_t)numbers.probes.coverage_ns
	);
}

static json_t *all_facts(const struct paths *paths) {
	const struct overlay_answer *answer = paths->status.answer;

	return json_pack(
		"{s:i,s:i,s:i,s:i,s:f}", "members", (int)answer->result.member_count, "answered",
		(int)answer->result.answered, "timeouts", (int)status_timeouts(&paths->status),
		"left_out", (int)(answer->result.truncated + answer->bad_parts), "seconds",
		status_seconds(&paths->status)
	);
}

static json_t *paths_facts(struct session *session, void *work) {
	const struct paths *paths = work;
	json_t *object = paths->all ? all_facts(paths) : own_facts(session);

	json_object_set_new(object, "counts", counts_json(paths));
	if (!paths->all)
		gpus_put(session, 0, object);
	return object;
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct paths *paths = work;
	const struct ras_merged_path *path = row_at(paths, n);
	json_t *object = paths_row_json(session, path);

	if (!paths->all)
		json_object_set_new(
			object, "port_congestion",
			json_string(congestion_word(session, path->row.device))
		);
	return object;
}

static const struct listing_ops ops = {
	.key = "paths",
	.facts = paths_facts,
	.head = say_head,
	.row = say_row,
	.row_json = row_json,
	.tail = say_tail,
};

// All.

static void paths_drop(void *work) {
	struct paths *paths = work;

	if (paths->status.asked)
		overlay_forget_question(&paths->status.question);
	if (paths->status.answer != NULL)
		overlay_answer_put(paths->status.answer);
	free(paths->own);
	free(paths);
}

static bool fail_step(struct session *session) {
	const struct paths *paths = session->work;

	session_fail(session, "no paths could be collected: %s", status_trouble(&paths->status));
	return true;
}

static void on_answer(struct overlay_question *question, struct overlay_answer *answer) {
	struct status *status = container_of(question, struct status, question);
	struct paths *paths = container_of(status, struct paths, status);

	status->asked = false;
	status->err = answer->err;
	if (answer->err < 0) {
		overlay_answer_put(answer);
		session_continue(status->session, fail_step);
		return;
	}
	status->answer = answer;
	paths->count = ras_paths_count(answer->paths);
	count_rows(status->session, paths);
	session_continue(status->session, listing_step);
}

static void answer_all(struct session *session) {
	struct paths *paths;

	if (!session_may_ask(session))
		return;
	paths = calloc(1, sizeof(*paths));
	if (!session_begin(session, NULL, paths_drop, paths))
		return;
	paths->listing.ops = &ops;
	paths->all = true;
	paths->status.session = session;
	paths->status.question.answered = on_answer;
	paths->status.err = overlay_ask_all(
		session->server->overlay, RAS_COLLECT_PATHS, session_timeout_ns(session, 0),
		&paths->status.question
	);
	paths->status.asked = paths->status.err == 0;
	if (!paths->status.asked)
		session->step = fail_step;
}

// Own.

static uint32_t count_own(const struct client_server *server) {
	struct fabric_path_view view;
	uint32_t cursor = 0, count = 0;

	while (server->fabric != NULL && count < OWN_MAX &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view))
		count++;
	return count;
}

static struct paths *create_own(uint32_t count) {
	struct paths *paths = calloc(1, sizeof(*paths));

	if (paths == NULL)
		return NULL;
	paths->listing.ops = &ops;
	paths->own = calloc((size_t)count + 1, sizeof(paths->own[0]));
	if (paths->own != NULL)
		return paths;
	free(paths);
	return NULL;
}

static void answer_own(struct session *session) {
	const struct client_server *server = session->server;
	uint32_t count = count_own(server), cursor = 0;
	struct paths *paths = create_own(count);
	struct fabric_path_view view;

	if (!session_begin(session, listing_step, paths_drop, paths))
		return;
	while (paths->count < count &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		struct ras_merged_path *path = &paths->own[paths->count++];

		path->node = ras_self_id(session_ras(session));
		server->fabric_calls->path_row(server->fabric, &view, &path->row);
	}
	count_rows(session, paths);
}

// Of one peer.

static void answer_one(struct session *session, const char *rest) {
	char self[NAMES_TEXT_BYTES], name[NAMES_TEXT_BYTES];
	struct ras_peer peer;
	json_t *end;

	if (!names_only(session, rest, &peer))
		return;
	end = paths_end_json(session, &peer);
	if (session->json) {
		session_json(session, end);
		return;
	}
	names_id(session_ras(session), ras_self_id(session_ras(session)), self);
	names_record(peer.record, name);
	paths_end_say(session, self, name, end);
	json_decref(end);
	session_ok(session);
}

void answer_paths(struct session *session, const char *rest) {
	if (*rest == '\0')
		answer_own(session);
	else if (strcmp(rest, "*") == 0)
		answer_all(session);
	else
		answer_one(session, rest);
}
