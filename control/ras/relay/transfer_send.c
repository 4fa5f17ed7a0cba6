// SPDX-License-Identifier: BSD-3-Clause
// Sending side of a transfer: reads segment by segment, as far as the credit goes.
//
// The relay keeps a segment until it was delivered. If the relay gives one up, all segments from
// there on are cancelled and read again. The receiver takes no segment out of order.
#include "relay/transfer_state.h"

static uint32_t u32_min(uint32_t a, uint64_t b) {
	return a < b ? a : (uint32_t)b;
}

void transfer_out_recall(struct ras *ras, struct transfer *transfer) {
	struct transfer_out *out = &transfer->out;

	for (uint32_t n = 0; n < out->sent_count; n++) {
		if (out->sent[n].message_id == 0)
			continue;
		relay_cancel_own(ras, out->sent[n].message_id);
		ras->transfers->in_flight_count--;
	}
	out->sent_count = 0;
}

void transfer_out_resume(struct ras *ras, struct transfer *transfer) {
	struct transfer_out *out = &transfer->out;

	if (!out->given_up)
		return;
	transfer_out_recall(ras, transfer);
	out->given_up = false;
	out->read_all = false;
	out->starved = false;
	out->next = out->kept;
	ras->transfers->counters.resumed++;
	transfer_defer(ras, transfer, ras->profile->relay_retry_ns);
}

bool transfer_out_can_send(const struct ras *ras, const struct transfer *transfer) {
	const struct transfer_out *out = &transfer->out;

	return !transfer->incoming && !transfer->over && out->granted && !out->read_all &&
	       !out->starved && !out->given_up && ras->now_ns >= transfer->wait_ns &&
	       out->sent_count < TRANSFER_SEGMENTS_MAX &&
	       (out->next < out->limit || transfer->size == 0) &&
	       ras->transfers->in_flight_count < TRANSFER_IN_FLIGHT_MAX;
}

// Read the next segment from the source. Returns 0, or -errno: the transfer then waits or has
// ended.
static int read_segment(
	struct ras *ras, struct transfer *transfer, struct transfer_message *data, void *bytes
) {
	struct transfer_out *out = &transfer->out;
	bool known = transfer->size != RAS_TRANSFER_SIZE_UNKNOWN;
	uint64_t end = known ? transfer->size : RAS_TRANSFER_BYTES_MAX;
	struct ras_transfer_read read = {
		.id = transfer->id,
		.tag = transfer->tag,
		.offset = out->next,
		.kept = out->kept,
		.bytes = bytes,
		.size =
			u32_min(u32_min(RAS_TRANSFER_SEGMENT_BYTES_MAX, out->limit - out->next),
				end - out->next),
		.last = known && out->next == end,
	};
	int err = 0;

	if (!known && read.size == 0) {
		transfer_finish(ras, transfer, RAS_TRANSFER_CANCELLED, RAS_TRANSFER_TOO_LONG, true);
		return -EMSGSIZE;
	}
	if (read.size > 0)
		err = ras->ops.transfer_read(ras->ops_ctx, &read);
	if (err == -EAGAIN || (err == 0 && read.count == 0 && !read.last)) {
		out->starved = true;
		return -EAGAIN;
	}
	if (known)
		read.last = read.last || out->next + read.count == end;
	if (err == 0 &&
	    (read.count > read.size || (known && read.last && out->next + read.count != end)))
		err = -EBADMSG;
	if (err < 0) {
		transfer_finish(
			ras, transfer, RAS_TRANSFER_CANCELLED, RAS_TRANSFER_NO_SOURCE, true
		);
		return err;
	}
	data->last = read.last;
	data->count = (uint32_t)read.count;
	return 0;
}

void transfer_out_send(struct ras *ras, struct transfer *transfer) {
	struct transfer_out *out = &transfer->out;
	uint8_t bytes[RAS_TRANSFER_SEGMENT_BYTES_MAX];
	struct transfer_message data = {
		.type = TRANSFER_DATA,
		.id = transfer->wire_id,
		.offset = out->next,
		.bytes = bytes,
	};
	struct transfer_sent *sent = &out->sent[out->sent_count];

	if (read_segment(ras, transfer, &data, bytes) < 0)
		return;
	sent->size = data.count;
	if (transfer_send_message(ras, transfer, &data, &sent->message_id) < 0)
		return; // transfer_send_message() made the transfer wait or ended it
	out->sent_count++;
	out->next += data.count;
	out->read_all = data.last;
	out->whole = out->whole || data.last;
	if (out->ahead < out->next)
		out->ahead = out->next;
	ras->transfers->in_flight_count++;
	ras->transfers->counters.segments_sent++;
	ras->transfers->counters.bytes_sent += data.count;
}

// Messages of the receiver

static void credit_received(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
) {
	struct transfer_out *out = &transfer->out;

	if (message->received > out->ahead || message->limit < message->received ||
	    message->limit - message->received > TRANSFER_CREDIT_MAX) {
		ras->transfers->counters.credits_refused++;
		return;
	}
	if (out->granted && message->limit < out->limit)
		return; // an older credit
	out->granted = true;
	out->limit = message->limit;
	transfer_wake_at(ras, ras->now_ns);
}

void transfer_out_message_received(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
) {
	const struct transfer_out *out = &transfer->out;
	bool done = message->type == TRANSFER_END && message->outcome == RAS_TRANSFER_DONE;

	if (transfer->over)
		transfer->owed = transfer->owed && message->type != TRANSFER_END;
	else if (message->type == TRANSFER_CREDIT)
		credit_received(ras, transfer, message);
	else if (done && (!out->whole || message->received != out->ahead))
		ras->transfers->counters
			.lies++; // the receiver cannot have bytes that were not sent
	else
		transfer_finish_by_peer(ras, transfer, message);
}

// Reports of the relay

bool transfer_out_report_received(
	struct ras *ras, struct transfer *transfer, const struct ras_relay_report *report
) {
	struct transfer_out *out = &transfer->out;
	uint32_t n = 0, kept = 0;

	while (n < out->sent_count && out->sent[n].message_id != report->message_id)
		n++;
	if (n == out->sent_count)
		return false;
	if (report->outcome == RAS_RELAY_OUTCOME_DELIVERED && !out->given_up) {
		out->sent[n].message_id = 0;
		ras->transfers->in_flight_count--;
		// Release the delivered segments at the head: their bytes are kept by the receiver.
		while (kept < out->sent_count && out->sent[kept].message_id == 0)
			out->kept += out->sent[kept++].size;
		out->sent_count -= kept;
		memmove(out->sent, out->sent + kept, out->sent_count * sizeof(*out->sent));
	} else {
		out->given_up = true;
		if (!transfer_reason_is_transient(report->reason))
			transfer_finish(
				ras, transfer, RAS_TRANSFER_REFUSED, RAS_TRANSFER_UNREADABLE, true
			);
	}
	transfer_wake_at(ras, ras->now_ns);
	return true;
}
