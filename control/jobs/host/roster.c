// SPDX-License-Identifier: BSD-3-Clause
// The roster of a communicator: which agent holds which ranks. Rows are arithmetic progressions,
// because a node usually holds every n-th rank or consecutive ranks.
#include "jobs/host/inside.h"

#include <lib/sort.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_PER_USER 65536u // rows in the rosters of all communicators of a user, 1.5 MiB

// Return the index of the first row of a node, or its insertion point.
static uint32_t find_first_row(const struct roster *roster, uint64_t node) {
	uint32_t low = 0, high = roster->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (roster->rows[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct roster_row *
roster_find_node_rows(const struct roster *roster, uint64_t node, uint32_t *ret_count) {
	uint32_t first = find_first_row(roster, node), end = first;

	while (end < roster->count && roster->rows[end].node == node)
		end++;
	*ret_count = end - first;
	return roster->rows + first;
}

void roster_forget(struct host_comm *comm) {
	comm->user->roster_rows -= comm->roster.count;
	free(comm->roster.rows);
	comm->roster = (struct roster){0};
	comm->roster_rows_sent = comm->roster_rows_to_send = 0;
}

bool roster_is_complete(const struct host_comm *comm) {
	return comm->rank_count == comm->size ||
	       (uint64_t)comm->roster.ranks + comm->gone_count >= comm->size;
}

static bool
rows_are_valid(const struct host_comm *comm, const struct roster_row *rows, uint32_t count) {
	for (uint32_t n = 0; n < count; n++) {
		const struct roster_row *row = &rows[n];

		if (row->count == 0 || row->stride == 0 || row->first >= comm->size ||
		    (uint64_t)row->first + (uint64_t)(row->count - 1) * row->stride >= comm->size ||
		    (n > 0 && row->node < rows[n - 1].node))
			return false;
	}
	return true;
}

int roster_merge_rows(struct host_comm *comm, const struct roster_row *rows, uint32_t count) {
	const struct roster merged = {.rows = (struct roster_row *)rows, .count = count};
	struct roster *roster = &comm->roster;
	struct roster grown = {0};
	uint32_t n = 0;

	if (!rows_are_valid(comm, rows, count))
		return -EBADMSG;
	if (comm->user->roster_rows + count > ROWS_PER_USER)
		return -ENOSPC;
	grown.rows = malloc(((size_t)roster->count + count + 1) * sizeof(*grown.rows));
	if (grown.rows == NULL)
		return -ENOMEM;
	// The new rows of a node replace its old ones.
	for (uint32_t old = 0; old < roster->count; old++) {
		const struct roster_row *row = &roster->rows[old];
		uint32_t same = find_first_row(&merged, row->node);

		if (same < count && rows[same].node == row->node)
			continue;
		while (n < count && rows[n].node < row->node)
			grown.rows[grown.count++] = rows[n++];
		grown.rows[grown.count++] = *row;
	}
	while (n < count)
		grown.rows[grown.count++] = rows[n++];
	for (uint32_t at = 0; at < grown.count; at++)
		grown.ranks += grown.rows[at].count;
	comm->user->roster_rows += grown.count - roster->count;
	free(roster->rows);
	*roster = grown;
	return 0;
}

int roster_merge_reported(
	struct host_comm *comm, uint64_t origin, const struct roster_row *rows, uint32_t count
) {
	struct roster_row kept[ROSTER_ROWS_MAX];
	uint32_t kept_count = 0, known;

	if (count > ROSTER_ROWS_MAX || !rows_are_valid(comm, rows, count))
		return -EBADMSG;
	for (uint32_t n = 0; n < count; n++) {
		(void)roster_find_node_rows(&comm->roster, rows[n].node, &known);
		if (rows[n].node == origin || known == 0)
			kept[kept_count++] = rows[n];
	}
	return roster_merge_rows(comm, kept, kept_count);
}

struct place {
	uint64_t node;
	uint32_t rank;
};

static int compare_places(const void *a, const void *b) {
	const struct place *left = a, *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	return left->rank < right->rank ? -1 : left->rank > right->rank;
}

static bool row_continues_at(const struct roster_row *row, const struct place *place) {
	uint32_t last = row->first + (row->count - 1) * row->stride;

	return row->node == place->node && place->rank > last &&
	       (row->count == 1 || place->rank - last == row->stride);
}

static uint32_t
make_roster_rows(struct roster_row *rows, const struct place *places, uint32_t count) {
	uint32_t used = 0;

	for (uint32_t n = 0; n < count; n++) {
		const struct place *place = &places[n];
		struct roster_row *row = used > 0 ? &rows[used - 1] : NULL;

		if (row != NULL && row_continues_at(row, place)) {
			if (row->count == 1)
				row->stride = place->rank - row->first;
			row->count++;
		} else if (row == NULL || n == 0 || compare_places(place, place - 1) != 0) {
			rows[used++] = (struct roster_row
			){.node = place->node, .first = place->rank, .count = 1, .stride = 1};
		}
	}
	return used;
}

int roster_merge_answer(struct host_comm *comm, const struct ras_merged_comm *merged) {
	struct place *places = malloc(((size_t)merged->rank_count + 1) * sizeof(*places));
	struct roster_row *rows = malloc(((size_t)merged->rank_count + 1) * sizeof(*rows));
	uint32_t count = 0;
	int err = -ENOMEM;

	for (uint32_t n = 0; places != NULL && n < merged->rank_count; n++) {
		const struct ras_comm_rank *rank = &merged->ranks[n].rank;

		// Skip ranks that have ended or announced their end: the loss of their node does
		// not matter.
		if (rank->left == 0 &&
		    (rank->flags & (RAS_RANK_EXITED | RAS_RANK_FINALIZE | RAS_RANK_DESTROY)) == 0)
			places[count++] = (struct place){merged->ranks[n].node, rank->rank};
	}
	if (places != NULL && rows != NULL) {
		sort_rows(places, count, sizeof(*places), compare_places);
		err = roster_merge_rows(comm, rows, make_roster_rows(rows, places, count));
	}
	free(places);
	free(rows);
	return err;
}
