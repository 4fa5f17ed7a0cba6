// SPDX-License-Identifier: BSD-3-Clause
// Receiving side of a transfer. The next bytes in order are offered to the consumer in place. Bytes
// that a full consumer did not take wait in one buffer of the window size, which the granted credit
// cannot overrun. All other segments are counted and dropped.
#include "relay/transfer_state.h"

uint32_t transfer_in_limit(const struct transfer *transfer) {
	return transfer->in.taken + RAS_TRANSFER_WINDOW_BYTES;
}

void transfer_in_release(struct ras *ras, struct transfer *transfer) {
	memory_release(&ras->memory, transfer->in.buffer, RAS_TRANSFER_WINDOW_BYTES);
	transfer->in.buffer = NULL;
}

// Start

// Return true if the sender's start is the one in our table: only that start can be answered.
static bool
sender_can_be_answered(const struct ras *ras, const struct ras_relay_delivery *delivery) {
	uint32_t slot = peers_find(&ras->peers, delivery->source);
	const struct peer_entry *entry = slot != RAS_NO_SLOT ? ras_entry(ras, slot) : NULL;

	return entry != NULL && peer_is_member(entry) &&
	       ras_incarnation_start(entry->incarnation) ==
		       ras_incarnation_start(delivery->source_incarnation);
}

int transfer_in_start_received(
	struct ras *ras,
	struct transfer *transfer,
	const struct ras_relay_delivery *delivery,
	const struct transfer_message *message
) {
	struct ras_transfer_counters *counters = &ras->transfers->counters;

	if (transfer != NULL) {
		counters->duplicates++;
		if (!transfer->over &&
		    (transfer->port != message->port || transfer->tag != message->tag ||
		     transfer->size != message->size)) {
			counters->lies++;
			transfer_finish(
				ras, transfer, RAS_TRANSFER_BROKEN, RAS_TRANSFER_REASON_NONE, true
			);
		}
		// Our answer to the first START may have been lost, so send it again.
		transfer->control_due = !transfer->over || transfer->owed;
		transfer_wake_at(ras, ras->now_ns);
		return 0;
	}
	// After -EAGAIN the relay of the sender retries, and then the sender itself.
	if (!sender_can_be_answered(ras, delivery) ||
	    transfer_append(ras, true, delivery->source, &transfer) < 0) {
		counters->busy++;
		return -EAGAIN;
	}
	transfer->wire_id = message->id;
	transfer->incarnation = delivery->source_incarnation;
	transfer->port = message->port;
	transfer->tag = message->tag;
	transfer->size = message->size;
	transfer->deadline_ns = ras->now_ns + message->life_ms * RAS_NS_PER_MS;
	transfer->control_due = true;
	counters->accepted++;
	if (ras->ops.transfer_take == NULL)
		transfer_finish(
			ras, transfer, RAS_TRANSFER_REFUSED, RAS_TRANSFER_NO_CONSUMER, true
		);
	transfer_wake_at(ras, ras->now_ns);
	return 0;
}

// Delivery to the consumer

// Offer the next `count` bytes to the consumer. Returns false if it did not take them.
static bool
bytes_offer(struct ras *ras, struct transfer *transfer, const void *bytes, uint32_t count) {
	struct transfer_in *in = &transfer->in;
	struct ras_transfer_segment segment = {
		.id = transfer->id,
		.source = transfer->peer,
		.source_incarnation = transfer->incarnation,
		.port = transfer->port,
		.tag = transfer->tag,
		.total = transfer->size,
		.offset = in->taken,
		.bytes = bytes,
		.size = count,
		.last = in->ends && in->taken + count == in->received,
	};
	enum ras_transfer_reason reason = RAS_TRANSFER_DECLINED;
	int err;

	in->offered = true;
	err = ras->ops.transfer_take(ras->ops_ctx, &segment);
	if (err == -EAGAIN) {
		in->full = true;
		return false;
	}
	if (err < 0) {
		if (err == -ENOENT)
			reason = RAS_TRANSFER_NO_CONSUMER;
		else if (err == -EBADMSG)
			reason = RAS_TRANSFER_UNREADABLE;
		else if (err == -EMSGSIZE)
			reason = RAS_TRANSFER_TOO_LONG;
		transfer_finish(ras, transfer, RAS_TRANSFER_REFUSED, reason, true);
		return false;
	}
	in->taken += count;
	ras->transfers->counters.segments_taken++;
	ras->transfers->counters.bytes_taken += count;
	if (segment.last)
		transfer_finish(ras, transfer, RAS_TRANSFER_DONE, RAS_TRANSFER_REASON_NONE, true);
	else if (transfer_in_limit(transfer) - in->limit >= RAS_TRANSFER_WINDOW_BYTES / 2)
		transfer->control_due = true;
	return true;
}

void transfer_in_offer_buffered(struct ras *ras, struct transfer *transfer) {
	struct transfer_in *in = &transfer->in;

	while (!transfer->over && !in->full && (in->taken < in->received || in->ends)) {
		uint32_t count = in->received - in->taken;

		if (count > RAS_TRANSFER_SEGMENT_BYTES_MAX)
			count = RAS_TRANSFER_SEGMENT_BYTES_MAX;
		// Only an empty last segment may wait without a buffer.
		if (!bytes_offer(
			    ras, transfer, count > 0 ? in->buffer + in->buffer_from : NULL, count
		    ))
			return;
		in->buffer_from += count;
	}
	if (in->taken == in->received)
		transfer_in_release(ras, transfer);
}

// Segments of the sender

// Append bytes that the consumer did not take to the buffer. Returns false without memory.
static bool
bytes_store(struct ras *ras, struct transfer *transfer, const uint8_t *bytes, uint32_t count) {
	struct transfer_in *in = &transfer->in;
	uint32_t held = in->received - in->taken;

	if (count == 0)
		return true;
	if (in->buffer == NULL) {
		must(held == 0);
		in->buffer = memory_allocate(&ras->memory, RAS_TRANSFER_WINDOW_BYTES);
		in->buffer_from = 0;
	}
	if (in->buffer == NULL)
		return false;
	must(held + count <= RAS_TRANSFER_WINDOW_BYTES);
	if (in->buffer_from + held + count > RAS_TRANSFER_WINDOW_BYTES) {
		memmove(in->buffer, in->buffer + in->buffer_from, held);
		in->buffer_from = 0;
	}
	memcpy(in->buffer + in->buffer_from + held, bytes, count);
	ras->transfers->counters.kept++;
	return true;
}

// Offer or buffer the next segment. Returns 0, or -EAGAIN without memory: the sender's relay
// retries.
static int segment_append(
	struct ras *ras, struct transfer *transfer, const uint8_t *bytes, uint32_t count, bool last
) {
	struct transfer_in *in = &transfer->in;
	bool next = in->taken == in->received && !in->full;

	in->received += count;
	in->ends = last;
	if (next && (bytes_offer(ras, transfer, bytes, count) || transfer->over))
		return 0;
	in->received -= count;
	if (!bytes_store(ras, transfer, bytes, count)) {
		in->ends = false;
		return -EAGAIN;
	}
	in->received += count;
	return 0;
}

// Return true if the segment contradicts the announced size or an earlier end.
static bool
segment_is_contradictory(const struct transfer *transfer, const struct transfer_message *message) {
	const struct transfer_in *in = &transfer->in;
	uint64_t end = (uint64_t)message->offset + message->count;

	if (end > RAS_TRANSFER_BYTES_MAX)
		return true;
	if (transfer->size != RAS_TRANSFER_SIZE_UNKNOWN &&
	    (end > transfer->size || message->last != (end == transfer->size)))
		return true;
	if (in->ends)
		return end > in->received || (message->last && end != in->received);
	return message->last && end < in->received;
}

int transfer_in_data_received(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
) {
	struct ras_transfer_counters *counters = &ras->transfers->counters;
	struct transfer_in *in = &transfer->in;
	uint32_t end = message->offset + message->count;

	transfer_wake_at(ras, ras->now_ns);
	if (transfer->over) {
		counters->unknown++;
	} else if (segment_is_contradictory(transfer, message)) {
		counters->lies++;
		transfer_finish(ras, transfer, RAS_TRANSFER_BROKEN, RAS_TRANSFER_REASON_NONE, true);
	} else if (end > in->limit) {
		counters->overruns++;
		transfer_finish(ras, transfer, RAS_TRANSFER_BROKEN, RAS_TRANSFER_REASON_NONE, true);
	} else if (message->offset > in->received) {
		counters->gaps++;
	} else if (in->ends || (end <= in->received && !message->last)) {
		counters->duplicates++;
	} else {
		uint32_t known = in->received - message->offset;

		return segment_append(
			ras, transfer, message->bytes + known, message->count - known, message->last
		);
	}
	return 0;
}
