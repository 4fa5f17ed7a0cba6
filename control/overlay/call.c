// SPDX-License-Identifier: BSD-3-Clause
// Questions to one node. A question is one relay message: tag, lifetime, line. Its answer is a
// transfer with that tag: a status of four bytes (0, or an errno of the other node), then the text.
//
// The core must not be called back while it calls this file. So the job `finish` reports the end of
// calls and passes new questions to the server.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/wire.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION_BYTES_MAX RAS_RELAY_CONTROL_BYTES_MAX
static_assert(QUESTION_BYTES_MAX <= OVERLAY_LINE_BYTES, "a line fits where it is kept");
#define STATUS_BYTES 4
#define ANSWER_GRACE_NS \
	RAS_NS_PER_SEC // the answer may be under way when the other node's time is over
#define SERVED_MAX 16  // questions served at once
#define SERVED_BYTES_MAX (32u << 20) // limit of all answers together
#define ANSWER_BYTES_MAX (RAS_TRANSFER_BYTES_MAX - STATUS_BYTES)
#define GROW_BYTES 16384

// Asking.

// End the call. Its callback runs at the end of the turn.
static void call_end(struct overlay_call *call, int err) {
	if (call->over)
		return;
	call->over = true;
	call->err = err;
	loop_defer(call->overlay->loop, &call->overlay->finish);
}

static void call_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay_call *call = container_of(timer, struct overlay_call, deadline);

	(void)now_ns;
	call_end(call, -ETIMEDOUT);
}

int overlay_call_start(
	struct overlay *overlay,
	uint64_t node,
	const char *line,
	uint64_t timeout_ns,
	struct overlay_call *call
) {
	uint64_t now_ns = overlay_now_ns(overlay);
	uint8_t bytes[QUESTION_BYTES_MAX];
	struct ras_relay_message message = {
		.destination = node,
		.class = RAS_RELAY_CONTROL,
		.flags = RAS_RELAY_REPORT,
		.flow = OVERLAY_PORT_QUESTION,
		.port = OVERLAY_PORT_QUESTION,
		.payload = bytes,
	};
	struct wire_writer writer;
	int err;

	// An answer lives no longer, and the other node rejects a question with a longer time.
	if (timeout_ns > RAS_TRANSFER_LIFE_MAX_NS)
		timeout_ns = RAS_TRANSFER_LIFE_MAX_NS;
	call->overlay = overlay;
	call->node = node;
	call->tag = ++overlay->tags;
	call->transfer = 0;
	memset(call->status, 0, sizeof(call->status));
	call->over = false;
	call->deadline = (struct loop_timer){.expired = call_expired};
	err = loop_timer_set(overlay->loop, &call->deadline, now_ns + timeout_ns + ANSWER_GRACE_NS);
	if (err == 0) {
		wire_writer_init(&writer, bytes, sizeof(bytes));
		wire_put_u64(&writer, call->tag);
		wire_put_u64(&writer, timeout_ns);
		wire_put_bytes(&writer, line, strlen(line));
		err = wire_writer_finish(&writer, &message.size) == 0 ? 0 : -EMSGSIZE;
	}
	if (err == 0) {
		message.life_ns =
			timeout_ns < RAS_RELAY_LIFE_MAX_NS ? timeout_ns : RAS_RELAY_LIFE_MAX_NS;
		err = ras_relay_send(
			overlay->ras, overlay_now_ns(overlay), &message, &call->message_id
		);
	}
	if (err != 0) {
		loop_timer_cancel(overlay->loop, &call->deadline);
		call->overlay = NULL;
		return err;
	}
	call->next = overlay->calls;
	overlay->calls = call;
	return 0;
}

void overlay_call_ready(struct overlay_call *call) {
	if (call->overlay != NULL && call->transfer != 0)
		(void)ras_transfer_ready(
			call->overlay->ras, overlay_now_ns(call->overlay), call->transfer
		);
}

void overlay_call_cancel(struct overlay_call *call) {
	struct overlay *overlay = call->overlay;
	struct overlay_call **at;

	if (overlay == NULL)
		return;
	at = &overlay->calls;
	while (*at != NULL && *at != call)
		at = &(*at)->next;
	if (*at != NULL)
		*at = call->next;
	loop_timer_cancel(overlay->loop, &call->deadline);
	call->overlay = NULL;
	(void)ras_relay_cancel(overlay->ras, overlay_now_ns(overlay), call->message_id);
	if (call->transfer != 0)
		(void)ras_transfer_cancel(overlay->ras, overlay_now_ns(overlay), call->transfer);
}

static int error_from_report(const struct ras_relay_report *report) {
	switch (report->reason) {
	case RAS_RELAY_DESTINATION_DOWN:
	case RAS_RELAY_WRONG_INCARNATION:
		return -EHOSTDOWN;
	case RAS_RELAY_NO_CONSUMER:
	case RAS_RELAY_UNDECODABLE:
		return -ECONNREFUSED;
	case RAS_RELAY_NO_ROUTE:
	case RAS_RELAY_STALE_VIEW:
		return -EHOSTUNREACH;
	default:
		return -ETIMEDOUT;
	}
}

bool overlay_call_report(struct overlay *overlay, const struct ras_relay_report *report) {
	for (struct overlay_call *call = overlay->calls; call != NULL; call = call->next) {
		if (call->message_id != report->message_id)
			continue;
		if (report->outcome != RAS_RELAY_OUTCOME_DELIVERED)
			call_end(call, error_from_report(report));
		return true;
	}
	return false;
}

static struct overlay_call *call_find(struct overlay *overlay, uint64_t node, uint64_t tag) {
	for (struct overlay_call *call = overlay->calls; call != NULL; call = call->next) {
		if (call->tag == tag && call->node == node && !call->over)
			return call;
	}
	return NULL;
}

int overlay_call_receive(struct overlay *overlay, const struct ras_transfer_segment *segment) {
	struct overlay_call *call = call_find(overlay, segment->source, segment->tag);
	const uint8_t *bytes = segment->bytes;
	size_t skip = 0;
	int err;

	if (call == NULL)
		return -ECANCELED; // the caller does not wait any more
	call->transfer = segment->id;
	// The status comes first, and may be spread over several segments.
	for (; segment->offset + skip < STATUS_BYTES && skip < segment->size; skip++)
		call->status[segment->offset + skip] = bytes[skip];
	if (segment->size == skip)
		return 0;
	err = call->piece(call, bytes + skip, segment->size - skip);
	return err == 0 || err == -EAGAIN ? err : -ECANCELED;
}

static int
error_from_transfer_end(const struct overlay_call *call, const struct ras_transfer_end *end) {
	uint32_t status = (uint32_t)call->status[0] | (uint32_t)call->status[1] << 8;

	switch (end->outcome) {
	case RAS_TRANSFER_DONE:
		return end->bytes < STATUS_BYTES ? -EBADMSG : -(int)status;
	case RAS_TRANSFER_DEAD:
	case RAS_TRANSFER_LEFT:
	case RAS_TRANSFER_RESTARTED:
		return -EHOSTDOWN;
	case RAS_TRANSFER_EXPIRED:
		return -ETIMEDOUT;
	case RAS_TRANSFER_BROKEN:
		return -EBADMSG;
	default:
		return -ECANCELED;
	}
}

// Answering.

static void served_free(struct overlay_served *served) {
	struct overlay_served **at = &served->overlay->served;

	while (*at != NULL && *at != served)
		at = &(*at)->next;
	if (*at != NULL)
		*at = served->next;
	served->overlay->served_count--;
	served->overlay->served_bytes -= served->capacity;
	free(served->bytes);
	free(served);
}

static struct overlay_served *served_find(struct overlay *overlay, uint64_t transfer) {
	for (struct overlay_served *served = overlay->served; served != NULL;
	     served = served->next) {
		if (served->transfer == transfer && transfer != 0)
			return served;
	}
	return NULL;
}

int overlay_call_deliver(struct overlay *overlay, const struct ras_relay_delivery *delivery) {
	struct overlay_served *served;
	struct wire_reader reader;

	if (overlay->serve == NULL)
		return -ENOENT;
	if (overlay->served_count == SERVED_MAX)
		return -EAGAIN;
	if (delivery->size > QUESTION_BYTES_MAX)
		return -EBADMSG;
	served = calloc(1, sizeof(*served));
	if (served == NULL)
		return -EAGAIN;
	wire_reader_init(&reader, delivery->payload, delivery->size);
	served->tag = wire_get_u64(&reader);
	served->life_ns = wire_get_u64(&reader);
	served->line_size = wire_reader_left(&reader);
	wire_get_bytes(&reader, served->line, served->line_size);
	if (wire_reader_finish(&reader) != 0 || served->life_ns > RAS_TRANSFER_LIFE_MAX_NS ||
	    memchr(served->line, '\0', served->line_size) != NULL) {
		free(served);
		return -EBADMSG;
	}
	served->overlay = overlay;
	served->source = delivery->source;
	served->used = STATUS_BYTES;
	served->next = overlay->served;
	overlay->served = served;
	overlay->served_count++;
	loop_defer(overlay->loop, &overlay->finish);
	return 0;
}

static int served_grow(struct overlay_served *served, size_t needed) {
	size_t capacity = served->capacity + served->capacity / 2 + GROW_BYTES;
	struct overlay *overlay = served->overlay;
	uint8_t *grown;

	if (needed <= served->capacity)
		return 0;
	if (capacity < needed)
		capacity = needed;
	if (overlay->served_bytes - served->capacity + capacity > SERVED_BYTES_MAX)
		return -ENOSPC;
	grown = realloc(served->bytes, capacity);
	if (grown == NULL)
		return -ENOMEM;
	overlay->served_bytes += capacity - served->capacity;
	served->bytes = grown;
	served->capacity = capacity;
	return 0;
}

uint64_t overlay_served_life_ns(const struct overlay_served *served) {
	return served->life_ns;
}

int overlay_served_write(struct overlay_served *served, const void *data, size_t size) {
	int err;

	if (size > ANSWER_BYTES_MAX || served->used - STATUS_BYTES > ANSWER_BYTES_MAX - size)
		return -ENOSPC;
	err = served_grow(served, served->used + size);
	if (err != 0)
		return err;
	memcpy(served->bytes + served->used, data, size);
	served->used += size;
	return 0;
}

// Send the answer. If there are too many transfers, it waits until one of them has ended.
static void served_send(struct overlay_served *served) {
	struct overlay *overlay = served->overlay;
	struct ras_transfer_request request = {
		.destination = served->source,
		.port = OVERLAY_PORT_ANSWER,
		.tag = served->tag,
		.size = served->used,
		.life_ns = served->life_ns + ANSWER_GRACE_NS < RAS_TRANSFER_LIFE_MAX_NS
				   ? served->life_ns + ANSWER_GRACE_NS
				   : RAS_TRANSFER_LIFE_MAX_NS,
	};
	int err;

	served->due = false;
	err = ras_transfer_send(overlay->ras, overlay_now_ns(overlay), &request, &served->transfer);
	if (err == 0 || err == -EAGAIN)
		return;
	log_event(
		LOG_LEVEL_WARN, "answer_not_sent", log_errno("error", err),
		log_u64("bytes", served->used)
	);
	served_free(served);
}

void overlay_served_end(struct overlay_served *served, int err) {
	uint32_t status = (uint32_t)(err < 0 ? -err : err);

	if (served_grow(served, STATUS_BYTES) != 0) {
		served_free(served);
		return;
	}
	for (int n = 0; n < STATUS_BYTES; n++)
		served->bytes[n] = (uint8_t)(status >> (8 * n));
	served->complete = true;
	served_send(served);
}

int overlay_call_read(void *ctx, struct ras_transfer_read *read) {
	const struct overlay_served *served = served_find(ctx, read->id);
	size_t left;

	if (served == NULL || read->offset > served->used)
		return -EIO;
	left = served->used - (size_t)read->offset;
	read->count = left < read->size ? left : read->size;
	memcpy(read->bytes, served->bytes + read->offset, read->count);
	read->last = read->count == left;
	return 0;
}

void overlay_call_ended(void *ctx, const struct ras_transfer_end *end) {
	struct overlay *overlay = ctx;
	struct overlay_served *served;
	struct overlay_call *call;

	if (!end->incoming) {
		served = served_find(overlay, end->id);
		if (served != NULL)
			served_free(served);
		loop_defer(overlay->loop, &overlay->finish); // room for a waiting answer
		return;
	}
	call = call_find(overlay, end->peer, end->tag);
	if (call == NULL)
		return;
	call->transfer = 0;
	call_end(call, error_from_transfer_end(call, end));
}

// End of a turn: ended calls, new questions, waiting answers.

static void on_call_finish(struct loop_job *job) {
	struct overlay *overlay = container_of(job, struct overlay, finish);
	struct overlay_served *served;
	struct overlay_call *call;

	// Callbacks may change the lists, so each search starts at the front again.
	for (call = overlay->calls; call != NULL;) {
		if (!call->over) {
			call = call->next;
			continue;
		}
		overlay_call_cancel(call);
		call->ended(call, call->err);
		call = overlay->calls;
	}
	for (served = overlay->served; served != NULL;) {
		if (served->begun) {
			served = served->next;
			continue;
		}
		served->begun = true;
		if (!overlay_reach_serve(overlay, served))
			overlay->serve(overlay->serve_ctx, served, served->line);
		served = overlay->served;
	}
	for (served = overlay->served; served != NULL; served = served->next)
		served->due = served->complete && served->transfer == 0;
	// Search from the start after each send, which may have freed the answer.
	do {
		served = overlay->served;
		while (served != NULL && !served->due)
			served = served->next;
		if (served != NULL)
			served_send(served);
	} while (served != NULL);
}

void overlay_set_call_server(struct overlay *overlay, overlay_serve_fn *fn, void *ctx) {
	overlay->serve = fn;
	overlay->serve_ctx = ctx;
}

void overlay_call_init(struct overlay *overlay) {
	overlay->finish.run = on_call_finish;
}

void overlay_call_fini(struct overlay *overlay) {
	struct overlay_call *call;

	while ((call = overlay->calls) != NULL) {
		overlay_call_cancel(call);
		call->ended(call, -ECANCELED);
	}
	while (overlay->served != NULL)
		served_free(overlay->served);
	loop_undefer(overlay->loop, &overlay->finish);
}
