// SPDX-License-Identifier: BSD-3-Clause
// STATUS in NCCL's format: asks all nodes for their communicators and runs the phases of the
// report.
#include "client/answers.h"
#include "client/server.h"
#include "feeds/nccl/status.h"
#include "jobs/answers/comm_json.h"

#include <stdlib.h>
#include <string.h>

#define OUTLIER_COUNT_MAX 10
#define OUTLIER_PERCENT 25
#define OUTLIER_VERBOSE_PERCENT 50

static void status_drop(void *work) {
	struct status *status = work;

	collect_fini(&status->collect);
	comm_table_fini(&status->comms);
	comm_look_fini(&status->look);
	free(status);
}

// Without memory the report names no causes.
bool status_summarise(struct session *session, struct status *status) {
	if (!comm_table_build(&status->comms, &status->collect))
		return false;
	if (!status->looked && status->collect.answer != NULL &&
	    status->collect.answer->comms != NULL)
		status->judged =
			comm_look_init_session(&status->look, session, status->collect.answer) == 0;
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
	if (!session->json)
		status_print_banner(session);
	// The step reports an error, and what this node knows alone.
	collect_ask(&status->collect, session, RAS_COLLECT_COMMS, status_step);
}
