// SPDX-License-Identifier: BSD-3-Clause
// Follows waits from communicator to communicator.
//
// A communicator waits for all its ranks. So one edge is enough: if any late rank of X waits in Y,
// X waits for Y. The walk finds a cycle if there is one: after an edge without a cycle, it tries
// the next edge.
#include "graph.h"

#include <errno.h>
#include <jobs/report.h>
#include <string.h>

#define EDGES_MAX 8    // edges examined per communicator
#define CYCLE_MAX 1024 // communicators in a cycle; longer chains are not followed to their end
// Communicators examined per process, of 2,048 that the bridge of MPI follows. The limit bounds the
// cost.
#define MEMBERSHIPS_MAX 256

static void *graph_allocate(const struct graph *graph, size_t size) {
	return graph->look->memory->allocate(graph->look->memory->ctx, size + 1);
}

static void graph_release(const struct graph *graph, void *memory, size_t size) {
	graph->look->memory->release(graph->look->memory->ctx, memory, size + 1);
}

static uint32_t process_bucket(const struct graph *graph, uint64_t node, uint32_t pid) {
	uint64_t mixed = (node ^ (uint64_t)pid << 32 ^ pid) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 32) & (graph->bucket_count - 1);
}

static struct graph_process *find_process(const struct graph *graph, uint64_t node, uint32_t pid) {
	uint32_t at = graph->buckets[process_bucket(graph, node, pid)];

	while (at != JOBS_NOBODY &&
	       (graph->processes[at].node != node || graph->processes[at].pid != pid))
		at = graph->processes[at].next;
	return at != JOBS_NOBODY ? &graph->processes[at] : NULL;
}

// Return the index of the first membership of a process, or JOBS_NOBODY.
static uint32_t first_membership(const struct graph *graph, const struct ras_merged_rank *rank) {
	const struct graph_process *process = find_process(graph, rank->node, rank->rank.pid);

	return process != NULL ? process->first : JOBS_NOBODY;
}

// Communicators are visited from last to first and each membership is prepended, so a process's
// list ascends.
bool graph_collect_step(struct graph *graph, uint32_t *ret_ranks) {
	const struct ras_merged_comm *merged;

	*ret_ranks = 0;
	if (graph->left == 0)
		return false;
	merged = &graph->look->comms[--graph->left];
	for (uint32_t n = merged->rank_count; n > 0; n--) {
		const struct ras_merged_rank *rank = &merged->ranks[n - 1];
		uint32_t pid = rank->rank.pid;
		struct graph_process *process = find_process(graph, rank->node, pid);

		if (process == NULL) {
			uint32_t *bucket = &graph->buckets[process_bucket(graph, rank->node, pid)];

			process = &graph->processes[graph->process_count];
			*process = (struct graph_process
			){.node = rank->node, .pid = pid, .first = JOBS_NOBODY, .next = *bucket};
			*bucket = graph->process_count++;
		}
		graph->members[graph->member_count] = (struct graph_member
		){.comm = graph->left, .place = n - 1, .next = process->first};
		process->first = graph->member_count++;
	}
	*ret_ranks = merged->rank_count;
	return graph->left > 0;
}

static const struct ras_merged_rank *
member_rank(const struct graph *graph, const struct graph_member *member) {
	return &graph->look->comms[member->comm].ranks[member->place];
}

bool graph_rank_moves_elsewhere(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
) {
	uint32_t at = first_membership(graph, rank);

	for (uint32_t n = 0; at != JOBS_NOBODY && n < MEMBERSHIPS_MAX; n++) {
		const struct graph_member *member = &graph->members[at];

		if (member->comm != comm &&
		    member_rank(graph, member)->rank.idle_ms < graph->confirm_ms)
			return true;
		at = member->next;
	}
	return false;
}

static bool comm_is_stalled(const struct graph *graph, uint32_t comm) {
	const struct survey *survey = &graph->surveys[comm];

	return survey->seq != 0 && survey->idle_ms >= graph->confirm_ms;
}

uint32_t graph_find_device_wait(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
) {
	uint32_t at = first_membership(graph, rank);

	for (uint32_t n = 0; at != JOBS_NOBODY && n < MEMBERSHIPS_MAX; n++) {
		const struct graph_member *member = &graph->members[at];
		const struct ras_comm_rank *there = &member_rank(graph, member)->rank;

		if (member->comm != comm && comm_is_stalled(graph, member->comm) &&
		    (there->knows & RAS_RANK_KNOWS_STARTED) != 0 &&
		    survey_rank_waits(&graph->surveys[member->comm], there))
			return member->comm;
		at = member->next;
	}
	return JOBS_NOBODY;
}

uint64_t
graph_count_open(const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank) {
	uint32_t at = first_membership(graph, rank);
	uint64_t open = 0;

	for (uint32_t n = 0; at != JOBS_NOBODY && n < MEMBERSHIPS_MAX; n++) {
		const struct graph_member *member = &graph->members[at];
		const struct ras_comm_rank *there = &member_rank(graph, member)->rank;

		open += there->pair_launched - there->pair_completed;
		if (member->comm != comm && (there->knows & RAS_RANK_KNOWS_COMPLETED) != 0)
			open += there->launched - there->completed;
		at = member->next;
	}
	return open;
}

// Return whether a rank that is late in `from` certainly waits in `there`. A rank whose device has
// not started waits with its device. A rank that has not launched waits with its thread: the call
// blocks it, or its device waits there while the process does nothing. Operations of devices must
// be launched in one order on all ranks. An operation of another thread is no proof, and neither is
// one that is only posted.
static bool rank_waits_in_comm(
	const struct survey *from, const struct survey *there, const struct ras_comm_rank *rank
) {
	bool has_device = rank->cuda_device >= 0 || rank->nvml_device >= 0;

	// A call of MPI moves all posted operations on, whichever communicator it waits in.
	if (from->late == SURVEY_NOT_WAITING)
		return false;
	if (from->late == SURVEY_NOT_STARTED)
		return survey_rank_waits(there, rank);
	if (!survey_rank_is_inside(there, rank))
		return false;
	return (rank->flags & RAS_RANK_BLOCKS) != 0 ||
	       (has_device && (rank->knows & RAS_RANK_KNOWS_STARTED) != 0 &&
		survey_rank_waits(there, rank) && rank->doing.activity == JOBS_DOES_NOTHING);
}

struct edges {
	uint32_t count;
	uint32_t to[EDGES_MAX], place[EDGES_MAX];
};

// Add the other communicators in which this late rank waits.
static void
add_edges(const struct graph *graph, uint32_t comm, uint32_t late, struct edges *edges) {
	uint32_t at = first_membership(graph, &graph->look->comms[comm].ranks[late]);

	for (uint32_t n = 0; at != JOBS_NOBODY && n < MEMBERSHIPS_MAX && edges->count < EDGES_MAX;
	     n++) {
		const struct graph_member *member = &graph->members[at];
		const struct ras_comm_rank *there = &member_rank(graph, member)->rank;

		at = member->next;
		if (member->comm == comm || !comm_is_stalled(graph, member->comm) ||
		    !rank_waits_in_comm(
			    &graph->surveys[comm], &graph->surveys[member->comm], there
		    ) ||
		    (edges->count > 0 && edges->to[edges->count - 1] == member->comm))
			continue;
		edges->to[edges->count] = member->comm;
		edges->place[edges->count++] = late;
	}
}

enum colour {
	COMM_UNVISITED,
	COMM_ON_PATH,
	COMM_FINISHED,
};

// Advance the walk by one edge. A communicator on the current path closes a cycle, whose edges are
// kept. A communicator that leads to no cycle keeps its first edge.
static void advance_walk(struct graph *graph) {
	struct graph_walk *walk = &graph->walk;
	uint32_t comm = walk->way[walk->depth], to;
	const struct ras_merged_comm *merged = &graph->look->comms[comm];
	struct edges edges;
	uint32_t n;

	// Collect the communicators in which late ranks of this one wait.
	edges.count = 0;
	for (uint32_t late = 0; late < merged->rank_count && edges.count < EDGES_MAX; late++)
		if (survey_rank_is_late(&graph->surveys[comm], &merged->ranks[late].rank))
			add_edges(graph, comm, late, &edges);
	n = walk->tried[comm]++;
	if (n >= edges.count) {
		walk->colours[comm] = COMM_FINISHED;
		if (edges.count > 0) {
			graph->next[comm] = edges.to[0];
			graph->rank[comm] = edges.place[0];
		}
		walk->under_way = walk->depth > 0;
		walk->depth -= walk->depth > 0;
		return;
	}
	to = edges.to[n];
	if (walk->colours[to] == COMM_FINISHED)
		return;
	graph->next[comm] = to;
	graph->rank[comm] = edges.place[n];
	if (walk->colours[to] == COMM_UNVISITED) {
		walk->colours[to] = COMM_ON_PATH;
		walk->way[++walk->depth] = to;
		return;
	}
	for (uint32_t at = 0; at <= walk->depth; at++)
		walk->colours[walk->way[at]] = COMM_FINISHED;
	walk->under_way = false;
}

bool graph_walk_step(struct graph *graph, uint32_t *ret_ranks) {
	struct graph_walk *walk = &graph->walk;
	uint32_t first = walk->comm;

	*ret_ranks = 0;
	if (walk->under_way) {
		*ret_ranks = graph->look->comms[walk->way[walk->depth]].rank_count;
		advance_walk(graph);
		return true;
	}
	if (first == graph->look->comm_count)
		return false;
	walk->comm++;
	if (walk->colours[first] == COMM_UNVISITED && comm_is_stalled(graph, first) &&
	    graph->surveys[first].late_count > 0) {
		walk->way[0] = first;
		walk->depth = 0;
		walk->colours[first] = COMM_ON_PATH;
		walk->under_way = true;
	}
	return true;
}

static size_t walk_bytes(const struct graph *graph) {
	return (size_t)graph->look->comm_count * (sizeof(uint32_t) + 2);
}

int graph_init(
	struct graph *graph,
	const struct jobs_snapshot *look,
	const struct survey *surveys,
	uint64_t confirm_ms
) {
	uint32_t count = look->comm_count;
	struct graph_walk *walk = &graph->walk;

	*graph = (struct graph
	){.look = look, .surveys = surveys, .confirm_ms = confirm_ms, .left = count};
	for (uint32_t comm = 0; comm < count; comm++)
		graph->capacity += look->comms[comm].rank_count;
	for (graph->bucket_count = 1; graph->bucket_count < graph->capacity;)
		graph->bucket_count *= 2;
	graph->members = graph_allocate(graph, graph->capacity * sizeof(*graph->members));
	graph->processes = graph_allocate(graph, graph->capacity * sizeof(*graph->processes));
	graph->buckets = graph_allocate(graph, graph->bucket_count * sizeof(*graph->buckets));
	graph->next = graph_allocate(graph, count * sizeof(*graph->next));
	graph->rank = graph_allocate(graph, count * sizeof(*graph->rank));
	walk->way = graph_allocate(graph, walk_bytes(graph));
	if (graph->members == NULL || graph->processes == NULL || graph->buckets == NULL ||
	    graph->next == NULL || graph->rank == NULL || walk->way == NULL) {
		graph_fini(graph);
		return -ENOMEM;
	}
	walk->colours = (uint8_t *)(walk->way + count);
	walk->tried = walk->colours + count;
	memset(graph->next, 0xff, count * sizeof(*graph->next)); // 0xff bytes: JOBS_NOBODY
	memset(graph->buckets, 0xff, graph->bucket_count * sizeof(*graph->buckets));
	return 0;
}

void graph_fini(struct graph *graph) {
	uint32_t count = graph->look->comm_count;

	graph_release(graph, graph->members, graph->capacity * sizeof(*graph->members));
	graph_release(graph, graph->processes, graph->capacity * sizeof(*graph->processes));
	graph_release(graph, graph->buckets, graph->bucket_count * sizeof(*graph->buckets));
	graph_release(graph, graph->next, count * sizeof(*graph->next));
	graph_release(graph, graph->rank, count * sizeof(*graph->rank));
	graph_release(graph, graph->walk.way, walk_bytes(graph));
}

uint32_t graph_find_cycle(
	const struct graph *graph, uint32_t comm, struct jobs_wait_for chain[JOBS_CHAIN_MAX]
) {
	uint32_t count = 0, length = 0;
	uint32_t at = comm;

	do {
		if (graph->next[at] == JOBS_NOBODY || ++length > CYCLE_MAX)
			return 0;
		if (count < JOBS_CHAIN_MAX)
			chain[count++] =
				(struct jobs_wait_for){at, graph->rank[at], graph->surveys[at].seq};
		at = graph->next[at];
	} while (at != comm);
	return count;
}
