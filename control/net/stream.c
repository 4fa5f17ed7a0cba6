// SPDX-License-Identifier: BSD-3-Clause
// Frames on a channel that has proven the key, and the end of the channel.
//
// On the wire a frame is its sealed size in 4 bytes, then the sealed bytes. One step receives and
// sends at most LOOP_STEP_BYTES_MAX and a length. A connection with more data is served again in
// the next turn, after all others.
//
// Queued bytes are sent at the end of the turn, so that the frames of a turn share a packet.
#include "net/channel.h"

#include <lib/log.h>
#include <lib/must.h>
#include <lib/stream.h>

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define QUEUE_LOW_BYTES (TRANSPORT_QUEUE_BYTES_MAX / 2) // `writable` follows at this level

static void channel_want_flush(struct channel *channel) {
	struct transport *transport = channel->transport;

	if (channel->will_flush)
		return;
	channel->will_flush = true;
	channel->round = transport->round;
	TAILQ_INSERT_TAIL(&transport->flush, channel, in_flush);
	loop_defer(transport->loop, &transport->flush_job);
}

// Start the time limit for everything that is queued now. It is checked when the timer expires.
static void channel_start_stuck_timer(struct channel *channel) {
	channel->mark = channel->queued_total;
	// The timer has had its place in the loop since the proof, so this cannot fail.
	channel_set_deadline(channel, channel->transport->config.stuck_ns);
}

// Extend the queue by `size` bytes. The caller has checked that there is room.
static uint8_t *queue_extend(struct channel *channel, size_t size) {
	uint8_t *queue = channel->buffers->queue;
	size_t queued = channel_queued(channel);

	must(size <= TRANSPORT_QUEUE_BYTES_MAX - queued);
	if (size > TRANSPORT_QUEUE_BYTES_MAX - channel->queue_tail) {
		memmove(queue, queue + channel->queue_head, queued);
		channel->queue_head = 0;
		channel->queue_tail = queued;
	}
	channel->queue_tail += size;
	channel->queued_total += size;
	if (queued == 0)
		channel_start_stuck_timer(channel);
	channel_want_flush(channel);
	return queue + channel->queue_tail - size;
}

void channel_queue_bytes(struct channel *channel, const void *bytes, size_t size) {
	memcpy(queue_extend(channel, size), bytes, size);
}

int channel_queue_frame(struct channel *channel, const void *frame, size_t size) {
	size_t sealed_size = size + SEAL_OVERHEAD;
	uint32_t length = htole32((uint32_t)sealed_size);
	uint8_t *to;

	must(size <= RAS_FRAME_MAX);
	if (channel->send_error != 0)
		return -ENOTCONN;
	if (channel_queued(channel) + sizeof(length) + sealed_size > TRANSPORT_QUEUE_BYTES_MAX) {
		channel->owes_writable = true;
		channel->transport->counters.queues_full++;
		return -EAGAIN;
	}
	to = queue_extend(channel, sizeof(length) + sealed_size);
	memcpy(to, &length, sizeof(length));
	must(seal_encrypt(&channel->seal, frame, size, to + sizeof(length)) == 0);
	channel->transport->counters.frames_sent++;
	return 0;
}

// An open connection times out only if nothing that it sends is acknowledged.
static enum ras_cause stream_failure_cause(struct channel *channel, int err) {
	if (err != -ETIMEDOUT)
		return ras_cause_of_errno(err);
	channel->transport->counters.stuck++;
	return RAS_CAUSE_STUCK;
}

static void log_bad_frame(const struct channel *channel, const char *reason) {
	char peer[SOCK_ADDR_TEXT_BYTES];

	sock_addr_format(&channel->peer, peer);
	log_event(LOG_LEVEL_WARN, "frame_refused", log_str("peer", peer), log_str("why", reason));
}

// Decrypt all complete frames and pass them on. The beginning of the next one moves to the front.
static void channel_take_frames(struct channel *channel) {
	struct transport *transport = channel->transport;
	uint8_t *received = channel->buffers->received;
	uint32_t life = channel->life;
	size_t at = 0;
	uint32_t length;

	while (channel->received - at >= sizeof(length)) {
		memcpy(&length, received + at, sizeof(length));
		length = le32toh(length);
		if (length < SEAL_OVERHEAD || length > CHANNEL_SEALED_MAX) {
			transport->counters.frames_malformed++;
			log_bad_frame(channel, "invalid size");
			channel_fail(channel, RAS_CAUSE_PROTOCOL);
			return;
		}
		if (channel->received - at - sizeof(length) < length)
			break;
		at += sizeof(length);
		if (seal_decrypt(&channel->seal, received + at, length, transport->scratch) != 0) {
			transport->counters.frames_forged++;
			log_bad_frame(
				channel, "cannot be decrypted: altered, repeated or out of order"
			);
			channel_fail(channel, RAS_CAUSE_PROTOCOL);
			return;
		}
		at += length;
		transport->counters.frames_received++;
		transport->ops.frame(
			transport->ops_ctx, channel->conn, transport->scratch,
			length - SEAL_OVERHEAD
		);
		if (channel->life != life || channel->state != CHANNEL_OPEN)
			return; // the callback ended or closed the channel
	}
	if (at > 0)
		memmove(received, received + at, channel->received - at);
	channel->received -= at;
}

void channel_receive(struct channel *channel) {
	ssize_t n;

	n = stream_receive(
		channel->source.fd, channel->buffers->received + channel->received,
		CHANNEL_RECEIVE_BYTES - channel->received
	);
	if (n > 0) {
		channel->transport->counters.bytes_received += (uint64_t)n;
		channel->received += (size_t)n;
		channel_take_frames(channel);
	} else if (n != -EAGAIN) {
		// The kernel reports a reset only once, and a send may have received it.
		channel_fail(
			channel,
			stream_failure_cause(
				channel, channel->send_error != 0 ? channel->send_error : (int)n
			)
		);
	} else if (channel->send_error != 0) {
		channel_fail(channel, stream_failure_cause(channel, channel->send_error));
	}
}

// Send at most one step. Returns 0 or the error.
static int channel_send_step(struct channel *channel) {
	size_t size = channel_queued(channel);
	ssize_t n;

	if (size == 0 || channel->send_error != 0)
		return 0;
	if (size > LOOP_STEP_BYTES_MAX)
		size = LOOP_STEP_BYTES_MAX;
	n = stream_send(channel->source.fd, channel->buffers->queue + channel->queue_head, size);
	if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	channel->transport->counters.bytes_sent += (uint64_t)n;
	channel->sent_total += (uint64_t)n;
	channel->queue_head += (size_t)n;
	if (channel_queued(channel) == 0) {
		channel->queue_head = 0;
		channel->queue_tail = 0;
	}
	return 0;
}

static void channel_want_events(struct channel *channel) {
	uint32_t events = channel->read_ended ? 0 : EPOLLIN;

	if (channel_queued(channel) > 0 && channel->send_error == 0)
		events |= EPOLLOUT;
	loop_set_events(&channel->source, events);
}

void channel_flush(struct channel *channel) {
	struct transport *transport = channel->transport;
	int err = channel_send_step(channel);

	if (err != 0 && channel->state == CHANNEL_CLOSING) {
		channel_end(channel);
		return;
	}
	// The peer's last frames may still be in the kernel: they are read before the channel ends.
	channel->send_error = err != 0 ? err : channel->send_error;
	channel_want_events(channel);
	if (channel->state == CHANNEL_CLOSING) {
		// A soft close ends when all is sent and the other side has finished, too.
		if (channel_queued(channel) > 0)
			return;
		if (!channel->write_ended)
			shutdown(channel->source.fd, SHUT_WR);
		channel->write_ended = true;
		if (channel->read_ended)
			channel_end(channel);
	} else if (err != 0) {
		channel_receive(channel);
	} else if (channel->owes_writable && channel_queued(channel) <= QUEUE_LOW_BYTES) {
		channel->owes_writable = false;
		transport->ops.writable(transport->ops_ctx, channel->conn);
	}
}

void channel_check_stuck(struct channel *channel) {
	if (channel->sent_total < channel->mark) {
		channel->transport->counters.stuck++;
		channel_fail(channel, RAS_CAUSE_STUCK);
	} else if (channel_queued(channel) > 0) {
		channel_start_stuck_timer(channel);
	} else {
		channel_set_deadline(channel, UINT64_MAX);
	}
}

void channel_drain(struct channel *channel) {
	uint8_t *scratch = channel->transport->scratch;
	ssize_t n;

	n = stream_receive(channel->source.fd, scratch, sizeof(channel->transport->scratch));
	if (n > 0 || n == -EAGAIN)
		return;
	if (n < 0) {
		channel_end(channel);
		return;
	}
	channel->read_ended = true;
	if (channel->write_ended)
		channel_end(channel);
	else
		channel_want_events(channel);
}

void channel_close_softly(struct channel *channel) {
	channel_release_handle(channel);
	channel_enter_state(channel, CHANNEL_CLOSING);
	channel_set_deadline(channel, channel->transport->config.close_ns);
	if (channel->send_error != 0)
		channel_end(channel);
	else
		channel_want_flush(channel);
}
