// SPDX-License-Identifier: BSD-3-Clause
// COMMS: the communicators of all jobs, one a line.
#include "client/answers.h"
#include "client/listing.h"
#include "client/server.h"
#include "nccl/status.h"

#include <lib/container.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct comms {
	struct listing listing;
	struct status status; // as STATUS has it
};

static void comms_drop(void *work) {
	struct comms *comms = work;
	struct status *status = &comms->status;

	if (status->asked)
		overlay_forget_question(&status->question);
	if (status->answer != NULL)
		overlay_answer_put(status->answer);
	comm_table_fini(&status->comms);
	free(comms);
}

static void say_head(struct session *session, void *work) {
	const struct comms *comms = work;
	const struct status *status = &comms->status;

	text_print(
		&session->out, "%u communicators, from %u of %u agents in %.3f s\n",
		status->comms.count, status->answer->result.answered,
		status->answer->result.member_count, status_seconds(status)
	);
	if (status->comms.count > 0)
		text_print(
			&session->out, "\n%-16s %8s %8s %8s %8s %-8s %s\n", "COMMUNICATOR", "SIZE",
			"RANKS", "MISSING", "NODES", "STATUS", "ERRORS"
		);
}

static void say_row(struct session *session, void *work, uint32_t n) {
	const struct comms *comms = work;
	const struct comm_summary *row = &comms->status.comms.rows[n];
	struct ras_merged_comm comm;
	char errors[32];

	ras_comms_at(comms->status.answer->comms, row->place, &comm);
	text_print(
		&session->out, "%016" PRIx64 " %8u %8u %8u %8u %-8s %s%s\n", comm.id.hash,
		row->size, row->rank_count, row->incomplete + row->nocomm, row->nodes,
		comm_state_name(row->state), comm_error_name(row->errors, errors),
		comm.collision ? ",COLLISION" : ""
	);
}

static json_t *comms_facts(struct session *session, void *work) {
	const struct comms *comms = work;
	const struct ras_collective_result *result = &comms->status.answer->result;

	(void)session;
	return json_pack(
		"{s:i,s:i,s:i,s:f}", "members", (int)result->member_count, "answered",
		(int)result->answered, "timeouts", (int)status_timeouts(&comms->status), "seconds",
		status_seconds(&comms->status)
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct comms *comms = work;
	const struct comm_summary *row = &comms->status.comms.rows[n];
	struct ras_merged_comm comm;
	char hash[32], second[48], errors[32];

	(void)session;
	ras_comms_at(comms->status.answer->comms, row->place, &comm);
	snprintf(hash, sizeof(hash), "0x%" PRIx64, comm.id.hash);
	snprintf(
		second, sizeof(second), "0x%" PRIx64 ":0x%" PRIx64, comm.id.host_hash,
		comm.id.pid_hash
	);
	return json_pack(
		"{s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:s,s:s,s:b}", "hash", hash, "secondary_hash", second,
		"size", (int)row->size, "ranks", (int)row->rank_count, "missing",
		(int)row->incomplete, "not_members", (int)row->nocomm, "nodes", (int)row->nodes,
		"status", comm_state_name(row->state), "errors",
		comm_error_name(row->errors, errors), "collision", comm.collision
	);
}

static const struct listing_ops ops = {
	.key = "communicators",
	.facts = comms_facts,
	.head = say_head,
	.row = say_row,
	.row_json = row_json,
};

static bool comms_step(struct session *session) {
	struct comms *comms = session->work;

	if (comms->status.answer == NULL) {
		session_fail(
			session, "no communicators could be collected: %s",
			status_trouble(&comms->status)
		);
		return true;
	}
	if (!comm_table_build(&comms->status))
		return false;
	comms->listing.count = comms->status.comms.count;
	session->step = listing_step;
	return false;
}

static void on_answer(struct overlay_question *question, struct overlay_answer *answer) {
	struct comms *comms = container_of(question, struct comms, status.question);

	comms->status.asked = false;
	comms->status.err = answer->err;
	if (answer->err < 0)
		overlay_answer_put(answer);
	else
		comms->status.answer = answer;
	session_continue(comms->status.session, comms_step);
}

void answer_comms(struct session *session, const char *rest) {
	struct comms *comms;

	(void)rest;
	if (!session_may_ask(session))
		return;
	comms = calloc(1, sizeof(*comms));
	if (!session_begin(session, NULL, comms_drop, comms))
		return;
	comms->listing.ops = &ops;
	comms->status.session = session;
	comms->status.question.answered = on_answer;
	comms->status.err = overlay_ask_all(
		session->server->overlay, RAS_COLLECT_COMMS, session_timeout_ns(session, 0),
		&comms->status.question
	);
	comms->status.asked = comms->status.err == 0;
	if (!comms->status.asked)
		session->step = comms_step;
}
