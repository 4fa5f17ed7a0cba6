// SPDX-License-Identifier: BSD-3-Clause
// WHY for a job or a communicator: its problems, and its ranks, late ones first.
#include "jobs/answers/why_comm.h"

#include "client/collect.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "jobs/answers/comm_json.h"

#include <records/communicators.h>

#include <inttypes.h>
#include <jobs/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORIES_MAX 16 // communicators of one job that are listed with ranks
#define RANKS_MAX 32

struct why_comm {
	struct collect collect;
	struct comm_look look;
	bool looking; // `look` has been initialized
	char word[CLIENT_LINE_BYTES_MAX];
};

static void why_drop(void *work) {
	struct why_comm *why = work;

	comm_look_fini(&why->look);
	collect_fini(&why->collect);
	free(why);
}

// Order of the ranks in a communicator: late ranks that the finding names first, then the furthest
// behind.
struct rank_order {
	const struct ras_merged_comm *comm;
	const struct jobs_finding *finding;
};

static bool is_named_late(const struct jobs_finding *finding, uint32_t place) {
	for (uint32_t n = 0; n < finding->late_count && n < JOBS_NAMED_MAX; n++) {
		if (finding->late[n] == place)
			return true;
	}
	return false;
}

static int compare_u64(uint64_t a, uint64_t b) {
	return (a > b) - (a < b);
}

static int compare_ranks(const void *left, const void *right, void *ctx) {
	const struct rank_order *rank_order = ctx;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct ras_comm_rank *first = &rank_order->comm->ranks[a].rank;
	const struct ras_comm_rank *second = &rank_order->comm->ranks[b].rank;
	int order = is_named_late(rank_order->finding, b) - is_named_late(rank_order->finding, a);

	if (order == 0)
		order = compare_u64(first->launched, second->launched);
	if (order == 0)
		order = compare_u64(first->started, second->started);
	if (order == 0)
		order = compare_u64(first->completed, second->completed);
	return order != 0 ? order : compare_u64(a, b);
}

static json_t *ranks_json(const struct comm_look *look, uint32_t place) {
	struct rank_order rank_order = {&look->comms[place], &look->findings[place]};
	uint32_t count = rank_order.comm->rank_count;
	uint32_t *order = calloc((size_t)count + 1, sizeof(*order));
	json_t *array = json_array();

	if (order == NULL)
		return array;
	for (uint32_t n = 0; n < count; n++)
		order[n] = n;
	qsort_r(order, count, sizeof(*order), compare_ranks, &rank_order);
	for (uint32_t n = 0; n < count && n < RANKS_MAX; n++)
		json_array_append_new(array, comm_json_rank(look, place, order[n]));
	free(order);
	return array;
}

static void
print_communicators(struct session *session, const struct why_comm *why, uint32_t count) {
	const struct ras_collective_result *result = &why->collect.answer->result;
	json_t *array = json_array();

	for (uint32_t n = 0; n < why->look.count; n++) {
		uint32_t place = why->look.order[n];
		const struct ras_merged_comm *comm = &why->look.comms[place];
		struct communicator_story_row row = {
			.job = comm->job[0] != '\0' ? comm->job : NULL,
			.size = comm->size,
			.ranks_count = comm->rank_count,
		};

		if (!comm_matches_name(comm, why->word) || json_array_size(array) >= STORIES_MAX)
			continue;
		snprintf(row.hash, sizeof(row.hash), "0x%016" PRIx64, comm->id.hash);
		row.finding = comm_json(&why->look, place);
		row.ranks = ranks_json(&why->look, place);
		json_array_append_new(array, record_to_json(&communicator_story_record, &row));
	}
	session_json(
		session,
		json_pack(
			"{s:i,s:i,s:i,s:o}", "members", (int)result->member_count, "answered",
			(int)result->answered, "count", (int)count, "communicators", array
		)
	);
}

static bool why_step(struct session *session) {
	struct why_comm *why = session->work;
	char name[NAMES_TEXT_BYTES];
	uint32_t count = 0;

	names_sanitize_name(why->word, strlen(why->word), name);
	if (why->collect.answer == NULL) {
		session_fail(
			session, "no node %s is known, and jobs could not be collected: %s", name,
			collect_error_text(&why->collect)
		);
		return true;
	}
	if (!why->looking &&
	    comm_look_init_session(&why->look, session, why->collect.answer) != 0) {
		session_fail(session, "out of memory: the communicators cannot be judged");
		return true;
	}
	why->looking = true;
	if (!comm_look_step(&why->look))
		return false;
	for (uint32_t n = 0; n < why->look.count; n++)
		count += comm_matches_name(&why->look.comms[n], why->word);
	if (count == 0 && !comm_name_is_plausible(why->word))
		names_fail_unknown_node(session, why->word);
	else if (count == 0)
		session_fail(
			session,
			"no node, job or communicator %s is known (of %u communicators, "
			"from %u of %u agents)",
			name, why->look.count, why->collect.answer->result.answered,
			why->collect.answer->result.member_count
		);
	else
		print_communicators(session, why, count);
	return true;
}

void why_comm(struct session *session, const char *word) {
	struct why_comm *why;

	if (!session_charge_question(session))
		return;
	why = calloc(1, sizeof(*why));
	if (!session_begin(session, NULL, why_drop, why))
		return;
	snprintf(why->word, sizeof(why->word), "%s", word);
	collect_ask(&why->collect, session, RAS_COLLECT_COMMS, why_step);
}
