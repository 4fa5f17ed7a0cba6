// SPDX-License-Identifier: BSD-3-Clause
// The own share of a node in a collective.
//
// The first rows of CONNS are the links, which the core knows itself. Everything else comes from
// ras_ops.contribute, part by part. If a part of COMMS lists missing ranks of a communicator, the
// nodes below are asked to skip them. Otherwise each node could send the same thousands of ranks.
#include "collect/gather.h"
#include "core/core.h"

#include <ras/payload.h>

struct share {
	struct ras *ras;
	struct gather *gather;
	struct gather_skip *skip;
	uint32_t part; // number of the next part
};

int gather_skip_init(
	struct ras *ras, struct gather_skip *skip, const struct collect_request *request
) {
	int err;

	if (request->skip_count == 0)
		return 0;
	err = memory_grow(
		&ras->memory, (void **)&skip->ids, &skip->capacity, request->skip_count,
		sizeof(*skip->ids)
	);
	if (err != 0)
		return err;
	for (uint32_t n = 0; n < request->skip_count; n++)
		skip->ids[n] = collect_skip_at(request, n);
	skip->count = request->skip_count;
	return 0;
}

void gather_skip_fini(struct ras *ras, struct gather_skip *skip) {
	memory_release(&ras->memory, skip->ids, skip->capacity * sizeof(*skip->ids));
}

// Add a communicator. Without room or memory it is left out, and its missing ranks are sent twice.
static void skip_add(struct ras *ras, struct gather_skip *skip, const struct ras_comm_id *id) {
	uint32_t low = 0;
	uint32_t high = skip->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = ras_comm_id_compare(&skip->ids[middle], id);

		if (order == 0)
			return;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (skip->count == RAS_COLLECT_SKIP_MAX ||
	    memory_grow(
		    &ras->memory, (void **)&skip->ids, &skip->capacity, skip->count + 1,
		    sizeof(*skip->ids)
	    ) != 0)
		return;
	memmove(&skip->ids[low + 1], &skip->ids[low], (skip->count - low) * sizeof(*skip->ids));
	skip->ids[low] = *id;
	skip->count++;
}

// Each row is preceded by its length, so only its head is read.
static void skip_add_listed(const struct share *share, const void *payload, size_t size) {
	struct wire_reader reader, row;
	struct ras_comm head;

	wire_reader_init(&reader, payload, size);
	while (ras_comm_row_next(&reader, &row) == 0) {
		if (ras_comm_get(&row, &head) == 0 && head.missing_count > 0)
			skip_add(share->ras, share->skip, &head.id);
	}
}

static void share_send_part(struct share *share, struct wire_writer *writer, bool last) {
	struct ras *ras = share->ras;
	struct collect_answer answer = {
		.node = ras->self_id,
		.incarnation = ras_self(ras)->incarnation,
		.view_digest = peers_digest(&ras->peers),
		.hops = share->gather->hops,
		.part = share->part++,
		.last = last,
		.payload = ras->scratch,
	};

	if (wire_writer_finish(writer, &answer.size) != 0) {
		ras->collective->counters.contributions_cut++;
		answer.size = 0;
	}
	if (share->gather->kind == RAS_COLLECT_COMMS)
		skip_add_listed(share, answer.payload, answer.size);
	gather_add_answer(ras, share->gather, &answer);
}

// Prepare the writer of the next part. The part is written into the scratch buffer, which sending
// may use, so pending items are sent first.
static void share_begin_part(struct share *share, struct wire_writer *ret_writer) {
	if (share->part > 0 && share->gather->pending_used > 0)
		gather_flush(share->ras, share->gather, 0);
	wire_writer_init(ret_writer, share->ras->scratch, RAS_COLLECT_PART_BYTES_MAX);
}

static void share_add_links(struct share *share) {
	struct wire_writer writer;
	struct ras_conn_row row;

	share_begin_part(share, &writer);
	for (uint32_t n = 0; n < share->ras->links.count; n++) {
		const struct link *link = share->ras->links.table[n];

		if (!link->used)
			continue;
		row = (struct ras_conn_row){
			.peer = link->peer,
			.transport = RAS_TRANSPORT_TCP,
			.sent_bytes = link->sent_bytes,
			.received_bytes = link->received_bytes,
			.errors = link->connects > 0 ? link->connects - 1 : 0,
			.retransmits = RAS_RETRANSMITS_UNKNOWN,
		};
		if (link->rtt.count > 0) {
			row.samples = link->rtt.count;
			row.min_ns = link->rtt.min_ns;
			row.mean_ns = link->rtt.sum_ns / link->rtt.count;
			row.max_ns = link->rtt.max_ns;
		}
		if (ras_conn_put(&writer, &row) == 0)
			continue;
		share_send_part(share, &writer, false);
		share_begin_part(share, &writer);
		ras_conn_put(&writer, &row);
	}
	share_send_part(share, &writer, false);
}

void gather_add_own_share(struct ras *ras, struct gather *gather, struct gather_skip *skip) {
	struct ras_contribution wanted = {.kind = gather->kind};
	struct share share = {.ras = ras, .gather = gather, .skip = skip};
	struct wire_writer writer;
	bool more;

	if (gather->kind == RAS_COLLECT_CONNS)
		share_add_links(&share);
	do {
		share_begin_part(&share, &writer);
		wanted.skip = skip->ids;
		wanted.skip_count = skip->count;
		more = ras->ops.contribute(ras->ops_ctx, &wanted, &writer);
		wanted.part++;
		if (more && share.part + 1 >= RAS_COLLECT_PARTS_MAX) {
			ras->collective->counters.contributions_cut++;
			more = false;
		}
		share_send_part(&share, &writer, !more);
	} while (more);
}
