// SPDX-License-Identifier: BSD-3-Clause
// Findings: the cause of a wait from what is known, and the delay before a wait counts as stuck.
#include "book.h"
#include "calls.h"
#include "graph.h"

#include <lib/sort.h>

#include <errno.h>
#include <jobs/report.h>
#include <string.h>

#define LOST_PERMILLE_MIN 500 // loss at which a path counts as the end of an operation
#define NS_PER_MS UINT64_C(1000000)
#define MS_PER_SEC UINT64_C(1000)
#define PAIR_NODES_MAX 512 // nodes of bad paths; further paths are ignored

enum phase {
	PHASE_SURVEY,
	PHASE_COLLECT,
	PHASE_FOLLOW,
	PHASE_JUDGE,
	PHASE_DONE,
};

struct judge {
	const struct jobs_snapshot *look;
	struct survey *surveys;
	struct graph graph;
	uint64_t confirm_ms, stuck_ms, busy_ms;
	uint64_t pair_nodes[PAIR_NODES_MAX]; // ascending
	uint32_t pair_node_count;
};

struct jobs_judging {
	struct judge judge;
	struct jobs_finding *findings;
	enum phase phase;
	uint32_t comm; // index of the next communicator in this phase
};

static uint64_t limit_ms(uint64_t limit_ns, uint64_t default_ms) {
	return limit_ns != 0 ? limit_ns / NS_PER_MS : default_ms;
}

static int compare_nodes(const void *a, const void *b) {
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

// Return the index of a node, or PAIR_NODES_MAX if no bad path ends there.
static uint32_t find_pair_node(const struct judge *judge, uint64_t node) {
	uint32_t low = 0, high = judge->pair_node_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (judge->pair_nodes[middle] < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low < judge->pair_node_count && judge->pair_nodes[low] == node ? low
									      : PAIR_NODES_MAX;
}

static bool pair_is_worse(const struct jobs_pair *a, const struct jobs_pair *b) {
	if (a->silent != b->silent)
		return a->silent;
	if (a->lost_permille != b->lost_permille)
		return a->lost_permille > b->lost_permille;
	// Compare the slow-down relative to the baseline; both are short times, far from overflow.
	return a->median_ns / (a->baseline_ns + 1) > b->median_ns / (b->baseline_ns + 1);
}

// Return the worst path between two nodes of the communicator, or NULL.
static const struct jobs_pair *
worst_pair(const struct judge *judge, const struct ras_merged_comm *comm) {
	const struct jobs_pair *worst = NULL;
	bool has[PAIR_NODES_MAX + 1] = {false};

	for (uint32_t n = 0; judge->pair_node_count > 0 && n < comm->rank_count; n++)
		has[find_pair_node(judge, comm->ranks[n].node)] = true;
	has[PAIR_NODES_MAX] = false;
	for (uint32_t n = 0; n < judge->look->pair_count; n++) {
		const struct jobs_pair *pair = &judge->look->pairs[n];

		if ((worst == NULL || pair_is_worse(pair, worst)) &&
		    has[find_pair_node(judge, pair->node)] &&
		    has[find_pair_node(judge, pair->peer)])
			worst = pair;
	}
	return worst;
}

// A path that is slow, or loses now and then, delays an operation and does not stop it.
static bool pair_stops_operations(const struct jobs_pair *pair) {
	return pair != NULL && (pair->silent || pair->lost_permille >= LOST_PERMILLE_MIN);
}

// If signatures are unknown: return whether the operations that `more` launched beyond `less` were
// all broadcasts.
static bool
launched_broadcasts(const struct ras_comm_rank *more, const struct ras_comm_rank *less) {
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++) {
		if (n != JOBS_BROADCAST && more->ops[n] != less->ops[n])
			return false;
	}
	return more->ops[JOBS_BROADCAST] > less->ops[JOBS_BROADCAST];
}

// Return whether the late rank may have nothing to send: an idle server sleeps while others wait
// for its broadcast.
static bool
rank_is_idle_root(const struct judge *judge, uint32_t comm, const struct ras_merged_rank *late) {
	const struct ras_merged_comm *merged = &judge->look->comms[comm];
	const struct survey *survey = &judge->surveys[comm];
	const struct ras_merged_rank *waits = NULL;
	const struct ras_comm_signature *signature;

	for (uint32_t n = 0; n < merged->rank_count && waits == NULL; n++) {
		if (survey_rank_waits(survey, &merged->ranks[n].rank))
			waits = &merged->ranks[n];
	}
	if (late->rank.process_state != JOBS_PROCESS_SLEEPING || waits == NULL)
		return false;
	signature = ras_comm_signature_of(merged, waits, survey->seq);
	if (signature == NULL)
		return launched_broadcasts(&waits->rank, &late->rank);
	return (signature->kind == JOBS_BROADCAST || signature->kind == JOBS_SCATTER) &&
	       signature->root == (int32_t)late->rank.rank;
}

// Record whether a late rank is held by a debugger, halted, or works.
static void record_late_rank_state(
	const struct judge *judge,
	uint32_t comm,
	const struct ras_merged_rank *late,
	struct jobs_finding *finding
) {
	const struct ras_comm_rank *rank = &late->rank;
	bool halted = survey_process_is_halted(rank->process_state);
	bool works = (rank->knows & RAS_RANK_KNOWS_PROCESS) != 0 && !halted &&
		     rank->worked_ms >= WORK_MS_MIN;

	if (rank->process_state == JOBS_PROCESS_TRACED)
		finding->held = true;
	finding->halted = finding->halted || halted;
	if (works || graph_rank_moves_elsewhere(&judge->graph, comm, late))
		finding->busy = true;
}

static void
list_late_ranks(const struct judge *judge, uint32_t comm, struct jobs_finding *finding) {
	const struct ras_merged_comm *merged = &judge->look->comms[comm];
	const struct survey *survey = &judge->surveys[comm];
	uint32_t blocked = 0;

	for (uint32_t n = 0; n < merged->rank_count; n++) {
		const struct ras_merged_rank *rank = &merged->ranks[n];

		if (!survey_rank_is_late(survey, &rank->rank))
			continue;
		if (finding->late_count < JOBS_NAMED_MAX) {
			finding->late[finding->late_count] = n;
			blocked += survey->late == SURVEY_NOT_LAUNCHED &&
				   calls_block_for_ever(merged, survey, n);
		}
		finding->late_count++;
		if (!survey_rank_has_left(survey, &rank->rank))
			record_late_rank_state(judge, comm, rank, finding);
	}
	// A message that a rank waits for may have been sent, and be lost on its way.
	finding->blocked = blocked > 0 && blocked == finding->late_count &&
			   !pair_stops_operations(worst_pair(judge, merged));
	finding->left = survey->left;
	if (finding->late_count == 1)
		finding->device_waits = graph_find_device_wait(
			&judge->graph, comm, &merged->ranks[finding->late[0]]
		);
	finding->serves = finding->late_count == 1 && finding->left == 0 &&
			  survey->late != SURVEY_NOT_WAITING &&
			  rank_is_idle_root(judge, comm, &merged->ranks[finding->late[0]]);
}

static bool rank_ended_before(const struct ras_comm_rank *rank, const struct ras_comm_rank *other) {
	bool aborted = rank->exit_cause == JOBS_EXIT_ABORT;

	if (aborted != (other->exit_cause == JOBS_EXIT_ABORT))
		return aborted;
	return rank->exited_ms > other->exited_ms;
}

static void
list_dead_ranks(const struct judge *judge, uint32_t comm, struct jobs_finding *finding) {
	const struct ras_merged_comm *merged = &judge->look->comms[comm];
	const struct survey *survey = &judge->surveys[comm];
	uint32_t dated = 0; // dead ranks with a known time of death
	uint32_t first = JOBS_NOBODY;

	finding->cause = JOBS_CAUSE_DEAD_MEMBER;
	finding->late_count = survey->dead;
	// Ranks of dead nodes have no index, and come last.
	for (uint32_t n = 0; n < JOBS_NAMED_MAX; n++)
		finding->late[n] = JOBS_NOBODY;
	// The rank that called MPI_Abort comes first, else the rank that ended first: later ends
	// may be its consequence.
	for (uint32_t n = 0; n < merged->rank_count; n++) {
		const struct ras_comm_rank *rank = &merged->ranks[n].rank;

		if (!survey_rank_is_dead(survey, rank))
			continue;
		dated += (rank->flags & (RAS_RANK_EXITED | RAS_RANK_END_SEEN_LATE)) ==
			 RAS_RANK_EXITED;
		if (first == JOBS_NOBODY || rank_ended_before(rank, &merged->ranks[first].rank))
			first = n;
	}
	finding->late[0] = first;
	finding->death_times_are_known = dated == finding->late_count;
	for (uint32_t n = 0, named = 1; n < merged->rank_count && named < JOBS_NAMED_MAX; n++) {
		if (n != first && survey_rank_is_dead(survey, &merged->ranks[n].rank))
			finding->late[named++] = n;
	}
}

static void
list_stopped_ranks(const struct judge *judge, uint32_t comm, struct jobs_finding *finding) {
	const struct ras_merged_comm *merged = &judge->look->comms[comm];

	finding->cause = JOBS_CAUSE_STOPPED_MEMBER;
	for (uint32_t n = 0; n < merged->rank_count; n++) {
		if (!survey_process_is_halted(merged->ranks[n].rank.process_state))
			continue;
		if (finding->late_count < JOBS_NAMED_MAX)
			finding->late[finding->late_count] = n;
		finding->late_count++;
	}
}

// No device has started what all have launched, so the network is not to blame. Name the rank that
// finished fewest of its earlier operations, if there is one: its device may stand in them.
static void name_rank_with_open_operations(
	const struct judge *judge, uint32_t comm, struct jobs_finding *finding
) {
	const struct ras_merged_comm *merged = &judge->look->comms[comm];
	uint64_t second = 0; // the second largest number of open operations

	finding->cause = JOBS_CAUSE_DEVICE_BEHIND;
	finding->none_started = true;
	finding->pair = NULL;
	finding->late[0] = JOBS_NOBODY;
	for (uint32_t n = 0; n < merged->rank_count; n++) {
		uint64_t open = graph_count_open(&judge->graph, comm, &merged->ranks[n]);

		if (open <= finding->open_count) {
			second = open > second ? open : second;
			continue;
		}
		second = finding->open_count;
		finding->open_count = open;
		finding->late[0] = n;
	}
	finding->late_count = finding->open_count > second;
	if (merged->rank_count > 0)
		finding->device_waits = graph_find_device_wait(
			&judge->graph, comm,
			&merged->ranks[finding->late_count > 0 ? finding->late[0] : 0]
		);
}

static void
find_stall_cause(const struct judge *judge, uint32_t comm, struct jobs_finding *finding) {
	const struct survey *survey = &judge->surveys[comm];
	uint8_t progress = RAS_RANK_KNOWS_STARTED | RAS_RANK_KNOWS_COMPLETED;

	if (finding->mismatch.seq == survey->seq) {
		finding->cause = JOBS_CAUSE_MISMATCH;
	} else if (survey->late_count > 0) {
		list_late_ranks(judge, comm, finding);
		finding->chain_count = graph_find_cycle(&judge->graph, comm, finding->chain);
		if (finding->chain_count > 0) {
			finding->cause = JOBS_CAUSE_ORDERING;
			return;
		}
		finding->via = judge->graph.next[comm];
		finding->cause = survey->late == SURVEY_NOT_LAUNCHED  ? JOBS_CAUSE_MISSING_ENTER
				 : survey->late == SURVEY_NOT_WAITING ? JOBS_CAUSE_MISSING_WAIT
								      : JOBS_CAUSE_DEVICE_BEHIND;
	} else if (survey->stopped > 0) {
		list_stopped_ranks(judge, comm, finding);
	} else {
		// All ranks that are known have launched the operation.
		finding->pair = worst_pair(judge, &judge->look->comms[comm]);
		// Ranks that ran different operations earlier may have passed them by chance.
		if (finding->mismatch.seq != 0 && finding->pair == NULL)
			finding->cause = JOBS_CAUSE_MISMATCH;
		else if (finding->absent > 0 || (survey->knows_all & progress) != progress)
			finding->cause = JOBS_CAUSE_UNKNOWN;
		else if (!survey->any_started)
			name_rank_with_open_operations(judge, comm, finding);
		else if (finding->pair != NULL || survey->completed > 0)
			finding->cause = JOBS_CAUSE_TRANSPORT;
		else
			finding->cause = JOBS_CAUSE_SYMMETRIC;
	}
}

// Return how long no rank may move before the communicator counts as stuck.
static uint64_t
stuck_delay_ms(const struct judge *judge, uint32_t comm, const struct jobs_finding *finding) {
	const struct survey *survey = &judge->surveys[comm];
	bool is_proven_for_ever =
		finding->cause == JOBS_CAUSE_DEAD_MEMBER || finding->cause == JOBS_CAUSE_MISMATCH;

	// A debugger holds a process, or a process says that it is busy on purpose.
	if (survey->traced > 0 || (survey->busy > 0 && !is_proven_for_ever))
		return UINT64_MAX;
	switch (finding->cause) {
	case JOBS_CAUSE_DEAD_MEMBER:
	case JOBS_CAUSE_STOPPED_MEMBER:
	case JOBS_CAUSE_MISMATCH:
	case JOBS_CAUSE_ORDERING:
	case JOBS_CAUSE_CALLS:
		return judge->confirm_ms;
	case JOBS_CAUSE_MISSING_ENTER:
		if (finding->left > 0 || finding->halted || finding->blocked)
			return judge->confirm_ms;
		return finding->serves ? UINT64_MAX : judge->busy_ms;
	case JOBS_CAUSE_MISSING_WAIT:
		return finding->halted ? judge->confirm_ms : judge->busy_ms;
	case JOBS_CAUSE_TRANSPORT:
		return pair_stops_operations(finding->pair) ? judge->confirm_ms : judge->stuck_ms;
	case JOBS_CAUSE_UNKNOWN:
		return judge->busy_ms; // some rank is not seen, or may have posted the operation
	default:
		return judge->stuck_ms;
	}
}

static void
judge_moving_comm(const struct judge *judge, uint32_t comm, struct jobs_finding *finding) {
	finding->grade = JOBS_MOVING;
	if (judge->look->book == NULL ||
	    !wait_history_find_straggler(
		    judge->look->book, &judge->look->comms[comm], &finding->straggler
	    ))
		return;
	finding->cause = JOBS_CAUSE_STRAGGLER;
	finding->late_count = 1;
	finding->late[0] = finding->straggler.place;
}

static void judge_comm(const struct judge *judge, uint32_t comm, struct jobs_finding *finding) {
	const struct ras_merged_comm *merged = &judge->look->comms[comm];
	const struct survey *survey = &judge->surveys[comm];

	*finding = (struct jobs_finding){
		.knows = survey->alive > 0 ? survey->knows_all : 0,
		.seq = survey->seq,
		.waited_ms = survey->alive > 0 ? survey->idle_ms : 0,
		.waiting = survey->waiting,
		.completed = survey->completed,
		.posted = survey->posted,
		.alive = survey->alive,
		.absent = merged->size - merged->rank_count + survey->earlier,
		.via = JOBS_NOBODY,
		.device_waits = JOBS_NOBODY,
	};
	if (survey->alive == 0) {
		finding->grade = JOBS_ENDED;
		if (survey->dead > 0)
			list_dead_ranks(judge, comm, finding);
		return;
	}
	survey_find_mismatch(merged, survey, &finding->mismatch);
	// A rank that exited with status 0 without finalizing is reported only once another rank
	// waits.
	if (survey->dead > survey->dead_with_status_0 || (survey->dead > 0 && survey->seq != 0)) {
		list_dead_ranks(judge, comm, finding);
	} else if (finding->waited_ms < judge->confirm_ms) {
		judge_moving_comm(judge, comm, finding);
		return;
	} else if (survey->seq == 0) {
		if (!pair_stops_operations(worst_pair(judge, merged)))
			finding->late_count = calls_find_cycle(merged, survey, finding->late);
		if (finding->late_count == 0) {
			finding->grade = JOBS_QUIET;
			return;
		}
		finding->cause = JOBS_CAUSE_CALLS;
	} else {
		find_stall_cause(judge, comm, finding);
	}
	finding->grade = finding->waited_ms >= stuck_delay_ms(judge, comm, finding) ? JOBS_STUCK
										    : JOBS_WAITING;
}

// A communicator whose late rank waits in another communicator gets the grade of the last
// communicator in that chain.
static void inherit_grades(const struct jobs_snapshot *look, struct jobs_finding *findings) {
	for (uint32_t comm = 0; comm < look->comm_count; comm++) {
		uint32_t at = comm;

		for (uint32_t steps = 0; findings[at].via != JOBS_NOBODY && steps < JOBS_CHAIN_MAX;
		     steps++)
			at = findings[at].via;
		if (at != comm)
			findings[comm].grade =
				findings[at].grade == JOBS_STUCK ? JOBS_STUCK : JOBS_WAITING;
	}
}

static size_t surveys_bytes(const struct jobs_snapshot *look) {
	return (size_t)look->comm_count * sizeof(struct survey) + 1;
}

int jobs_judging_create(
	const struct jobs_snapshot *look,
	struct jobs_finding *ret_findings,
	struct jobs_judging **ret_judging
) {
	static const struct jobs_limits defaults;
	const struct jobs_limits *limits = look->limits != NULL ? look->limits : &defaults;
	const struct ras_memory *memory = look->memory;
	struct jobs_judging *judging = memory->allocate(memory->ctx, sizeof(*judging));
	struct judge *judge;
	uint32_t count = 0, kept = 0;
	int err = -ENOMEM;

	if (judging == NULL)
		return -ENOMEM;
	judge = &judging->judge;
	judge->look = look;
	judging->findings = ret_findings;
	judge->confirm_ms = limit_ms(limits->confirm_ns, 10 * MS_PER_SEC);
	judge->stuck_ms = limit_ms(limits->stuck_ns, 600 * MS_PER_SEC);
	judge->busy_ms = limit_ms(limits->busy_ns, 3600 * MS_PER_SEC);
	// Collect the nodes where bad paths end, each once.
	for (uint32_t n = 0; n < look->pair_count && count + 2 <= PAIR_NODES_MAX; n++) {
		judge->pair_nodes[count++] = look->pairs[n].node;
		judge->pair_nodes[count++] = look->pairs[n].peer;
	}
	sort_rows(judge->pair_nodes, count, sizeof(judge->pair_nodes[0]), compare_nodes);
	for (uint32_t n = 0; n < count; n++)
		if (kept == 0 || judge->pair_nodes[n] != judge->pair_nodes[kept - 1])
			judge->pair_nodes[kept++] = judge->pair_nodes[n];
	judge->pair_node_count = kept;
	judge->surveys = memory->allocate(memory->ctx, surveys_bytes(look));
	if (judge->surveys != NULL)
		err = graph_init(&judge->graph, look, judge->surveys, judge->confirm_ms);
	if (err != 0) {
		memory->release(memory->ctx, judge->surveys, surveys_bytes(look));
		memory->release(memory->ctx, judging, sizeof(*judging));
		return err;
	}
	*ret_judging = judging;
	return 0;
}

struct jobs_judging *jobs_judging_destroy(struct jobs_judging *judging) {
	const struct jobs_snapshot *look;

	if (judging == NULL)
		return NULL;
	look = judging->judge.look;
	graph_fini(&judging->judge.graph);
	look->memory->release(look->memory->ctx, judging->judge.surveys, surveys_bytes(look));
	look->memory->release(look->memory->ctx, judging, sizeof(*judging));
	return NULL;
}

// Do this phase for the next communicator. Returns the number of ranks processed.
static uint32_t process_next_comm(struct jobs_judging *judging) {
	struct judge *judge = &judging->judge;
	const struct jobs_snapshot *look = judge->look;
	bool more = judging->comm < look->comm_count;
	uint32_t ranks = more ? look->comms[judging->comm].rank_count : 0;

	switch (judging->phase) {
	case PHASE_SURVEY:
		if (more)
			survey_comm(
				look, &look->comms[judging->comm], &judge->surveys[judging->comm]
			);
		break;
	case PHASE_COLLECT:
		more = graph_collect_step(&judge->graph, &ranks);
		break;
	case PHASE_FOLLOW:
		more = graph_walk_step(&judge->graph, &ranks);
		break;
	case PHASE_JUDGE:
		if (more)
			judge_comm(judge, judging->comm, &judging->findings[judging->comm]);
		else
			inherit_grades(look, judging->findings);
		break;
	case PHASE_DONE:
		return UINT32_MAX;
	}
	judging->comm++;
	if (!more) {
		judging->phase++;
		judging->comm = 0;
	}
	return ranks;
}

bool jobs_judging_step(struct jobs_judging *judging, uint32_t ranks) {
	uint64_t looked = 0;

	// Each communicator counts as one rank more, for its own cost.
	while (judging->phase != PHASE_DONE && looked < ranks)
		looked += (uint64_t)process_next_comm(judging) + 1;
	return judging->phase == PHASE_DONE;
}
