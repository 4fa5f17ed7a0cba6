// SPDX-License-Identifier: BSD-3-Clause
// "Do you reach me?", asked by another node: we open a connection to its address and hang up. The
// address is the one of its record as our own table has it, never one from the message, so nobody
// can make us knock at doors of their choice. A few at once, each asker at times, and not for long.
//
// The answer is a line: what came of it, from where we tried, and what address that was.
#include "inside.h"

#include <lib/container.h>
#include <lib/stream.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRY_NS (2 * RAS_NS_PER_SEC)
#define ASKER_GAP_NS RAS_NS_PER_SEC

static void
answer(struct overlay_served *served, const char *word, const char *from, const char *to) {
	char line[OVERLAY_REACH_ANSWER_BYTES];
	int size = snprintf(line, sizeof(line), "%s %s %s", word, from, to);

	overlay_served_end(served, overlay_served_write(served, line, (size_t)size));
}

static void
own_address(const struct overlay_reach_try *try, char text[static SOCK_ADDR_TEXT_BYTES]) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct sock_addr address;

	if (try->source.fd < 0 ||
	    getsockname(try->source.fd, (struct sockaddr *)&storage, &length) != 0 ||
	    sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &address) != 0 ||
	    sock_addr_is_any(&address))
		address = transport_address(try->overlay->transport);
	address.scope_id = 0; // a number of this machine's
	sock_addr_format_host(&address, text);
}

// Reset rather than closed: the other side need not wait for what a stranger has to say.
static void hang_up(struct overlay_reach_try *try) {
	const struct linger reset = {.l_onoff = 1};

	loop_timer_cancel(try->overlay->loop, &try->deadline);
	loop_remove(&try->source);
	if (try->source.fd >= 0) {
		setsockopt(try->source.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(try->source.fd);
	}
	try->source.fd = -1;
}

static void try_end(struct overlay_reach_try *try, int err) {
	char from[SOCK_ADDR_TEXT_BYTES], to[SOCK_ADDR_TEXT_BYTES];
	struct overlay_served *served = try->served;

	try->overlay->reach.counters.tries_failed += err != 0;
	own_address(try, from);
	sock_addr_format(&try->to, to);
	hang_up(try);
	try->served = NULL;
	answer(served, overlay_reach_word(err), from, to);
}

static void ready(struct loop_source *source, uint32_t events) {
	struct overlay_reach_try *try = container_of(source, struct overlay_reach_try, source);
	int err = stream_connect_finish(source->fd);

	(void)events;
	if (err != -EINPROGRESS)
		try_end(try, err);
}

static void expired(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	try_end(container_of(timer, struct overlay_reach_try, deadline), -ETIMEDOUT);
}

static int try_begin(struct overlay_reach_try *try) {
	struct overlay *overlay = try->overlay;
	int err;

	try->source = (struct loop_source){
		.fd = -1,
		.events = EPOLLOUT,
		.rank = LOOP_CLIENTS,
		.ready = ready,
	};
	try->deadline = (struct loop_timer){.expired = expired};
	if (sock_addr_is_any(&try->to))
		return -EHOSTUNREACH;
	err = transport_socket(overlay->transport, &try->to, &try->source.fd);
	if (err == 0)
		err = loop_add(overlay->loop, &try->source);
	if (err != 0)
		return err;
	return loop_timer_set(overlay->loop, &try->deadline, loop_now_ns(overlay->loop) + TRY_NS);
}

static bool asker_may(struct overlay *overlay, uint64_t id) {
	uint64_t now_ns = loop_now_ns(overlay->loop);
	struct overlay_reach_asker *place = &overlay->reach_askers[0];

	for (uint32_t n = 0; n < OVERLAY_REACH_ASKERS; n++) {
		struct overlay_reach_asker *asker = &overlay->reach_askers[n];

		if (asker->id == id) {
			place = asker;
			break;
		}
		if (asker->again_ns < place->again_ns)
			place = asker;
	}
	if (place->id == id && now_ns < place->again_ns)
		return false;
	*place = (struct overlay_reach_asker){id, now_ns + ASKER_GAP_NS};
	return true;
}

static struct overlay_reach_try *free_try(struct overlay *overlay) {
	for (uint32_t n = 0; n < OVERLAY_REACH_TRIES; n++) {
		if (overlay->reach_tries[n].served == NULL)
			return &overlay->reach_tries[n];
	}
	return NULL;
}

bool overlay_reach_serve(struct overlay *overlay, struct overlay_served *served) {
	struct overlay_reach_try *try = free_try(overlay);
	struct ras_peer peer;
	int err;

	if (strcmp(served->line, OVERLAY_REACH_LINE) != 0)
		return false;
	if (try == NULL || ras_peer_find(overlay->ras, served->source, &peer) != 0 ||
	    !asker_may(overlay, served->source)) {
		overlay->reach.counters.tries_turned_off++;
		answer(served, "busy", "-", "-");
		return true;
	}
	overlay->reach.counters.tries++;
	try->overlay = overlay;
	try->served = served;
	try->to = peer.record->address;
	err = try_begin(try);
	if (err != 0)
		try_end(try, err);
	return true;
}

void overlay_reach_serve_stop(struct overlay *overlay) {
	for (uint32_t n = 0; n < OVERLAY_REACH_TRIES; n++) {
		if (overlay->reach_tries[n].served != NULL)
			hang_up(&overlay->reach_tries[n]);
		overlay->reach_tries[n].served = NULL;
	}
}
