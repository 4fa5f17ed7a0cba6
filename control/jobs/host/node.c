// SPDX-License-Identifier: BSD-3-Clause
// Nodes that hold ranks and are unreachable or down. If the partition with the majority sees a node
// down on both planes, all its ranks are gone for good. If a node only seems to be down, its ranks
// are suspect. If a partition without the majority cannot reach a node, its ranks are unreachable.
// Both may come back. An agent that ends or restarts on a host that still answers is no trouble.
#include "jobs/host/inside.h"

#include <control/health.h>
#include <lib/sort.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_NAMED_MAX 64 // ranks of one node that get an event of their own
#define EVENTS_MAX 2048	   // events about one node, to all local ranks of a communicator
#define TROUBLES_MAX 65536
#define NODE_NAME_BYTES (RAS_NAME_MAX + 1)

// Without memory the trouble is skipped; a later tick reports it.
static void add_trouble(struct troubles *troubles, uint64_t node, enum tocsin_event_kind kind) {
	if (troubles->count == troubles->capacity) {
		uint32_t capacity = troubles->capacity != 0 ? 2 * troubles->capacity : 64;
		struct node_trouble *rows =
			capacity <= TROUBLES_MAX ? realloc(troubles->rows, capacity * sizeof(*rows))
						 : NULL;

		if (rows == NULL)
			return;
		troubles->rows = rows;
		troubles->capacity = capacity;
	}
	troubles->rows[troubles->count++] = (struct node_trouble){node, kind};
}

static int compare_troubles(const void *a, const void *b) {
	const struct node_trouble *left = a, *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	return left->kind > right->kind ? -1 : left->kind < right->kind; // the worse trouble first
}

// Return whether a down node is lost for good. A death that a single observer saw, or
// that a partition without the majority declared, is not final.
static bool death_is_final(const struct jobhost *host, const struct verdict_view *view) {
	struct ras_peer peer;

	return view->both_planes && agree_has_majority(host) &&
	       ras_peer_find(overlay_ras(host->overlay), view->subject, &peer) == 0 &&
	       peer.state == RAS_DEAD && !peer.sole;
}

bool node_is_alive(const struct jobhost *host, uint64_t node) {
	struct ras_peer peer;

	return ras_peer_find(overlay_ras(host->overlay), node, &peer) == 0 &&
	       peer.state == RAS_ALIVE;
}

static uint32_t roster_row_rank(const struct roster_row *row, uint32_t n) {
	return row->first + n * row->stride;
}

// Store the printable name of a node, or its number if no record of it is held.
void node_name(void *context, uint64_t node, char *name, uint32_t size) {
	const struct jobhost *host = context;
	struct ras_peer peer;
	uint32_t length = 0;

	if (host->overlay == NULL || ras_peer_find(overlay_ras(host->overlay), node, &peer) != 0) {
		snprintf(name, size, "#%016" PRIx64, node);
		return;
	}
	for (; length < peer.record->name_length && length + 1 < size; length++) {
		char letter = peer.record->name[length];

		name[length] = letter >= ' ' && letter <= '~' ? letter : '?';
	}
	name[length] = '\0';
}

static void send_trouble_events(
	const struct jobhost *host,
	const struct host_comm *comm,
	uint64_t node,
	enum tocsin_event_kind kind
) {
	const char *words = kind == TOCSIN_PEER_SUSPECT	      ? "seems to be down"
			    : kind == TOCSIN_PEER_UNREACHABLE ? "cannot be reached from here"
							      : "answers again";
	char text[TOCSIN_EVENT_TEXT_BYTES], name[NODE_NAME_BYTES];
	// Every local rank gets one event for each named rank.
	const uint32_t named_max = comm->rank_count > EVENTS_MAX / RANKS_NAMED_MAX
					   ? EVENTS_MAX / comm->rank_count + 1
					   : RANKS_NAMED_MAX;
	uint32_t count, told = 0;
	const struct roster_row *rows = roster_find_node_rows(&comm->roster, node, &count);

	node_name((void *)host, node, name, sizeof(name));
	snprintf(text, sizeof(text), "its node %s %s", name, words);
	for (uint32_t n = 0; n < count; n++)
		for (uint32_t at = 0; at < rows[n].count && told < named_max; at++, told++)
			if (agree_find_gone_rank(comm, roster_row_rank(&rows[n], at)) == NULL)
				comm_send_event(comm, kind, roster_row_rank(&rows[n], at), text);
}

static int compare_gone(const void *a, const void *b) {
	const struct gone *left = a, *right = b;

	return left->rank < right->rank ? -1 : left->rank > right->rank;
}

// Mark all ranks of a lost node as gone, except local ranks and ranks that are already gone.
static void mark_node_ranks_gone(struct jobhost *host, struct host_comm *comm, uint64_t node) {
	uint32_t count, lost = 0, kept = 0;
	uint64_t all = 0;
	const struct roster_row *rows = roster_find_node_rows(&comm->roster, node, &count);
	char name[NODE_NAME_BYTES];
	struct gone *gone;

	for (uint32_t n = 0; n < count; n++)
		all += rows[n].count;
	// Skip nodes with more ranks than a set may hold: rows from hostile agents may name any
	// number.
	gone = all <= GONE_RANKS_PER_USER ? malloc((all + 1) * sizeof(*gone)) : NULL;
	if (gone == NULL)
		return;
	node_name((void *)host, node, name, sizeof(name));
	for (uint32_t n = 0; n < count; n++)
		for (uint32_t at = 0; at < rows[n].count; at++) {
			uint32_t rank = roster_row_rank(&rows[n], at);

			if (agree_find_gone_rank(comm, rank) != NULL ||
			    rank_find_in_comm(host, comm, rank) != NULL)
				continue;
			// The node answered the question that led to the roster.
			gone[lost] = (struct gone
			){.rank = rank,
			  .happened_ns = loop_now_ns(host->loop),
			  .earliest_ns = comm->roster_asked_ns};
			snprintf(gone[lost++].cause, CAUSE_BYTES, "its node %s is down", name);
		}
	// Rows from hostile agents may name a rank twice.
	sort_rows(gone, lost, sizeof(*gone), compare_gone);
	for (uint32_t n = 0; n < lost; n++)
		if (kept == 0 || gone[n].rank != gone[kept - 1].rank)
			gone[kept++] = gone[n];
	agree_add_gone_ranks(host, comm, gone, kept);
	free(gone);
}

// Return the index of a node among the reported troubles, or its insertion point.
static uint32_t reported_trouble_place(const struct host_comm *comm, uint64_t node) {
	uint32_t low = 0, high = comm->trouble_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (comm->trouble[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
report_trouble(struct jobhost *host, struct host_comm *comm, const struct node_trouble *trouble) {
	struct reported_trouble *told, *grown;
	uint32_t place = reported_trouble_place(comm, trouble->node);

	told = place < comm->trouble_count && comm->trouble[place].node == trouble->node
		       ? &comm->trouble[place]
		       : NULL;
	if (trouble->kind == TOCSIN_PEER_GONE)
		mark_node_ranks_gone(host, comm, trouble->node);
	if (told != NULL && (told->kind == trouble->kind || told->kind == TOCSIN_PEER_GONE))
		return;
	if (told == NULL) {
		grown = realloc(comm->trouble, (comm->trouble_count + 1) * sizeof(*grown));
		if (grown == NULL)
			return;
		comm->trouble = grown;
		told = &grown[place];
		memmove(told + 1, told, (comm->trouble_count - place) * sizeof(*told));
		comm->trouble_count++;
	}
	*told = (struct reported_trouble){trouble->node, trouble->kind};
	if (trouble->kind != TOCSIN_PEER_GONE)
		send_trouble_events(host, comm, trouble->node, trouble->kind);
}

// Return the first trouble of a node, which is the worse one if the node has two; NULL: none.
static const struct node_trouble *find_trouble(const struct troubles *troubles, uint64_t node) {
	uint32_t low = 0, high = troubles->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (troubles->rows[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low < troubles->count && troubles->rows[low].node == node ? &troubles->rows[low]
									 : NULL;
}

// Report the nodes whose trouble is over. Ranks that are gone stay gone even if their node comes
// back.
static void report_recovered_nodes(
	const struct jobhost *host,
	struct host_comm *comm,
	const struct troubles *troubles,
	bool (*is_back)(const struct jobhost *host, uint64_t node)
) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < comm->trouble_count; n++) {
		struct reported_trouble told = comm->trouble[n];
		bool back = find_trouble(troubles, told.node) == NULL && is_back(host, told.node);

		if (!back)
			comm->trouble[kept++] = told;
		else if (told.kind != TOCSIN_PEER_GONE)
			send_trouble_events(host, comm, told.node, TOCSIN_PEER_BACK);
	}
	comm->trouble_count = kept;
}

void node_apply_troubles(
	struct jobhost *host,
	struct host_comm *comm,
	const struct troubles *troubles,
	bool (*is_back)(const struct jobhost *host, uint64_t node)
) {
	const struct roster *roster = &comm->roster;

	report_recovered_nodes(host, comm, troubles, is_back);
	// The number of rows is limited for each user; that of nodes with trouble is not.
	for (uint32_t n = 0; n < roster->count && troubles->count > 0; n++) {
		const struct node_trouble *trouble =
			n > 0 && roster->rows[n].node == roster->rows[n - 1].node
				? NULL
				: find_trouble(troubles, roster->rows[n].node);

		if (trouble != NULL)
			report_trouble(host, comm, trouble);
	}
}

void node_collect_troubles(struct jobhost *host) {
	const struct health *health = host->config.health;
	struct troubles *troubles = &host->round.troubles;
	struct verdict_view verdict;
	const struct ras *ras;
	struct ras_view view;
	struct ras_peer peer;
	uint32_t cursor = 0;
	bool is_advised;

	troubles->count = 0;
	if (host->overlay == NULL || host->comms == NULL)
		return;
	ras = overlay_ras(host->overlay);
	is_advised = health != NULL &&
		     verdict_view_get(health_engine(health), ras_self_id(ras), &verdict) == 0 &&
		     health_advice(health, &verdict) == VERDICT_ADVICE_DRAIN;
	(void)stall_record_drain_advice(host, is_advised);
	ras_view(ras, &view);
	for (uint32_t slot = 0; view.unreachable > 0 && slot < view.slots_max; slot++)
		if (ras_peer_at(ras, slot, &peer) == 0 && peer.state == RAS_UNREACHABLE)
			add_trouble(troubles, peer.record->id, TOCSIN_PEER_UNREACHABLE);
	while (health != NULL && verdict_unhealthy_next(health_engine(health), &cursor, &verdict))
		if (verdict.verdict == VERDICT_NODE_DOWN)
			add_trouble(
				troubles, verdict.subject,
				death_is_final(host, &verdict) ? TOCSIN_PEER_GONE
							       : TOCSIN_PEER_SUSPECT
			);
	sort_rows(troubles->rows, troubles->count, sizeof(*troubles->rows), compare_troubles);
}
