// SPDX-License-Identifier: BSD-3-Clause
// Asks the agents of all nodes for a session.
#include "client/collect.h"

#include "client/server.h"

#include <lib/container.h>

#include <errno.h>
#include <string.h>

static void on_answer(struct overlay_question *question, struct overlay_answer *answer) {
	struct collect *collect = container_of(question, struct collect, question);

	collect->asked = false;
	collect->err = answer->err;
	if (answer->err < 0)
		overlay_answer_put(answer);
	else
		collect->answer = answer;
	session_continue(collect->session, collect->step);
}

void collect_ask(
	struct collect *collect,
	struct session *session,
	enum ras_collect_kind kind,
	session_step_fn *step
) {
	collect->session = session;
	collect->step = step;
	collect->question.answered = on_answer;
	collect->err = overlay_ask_all(
		session->server->overlay, kind, session_timeout_ns(session, 0), &collect->question
	);
	collect->asked = collect->err == 0;
	if (!collect->asked)
		session->step = step;
}

void collect_fini(struct collect *collect) {
	if (collect->asked)
		overlay_cancel_question(&collect->question);
	if (collect->answer != NULL)
		overlay_answer_put(collect->answer);
}

bool collect_has_node(const struct collect *collect, uint64_t node) {
	const struct ras_collective_result *result = &collect->answer->result;
	uint32_t low = 0, high = result->missing_count;
	struct ras_peer peer;

	if (node == 0 || ras_peer_find(session_ras(collect->session), node, &peer) < 0)
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (result->missing[middle].id == node)
			return false;
		if (result->missing[middle].id < node)
			low = middle + 1;
		else
			high = middle;
	}
	return peer.state != RAS_LEFT;
}

double collect_seconds(const struct collect *collect) {
	if (collect->answer == NULL)
		return 0;
	return (double)collect->answer->result.elapsed_ns / (double)RAS_NS_PER_SEC;
}

uint32_t collect_timeouts(const struct collect *collect) {
	if (collect->answer == NULL)
		return 0;
	return collect->answer->result.legs_timed_out + collect->answer->result.legs_lost;
}

const char *collect_error_text(const struct collect *collect) {
	switch (collect->err) {
	case 0:
		return NULL;
	case -EAGAIN:
		return "this agent is not a member of a ring yet, or is leaving it";
	case -EBUSY:
		return "the limit of concurrent questions to all agents is reached, try again";
	case -ECANCELED:
		return "this agent is leaving";
	default:
		return strerrordesc_np(-collect->err);
	}
}
