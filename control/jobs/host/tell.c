// SPDX-License-Identifier: BSD-3-Clause
// Sends packets to jobs. If the socket buffer is full, packets are queued. A process with too many
// queued packets is disconnected; it connects again and receives its whole state.
#include "jobs/host/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Returns 1 (sent), 0 (socket buffer full) or -1 (connection broken).
static int
try_send_packet(const struct host_connection *connection, const void *packet, size_t size) {
	ssize_t sent = send(connection->source.fd, packet, size, MSG_NOSIGNAL);

	if (sent == (ssize_t)size)
		return 1;
	return sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) ? 0 : -1;
}

void connection_send_packet(struct host_connection *connection, const void *packet, size_t size) {
	struct waiting *waiting = NULL;

	if (connection->broken ||
	    (connection->first == NULL && try_send_packet(connection, packet, size) != 0))
		return;
	if (connection->waiting_count < QUEUED_PACKETS_MAX)
		waiting = malloc(sizeof(*waiting) + size);
	// The caller still uses the connection, so it is closed when its hang-up is read.
	if (waiting == NULL) {
		connection->broken = true;
		(void)shutdown(connection->source.fd, SHUT_RDWR);
		return;
	}
	waiting->next = NULL;
	waiting->size = size;
	memcpy(waiting->packet, packet, size);
	*connection->last = waiting;
	connection->last = &waiting->next;
	connection->waiting_count++;
	loop_set_events(&connection->source, EPOLLIN | EPOLLOUT);
}

bool connection_flush_queue(struct host_connection *connection) {
	while (connection->first != NULL) {
		struct waiting *waiting = connection->first;
		int sent = try_send_packet(connection, waiting->packet, waiting->size);

		if (sent == 0)
			return true;
		if (sent < 0) {
			host_connection_close(connection);
			return false;
		}
		connection->first = waiting->next;
		if (connection->first == NULL)
			connection->last = &connection->first;
		connection->waiting_count--;
		free(waiting);
	}
	loop_set_events(&connection->source, EPOLLIN);
	return true;
}

void connection_send_refusal(
	struct host_connection *connection, uint64_t number, const char *reason
) {
	struct job_refused refused = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_REFUSED},
		.comm = number,
	};

	memcpy(refused.reason, reason, strnlen(reason, sizeof(refused.reason) - 1));
	connection_send_packet(connection, &refused, sizeof(refused));
}

void connection_send_event(struct host_connection *connection, const struct job_event *event) {
	if (connection != NULL && connection->waiting_count < QUEUED_PACKETS_MAX / 4)
		connection_send_packet(connection, event, sizeof(*event));
}

void comm_send_event(
	const struct host_comm *comm,
	enum tocsin_event_kind kind,
	uint32_t of_rank,
	const char *text
) {
	struct job_event event = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EVENT},
		.view = comm->view,
		.kind = kind,
		.rank = of_rank,
	};

	memcpy(event.text, text, strnlen(text, sizeof(event.text) - 1));
	for (const struct host_rank *rank = comm->ranks; rank != NULL; rank = rank->next_of_comm) {
		event.comm = rank->told.comm;
		event.happened_ns = loop_now_ns(rank->process->host->loop);
		connection_send_event(rank->process->connection, &event);
	}
}
