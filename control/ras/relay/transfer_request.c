// SPDX-License-Identifier: BSD-3-Clause
// Requests of users: starts, cancels and resumes transfers; names and counters.
#include "relay/transfer_state.h"

static const char *const outcome_names[RAS_TRANSFER_OUTCOME_COUNT] = {
	[RAS_TRANSFER_DONE] = "done",		[RAS_TRANSFER_REFUSED] = "refused",
	[RAS_TRANSFER_CANCELLED] = "cancelled", [RAS_TRANSFER_EXPIRED] = "expired",
	[RAS_TRANSFER_DEAD] = "dead",		[RAS_TRANSFER_LEFT] = "left",
	[RAS_TRANSFER_RESTARTED] = "restarted", [RAS_TRANSFER_LEAVING] = "leaving",
	[RAS_TRANSFER_BROKEN] = "broken",
};

const char *ras_transfer_outcome_name(enum ras_transfer_outcome outcome) {
	must(outcome < RAS_TRANSFER_OUTCOME_COUNT);
	return outcome_names[outcome];
}

// Requests

static struct transfer *transfer_find(const struct ras *ras, uint64_t id) {
	struct transfer *transfer = ras->transfers->first;

	while (transfer != NULL && transfer->id != id)
		transfer = transfer->next;
	return transfer;
}

int ras_transfer_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_transfer_request *request,
	uint64_t *ret_id
) {
	uint64_t life_ns = request->life_ns != 0 ? request->life_ns : TRANSFER_LIFE_DEFAULT_NS;
	uint32_t slot = peers_find(&ras->peers, request->destination);
	struct transfer *transfer;
	int err;

	if (request->life_ns > RAS_TRANSFER_LIFE_MAX_NS || ras->ops.transfer_read == NULL)
		return -EINVAL;
	if (request->size != RAS_TRANSFER_SIZE_UNKNOWN && request->size > RAS_TRANSFER_BYTES_MAX)
		return -EMSGSIZE;
	if (ras->leaving)
		return -ESHUTDOWN;
	if (slot == RAS_NO_SLOT)
		return -ENOENT;
	if (!peer_is_member(ras_entry(ras, slot)))
		return -EHOSTDOWN;
	ras_enter(ras, now_ns);
	err = transfer_append(ras, false, request->destination, &transfer);
	if (err == 0) {
		transfer->wire_id = transfer->id;
		transfer->incarnation = ras_entry(ras, slot)->incarnation;
		transfer->port = request->port;
		transfer->tag = request->tag;
		transfer->size = request->size;
		transfer->deadline_ns = ras->now_ns + life_ns;
		transfer->control_due = true;
		ras->transfers->counters.started++;
		transfer_wake_at(ras, ras->now_ns);
		*ret_id = transfer->id;
	}
	ras_exit(ras);
	return err;
}

int ras_transfer_cancel(struct ras *ras, uint64_t now_ns, uint64_t id) {
	struct transfer *transfer = transfer_find(ras, id);

	if (transfer == NULL || transfer->over)
		return -ENOENT;
	ras_enter(ras, now_ns);
	transfer_finish(ras, transfer, RAS_TRANSFER_CANCELLED, RAS_TRANSFER_REASON_NONE, true);
	ras_exit(ras);
	return 0;
}

int ras_transfer_ready(struct ras *ras, uint64_t now_ns, uint64_t id) {
	struct transfer *transfer = transfer_find(ras, id);

	if (transfer == NULL || transfer->over)
		return -ENOENT;
	ras_enter(ras, now_ns);
	if (transfer->incoming)
		transfer->in.full = false;
	else
		transfer->out.starved = false;
	transfer_wake_at(ras, ras->now_ns);
	ras_exit(ras);
	return 0;
}

// Counters

const struct ras_transfer_counters *ras_transfer_counters(const struct ras *ras) {
	return &ras->transfers->counters;
}

void ras_transfer_stats(const struct ras *ras, struct ras_transfer_stats *ret_stats) {
	*ret_stats = (struct ras_transfer_stats){
		.outgoing = ras->transfers->outgoing,
		.incoming = ras->transfers->incoming,
		.segments = ras->transfers->in_flight_count,
	};
	for (const struct transfer *transfer = ras->transfers->first; transfer != NULL;
	     transfer = transfer->next) {
		if (transfer->incoming && transfer->in.buffer != NULL)
			ret_stats->held_bytes += RAS_TRANSFER_WINDOW_BYTES;
	}
}
