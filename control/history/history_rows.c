// SPDX-License-Identifier: BSD-3-Clause
// Asks the history about one node, and writes its answer as JSON.
#include "history/history_rows.h"

#include "client/event_text.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/escape.h>
#include <records/history.h>
#include <verdict/verdict.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_BYTES 96

bool past_parse_node(struct session *session, const char **rest, struct past *past) {
	char word[CLIENT_LINE_BYTES_MAX], quoted[QUOTED_BYTES];
	const char *after = *rest;
	struct ras_peer peer;

	if (command_word(&after, word, sizeof(word)) && !names_is_known(session, word)) {
		if (strlen(word) > RAS_NAME_MAX) {
			escape_quote(word, strlen(word), quoted, sizeof(quoted));
			session_fail(session, "no node %s", quoted);
			return false;
		}
		*rest = after;
		past->id = ras_id(word, strlen(word));
		names_sanitize_name(word, strlen(word), past->name);
		return true;
	}
	if (!names_parse_next(session, rest, &peer))
		return false;
	past->id = peer.record->id;
	past->is_known = true;
	past->is_self = past->id == ras_self_id(session_ras(session));
	names_format_record(peer.record, past->name);
	return true;
}

static void on_end(struct history_query *query, int err, struct history_answer *answer) {
	struct past *past = (struct past *)query;

	past->err = err;
	past->answer = answer;
	session_continue(past->session, past->step);
}

void past_drop(void *work) {
	struct past *past = work;

	history_cancel(&past->query);
	history_answer_free(past->answer);
	free(past);
}

void past_ask(
	struct session *session,
	struct past *past,
	const struct history_question *question,
	session_step_fn *step
) {
	struct history *history = session->server->config.history;

	if (history == NULL) {
		free(past);
		session_fail(
			session, "this agent keeps no history: [node] state_directory is empty"
		);
		return;
	}
	if (!session_charge_question(session)) {
		free(past);
		return;
	}
	past->session = session;
	past->query.ended = on_end;
	past->step = step;
	if (!session_begin(session, NULL, past_drop, past))
		return;
	past->err = history_ask(history, question, &past->query);
	if (past->err != 0)
		session->step = step;
}

bool past_has_failed(struct session *session, const struct past *past) {
	const char *words = strerrordesc_np(-past->err);

	if (past->err == 0)
		return false;
	if (past->err == -ETIMEDOUT)
		words = "the disk of the state directory does not answer";
	else if (past->err == -EFBIG)
		words = "the period has more than 64 MiB of records; ask about a shorter period";
	else if (past->err == -EAGAIN)
		words = "too many questions wait for the disk; try again";
	session_fail(session, "the history cannot be read: %s", words);
	return true;
}

bool past_node_is_unknown(struct session *session, const struct past *past) {
	const struct history_answer *answer = past->answer;
	bool is_known = past->is_known || answer->series_count > 0 || answer->event_count > 0;

	for (uint32_t n = 0; n < answer->points; n++)
		is_known = is_known || answer->node[n].state != RAS_UNKNOWN;
	if (!is_known)
		session_fail(
			session, "no node %s: it is no member, and no record of this time names it",
			past->name
		);
	return !is_known;
}

// A client can ask about times near the end of int64_t, and the header of a block may name any one.
const char *past_time_text(int64_t unix_s, char text[static SHOW_BYTES]) {
	int64_t most_s = INT64_MAX / (int64_t)RAS_NS_PER_SEC;

	if (unix_s > most_s)
		unix_s = most_s;
	if (unix_s < -most_s)
		unix_s = -most_s;
	show_time(unix_s * (int64_t)RAS_NS_PER_SEC, text);
	return text;
}

static int64_t point_begin_s(const struct history_answer *answer, uint32_t point) {
	return answer->since_s + (int64_t)point * answer->step_s;
}

json_t *past_periods_json(const struct history_answer *answer) {
	json_t *array = json_array();
	char when[SHOW_BYTES];

	for (uint32_t n = 0; n < answer->points; n++) {
		const struct history_node_point *node = &answer->node[n];
		bool is_recorded = node->state != RAS_UNKNOWN;
		enum ras_state state =
			node->state <= RAS_LEFT ? (enum ras_state)node->state : RAS_UNKNOWN;
		enum verdict verdict = node->verdict < VERDICT_COUNT ? (enum verdict)node->verdict
								     : VERDICT_UNKNOWN;
		const struct history_period_row row = {
			.time = past_time_text(point_begin_s(answer, n), when),
			.kept = node->is_covered,
			.state = !node->is_covered ? NULL
				 : is_recorded	   ? ras_state_name(state)
						   : ras_state_name(RAS_ALIVE),
			.verdict = !node->is_covered ? NULL
				   : is_recorded     ? verdict_name(verdict)
						     : verdict_name(VERDICT_HEALTHY),
		};

		json_array_append_new(array, record_to_json(&history_period_record, &row));
	}
	return array;
}

json_t *past_events_json(struct session *session, const struct history_answer *answer) {
	json_t *array = json_array();

	for (uint32_t n = 0; n < answer->event_count; n++)
		json_array_append_new(array, event_text_json(session, &answer->events[n]));
	return array;
}

static uint64_t latency_or_unknown(uint64_t ns) {
	return ns != 0 ? ns : RECORD_UNKNOWN;
}

static json_t *
past_path_json(struct session *session, const struct history_answer *answer, uint32_t place) {
	const struct history_series *series = answer->series[place];
	struct history_path_row row = {
		.peer = series->name.node,
		.device = series->name.device,
		.peer_device = series->name.peer_device,
		.points = json_array(),
	};
	char when[SHOW_BYTES], self[NAMES_TEXT_BYTES];

	names_format_id(session_ras(session), ras_self_id(session_ras(session)), self);
	row.node = self;
	for (uint32_t n = 0; n < answer->points; n++) {
		const struct history_point *point = &series->points[n];
		const struct history_point_row point_row = {
			.time = past_time_text(point_begin_s(answer, n), when),
			.sent = point->sent,
			.lost = point->lost,
			.min_ns = latency_or_unknown(point->min_ns),
			.median_ns = latency_or_unknown(point->median_ns),
			.p99_ns = latency_or_unknown(point->p99_ns),
			.max_ns = latency_or_unknown(point->max_ns),
		};

		if (point->sent > 0)
			json_array_append_new(
				row.points, record_to_json(&history_point_record, &point_row)
			);
	}
	return record_to_json(&history_path_record, &row);
}

void past_begin(struct session *session, struct past *past, json_t *object) {
	char *text;

	session_add_schema(object);
	text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(object);
	past->has_begun = true;
	if (text == NULL) {
		session->out.failed = true;
		return;
	}
	text_add(&session->out, text, strlen(text) - 1); // without the closing brace
	text_print(&session->out, ",\"paths\":[");
	free(text);
}

bool past_write_path(struct session *session, struct past *past) {
	const struct history_answer *answer = past->answer;

	if (past->next_path == answer->series_count) {
		text_print(&session->out, "]}\n");
		return true;
	}
	if (past->next_path > 0)
		text_add(&session->out, ",", 1);
	text_add_json(&session->out, past_path_json(session, answer, past->next_path++));
	return false;
}
