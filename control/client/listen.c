// SPDX-License-Identifier: BSD-3-Clause
// The listening sockets, Unix and TCP: identifies clients, and rejects those beyond the limit.
#include "client/listen.h"

#include "client/connection.h"
#include "client/room.h"

#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/port_holder.h>
#include <lib/scoped.h>
#include <lib/stream.h>
#include <lib/tcp_owner.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// The kernel limits it by net.core.somaxconn.
#define BACKLOG 128
#define ACCEPTS_PER_TURN 8
#define ACCEPT_AGAIN_NS (100 * RAS_NS_PER_MS)
#define GROUPS_MAX 1024

static bool peer_is_group_member(int fd, gid_t primary, gid_t wanted) {
	gid_t groups[GROUPS_MAX];
	socklen_t size = sizeof(groups);

	if (primary == wanted)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t n = 0; n < size / sizeof(groups[0]); n++) {
		if (groups[n] == wanted)
			return true;
	}
	return false;
}

static int socket_address(
	int fd,
	int (*which)(int fd, struct sockaddr *address, socklen_t *length),
	struct sock_addr *ret_address
) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);

	if (which(fd, (struct sockaddr *)&storage, &length) < 0)
		return neg_errno();
	return sock_addr_from_sockaddr((struct sockaddr *)&storage, length, ret_address);
}

// Return the client's user as the kernel reports it; SESSION_NO_UID if it does not.
static struct connection_credentials
client_credentials(const struct client_listener *listener, int fd) {
	const struct client_server *server = listener->server;
	const struct client_config *config = &server->config;
	struct connection_credentials credentials = {
		.uid = SESSION_NO_UID, .local = listener->local};
	struct sock_addr theirs, ours;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	uint32_t uid;

	if (!listener->local) {
		// The user of a TCP connection gets a share of the rate limits, but no privilege.
		if (server->owner_fd >= 0 && socket_address(fd, getpeername, &theirs) == 0 &&
		    socket_address(fd, getsockname, &ours) == 0 &&
		    tcp_owner_find(server->owner_fd, &theirs, &ours, &uid) == 0)
			credentials.uid = uid;
		return credentials;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return credentials;
	credentials.uid = peer.uid;
	credentials.privileged =
		peer.uid == 0 || peer.uid == geteuid() ||
		(config->has_group && peer_is_group_member(fd, peer.gid, config->group));
	return credentials;
}

static void client_admit(struct client_listener *listener, int fd) {
	struct client_server *server = listener->server;
	struct connection_credentials credentials = client_credentials(listener, fd);
	uint32_t limit = server->config.clients_max;
	char text[96];
	int one = 1, size, err;

	if (credentials.privileged)
		limit += RESERVED_CLIENTS;
	if (server->counters.clients >= limit && !room_make_for_user(server, credentials.uid)) {
		size = snprintf(
			text, sizeof(text), "ERROR: Too many clients: %u are connected\n",
			server->counters.clients
		);
		server->counters.turned_away++;
		log_event(
			LOG_LEVEL_WARN, "client_turned_away",
			log_u64("clients", server->counters.clients)
		);
		(void)stream_send(fd, text, (size_t)size); // best effort
		close(fd);
		return;
	}
	// Without TCP_NODELAY, the kernel could hold back a banner while the answer is being
	// collected.
	if (!listener->local)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	server->counters.accepted++;
	err = connection_open(server, fd, &credentials);
	if (err < 0)
		log_event(LOG_LEVEL_WARN, "client_not_opened", log_errno("error", err));
}

static void accept_again(struct loop_timer *timer, uint64_t now_ns) {
	struct client_server *server = container_of(timer, struct client_server, accept_again);

	(void)now_ns;
	if (server->tcp.source.fd >= 0)
		loop_set_events(&server->tcp.source, EPOLLIN);
	if (server->local.source.fd >= 0)
		loop_set_events(&server->local.source, EPOLLIN);
}

static void listener_ready(struct loop_source *source, uint32_t events) {
	struct client_listener *listener = (struct client_listener *)source;
	struct client_server *server = listener->server;
	int err;

	(void)events;
	for (uint32_t n = 0; n < ACCEPTS_PER_TURN; n++) {
		int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			client_admit(listener, fd);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
			return;

		// Pause after running out of descriptors or memory. The listener stays ready, so it
		// would be called again without end.
		err = neg_errno();
		server->counters.accept_failures++;
		log_event(LOG_LEVEL_WARN, "client_accept_failed", log_errno("error", err));
		if (loop_timer_set(
			    server->loop, &server->accept_again,
			    loop_now_ns(server->loop) + ACCEPT_AGAIN_NS
		    ) == 0)
			loop_set_events(source, 0);
		return;
	}
}

static int explain_error(char detail[static CLIENT_DETAIL_BYTES], const char *what, int err) {
	snprintf(detail, CLIENT_DETAIL_BYTES, "%.180s: %s", what, strerrordesc_np(-err));
	return err;
}

static int explain_port_in_use(
	char detail[static CLIENT_DETAIL_BYTES], const struct sock_addr *address, int err
) {
	char text[SOCK_ADDR_TEXT_BYTES], words[PORT_HOLDER_TEXT_BYTES];
	struct port_holder holder = {.kind = PORT_HOLDER_NONE};

	sock_addr_format(address, text);
	if (err == -EADDRINUSE)
		port_holder_find(PORT_TCP, address, &holder);
	if (holder.kind != PORT_HOLDER_PROCESS)
		return explain_error(detail, text, err);
	port_holder_format(&holder, words);
	snprintf(detail, CLIENT_DETAIL_BYTES, "%s: %s listens there", text, words);
	return err;
}

static int listener_begin(struct client_server *server, struct client_listener *listener, int fd) {
	int err;

	listener->server = server;
	listener->source = (struct loop_source
	){.fd = fd, .events = EPOLLIN, .rank = LOOP_CLIENTS, .ready = listener_ready};
	server->accept_again.expired = accept_again;
	err = loop_add(server->loop, &listener->source);
	if (err < 0) {
		close(fd);
		listener->source.fd = -1;
	}
	return err;
}

int listen_tcp(struct client_server *server, char detail[static CLIENT_DETAIL_BYTES]) {
	const struct sock_addr *address = &server->config.listen;
	char text[SOCK_ADDR_TEXT_BYTES];
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(address, &storage);
	scoped_fd int fd = -1;
	int one = 1;
	int err;

	sock_addr_format(address, text);
	// Every local user can connect here and read the answers.
	if (!sock_addr_is_loopback(address)) {
		snprintf(
			detail, CLIENT_DETAIL_BYTES, "%s: clients are served on loopback only", text
		);
		return -EPERM;
	}
	fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return explain_error(detail, text, neg_errno());
	// SO_REUSEADDR allows to bind a fixed port at once after a kill. It does not share the port
	// with another agent.
	if (address->port != 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&storage, length) < 0 || listen(fd, BACKLOG) < 0)
		return explain_port_in_use(detail, address, neg_errno());
	server->tcp.local = false;
	err = tcp_owner_open(&server->owner_fd);
	if (err < 0)
		log_event(LOG_LEVEL_INFO, "client_users_unknown", log_errno("error", err));
	return listener_begin(server, &server->tcp, scoped_release_fd(&fd));
}

// Remove a socket that no process serves. Returns 0 if it was removed or did not exist.
static int
remove_stale_socket(const struct sockaddr_un *address, char detail[static CLIENT_DETAIL_BYTES]) {
	scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat status;
	int err;

	if (fd < 0)
		return neg_errno();
	if (lstat(address->sun_path, &status) < 0)
		return errno == ENOENT ? 0 : neg_errno();
	if (!S_ISSOCK(status.st_mode)) {
		snprintf(
			detail, CLIENT_DETAIL_BYTES, "%s exists and is not a socket",
			address->sun_path
		);
		return -EADDRINUSE;
	}
	err = stream_connect_start(fd, (const struct sockaddr *)address, sizeof(*address));
	if (err != -ECONNREFUSED) {
		snprintf(
			detail, CLIENT_DETAIL_BYTES, "%s: another agent already listens here",
			address->sun_path
		);
		return -EADDRINUSE;
	}
	return unlink(address->sun_path) == 0 || errno == ENOENT ? 0 : neg_errno();
}

static int bind_local(int fd, const struct sockaddr_un *address, mode_t mode) {
	struct stat status;

	// Set the mode before bind(), so that the file never has wider permissions. bind()
	// subtracts the umask; chmod() then restores the mode.
	if (fchmod(fd, mode) < 0)
		return neg_errno();
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return neg_errno();
	if (lstat(address->sun_path, &status) < 0 || chmod(address->sun_path, mode) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return neg_errno();
	return 0;
}

int listen_local(struct client_server *server, char detail[static CLIENT_DETAIL_BYTES]) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd int fd = -1;
	struct stat status;
	int err;

	if (strlen(server->socket_path) >= sizeof(address.sun_path))
		return explain_error(detail, server->socket_path, -ENAMETOOLONG);
	memcpy(address.sun_path, server->socket_path, strlen(server->socket_path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return explain_error(detail, server->socket_path, neg_errno());
	err = bind_local(fd, &address, server->config.socket_mode);
	if (err == -EADDRINUSE) {
		err = remove_stale_socket(&address, detail);
		if (err == -EADDRINUSE)
			return err;
		if (err == 0)
			err = bind_local(fd, &address, server->config.socket_mode);
	}
	if (err < 0)
		return explain_error(detail, server->socket_path, err);
	if (lstat(server->socket_path, &status) == 0) {
		server->socket_device = status.st_dev;
		server->socket_inode = status.st_ino;
	}
	server->local.local = true;
	return listener_begin(server, &server->local, scoped_release_fd(&fd));
}

static void listener_stop(struct client_listener *listener) {
	if (listener->source.fd < 0)
		return;
	loop_remove(&listener->source);
	close(listener->source.fd);
	listener->source.fd = -1;
}

void listen_stop(struct client_server *server) {
	struct stat status;
	bool had_local = server->local.source.fd >= 0;

	loop_timer_cancel(server->loop, &server->accept_again);
	listener_stop(&server->tcp);
	if (server->owner_fd >= 0)
		close(server->owner_fd);
	server->owner_fd = -1;
	listener_stop(&server->local);
	// Another agent may have replaced the socket file.
	if (had_local && lstat(server->socket_path, &status) == 0 &&
	    status.st_dev == server->socket_device && status.st_ino == server->socket_inode)
		unlink(server->socket_path);
}
