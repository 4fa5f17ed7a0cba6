// SPDX-License-Identifier: BSD-3-Clause
// The table of channels: how a channel is allocated, found, given a deadline and ended.
#include "net/channel.h"

#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/must.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

// Limit of unsent bytes in the kernel. More would only make a keep-alive wait behind them.
#define UNSENT_BYTES_MAX (128 << 10)

void transport_enter(struct transport *transport) {
	transport->depth++;
}

void transport_exit(struct transport *transport) {
	transport->depth--;
	if (transport->depth == 0 && transport->destroyed)
		transport_destroy(transport);
}

static bool channel_is_stranger(const struct channel *channel) {
	return channel->state == CHANNEL_PROVING && !channel->outgoing;
}

static struct channel_list *channel_state_list(struct channel *channel) {
	struct transport *transport = channel->transport;

	switch (channel->state) {
	case CHANNEL_FREE:
		return &transport->free;
	case CHANNEL_CLOSING:
		return &transport->closing;
	case CHANNEL_FAILED:
		return &transport->failed;
	case CHANNEL_PROVING:
		return channel->outgoing ? &transport->live : &transport->strangers;
	default:
		return &transport->live;
	}
}

static uint32_t *channel_state_counter(struct channel *channel) {
	struct transport_counters *counters = &channel->transport->counters;

	if (channel->state == CHANNEL_OPEN)
		return &counters->open;
	if (channel->state == CHANNEL_CLOSING)
		return &counters->closing;
	return channel_is_stranger(channel) ? &counters->proving : NULL;
}

void channel_enter_state(struct channel *channel, enum channel_state state) {
	uint32_t *counter;

	if (channel_is_stranger(channel))
		admission_release(
			channel->transport->admission, &channel->peer, state == CHANNEL_OPEN
		);
	counter = channel_state_counter(channel);
	if (counter != NULL)
		(*counter)--;
	if (channel->list != NULL)
		TAILQ_REMOVE(channel->list, channel, in_list);
	channel->state = state;
	channel->list = channel_state_list(channel);
	TAILQ_INSERT_TAIL(channel->list, channel, in_list);
	counter = channel_state_counter(channel);
	if (counter != NULL)
		(*counter)++;
}

static void on_channel_ready(struct loop_source *source, uint32_t events) {
	struct channel *channel = container_of(source, struct channel, source);
	struct transport *transport = channel->transport;
	uint32_t life = channel->life;

	transport_enter(transport);
	if (channel->state == CHANNEL_CONNECTING) {
		dial_ready(channel);
	} else if (channel->state == CHANNEL_PROVING) {
		proof_ready(channel);
	} else {
		// Received bytes are processed before an error or a hang-up.
		if ((events & ~(uint32_t)EPOLLOUT) != 0) {
			if (channel->state == CHANNEL_OPEN)
				channel_receive(channel);
			else
				channel_drain(channel);
		}
		if ((events & EPOLLOUT) != 0 && channel->life == life)
			channel_flush(channel);
	}
	transport_exit(transport);
}

static void on_deadline(struct loop_timer *timer, uint64_t now_ns) {
	struct channel *channel = container_of(timer, struct channel, timer);
	struct transport *transport = channel->transport;

	(void)now_ns;
	transport_enter(transport);
	switch (channel->state) {
	case CHANNEL_CONNECTING:
		transport->counters.connect_failures++;
		channel_fail(channel, RAS_CAUSE_TIMEOUT);
		break;
	case CHANNEL_PROVING:
		proof_timed_out(channel);
		break;
	case CHANNEL_OPEN:
		channel_check_stuck(channel);
		break;
	default:
		channel_end(channel);
	}
	transport_exit(transport);
}

struct channel *channel_allocate(struct transport *transport, const struct sock_addr *peer) {
	struct channel *channel = TAILQ_FIRST(&transport->free);
	uint32_t life;

	if (channel == NULL && transport->channel_count < transport->channel_max)
		channel = &transport->channels[transport->channel_count++];
	// A channel in a soft close makes room, because the core does not know it any more.
	if (channel == NULL) {
		channel = TAILQ_FIRST(&transport->closing);
		must(channel != NULL); // the owner of the handles keeps to conns_max
		transport->counters.closes_cut++;
		channel_end(channel);
	}
	if (channel->list != NULL)
		TAILQ_REMOVE(channel->list, channel, in_list);
	life = channel->life;
	*channel = (struct channel){
		.transport = transport,
		.source = {.fd = -1, .ready = on_channel_ready},
		.timer = {.expired = on_deadline},
		.life = life,
		.peer = *peer,
	};
	return channel;
}

void channel_release_handle(struct channel *channel) {
	if (channel->has_conn)
		LIST_REMOVE(channel, in_bucket);
	channel->has_conn = false;
}

void channel_set_handle(struct channel *channel, uint32_t conn) {
	struct transport *transport = channel->transport;

	must(channel_find(transport, conn) == NULL);
	channel->conn = conn;
	channel->has_conn = true;
	LIST_INSERT_HEAD(&transport->buckets[conn & transport->bucket_mask], channel, in_bucket);
}

struct channel *channel_find(const struct transport *transport, uint32_t conn) {
	struct channel *channel;

	LIST_FOREACH(channel, &transport->buckets[conn & transport->bucket_mask], in_bucket) {
		if (channel->conn == conn)
			return channel;
	}
	return NULL;
}

// Release everything but the table entry, the handle and the counters.
static void channel_release(struct channel *channel) {
	struct transport *transport = channel->transport;

	channel->life++;
	loop_remove(&channel->source);
	loop_timer_cancel(transport->loop, &channel->timer);
	if (channel->will_flush)
		TAILQ_REMOVE(&transport->flush, channel, in_flush);
	channel->will_flush = false;
	if (channel->source.fd >= 0)
		close(channel->source.fd);
	channel->source.fd = -1;
	seal_wipe(&channel->seal);
	if (channel->buffers != NULL)
		transport->counters.buffer_bytes -= sizeof(*channel->buffers);
	free(channel->buffers);
	channel->buffers = NULL;
}

void channel_end(struct channel *channel) {
	channel_release(channel);
	channel_release_handle(channel);
	channel_enter_state(channel, CHANNEL_FREE);
}

void channel_abort(struct channel *channel) {
	struct linger linger = {.l_onoff = 1};

	setsockopt(channel->source.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	channel_end(channel);
}

int channel_attach(struct channel *channel, int fd, enum loop_rank rank, uint32_t events) {
	int err;

	loop_remove(&channel->source);
	channel->source.fd = fd;
	channel->source.rank = rank;
	channel->source.events = events;
	err = loop_add(channel->transport->loop, &channel->source);
	if (err != 0) {
		close(fd);
		channel->source.fd = -1;
	}
	return err;
}

int channel_set_deadline(struct channel *channel, uint64_t after_ns) {
	struct loop *loop = channel->transport->loop;
	uint64_t at_ns = deadline_after(loop_now_ns(loop), after_ns).at_ns;

	return loop_timer_set(loop, &channel->timer, at_ns);
}

void channel_fail(struct channel *channel, enum ras_cause cause) {
	struct transport *transport = channel->transport;
	bool has_conn = channel->has_conn;
	uint32_t conn = channel->conn;

	if (channel->outgoing && channel->state != CHANNEL_OPEN &&
	    channel->state != CHANNEL_CLOSING) {
		transport->trouble.failed = channel->peer;
		transport->trouble.cause = cause;
	}
	channel_end(channel);
	if (has_conn)
		transport->ops.ended(transport->ops_ctx, conn, cause);
}

void channel_fail_later(struct channel *channel, enum ras_cause cause) {
	channel_release(channel);
	channel->cause = cause;
	channel->round = channel->transport->round;
	channel_enter_state(channel, CHANNEL_FAILED);
	loop_defer(channel->transport->loop, &channel->transport->failed_job);
}

static void set_option(int fd, int level, int option, int value) {
	// All of these options are improvements, and none is required.
	setsockopt(fd, level, option, &value, sizeof(value));
}

void channel_set_options(const struct channel *channel) {
	uint64_t stuck_ms = channel->transport->config.stuck_ns / RAS_NS_PER_MS;
	int fd = channel->source.fd;

	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(stuck_ms < 1 ? 1 : stuck_ms));
	set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX);
}
