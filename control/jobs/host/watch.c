// SPDX-License-Identifier: BSD-3-Clause
// Queries all agents for communicators (COMMS), and learns which node holds which rank. Sends this
// roster to the other agents of the communicator.
//
// The coordinator queries soon after a rank registered, and again as long as ranks are missing. The
// other agents receive its roster. An agent that started later requests the roster from the
// coordinator, and queries all agents itself if no answer comes. The delay before that depends on
// the agent's lowest rank. So the first agents query, and later agents receive the roster from
// them.
#include "jobs/host/inside.h"

#include <lib/container.h>

#include <jobs/share.h>
#include <string.h>

#define FIRST_NS (2 * RAS_NS_PER_SEC) // most ranks of a job register within this time
#define LONGEST_NS (512 * RAS_NS_PER_SEC)
#define OTHERS_NS (10 * RAS_NS_PER_SEC)
#define OTHERS_STEP_NS (3 * RAS_NS_PER_SEC) // added for each doubling of the lowest rank
#define ANSWER_NS \
	(5 * RAS_NS_PER_SEC) // time for the coordinator to answer a request for the roster
#define TOLD_AGAIN_NS (10 * RAS_NS_PER_SEC)
#define PARTS_PER_LOOK 32 // notices with parts of rosters, sent per second

uint64_t watch_fallback_delay_ns(const struct host_comm *comm) {
	uint32_t lowest = UINT32_MAX;
	uint64_t turn = OTHERS_NS;

	for (const struct host_rank *rank = comm->ranks; rank != NULL; rank = rank->next_of_comm)
		if (rank->told.rank < lowest)
			lowest = rank->told.rank;
	for (; lowest > 0; lowest /= 2)
		turn += OTHERS_STEP_NS;
	return turn;
}

void watch_add_comm(struct jobhost *host, struct host_comm *comm) {
	comm->ask_ns = loop_now_ns(host->loop) + FIRST_NS;
	comm->ask_pause_ns = FIRST_NS;
}

static void begin_roster_send(struct jobhost *host, struct host_comm *comm) {
	comm->roster_rows_sent = 0;
	comm->roster_rows_to_send = comm->roster.count;
	comm->roster_send_began_ns = loop_now_ns(host->loop);
}

void watch_on_roster_request(struct jobhost *host, struct host_comm *comm) {
	uint64_t now_ns = loop_now_ns(host->loop);

	if (!agree_is_coordinator(host, comm))
		return;
	// An agent that asks may have started a moment ago, and lacks the set.
	comm->agreed_set_unsent = comm->agreed_set_unsent || comm->agreed_count > 0;
	if (comm->roster.count == 0)
		return;
	if (comm->roster_send_began_ns == 0 || now_ns - comm->roster_send_began_ns >= TOLD_AGAIN_NS)
		begin_roster_send(host, comm);
}

// Binary search: communicators of an answer ascend by id and size.
bool watch_find_comm(
	const struct ras_comms *comms,
	const struct host_comm *comm,
	struct ras_merged_comm *ret_comm,
	uint32_t *ret_place
) {
	const struct jobs_rank_report key = {
		.comm_hash = comm->comm_hash,
		.host_hash = comm->host_hash,
		.process_hash = comm->process_hash,
		.uid = (uint32_t)comm->uid,
		.attempt = comm->attempt,
	};
	const struct ras_comm_id id = jobs_comm_id(&key);
	uint32_t low = 0, high = ras_comms_count(comms);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order;

		ras_comms_at(comms, middle, ret_comm);
		order = ras_comm_id_compare(&ret_comm->id, &id);
		if (order < 0 || (order == 0 && ret_comm->size < comm->size))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == ras_comms_count(comms))
		return false;
	ras_comms_at(comms, low, ret_comm);
	*ret_place = low;
	return ras_comm_id_compare(&ret_comm->id, &id) == 0 && ret_comm->size == comm->size;
}

uint64_t watch_answer_asked_ns(const struct jobhost *host) {
	const struct overlay_answer *answer = host->answer;

	return answer->at_ns > answer->result.elapsed_ns ? answer->at_ns - answer->result.elapsed_ns
							 : 0;
}

static void learn_roster(struct jobhost *host, struct host_comm *comm) {
	const uint64_t asked_ns = watch_answer_asked_ns(host);
	uint32_t known = comm->roster.ranks, place;
	struct ras_merged_comm merged;

	// The answer may show ranks of the newest attempt.
	if (comm->is_past || roster_is_complete(comm) || asked_ns <= comm->newest_ns ||
	    !watch_find_comm(host->answer->comms, comm, &merged, &place) ||
	    merged.rank_count <= known)
		return;
	// Rows of an older question may be of an earlier attempt.
	roster_forget(comm);
	comm->roster_asked_ns = asked_ns;
	if (roster_merge_answer(comm, &merged) != 0)
		return;
	if (comm->roster.ranks > known && comm->roster.count > 1)
		begin_roster_send(host, comm);
}

static void discard_answer(struct jobhost *host) {
	if (host->answer == NULL)
		return;
	loop_undefer(host->loop, &host->answer_job);
	if (host->answer_step != ANSWER_ROSTERS)
		comm_look_fini(&host->look);
	overlay_answer_put(host->answer);
	host->answer = NULL;
	host->next_of_answer = NULL;
}

// Use the answer for one communicator, or judge a part of it. Returns true once it is used up.
static bool answer_step_run(struct jobhost *host) {
	struct host_comm *comm = host->next_of_answer;

	if (host->answer_step == ANSWER_JUDGE) {
		if (!comm_look_step(&host->look))
			return false;
		host->answer_step = ANSWER_FINDINGS;
		host->next_of_answer = host->comms;
		return false;
	}
	if (comm != NULL) {
		host->next_of_answer = comm->next;
		if (host->answer_step == ANSWER_ROSTERS)
			learn_roster(host, comm);
		else
			stall_send_finding(host, comm);
		return false;
	}
	if (host->answer_step == ANSWER_FINDINGS || !stall_begin_judging(host))
		return true;
	host->answer_step = ANSWER_JUDGE;
	return false;
}

static void use_answer(struct loop_job *job) {
	struct jobhost *host = container_of(job, struct jobhost, answer_job);
	uint64_t began_ns = loop_clock_ns(host->loop);

	while (!answer_step_run(host))
		if (!jobs_have_time(host, &began_ns)) {
			loop_defer(host->loop, job);
			return;
		}
	discard_answer(host);
}

static void on_comms_answer(struct overlay_question *question, struct overlay_answer *answer) {
	struct jobhost *host = container_of(question, struct jobhost, question);

	host->asking = false;
	if (answer->err != 0) {
		overlay_answer_put(answer);
		return;
	}
	host->answer = answer;
	host->answer_step = ANSWER_ROSTERS;
	host->next_of_answer = host->comms;
	loop_defer(host->loop, &host->answer_job);
}

// Return whether all agents are to be queried about the roster of the communicator now.
static bool roster_query_is_due(struct jobhost *host, struct host_comm *comm, uint64_t now_ns) {
	bool first = comm->ask_pause_ns == FIRST_NS;

	if (comm->ranks == NULL || comm->is_past || now_ns < comm->ask_ns ||
	    roster_is_complete(comm))
		return false;
	if (!agree_is_coordinator(host, comm) && !comm->roster_is_requested) {
		// Most likely the roster arrives before this agent's turn comes.
		comm->roster_is_requested = !first && notice_request_roster(host, comm);
		comm->ask_ns = now_ns + (first ? watch_fallback_delay_ns(comm) : ANSWER_NS);
		comm->ask_pause_ns = 2 * FIRST_NS;
		return false;
	}
	comm->roster_is_requested = false;
	comm->ask_ns = now_ns + comm->ask_pause_ns;
	comm->ask_pause_ns =
		2 * comm->ask_pause_ns < LONGEST_NS ? 2 * comm->ask_pause_ns : LONGEST_NS;
	return true;
}

void watch_begin_round(struct jobhost *host) {
	host->round.placed = 0;
	host->round.parts = PARTS_PER_LOOK;
	host->round.needs_answer = false;
}

void watch_tick(struct jobhost *host, struct host_comm *comm, uint64_t now_ns) {
	struct round *round = &host->round;

	if ((roster_is_complete(comm) && comm->roster.count == 0) ||
	    comm->roster.ranks > comm->size)
		round->placed += comm->size;
	else
		round->placed += comm->roster.ranks;
	if (host->overlay == NULL)
		return;
	round->needs_answer = roster_query_is_due(host, comm, now_ns) || round->needs_answer;
	round->needs_answer = stall_needs_query(host, comm, now_ns) || round->needs_answer;
	while (round->parts > 0 && notice_send_roster_part(host, comm))
		round->parts--;
}

void watch_end_round(struct jobhost *host) {
	host->counters.placed = host->round.placed;
	if (!host->round.needs_answer || host->asking || host->answer != NULL)
		return;
	host->question = (struct overlay_question){.answered = on_comms_answer};
	host->asking = overlay_ask_all(host->overlay, RAS_COLLECT_COMMS, 0, &host->question) == 0;
}

void watch_init(struct jobhost *host) {
	host->answer_job.run = use_answer;
}

void watch_fini(struct jobhost *host) {
	if (host->asking)
		overlay_cancel_question(&host->question);
	host->asking = false;
	discard_answer(host);
}
