// SPDX-License-Identifier: BSD-3-Clause
// Connections of processes: each received packet is checked and handled here.
#include "jobs/host/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// Packets read from a process that has ended. The limit is needed because another process may hold
// its socket and write for ever.
#define PACKETS_AFTER_EXIT_MAX 1024

union packet {
	struct job_message_head head;
	struct job_hello hello;
	struct job_register registration;
	struct job_unregister unregister;
	struct job_report report;
	struct job_leave leave;
	struct job_failed failed;
	struct job_parent parent;
	struct job_exited exited;
};

static void end_greeting_wait(struct host_connection *connection) {
	if (connection->is_ungreeted)
		TAILQ_REMOVE(&connection->host->ungreeted, connection, ungreeted);
	connection->is_ungreeted = false;
}

void host_connection_close(struct host_connection *connection) {
	struct jobhost *host = connection->host;

	*connection->link = connection->next;
	if (connection->next != NULL)
		connection->next->link = connection->link;
	end_greeting_wait(connection);
	if (connection->is_parent) {
		host->parent_count--;
		connection->user->parents--;
		table_remove(&host->parents_by_pid, &connection->by_parent);
		process_release_exits(host, connection);
	} else {
		host->connection_count--;
		connection->user->connections--;
	}
	if (connection->process != NULL) {
		connection->process->connection = NULL;
		for (struct host_rank *rank = connection->process->ranks; rank != NULL;
		     rank = rank->next)
			rank->report.attached = false;
	}
	loop_remove(&connection->source);
	close(connection->source.fd);
	while (connection->first != NULL) {
		struct waiting *waiting = connection->first;

		connection->first = waiting->next;
		free(waiting);
	}
	user_put(connection->user);
	free(connection);
}

static bool text_is_terminated(const char *text, size_t size) {
	return memchr(text, '\0', size) != NULL;
}

// Returns false: the connection is closed.
static bool refuse_connection(struct host_connection *connection, const char *reason) {
	connection_send_refusal(connection, 0, reason);
	host_connection_close(connection);
	return false;
}

static bool refuse_bad_packet(struct host_connection *connection, const char *reason) {
	connection->host->counters.packets_bad++;
	log_event(
		LOG_LEVEL_WARN, "job_packet_bad",
		log_u64("pid",
			connection->process != NULL ? (uint64_t)connection->process->pid : 0),
		log_str("reason", reason)
	);
	return refuse_connection(connection, reason);
}

static bool on_hello(struct host_connection *connection, const union packet *packet, int page_fd) {
	struct jobhost *host = connection->host;
	const struct job_welcome welcome = {
		.head =
			{JOB_SOCKET_MAGIC,
			 job_version_choose(packet->hello.version_min, packet->head.version),
			 JOB_WELCOME},
		.start = connection->since_ns,
	};
	char reason[JOB_REASON_BYTES] = "";
	struct host_process *process;

	if (!text_is_terminated(packet->hello.job_id, JOB_ID_BYTES)) {
		descriptor_close_async(page_fd, connection->user->uid);
		return refuse_bad_packet(connection, "the job id is not terminated");
	}
	process = hello_accept(host, &packet->hello, connection->source.fd, page_fd, reason);
	if (process == NULL) {
		host->counters.refused++;
		log_event(LOG_LEVEL_INFO, "job_refused", log_str("reason", reason));
		return refuse_connection(connection, reason);
	}
	if (process->connection != NULL)
		host_connection_close(process->connection); // the process has connected again
	end_greeting_wait(connection);
	connection->process = process;
	process->connection = connection;
	connection_send_packet(connection, &welcome, sizeof(welcome));
	return true;
}

static bool on_register(struct host_connection *connection, const union packet *packet) {
	char reason[JOB_REASON_BYTES] = "";
	struct job_registered done = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_REGISTERED}};
	struct host_rank *rank;

	if (!text_is_terminated(packet->registration.name, JOB_NAME_BYTES))
		return refuse_bad_packet(
			connection, "the name of the communicator is not terminated"
		);
	rank = rank_add(connection->process, &packet->registration, reason);
	if (rank == NULL) {
		connection_send_refusal(connection, packet->registration.comm, reason);
		return true;
	}
	done.comm = rank->told.comm;
	connection_send_packet(connection, &done, sizeof(done));
	rank_send_comm_state(rank);
	return true;
}

static bool on_unregister(struct host_connection *connection, const union packet *packet) {
	struct host_rank *rank = rank_find(connection->process, packet->unregister.comm);

	if (rank != NULL) {
		departed_rank_keep(rank, JOBS_LEFT_UNREGISTERED);
		rank_remove(rank);
	}
	return true;
}

static bool on_report(struct host_connection *connection, const union packet *packet) {
	struct host_rank *rank = rank_find(connection->process, packet->report.comm);

	if (!text_is_terminated(packet->report.reason, JOB_REASON_BYTES))
		return refuse_bad_packet(connection, "the reason of the report is not terminated");
	if (rank == NULL || packet->report.rank >= rank->told.size)
		return true;
	connection->host->counters.reports++;
	log_event(
		LOG_LEVEL_WARN, "job_report", log_str("job", connection->process->job_id),
		log_u64("pid", (uint64_t)connection->process->pid),
		log_str("communicator", rank->told.name), log_u64("by_rank", rank->told.rank),
		log_u64("rank", packet->report.rank), log_str("reason", packet->report.reason)
	);
	return true;
}

static bool ranks_ascend(const struct job_failed *said, uint32_t size) {
	for (uint32_t n = 0; n < said->count; n++)
		if (said->ranks[n] >= size || (n > 0 && said->ranks[n] <= said->ranks[n - 1]))
			return false;
	return true;
}

static bool on_failed(struct host_connection *connection, const union packet *packet) {
	const struct job_failed *said = &packet->failed;
	struct host_rank *rank = rank_find(connection->process, said->comm);

	if (said->count > JOB_FAILED_MAX || said->first > said->total ||
	    said->count > said->total - said->first)
		return refuse_bad_packet(
			connection, "a part of a failed set exceeds the size of the set"
		);
	if (rank != NULL && !ranks_ascend(said, rank->told.size))
		return refuse_bad_packet(connection, "the ranks of a failed set do not ascend");
	if (rank != NULL && said->view != 0)
		agree_restore_set(connection->host, rank, said);
	return true;
}

static bool on_leave(struct host_connection *connection, const union packet *packet) {
	struct host_process *process = connection->process;

	(void)packet;
	sample_process_page(process, loop_now_ns(process->host->loop), false);
	for (struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next)
		departed_rank_keep(rank, JOBS_LEFT_CLOSED);
	host_connection_close(connection);
	process_free(process); // the process left on purpose: no rank counts as gone
	return false;
}

static bool has_connection_quota(const struct jobhost *host, uint32_t all, uint32_t of_user) {
	return all < host->config.processes_max + PACKETS_PER_TURN &&
	       of_user < host->config.per_user_max + PACKETS_PER_TURN;
}

// Launchers, which report how their children end, are counted apart from ranks.
static bool make_parent(struct host_connection *connection) {
	struct jobhost *host = connection->host;
	struct host_user *user = connection->user;

	if (!has_connection_quota(host, host->parent_count, user->parents))
		return refuse_connection(
			connection, "the user has too many connected launchers already"
		);
	end_greeting_wait(connection);
	connection->is_parent = true;
	host->connection_count--;
	user->connections--;
	host->parent_count++;
	user->parents++;
	table_add(
		&host->parents_by_pid, &connection->by_parent,
		process_pid_hash(host, connection->pid)
	);
	return true;
}

// Handle a packet of a connection without a process: only a parent may send such packets.
static bool
handle_parent_packet(struct host_connection *connection, const union packet *packet, size_t size) {
	if (packet->head.kind == JOB_PARENT && size == sizeof(packet->parent) &&
	    !connection->is_parent && connection->pid > 0)
		return make_parent(connection);
	if (!connection->is_parent || packet->head.kind != JOB_EXITED ||
	    size != sizeof(packet->exited))
		return refuse_bad_packet(connection, "the first packet is not a greeting");
	if (packet->exited.cause < JOB_EXIT_STATUS || packet->exited.cause > JOB_EXIT_MEMORY)
		return refuse_bad_packet(
			connection, "the reported exit of a process has an unknown cause"
		);
	process_report_child_exit(connection, &packet->exited);
	return true;
}

static const struct {
	uint16_t kind;
	size_t size;
	// Returns false if the connection was closed.
	bool (*take)(struct host_connection *connection, const union packet *packet);
} messages[] = {
	{JOB_REGISTER, sizeof(struct job_register), on_register},
	{JOB_UNREGISTER, sizeof(struct job_unregister), on_unregister},
	{JOB_REPORT, sizeof(struct job_report), on_report},
	{JOB_LEAVE, sizeof(struct job_leave), on_leave},
	{JOB_FAILED, sizeof(struct job_failed), on_failed},
};

// Handle the greeting of a process. A library of version 1 has a shorter one, without the oldest
// version that it speaks.
static bool handle_hello(
	struct host_connection *connection, const union packet *packet, size_t size, int page_fd
) {
	const uint16_t newest = packet->head.version;
	const bool is_whole = size == sizeof(packet->hello);
	const uint16_t oldest = is_whole ? packet->hello.version_min : newest;
	char reason[JOB_REASON_BYTES];

	if (is_whole && job_version_choose(oldest, newest) != 0)
		return on_hello(connection, packet, page_fd);
	descriptor_close_async(page_fd, connection->user->uid);
	if (job_version_choose(oldest, newest) != 0)
		return refuse_bad_packet(connection, "the greeting has a wrong size");
	snprintf(
		reason, sizeof(reason), "libtocsin speaks versions %u to %u, this agent %u to %u",
		oldest, newest, JOB_SOCKET_VERSION_MIN, JOB_SOCKET_VERSION
	);
	connection->host->counters.refused++;
	return refuse_connection(connection, reason);
}

static bool handle_packet(
	struct host_connection *connection, const union packet *packet, size_t size, int page_fd
) {
	if (size < sizeof(packet->head) || packet->head.magic != JOB_SOCKET_MAGIC) {
		descriptor_close_async(page_fd, connection->user->uid);
		return refuse_bad_packet(connection, "the packet is not from libtocsin");
	}
	if (connection->process == NULL && !connection->is_parent && packet->head.kind == JOB_HELLO)
		return handle_hello(connection, packet, size, page_fd);
	// no other packet carries a descriptor
	descriptor_close_async(page_fd, connection->user->uid);
	for (size_t n = 0; n < sizeof(messages) / sizeof(messages[0]); n++)
		if (connection->process != NULL && messages[n].kind == packet->head.kind &&
		    messages[n].size == size)
			return messages[n].take(connection, packet);
	if (connection->process == NULL)
		return handle_parent_packet(connection, packet, size);
	return refuse_bad_packet(connection, "the packet has an unknown kind or a wrong size");
}

// Read one packet. Returns false if nothing is left to read, or if the connection was closed.
static bool receive_packet(struct host_connection *connection) {
	union packet packet;
	union {
		struct cmsghdr head;
		char bytes[CMSG_LEN(sizeof(int))];
	} control;
	struct iovec part = {&packet, sizeof(packet)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	const struct cmsghdr *passed;
	ssize_t size;
	int fd = -1;

	// Only a greeting carries a descriptor. Without a control buffer the kernel closes it.
	if (connection->process == NULL && descriptor_has_close_slot(connection->user->uid)) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_LEN(sizeof(int));
	}
	size = recvmsg(connection->source.fd, &message, MSG_CMSG_CLOEXEC | MSG_TRUNC);
	// The kernel returns ECONNRESET once if the peer closed with unread data. The peer's own
	// packets are still in the queue behind that error.
	if (size < 0 && errno == ECONNRESET)
		size = recvmsg(connection->source.fd, &message, MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	// An empty packet may carry a descriptor, too. The buffer has room for one descriptor; the
	// kernel drops all others.
	passed = size < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (passed != NULL && passed->cmsg_level == SOL_SOCKET && passed->cmsg_type == SCM_RIGHTS &&
	    passed->cmsg_len >= CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(passed), sizeof(fd));
	if (size <= 0) {
		descriptor_close_async(fd, connection->user->uid);
		host_connection_close(connection);
		return false;
	}
	if ((size_t)size > sizeof(packet)) {
		descriptor_close_async(fd, connection->user->uid);
		return refuse_bad_packet(connection, "the packet is too long");
	}
	return handle_packet(connection, &packet, (size_t)size, fd);
}

int host_connection_finish(struct host_process *process) {
	struct host_user *user = process->user; // held by the caller
	uint64_t began_ns = loop_clock_ns(process->host->loop);
	bool is_freed = false, is_open = true;

	process->ret_freed = &is_freed;
	while (is_open && process->connection != NULL && user_has_time(user) &&
	       process->packets_after_exit < PACKETS_AFTER_EXIT_MAX) {
		process->packets_after_exit++;
		is_open = receive_packet(process->connection);
		began_ns = user_charge(user, began_ns);
		if (is_freed)
			return -ESRCH;
	}
	process->ret_freed = NULL;
	return is_open && process->connection != NULL &&
			       process->packets_after_exit < PACKETS_AFTER_EXIT_MAX
		       ? -EAGAIN
		       : 0;
}

static void on_connection_ready(struct loop_source *source, uint32_t events) {
	struct host_connection *connection = container_of(source, struct host_connection, source);
	struct host_user *user = user_hold(connection->user);
	uint64_t began_ns = loop_clock_ns(user->host->loop);
	bool is_open = true;

	if ((events & EPOLLOUT) != 0 && user_has_time(user)) {
		is_open = connection_flush_queue(connection);
		began_ns = user_charge(user, began_ns);
	}
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
		is_open = false;
	for (int n = 0; is_open && n < PACKETS_PER_TURN && user_has_time(user); n++) {
		is_open = receive_packet(connection);
		began_ns = user_charge(user, began_ns);
	}
	user_put(user);
}

void host_connection_open(struct jobhost *host, int fd) {
	struct host_connection *connection = NULL;
	struct host_user *user = NULL;
	struct ucred who;
	socklen_t length = sizeof(who);

	// The connections of a user are limited to a few more than its processes, so that other
	// users find room.
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0)
		user = user_get(host, who.uid);
	if (user != NULL && has_connection_quota(host, host->connection_count, user->connections))
		connection = calloc(1, sizeof(*connection));
	if (connection == NULL) {
		user_put(user);
		close(fd);
		return;
	}
	connection->host = host;
	connection->user = user;
	connection->uid = who.uid;
	connection->pid = who.pid;
	connection->since_ns = loop_now_ns(host->loop);
	connection->last = &connection->first;
	connection->source = (struct loop_source
	){.fd = fd, .events = EPOLLIN, .rank = LOOP_CLIENTS, .ready = on_connection_ready};
	if (loop_add(host->loop, &connection->source) != 0) {
		user_put(user);
		close(fd);
		free(connection);
		return;
	}
	connection->next = host->connections;
	connection->link = &host->connections;
	if (connection->next != NULL)
		connection->next->link = &connection->next;
	host->connections = connection;
	connection->is_ungreeted = true;
	TAILQ_INSERT_TAIL(&host->ungreeted, connection, ungreeted);
	host->connection_count++;
	user->connections++;
}
