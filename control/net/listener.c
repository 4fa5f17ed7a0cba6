// SPDX-License-Identifier: BSD-3-Clause
// Accepting: which connections are admitted, and what happens if there is no room.
//
// Rules for strangers, which are connections that have not proven the key:
//
//   - A source may have `proving_per_source` strangers and begin `accepts_per_source_per_s`. More
//     are reset before a byte is read. So a flood from one address gets its share and no more.
//   - All together they are at most `proving_max`. When a source within its limits meets a full
//     table, the oldest stranger is evicted. An honest node proves the key in a few round trips;
//     a flood from thousands of addresses never does. A flood of F connections a second leaves
//     each stranger proving_max / F seconds.
//   - At most ACCEPTS_PER_TURN are accepted in a turn of the loop. Strangers are served after the
//     overlay, together with the clients, LOOP_CLIENTS_PER_TURN at a time.
//
// A process without free descriptors cannot accept, and a backlog that is not accepted keeps the
// listener ready for ever. So a reserve descriptor is closed to accept and reset one connection at
// a time. If that fails, too, the listener pauses for PAUSE_NS.
#include "net/channel.h"

#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/port_holder.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 32
#define BACKLOG 1024
#define PAUSE_NS UINT64_C(100000000)

static void reset_connection(int fd) {
	struct linger linger = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

static void connection_admit(
	struct transport *transport, int fd, const struct sockaddr *address, socklen_t length
) {
	struct transport_counters *counters = &transport->counters;
	enum admission_result verdict;
	char text[SOCK_ADDR_TEXT_BYTES];
	struct channel *channel;
	struct sock_addr from;

	if (sock_addr_from_sockaddr(address, length, &from) != 0) {
		reset_connection(fd);
		return;
	}
	verdict = admission_request(transport->admission, &from, loop_now_ns(transport->loop));
	if (verdict != ADMISSION_GRANTED) {
		bool too_fast = verdict == ADMISSION_TOO_FAST;

		counters->turned_away_rate += too_fast;
		counters->turned_away_full += !too_fast;
		sock_addr_format_host(&from, text);
		log_event(
			LOG_LEVEL_WARN, "connection_turned_away", log_str("from", text),
			log_str("why", too_fast
					       ? "too many connections per second from this address"
					       : "too many connections without a proven key")
		);
		reset_connection(fd);
		return;
	}
	while (counters->proving >= transport->config.proving_max) {
		counters->strangers_evicted++;
		channel_abort(TAILQ_FIRST(&transport->strangers));
	}
	counters->accepted++;
	channel = channel_allocate(transport, &from);
	if (channel_attach(channel, fd, LOOP_CLIENTS, EPOLLIN) != 0) {
		counters->accept_failures++;
		admission_release(transport->admission, &from, false);
		channel_end(channel);
		return;
	}
	channel_set_options(channel);
	proof_begin(channel);
}

static void listener_open_reserve(struct listener *listener) {
	if (listener->reserve_fd < 0)
		listener->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_pause_over(struct loop_timer *timer, uint64_t now_ns) {
	struct listener *listener = container_of(timer, struct listener, pause);

	(void)now_ns;
	listener_open_reserve(listener);
	loop_set_events(listener->source, EPOLLIN);
}

// Reset the first connection of the backlog. Returns 0, -EAGAIN (empty backlog: the kernel checks
// descriptors first), or why that failed, too.
static int accept_with_reserve(struct transport *transport) {
	struct listener *listener = &transport->listener;
	int err = -EMFILE;
	int fd;

	if (listener->reserve_fd >= 0) {
		close(listener->reserve_fd);
		listener->reserve_fd = -1;
		fd = accept4(listener->source->fd, NULL, NULL, SOCK_CLOEXEC);
		err = fd >= 0 ? 0 : neg_errno();
		if (fd >= 0)
			reset_connection(fd);
		listener_open_reserve(listener);
	}
	if (err == -EAGAIN)
		return err;
	transport->counters.descriptors_short++;
	log_event(LOG_LEVEL_ERROR, "descriptors_short", log_str("part", "overlay listener"));
	return err;
}

// Handle an error of accept(). Returns 0 if the next connection can be accepted.
static int accept_handle_error(struct transport *transport, int err) {
	struct listener *listener = &transport->listener;

	if (err == -EMFILE || err == -ENFILE)
		err = accept_with_reserve(transport);
	if (err == 0 || err == -EAGAIN)
		return err;
	transport->counters.accept_failures++;
	if (err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM) {
		// Without memory for a timer, try again at once.
		if (loop_timer_set(
			    transport->loop, &listener->pause,
			    loop_now_ns(transport->loop) + PAUSE_NS
		    ) == 0)
			loop_set_events(listener->source, 0);
		return err;
	}
	// The connection failed before it was accepted, so nobody has to know.
	return 0;
}

static void listener_serve(struct listener *listener) {
	struct transport *transport = container_of(listener, struct transport, listener);
	struct sockaddr_storage address;
	socklen_t length;
	int err = 0;
	int fd;

	transport_enter(transport);
	// A callback may close the listener.
	for (unsigned n = 0; n < ACCEPTS_PER_TURN && err == 0 && listener->source != NULL; n++) {
		length = sizeof(address);
		fd =
			accept4(listener->source->fd, (struct sockaddr *)&address, &length,
				SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			connection_admit(transport, fd, (struct sockaddr *)&address, length);
		else
			err = accept_handle_error(transport, neg_errno());
	}
	transport_exit(transport);
}

static void on_first_listener_ready(struct loop_source *source, uint32_t events) {
	(void)events;
	listener_serve(container_of(source, struct listener, places[0]));
}

static void on_second_listener_ready(struct loop_source *source, uint32_t events) {
	(void)events;
	listener_serve(container_of(source, struct listener, places[1]));
}

// Log the address, and the backlog that the kernel silently cuts to somaxconn.
static void log_listening(const struct listener *listener) {
	scoped_file FILE *file = fopen("/proc/sys/net/core/somaxconn", "re");
	char address[SOCK_ADDR_TEXT_BYTES], text[32];
	uint64_t limit = BACKLOG;

	if (file != NULL && fgets(text, sizeof(text), file) != NULL) {
		text[strcspn(text, "\n")] = '\0';
		(void)parse_u64(text, strlen(text), 0, UINT64_MAX, NULL, &limit);
	}
	sock_addr_format(&listener->address, address);
	log_event(
		LOG_LEVEL_INFO, "overlay_listening", log_str("address", address),
		log_u64("backlog", limit < BACKLOG ? limit : BACKLOG), log_u64("somaxconn", limit)
	);
}

// Explain why the address cannot be bound. The search for the holder of a port reads all processes.
// So it is done at a start only, never on a running loop.
static void
bind_explain(const struct sock_addr *address, int err, bool is_start, char ret_detail[static 256]) {
	char text[SOCK_ADDR_TEXT_BYTES], words[PORT_HOLDER_TEXT_BYTES];
	struct port_holder holder;
	const char *why = strerrorname_np(-err);

	sock_addr_format(address, text);
	if (err == -EADDRINUSE && is_start) {
		port_holder_find(PORT_TCP, address, &holder);
		port_holder_format(&holder, words);
		snprintf(ret_detail, 256, "%s is held by %s", text, words);
	} else if (err == -EADDRNOTAVAIL) {
		snprintf(ret_detail, 256, "%s is not an address of this machine", text);
	} else if (err == -EACCES) {
		snprintf(
			ret_detail, 256,
			"listening on %s is not permitted; a port below 1024 needs "
			"CAP_NET_BIND_SERVICE",
			text
		);
	} else {
		snprintf(ret_detail, 256, "cannot listen on %s: %s", text, why != NULL ? why : "?");
	}
}

// Create a listening socket. *ret_address has the port that the kernel chose.
static int listener_make_socket(
	const struct sock_addr *wanted,
	int *ret_fd,
	struct sock_addr *ret_address,
	bool is_start,
	char ret_detail[static 256]
) {
	bool v6 = wanted->family == SOCK_ADDR_V6;
	scoped_fd int fd =
		socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       IPPROTO_TCP);
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(wanted, &storage);
	socklen_t bound_length = sizeof(storage);
	int err, one = 1;

	// After kill -9 the old connections still exist for a while. SO_REUSEADDR does not allow
	// two listeners on one port. SO_REUSEPORT would allow that, so it is never used.
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) != 0) ||
	    bind(fd, (struct sockaddr *)&storage, length) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&storage, &bound_length) != 0)
		err = neg_errno();
	else
		err = sock_addr_from_sockaddr(
			(struct sockaddr *)&storage, bound_length, ret_address
		);
	if (err == 0)
		*ret_fd = scoped_release_fd(&fd);
	else
		bind_explain(wanted, err, is_start, ret_detail);
	return err;
}

// Close the previous source, if there is one.
static void listener_close_source(struct loop_source *source) {
	if (source == NULL)
		return;
	loop_remove(source);
	close(source->fd);
}

int listener_open(struct transport *transport, char ret_detail[static 256]) {
	struct listener *listener = &transport->listener;
	struct loop_source *before = listener->source;
	bool is_second = before == &listener->places[0];
	struct loop_source *source = &listener->places[is_second];
	struct sock_addr address;
	int fd;
	int err = listener_make_socket(
		&transport->config.listen, &fd, &address, before == NULL, ret_detail
	);

	if (err != 0)
		return err;
	*source = (struct loop_source
	){.fd = fd,
	  .rank = LOOP_OVERLAY,
	  .events = EPOLLIN,
	  .ready = is_second ? on_second_listener_ready : on_first_listener_ready};
	err = loop_add(transport->loop, source);
	if (err != 0) {
		close(fd);
		bind_explain(&address, err, before == NULL, ret_detail);
		return err;
	}
	loop_timer_cancel(transport->loop, &listener->pause);
	listener_close_source(before);
	listener->pause.expired = on_pause_over;
	listener->source = source;
	listener->address = address;
	listener_open_reserve(listener);
	log_listening(listener);
	return 0;
}

void transport_stop_accepting(struct transport *transport) {
	struct listener *listener = &transport->listener;

	loop_timer_cancel(transport->loop, &listener->pause);
	listener_close_source(listener->source);
	if (listener->reserve_fd >= 0)
		close(listener->reserve_fd);
	listener->source = NULL;
	listener->reserve_fd = -1;
}
