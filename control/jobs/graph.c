// SPDX-License-Identifier: BSD-3-Clause
// Follows waits from communicator to communicator.
//
// A communicator waits for all its ranks, so that one edge is enough: if any of those who are late
// in X waits in Y, X waits for Y. Edges are chosen so that a cycle is found if there is one: a
// communicator that leads nowhere is given up for the next.
#include "graph.h"

#include <lib/sort.h>

#include <errno.h>
#include <jobs/report.h>

#define EDGES_MAX 8    // looked at from one communicator
#define CYCLE_MAX 1024 // communicators: a longer way is not followed to its end
// Of one process. It may register 127; an agent that tells of more costs no more for it.
#define MEMBERSHIPS_MAX 256

static int member_compare(const void *a, const void *b) {
	const struct graph_member *left = a;
	const struct graph_member *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	return left->place < right->place ? -1 : left->place > right->place;
}

static void *memory_take(const struct graph *graph, size_t size) {
	return graph->look->memory->allocate(graph->look->memory->ctx, size + 1);
}

static void memory_give(const struct graph *graph, void *memory, size_t size) {
	graph->look->memory->release(graph->look->memory->ctx, memory, size + 1);
}

static void collect_members(struct graph *graph) {
	for (uint32_t comm = 0; comm < graph->look->comm_count; comm++) {
		const struct ras_merged_comm *merged = &graph->look->comms[comm];

		for (uint32_t n = 0; n < merged->rank_count; n++)
			graph->members[graph->member_count++] = (struct graph_member){
				.node = merged->ranks[n].node,
				.pid = merged->ranks[n].rank.pid,
				.comm = comm,
				.place = n,
			};
	}
	sort_rows(graph->members, graph->member_count, sizeof(*graph->members), member_compare);
}

// The first of a process's memberships.
static uint32_t members_of(const struct graph *graph, uint64_t node, uint32_t pid) {
	struct graph_member wanted = {.node = node, .pid = pid};
	uint32_t low = 0, high = graph->member_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (member_compare(&graph->members[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_of(const struct graph *graph, uint32_t n, const struct ras_merged_rank *rank) {
	return n < graph->member_count && graph->members[n].node == rank->node &&
	       graph->members[n].pid == rank->rank.pid;
}

// Where those that are looked at end.
static uint32_t memberships_end(uint32_t first) {
	return first < UINT32_MAX - MEMBERSHIPS_MAX ? first + MEMBERSHIPS_MAX : UINT32_MAX;
}

static const struct ras_merged_rank *
rank_of(const struct graph *graph, const struct graph_member *member) {
	return &graph->look->comms[member->comm].ranks[member->place];
}

bool graph_moves_elsewhere(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
) {
	uint32_t first = members_of(graph, rank->node, rank->rank.pid);

	for (uint32_t n = first; n < memberships_end(first) && is_of(graph, n, rank); n++) {
		const struct graph_member *member = &graph->members[n];

		if (member->comm != comm &&
		    rank_of(graph, member)->rank.idle_ms < graph->confirm_ms)
			return true;
	}
	return false;
}

static bool comm_stands(const struct graph *graph, uint32_t comm) {
	const struct survey *survey = &graph->surveys[comm];

	return survey->seq != 0 && survey->idle_ms >= graph->confirm_ms;
}

// A rank that is late in one communicator waits in another, for certain. One that has not launched
// does so with its thread: that is inside the other operation, or does nothing else. One whose
// device has not started does so with its device.
static bool waits_there(
	const struct survey *from, const struct survey *there, const struct ras_comm_rank *rank
) {
	if (from->late == SURVEY_NOT_STARTED)
		return survey_waits(there, rank);
	if (!survey_is_inside(there, rank))
		return false;
	return (rank->flags & RAS_RANK_BLOCKS) != 0 ||
	       ((rank->knows & RAS_RANK_KNOWS_PROCESS) != 0 && rank->worked_ms < WORK_MS_MIN);
}

// Communicators where a late rank of this one waits: at most EDGES_MAX different ones.
static uint32_t edges_of(
	const struct graph *graph, uint32_t comm, uint32_t to[EDGES_MAX], uint32_t place[EDGES_MAX]
) {
	const struct ras_merged_comm *merged = &graph->look->comms[comm];
	const struct survey *survey = &graph->surveys[comm];
	uint32_t count = 0, first;

	for (uint32_t late = 0; late < merged->rank_count && count < EDGES_MAX; late++) {
		const struct ras_merged_rank *rank = &merged->ranks[late];

		if (!survey_is_late(survey, &rank->rank))
			continue;
		first = members_of(graph, rank->node, rank->rank.pid);
		for (uint32_t n = first;
		     count < EDGES_MAX && n < memberships_end(first) && is_of(graph, n, rank);
		     n++) {
			const struct graph_member *member = &graph->members[n];
			const struct ras_comm_rank *there = &rank_of(graph, member)->rank;

			if (member->comm == comm || !comm_stands(graph, member->comm) ||
			    !waits_there(survey, &graph->surveys[member->comm], there) ||
			    (count > 0 && to[count - 1] == member->comm))
				continue;
			to[count] = member->comm;
			place[count++] = late;
		}
	}
	return count;
}

enum colour {
	NEW,
	ON_THE_WAY,
	DONE,
};

struct walk {
	uint32_t *way; // communicators, from the first to the present one
	uint8_t *colours;
	uint8_t *tried; // edges of each
};

// Goes on from `first` until a communicator without edges, or one that is on the way: that is a
// cycle, and its edges stay. What leads nowhere keeps its first edge.
static void follow_waits(struct graph *graph, struct walk *walk, uint32_t first) {
	uint32_t to[EDGES_MAX], place[EDGES_MAX];
	uint32_t depth = 0;

	walk->way[depth] = first;
	walk->colours[first] = ON_THE_WAY;
	for (;;) {
		uint32_t comm = walk->way[depth];
		uint32_t count = edges_of(graph, comm, to, place);
		uint32_t n = walk->tried[comm]++;

		if (n >= count) {
			walk->colours[comm] = DONE;
			if (count > 0) {
				graph->next[comm] = to[0];
				graph->rank[comm] = place[0];
			}
			if (depth-- == 0)
				return;
			continue;
		}
		if (walk->colours[to[n]] == DONE)
			continue;
		graph->next[comm] = to[n];
		graph->rank[comm] = place[n];
		if (walk->colours[to[n]] == NEW) {
			walk->colours[to[n]] = ON_THE_WAY;
			walk->way[++depth] = to[n];
			continue;
		}
		for (uint32_t at = 0; at <= depth; at++)
			walk->colours[walk->way[at]] = DONE;
		return;
	}
}

static int walk_all(struct graph *graph) {
	uint32_t count = graph->look->comm_count;
	size_t size = (size_t)count * (sizeof(uint32_t) + 2);
	uint8_t *block = memory_take(graph, size);
	struct walk walk;

	if (block == NULL)
		return -ENOMEM;
	walk.way = (void *)block;
	walk.colours = block + (size_t)count * sizeof(uint32_t);
	walk.tried = walk.colours + count;
	for (uint32_t comm = 0; comm < count; comm++) {
		if (walk.colours[comm] == NEW && comm_stands(graph, comm) &&
		    graph->surveys[comm].late_count > 0)
			follow_waits(graph, &walk, comm);
	}
	memory_give(graph, block, size);
	return 0;
}

int graph_init(
	struct graph *graph,
	const struct jobs_look *look,
	const struct survey *surveys,
	uint64_t confirm_ms
) {
	uint32_t count = look->comm_count;
	int err;

	*graph = (struct graph){.look = look, .surveys = surveys, .confirm_ms = confirm_ms};
	for (uint32_t comm = 0; comm < count; comm++)
		graph->member_capacity += look->comms[comm].rank_count;
	graph->members = memory_take(graph, graph->member_capacity * sizeof(*graph->members));
	graph->next = memory_take(graph, count * sizeof(*graph->next));
	graph->rank = memory_take(graph, count * sizeof(*graph->rank));
	err = graph->members == NULL || graph->next == NULL || graph->rank == NULL ? -ENOMEM : 0;
	if (err == 0) {
		for (uint32_t comm = 0; comm < count; comm++)
			graph->next[comm] = JOBS_NOBODY;
		collect_members(graph);
		err = walk_all(graph);
	}
	if (err != 0)
		graph_fini(graph);
	return err;
}

void graph_fini(struct graph *graph) {
	uint32_t count = graph->look->comm_count;

	memory_give(graph, graph->members, graph->member_capacity * sizeof(*graph->members));
	memory_give(graph, graph->next, count * sizeof(*graph->next));
	memory_give(graph, graph->rank, count * sizeof(*graph->rank));
}

uint32_t
graph_cycle(const struct graph *graph, uint32_t comm, struct jobs_wait_for chain[JOBS_CHAIN_MAX]) {
	uint32_t count = 0, length = 0;
	uint32_t at = comm;

	do {
		if (graph->next[at] == JOBS_NOBODY || ++length > CYCLE_MAX)
			return 0;
		if (count < JOBS_CHAIN_MAX)
			chain[count++] = (struct jobs_wait_for
			){at, graph->look->comms[at].ranks[graph->rank[at]].rank.rank};
		at = graph->next[at];
	} while (at != comm);
	return count;
}
