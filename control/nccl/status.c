// SPDX-License-Identifier: BSD-3-Clause
// STATUS in NCCL's format: asks all nodes for their communicators and runs the phases of the
// report.
#include "nccl/status.h"

#include "client/answers.h"
#include "client/comm_json.h"
#include "client/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OUTLIER_COUNT_MAX 10
#define OUTLIER_PERCENT 25
#define OUTLIER_VERBOSE_PERCENT 50

void status_ask(
	struct status *status,
	struct session *session,
	enum ras_collect_kind kind,
	session_step_fn *failed
) {
	status->session = session;
	status->err = overlay_ask_all(
		session->server->overlay, kind, session_timeout_ns(session, 0), &status->question
	);
	status->asked = status->err == 0;
	if (!status->asked)
		session->step = failed;
}

void status_take_answer(struct status *status, struct overlay_answer *answer) {
	status->asked = false;
	status->err = answer->err;
	if (answer->err < 0)
		overlay_answer_put(answer);
	else
		status->answer = answer;
}

void status_release(struct status *status) {
	if (status->asked)
		overlay_cancel_question(&status->question);
	if (status->answer != NULL)
		overlay_answer_put(status->answer);
}

static void status_drop(void *work) {
	struct status *status = work;

	status_release(status);
	comm_table_fini(&status->comms);
	comm_look_fini(&status->look);
	free(status);
}

// Without memory the report names no causes.
bool status_summarise(struct session *session, struct status *status) {
	if (!comm_table_build(status))
		return false;
	if (!status->looked && status->answer != NULL && status->answer->comms != NULL)
		status->judged =
			comm_look_init_session(&status->look, session, status->answer) == 0;
	status->looked = true;
	return comm_look_step(&status->look); // returns true at once if comm_look_init() failed
}

static bool status_step(struct session *session) {
	status_phase_fn *const *phases = session->json ? status_json_phases : status_text_phases;
	struct status *status = session->work;

	while (phases[status->phase] != NULL && text_size(&session->out) < SESSION_STEP_BYTES) {
		if (!phases[status->phase](session, status))
			return false;
		status->phase++;
		status->comm = 0;
		status->rank = 0;
	}
	return phases[status->phase] == NULL;
}

static void on_answer(struct overlay_question *question, struct overlay_answer *answer) {
	struct status *status = (struct status *)question;

	status_take_answer(status, answer);
	session_continue(status->session, status_step);
}

bool status_node_answered(const struct status *status, uint64_t node) {
	const struct ras_collective_result *result = &status->answer->result;
	uint32_t low = 0, high = result->missing_count;
	struct ras_peer peer;

	if (node == 0 || ras_peer_find(session_ras(status->session), node, &peer) < 0)
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

double status_seconds(const struct status *status) {
	if (status->answer == NULL)
		return 0;
	return (double)status->answer->result.elapsed_ns / (double)RAS_NS_PER_SEC;
}

uint32_t status_timeouts(const struct status *status) {
	if (status->answer == NULL)
		return 0;
	return status->answer->result.legs_timed_out + status->answer->result.legs_lost;
}

const char *status_error_text(const struct status *status) {
	switch (status->err) {
	case 0:
		return NULL;
	case -EAGAIN:
		return "this agent is not a member of a ring yet, or is leaving it";
	case -EBUSY:
		return "the limit of concurrent questions to all agents is reached, try again";
	case -ECANCELED:
		return "this agent is leaving";
	default:
		return strerrordesc_np(-status->err);
	}
}

bool status_is_outlier(const struct status *status, uint32_t count, uint32_t total) {
	if (count == 1)
		return true;
	if (status->verbose)
		return (uint64_t)count * 100 < (uint64_t)total * OUTLIER_VERBOSE_PERCENT;
	return count <= OUTLIER_COUNT_MAX &&
	       (uint64_t)count * 100 <= (uint64_t)total * OUTLIER_PERCENT;
}

void answer_status(struct session *session, const char *rest) {
	struct status *status;

	(void)rest;
	// A report always ends with the end of the connection, even on failure.
	session->closing = true;
	session->monitor = 0;
	if (!session_charge_question(session))
		return;
	status = calloc(1, sizeof(*status));
	if (!session_begin(session, NULL, status_drop, status))
		return;
	session->server->counters.reports++;
	status->verbose = session->verb == VERB_VERBOSE_STATUS;
	status->question.answered = on_answer;
	if (!session->json)
		status_print_banner(session);
	// The step reports an error, and what this node knows alone.
	status_ask(status, session, RAS_COLLECT_COMMS, status_step);
}
