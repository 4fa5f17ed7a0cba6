// SPDX-License-Identifier: BSD-3-Clause
// Keeps the list of transfers, schedules their turns, exchanges control messages, and ends them.
#include "relay/transfer.h"

#include "relay/transfer_state.h"

// List of transfers

int transfer_create(struct ras *ras) {
	ras->transfers = memory_allocate(&ras->memory, sizeof(*ras->transfers));
	if (ras->transfers == NULL)
		return -ENOMEM;
	ras->transfers->due_ns = RAS_NEVER;
	return 0;
}

// Cancel the segments in flight, or free the buffer.
static void transfer_release_data(struct ras *ras, struct transfer *transfer) {
	if (transfer->cleaned)
		return;
	transfer->cleaned = true;
	if (transfer->incoming)
		transfer_in_release(ras, transfer);
	else
		transfer_out_recall(ras, transfer);
}

static void transfer_free(struct ras *ras, struct transfer *transfer) {
	struct transfers *transfers = ras->transfers;
	struct transfer **at = &transfers->first;

	transfer_release_data(ras, transfer);
	if (transfer->control_id != 0)
		relay_cancel_own(ras, transfer->control_id);
	while (*at != transfer)
		at = &(*at)->next;
	*at = transfer->next;
	if (transfer->incoming)
		transfers->incoming--;
	else
		transfers->outgoing--;
	memory_release(&ras->memory, transfer, sizeof(*transfer));
}

void transfer_destroy(struct ras *ras) {
	if (ras->transfers == NULL)
		return;
	while (ras->transfers->first != NULL)
		transfer_free(ras, ras->transfers->first);
	memory_release(&ras->memory, ras->transfers, sizeof(*ras->transfers));
	ras->transfers = NULL;
}

int transfer_append(struct ras *ras, bool incoming, uint64_t peer, struct transfer **ret_transfer) {
	struct transfers *transfers = ras->transfers;
	uint32_t *count = incoming ? &transfers->incoming : &transfers->outgoing;
	struct transfer **end = &transfers->first;
	uint32_t with_peer = 0;
	struct transfer *transfer;

	for (; *end != NULL; end = &(*end)->next)
		with_peer += (*end)->incoming == incoming && (*end)->peer == peer;
	if (*count >= RAS_TRANSFERS_MAX || with_peer >= RAS_TRANSFERS_PEER_MAX)
		return -EAGAIN;
	transfer = memory_allocate(&ras->memory, sizeof(*transfer));
	if (transfer == NULL)
		return -ENOMEM;
	transfer->incoming = incoming;
	transfer->id = ++transfers->last_id;
	transfer->peer = peer;
	*end = transfer;
	++*count;
	*ret_transfer = transfer;
	return 0;
}

// Find the transfer of a message. Its sender must be the peer of the transfer, in the same start.
static struct transfer *transfer_find_by_sender(
	const struct ras *ras,
	bool incoming,
	const struct ras_relay_delivery *from,
	uint64_t wire_id
) {
	uint64_t start = ras_incarnation_start(from->source_incarnation);
	struct transfer *transfer = ras->transfers->first;

	while (transfer != NULL &&
	       (transfer->incoming != incoming || transfer->wire_id != wire_id ||
		transfer->peer != from->source || transfer_peer_start(transfer) != start))
		transfer = transfer->next;
	return transfer;
}

// Ends of transfers

void transfer_finish(
	struct ras *ras,
	struct transfer *transfer,
	enum ras_transfer_outcome outcome,
	enum ras_transfer_reason reason,
	bool owed
) {
	struct ras_transfer_counters *counters = &ras->transfers->counters;

	if (transfer->over)
		return;
	transfer->over = true;
	transfer->outcome = outcome;
	transfer->reason = reason;
	transfer->owed = owed;
	transfer->wait_ns = 0;
	transfer->told =
		ras->ops.transfer_ended == NULL || (transfer->incoming && !transfer->in.offered);
	if (transfer->incoming)
		counters->ended_in[outcome]++;
	else
		counters->ended_out[outcome]++;
	transfer_wake_at(ras, ras->now_ns);
}

void transfer_finish_by_peer(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
) {
	transfer->by_peer = true;
	transfer_finish(ras, transfer, message->outcome, message->reason, false);
}

static void transfer_report_end(struct ras *ras, struct transfer *transfer) {
	struct ras_transfer_end end = {
		.id = transfer->id,
		.peer = transfer->peer,
		.port = transfer->port,
		.tag = transfer->tag,
		.incoming = transfer->incoming,
		.by_peer = transfer->by_peer,
		.outcome = transfer->outcome,
		.reason = transfer->reason,
		.bytes = transfer->incoming ? transfer->in.taken : transfer->out.kept,
	};

	if (transfer->told)
		return;
	transfer->told = true;
	// The consumer took everything, even if the last relay acknowledgements have not arrived.
	if (!transfer->incoming && end.outcome == RAS_TRANSFER_DONE)
		end.bytes = transfer->out.ahead;
	ras->ops.transfer_ended(ras->ops_ctx, &end);
}

void transfer_peer_changed(struct ras *ras, uint32_t slot) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	uint64_t start = ras_incarnation_start(entry->incarnation);
	enum ras_transfer_outcome outcome = RAS_TRANSFER_RESTARTED;

	if (!peer_is_member(entry))
		outcome = entry->state == RAS_LEFT ? RAS_TRANSFER_LEFT : RAS_TRANSFER_DEAD;
	for (struct transfer *transfer = ras->transfers->first; transfer != NULL;
	     transfer = transfer->next) {
		if (transfer->peer != entry->record->id ||
		    (outcome == RAS_TRANSFER_RESTARTED && transfer_peer_start(transfer) == start))
			continue;
		transfer_finish(ras, transfer, outcome, RAS_TRANSFER_REASON_NONE, false);
		transfer->owed = false;
		transfer_wake_at(ras, ras->now_ns);
	}
}

void transfer_leave(struct ras *ras) {
	while (ras->transfers->first != NULL) {
		struct transfer *transfer = ras->transfers->first;

		transfer_finish(
			ras, transfer, RAS_TRANSFER_LEAVING, RAS_TRANSFER_REASON_NONE, false
		);
		transfer_report_end(ras, transfer);
		transfer_free(ras, transfer);
	}
}

// Messages

void transfer_defer(struct ras *ras, struct transfer *transfer, uint64_t ns) {
	transfer->wait_ns = ras->now_ns + ns;
	transfer_wake_at(ras, transfer->wait_ns);
}

bool transfer_reason_is_transient(enum ras_relay_reason reason) {
	return reason != RAS_RELAY_UNDECODABLE && reason != RAS_RELAY_NO_CONSUMER;
}

int transfer_send_message(
	struct ras *ras,
	struct transfer *transfer,
	const struct transfer_message *message,
	uint64_t *ret_message_id
) {
	uint8_t payload[TRANSFER_MESSAGE_BYTES_MAX];
	uint64_t life_ns = transfer->deadline_ns - ras->now_ns;
	uint32_t flow = (uint32_t)(transfer->wire_id % TRANSFER_FLOWS);
	uint32_t slot = peers_find(&ras->peers, transfer->peer);
	struct ras_relay_message posted = {
		.destination = transfer->peer,
		.class = message->type == TRANSFER_DATA ? RAS_RELAY_BULK : RAS_RELAY_EVENT,
		.flags = RAS_RELAY_REPORT | RAS_RELAY_ORDERED,
		.flow = transfer->incoming ? TRANSFER_FLOWS + flow : flow,
		.port = RELAY_PORT_TRANSFER,
		.life_ns = life_ns < TRANSFER_MESSAGE_LIFE_NS ? life_ns : TRANSFER_MESSAGE_LIFE_NS,
		.payload = payload,
	};
	int err = -ENOENT;

	posted.size = transfer_message_encode(message, payload);
	if (slot != RAS_NO_SLOT && ras_incarnation_start(ras_entry(ras, slot)->incarnation) ==
					   transfer_peer_start(transfer))
		err = relay_send_own(ras, &posted, ret_message_id);
	if (err == -EAGAIN || err == -ENOMEM) {
		ras->transfers->counters.waited++;
		transfer_defer(ras, transfer, TRANSFER_WAIT_NS);
	} else if (err < 0) {
		// The relay does not know the peer any more, or the peer has a new start.
		slot = peers_find(&ras->peers, transfer->peer);
		if (slot != RAS_NO_SLOT)
			transfer_peer_changed(ras, slot);
		transfer_finish(ras, transfer, RAS_TRANSFER_DEAD, RAS_TRANSFER_REASON_NONE, false);
		transfer->owed = false;
	}
	return err;
}

static struct transfer_message
control_message(const struct ras *ras, const struct transfer *transfer) {
	struct transfer_message message = {
		.id = transfer->wire_id,
		.outcome = transfer->outcome,
		.reason = transfer->reason,
	};

	if (transfer->incoming) {
		message.type = transfer->over ? TRANSFER_END : TRANSFER_CREDIT;
		message.received = transfer->in.received;
		message.limit = transfer_in_limit(transfer);
	} else if (transfer->over) {
		message.type = TRANSFER_CANCEL;
		message.outcome = RAS_TRANSFER_CANCELLED;
	} else {
		uint64_t life_ns = transfer->deadline_ns - ras->now_ns;

		message.type = TRANSFER_START;
		message.port = transfer->port;
		message.tag = transfer->tag;
		message.size = transfer->size;
		message.life_ms = (uint32_t)((life_ns + RAS_NS_PER_MS - 1) / RAS_NS_PER_MS);
	}
	return message;
}

static void transfer_send_control(struct ras *ras, struct transfer *transfer) {
	struct transfer_message message;
	// The control message in flight was answered, or the transfer has ended since.
	bool obsolete = transfer->over ? !transfer->control_final
				       : !transfer->incoming && transfer->out.granted;

	if (obsolete) {
		relay_cancel_own(ras, transfer->control_id);
		transfer->control_id = 0;
		transfer->control_due = transfer->over && transfer->owed;
	}
	if (!transfer->control_due || transfer->control_id != 0 || ras->now_ns < transfer->wait_ns)
		return;
	message = control_message(ras, transfer);
	if (transfer_send_message(ras, transfer, &message, &transfer->control_id) < 0)
		return;
	transfer->control_due = false;
	transfer->control_final = transfer->over;
	if (message.type != TRANSFER_CREDIT)
		return;
	transfer->in.limit = message.limit;
	ras->transfers->counters.credits_sent++;
}

int transfer_message_received(struct ras *ras, const struct ras_relay_delivery *delivery) {
	struct transfer_message message;
	struct transfer *transfer;
	bool to_receiver;

	if (transfer_message_decode(delivery->payload, delivery->size, &message) < 0) {
		ras->transfers->counters.malformed++;
		return -EBADMSG;
	}
	if (ras->leaving)
		return 0;
	to_receiver = message.type != TRANSFER_CREDIT && message.type != TRANSFER_END;
	transfer = transfer_find_by_sender(ras, to_receiver, delivery, message.id);
	if (message.type == TRANSFER_START)
		return transfer_in_start_received(ras, transfer, delivery, &message);
	if (transfer == NULL) {
		ras->transfers->counters.unknown++;
		return 0;
	}
	if (message.type == TRANSFER_DATA)
		return transfer_in_data_received(ras, transfer, &message);
	if (!to_receiver)
		transfer_out_message_received(ras, transfer, &message);
	else if (transfer->over)
		transfer->owed = false; // both sides ended it
	else
		transfer_finish_by_peer(ras, transfer, &message);
	transfer_wake_at(ras, ras->now_ns);
	return 0;
}

static void
control_report(struct ras *ras, struct transfer *transfer, const struct ras_relay_report *report) {
	transfer->control_id = 0;
	if (report->outcome == RAS_RELAY_OUTCOME_DELIVERED) {
		transfer->owed = transfer->owed && !transfer->control_final;
	} else if (transfer_reason_is_transient(report->reason)) {
		transfer->control_due = true;
		transfer_defer(ras, transfer, ras->profile->relay_retry_ns);
	} else {
		transfer_finish(
			ras, transfer, RAS_TRANSFER_REFUSED, RAS_TRANSFER_UNREADABLE, false
		);
		transfer->owed = false;
	}
	transfer_wake_at(ras, ras->now_ns);
}

void transfer_report_received(struct ras *ras, const struct ras_relay_report *report) {
	for (struct transfer *transfer = ras->transfers->first; transfer != NULL;
	     transfer = transfer->next) {
		if (transfer->control_id == report->message_id) {
			control_report(ras, transfer, report);
			return;
		}
		if (!transfer->incoming && transfer_out_report_received(ras, transfer, report))
			return;
	}
}

// Ticks

// Do all due work of one transfer, except sending its next segment.
static void transfer_do_turn(struct ras *ras, struct transfer *transfer) {
	if (ras->now_ns >= transfer->deadline_ns) {
		transfer_finish(
			ras, transfer, RAS_TRANSFER_EXPIRED, RAS_TRANSFER_REASON_NONE, false
		);
		transfer->owed = false;
	}
	if (!transfer->over && transfer->incoming)
		transfer_in_offer_buffered(ras, transfer);
	else if (!transfer->over)
		transfer_out_resume(ras, transfer);
	if (transfer->over)
		transfer_release_data(ras, transfer);
	transfer_send_control(ras, transfer);
	if (!transfer->over)
		return;
	transfer_report_end(ras, transfer);
	if (!transfer->owed)
		transfer_free(ras, transfer);
}

void transfer_tick(struct ras *ras) {
	struct transfers *transfers = ras->transfers;
	struct transfer *transfer, *next;

	if (ras->now_ns < transfers->due_ns)
		return;
	transfers->due_ns = RAS_NEVER;
	for (transfer = transfers->first; transfer != NULL; transfer = next) {
		next = transfer->next;
		transfer_do_turn(ras, transfer);
	}

	// Send segments in turn: after each one, its transfer moves to the end of the list.
	for (transfer = transfers->first; transfer != NULL;) {
		struct transfer **at = &transfers->first;

		if (!transfer_out_can_send(ras, transfer)) {
			transfer = transfer->next;
			continue;
		}
		transfer_out_send(ras, transfer);
		while (*at != transfer)
			at = &(*at)->next;
		*at = transfer->next;
		while (*at != NULL)
			at = &(*at)->next;
		*at = transfer;
		transfer->next = NULL;
		transfer = transfers->first;
	}

	for (transfer = transfers->first; transfer != NULL; transfer = transfer->next) {
		transfer_wake_at(ras, transfer->deadline_ns);
		if (transfer->wait_ns > ras->now_ns)
			transfer_wake_at(ras, transfer->wait_ns);
	}
}

uint64_t transfer_next_ns(const struct ras *ras) {
	return ras->leaving ? RAS_NEVER : ras->transfers->due_ns;
}
