// SPDX-License-Identifier: BSD-3-Clause
// COMMS: the communicators of all jobs, sorted by severity, with the findings of each.
#include "client/answers.h"
#include "client/collect.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/server.h"
#include "jobs/answers/comm_json.h"
#include "jobs/answers/comm_table.h"

#include <records/communicators.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comms {
	struct listing listing;
	struct collect collect;
	struct comm_table table;
	struct comm_look look;
	bool looking;			  // `look` has been initialized
	const struct comm_summary **rows; // indexed like look.comms
	uint32_t *shown;		  // indexes into look.comms, worst first
	char word[CLIENT_LINE_BYTES_MAX]; // a job or communicator; "": all
};

static void comms_drop(void *work) {
	struct comms *comms = work;

	comm_look_fini(&comms->look);
	free(comms->rows);
	free(comms->shown);
	collect_fini(&comms->collect);
	comm_table_fini(&comms->table);
	free(comms);
}

static json_t *comms_facts(struct session *session, void *work) {
	const struct comms *comms = work;
	const struct ras_collective_result *result = &comms->collect.answer->result;

	(void)session;
	return json_pack(
		"{s:i,s:i,s:i,s:i,s:I}", "members", (int)result->member_count, "answered",
		(int)result->answered, "timeouts", (int)collect_timeouts(&comms->collect),
		"left_out",
		(int)(comms->collect.answer->bad_parts +
		      ras_comms_bad_rows(comms->collect.answer->comms)),
		"took_ns", (json_int_t)result->elapsed_ns
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct comms *comms = work;
	uint32_t place = comms->shown[n];
	const struct ras_merged_comm *comm = &comms->look.comms[place];
	const struct comm_summary *summary = comms->rows[place];
	char errors[32];
	struct communicator_row row = {
		.job = comm->job[0] != '\0' ? comm->job : NULL,
		.size = summary->size,
		.ranks = summary->rank_count,
		.missing = summary->incomplete,
		.not_members = summary->nocomm,
		.nodes = summary->nodes,
		.status = comm_state_name(summary->state),
		.errors = comm_error_name(summary->errors, errors),
		.collision = comm->collision,
		.jobs_differ = comm->jobs_differ,
		.finding = comm_json(&comms->look, place),
	};

	(void)session;
	snprintf(row.hash, sizeof(row.hash), "0x%016" PRIx64, comm->id.hash);
	snprintf(
		row.secondary_hash, sizeof(row.secondary_hash), "0x%016" PRIx64 ":0x%016" PRIx64,
		comm->id.host_hash, comm->id.pid_hash
	);
	return record_to_json(&communicator_record, &row);
}

static const struct listing_ops ops = {
	.key = "communicators",
	.facts = comms_facts,
	.row_json = row_json,
};

static bool fail_memory(struct session *session, const struct comms *comms) {
	session_fail(
		session, "out of memory: the answer has %u communicators",
		ras_comms_count(comms->collect.answer->comms)
	);
	return true;
}

static bool comms_step(struct session *session) {
	struct comms *comms = session->work;
	const struct comm_table *table = &comms->table;
	uint32_t count;

	if (comms->collect.answer == NULL) {
		session_fail(
			session, "no communicators could be collected: %s",
			collect_error_text(&comms->collect)
		);
		return true;
	}
	if (!comm_table_build(&comms->table, &comms->collect))
		return false;
	if (!comms->looking &&
	    comm_look_init_session(&comms->look, session, comms->collect.answer) != 0)
		return fail_memory(session, comms);
	comms->looking = true;
	if (!comm_look_step(&comms->look))
		return false;
	count = comms->look.count;
	comms->rows = calloc((size_t)count + 1, sizeof(struct comm_summary *));
	comms->shown = calloc((size_t)count + 1, sizeof(*comms->shown));
	if (comms->rows == NULL || comms->shown == NULL || table->count != count)
		return fail_memory(session, comms);
	for (uint32_t n = 0; n < count; n++)
		comms->rows[table->rows[n].place] = &table->rows[n];
	for (uint32_t n = 0; n < count; n++) {
		uint32_t place = comms->look.order[n];

		if (comms->word[0] == '\0' ||
		    comm_matches_name(&comms->look.comms[place], comms->word))
			comms->shown[comms->listing.count++] = place;
	}
	session->step = listing_step;
	return false;
}

void answer_comms(struct session *session, const char *rest) {
	struct comms *comms;

	if (!session_charge_question(session))
		return;
	comms = calloc(1, sizeof(*comms));
	if (!session_begin(session, NULL, comms_drop, comms))
		return;
	snprintf(comms->word, sizeof(comms->word), "%s", rest);
	comms->listing.ops = &ops;
	collect_ask(&comms->collect, session, RAS_COLLECT_COMMS, comms_step);
}
