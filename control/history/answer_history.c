// SPDX-License-Identifier: BSD-3-Clause
// HISTORY node [since [until]]: what this agent recorded of a node and of its own paths to that
// node; for itself, of all its paths. A time is as in EVENTS; the default is the last hour.
#include "client/answers.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "history/history_rows.h"

#include <lib/escape.h>

#include <stdlib.h>
#include <string.h>

#define POINTS 60
#define EVENTS_SHOWN 200
#define DEFAULT_S 3600
#define QUOTED_BYTES 96

static json_t *history_reply_json(struct session *session, const struct past *past) {
	const struct history_answer *answer = past->answer;
	char since[SHOW_BYTES], until[SHOW_BYTES], oldest[SHOW_BYTES], self[NAMES_TEXT_BYTES];
	int64_t end_s = answer->since_s + (int64_t)answer->points * answer->step_s;

	names_format_id(session_ras(session), ras_self_id(session_ras(session)), self);
	return json_pack(
		"{s:o,s:s,s:b,s:s,s:s,s:I,s:o,s:I,s:b,s:b,s:o,s:o}", "node",
		safe_string_json(past->name), "observer", self, "known", past->is_known, "since",
		past_time_text(answer->since_s, since), "until", past_time_text(end_s, until),
		"step_ns", (json_int_t)answer->step_s * (json_int_t)RAS_NS_PER_SEC, "oldest",
		answer->oldest_s != INT64_MAX
			? json_string(past_time_text(answer->oldest_s, oldest))
			: json_null(),
		"damaged_blocks", (json_int_t)answer->damaged, "recorded", answer->has_file,
		"paths_cut", answer->is_cut, "periods", past_periods_json(answer), "events",
		past_events_json(session, answer)
	);
}

static bool history_reply_step(struct session *session) {
	struct past *past = session->work;

	if (past->has_begun)
		return past_write_path(session, past);
	if (past_has_failed(session, past) || past_node_is_unknown(session, past))
		return true;
	past_begin(session, past, history_reply_json(session, past));
	return false;
}

// Parse the next word as a time, if there is one. Returns false after an error message.
static bool parse_time_word(struct session *session, const char **rest, int64_t *ret_s) {
	char word[CLIENT_LINE_BYTES_MAX], quoted[QUOTED_BYTES];
	int64_t ns;

	if (!command_word(rest, word, sizeof(word)))
		return true;
	if (!time_parse(session, word, strlen(word), &ns)) {
		escape_quote(word, strlen(word), quoted, sizeof(quoted));
		session_fail(session, "%s is no time such as 90s, 10m, 2h or @1795965000", quoted);
		return false;
	}
	*ret_s = ns / (int64_t)RAS_NS_PER_SEC;
	return true;
}

void answer_history(struct session *session, const char *rest) {
	const struct overlay *overlay = session->server->overlay;
	int64_t now_s =
		overlay_realtime_ns(overlay, overlay_now_ns(overlay)) / (int64_t)RAS_NS_PER_SEC;
	struct history_question question = {
		.since_s = now_s - DEFAULT_S,
		.until_s = now_s,
		.points = POINTS,
		.events = EVENTS_SHOWN,
	};
	struct past *past = calloc(1, sizeof(*past));

	if (past == NULL) {
		session_fail(session, "out of memory");
		return;
	}
	if (!past_parse_node(session, &rest, past) ||
	    !parse_time_word(session, &rest, &question.since_s) ||
	    !parse_time_word(session, &rest, &question.until_s)) {
		free(past);
		return;
	}
	if (*rest != '\0' || question.since_s > question.until_s) {
		session_fail(
			session, *rest != '\0' ? "HISTORY takes a node and two times"
					       : "the begin is after the end; 1h is an hour ago"
		);
		free(past);
		return;
	}
	question.peer = past->id;
	question.all_paths = past->is_self;
	question.events_since_ns = question.since_s * (int64_t)RAS_NS_PER_SEC;
	question.events_until_ns = (question.until_s + 1) * (int64_t)RAS_NS_PER_SEC - 1;
	past_ask(session, past, &question, history_reply_step);
}
