// SPDX-License-Identifier: BSD-3-Clause
// Outgoing connections: bound to our address and interface, connected without waiting.
#include "net/channel.h"

#include <lib/error.h>
#include <lib/log.h>
#include <lib/scoped.h>
#include <lib/stream.h>
#include <lib/tcp_owner.h>

#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

// Bind the interface. Without the privilege only our address is bound, which is logged once.
static int bind_interface(struct transport *transport, int fd) {
	const char *interface = transport->config.interface;
	int err;

	if (interface == NULL || transport->unbound_logged)
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface)) ==
	    0)
		return 0;
	err = neg_errno();
	if (err != -EPERM)
		return err;
	transport->unbound_logged = true;
	log_event(
		LOG_LEVEL_WARN, "interface_not_bound", log_str("interface", interface),
		log_errno("error", err),
		log_str("instead",
			"only the source address is bound; another interface may be used")
	);
	return 0;
}

// Add the scope to a link-local address. A peer's address has none: it can only be on our link.
static struct sock_addr scoped_address(const struct transport *transport, struct sock_addr to) {
	const struct transport_config *config = &transport->config;

	if (to.family != SOCK_ADDR_V6 || to.scope_id != 0 || !sock_addr_is_link_local(&to))
		return to;
	to.scope_id = config->source.scope_id;
	if (to.scope_id == 0)
		to.scope_id = config->listen.scope_id;
	if (to.scope_id == 0 && config->interface != NULL)
		to.scope_id = if_nametoindex(config->interface);
	return to;
}

int dial_socket(struct transport *transport, const struct sock_addr *peer, int *ret_fd) {
	struct sock_addr to = scoped_address(transport, *peer);
	struct sock_addr source = transport->config.source;
	struct sockaddr_storage storage, source_storage;
	socklen_t length, source_length;
	scoped_fd int fd = -1;
	int err, one = 1;

	if (to.family == SOCK_ADDR_NONE)
		return -EADDRNOTAVAIL;
	length = sock_addr_to_sockaddr(&to, &storage);
	fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return neg_errno();
	err = bind_interface(transport, fd);
	if (err == 0 && source.family == to.family && !sock_addr_is_any(&source)) {
		// The kernel chooses the port when the destination is known, so one port can serve
		// many.
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		source.port = 0;
		source_length = sock_addr_to_sockaddr(&source, &source_storage);
		if (bind(fd, (struct sockaddr *)&source_storage, source_length) != 0)
			err = neg_errno();
	}
	if (err == 0)
		err = stream_connect_start(fd, (struct sockaddr *)&storage, length);
	if (err != 0 && err != -EINPROGRESS)
		return err;
	*ret_fd = scoped_release_fd(&fd);
	return 0;
}

// Return whether the address belongs to this machine: the kernel then also takes it as the source.
// Nothing is sent.
static bool address_is_local(const struct sock_addr *to) {
	scoped_fd int fd = -1;
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(to, &storage);
	struct sock_addr source, plain = sock_addr_ip_only(to);

	if (sock_addr_is_loopback(to))
		return true;
	fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&storage, length) != 0)
		return false;
	length = sizeof(storage);
	if (getsockname(fd, (struct sockaddr *)&storage, &length) != 0 ||
	    sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &source) != 0)
		return false;
	source = sock_addr_ip_only(&source);
	return sock_addr_equal(&source, &plain);
}

void dial_open_owners(struct transport *transport) {
	if (tcp_owner_open(&transport->owner_query_fd) != 0 ||
	    tcp_owner_check_listener(transport->owner_query_fd, &transport->listener.address) == 0)
		return;
	close(transport->owner_query_fd);
	transport->owner_query_fd = -1;
}

// Return the cause of a failed connection. A refusal may come from a firewall of this machine. So
// the agent there has exited only if no process listens on that local address. The kernel's list of
// sockets is trusted only if it has our own listener.
static enum ras_cause dial_failure_cause(const struct channel *channel, int err) {
	const struct transport *transport = channel->transport;
	int fd = transport->owner_query_fd;
	struct sock_addr to;

	if (err != -ECONNREFUSED)
		return ras_cause_of_errno(err);
	to = scoped_address(transport, channel->peer);
	if (address_is_local(&to) && fd >= 0 &&
	    tcp_owner_check_listener(fd, &transport->listener.address) == 0 &&
	    tcp_owner_check_listener(fd, &to) == -ENOENT)
		return RAS_CAUSE_EXITED;
	return RAS_CAUSE_REFUSED;
}

void channel_dial(struct channel *channel) {
	struct transport *transport = channel->transport;
	struct transport_counters *counters = &transport->counters;
	int err, fd;

	channel->outgoing = true;
	channel_enter_state(channel, CHANNEL_CONNECTING);
	counters->connects++;
	err = dial_socket(transport, &channel->peer, &fd);
	if (err == 0)
		err = channel_attach(channel, fd, LOOP_OVERLAY, EPOLLOUT);
	if (err == 0)
		err = channel_set_deadline(channel, transport->config.connect_ns);
	if (err == 0)
		return;
	counters->connect_failures++;
	counters->descriptors_short += err == -EMFILE || err == -ENFILE;
	channel_fail_later(channel, dial_failure_cause(channel, err));
}

void dial_ready(struct channel *channel) {
	int err = stream_connect_finish(channel->source.fd);

	if (err == -EINPROGRESS)
		return;
	if (err != 0) {
		channel->transport->counters.connect_failures++;
		channel_fail(channel, dial_failure_cause(channel, err));
		return;
	}
	channel_set_options(channel);
	proof_begin(channel);
}
