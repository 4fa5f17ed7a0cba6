// SPDX-License-Identifier: BSD-3-Clause
// Asks the kernel of a host at a port where nobody listens. The accept queue of a stopped agent
// fills up, and then its kernel silently drops packets to that port. A reset from any other port
// proves that the kernel lives.
#include "net/channel.h"

#include <lib/container.h>
#include <lib/stream.h>

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

// tcpmux, which nothing has served for decades. An open port is an answer, too.
#define CLOSED_PORT 1

static void closed_port_free(struct closed_port *asked) {
	loop_timer_cancel(asked->transport->loop, &asked->deadline);
	loop_remove(&asked->source);
	close(asked->source.fd);
	asked->transport = NULL;
}

// The entry is freed before the ops are notified, because they may ask again.
static void kernel_question_end(struct closed_port *asked, bool answered) {
	struct transport *transport = asked->transport;
	struct sock_addr host = asked->host;

	closed_port_free(asked);
	transport_enter(transport);
	transport->ops.kernel_asked(transport->ops_ctx, &host, answered);
	transport_exit(transport);
}

// A refusal is the expected answer. "No route" and "no such host" may come from any router on the
// way.
static void on_kernel_answer(struct loop_source *source, uint32_t events) {
	struct closed_port *asked = container_of(source, struct closed_port, source);
	int err = stream_connect_finish(source->fd);

	(void)events;
	if (err != -EINPROGRESS)
		kernel_question_end(asked, err == 0 || err == -ECONNREFUSED || err == -ECONNRESET);
}

static void on_kernel_timeout(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	kernel_question_end(container_of(timer, struct closed_port, deadline), false);
}

int transport_probe_kernel(struct transport *transport, const struct sock_addr *host) {
	uint64_t until_ns = loop_now_ns(transport->loop) + transport->config.connect_ns;
	struct sock_addr to = *host;
	struct closed_port *asked = NULL;
	int err, fd;

	for (uint32_t n = 0; n < CLOSED_PORTS; n++) {
		struct closed_port *at = &transport->closed_ports[n];

		if (at->transport == NULL)
			asked = at;
		else if (sock_addr_equal(&at->host, host))
			return -EALREADY;
	}
	if (asked == NULL)
		return -EBUSY;
	to.port = CLOSED_PORT;
	err = dial_socket(transport, &to, &fd);
	if (err != 0)
		return err;
	*asked = (struct closed_port){
		.transport = transport,
		.host = *host,
		.source =
			{.fd = fd,
			 .events = EPOLLOUT,
			 .rank = LOOP_OVERLAY,
			 .ready = on_kernel_answer},
		.deadline = {.expired = on_kernel_timeout},
	};
	err = loop_add(transport->loop, &asked->source);
	if (err == 0)
		err = loop_timer_set(transport->loop, &asked->deadline, until_ns);
	if (err != 0)
		closed_port_free(asked);
	return err;
}

void closed_ports_end(struct transport *transport) {
	for (uint32_t n = 0; n < CLOSED_PORTS; n++) {
		if (transport->closed_ports[n].transport != NULL)
			closed_port_free(&transport->closed_ports[n]);
	}
}
