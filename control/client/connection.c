// SPDX-License-Identifier: BSD-3-Clause
// One client's connection: lines in, answers out, deadlines and budgets.
#include "client/connection.h"

#include "client/monitor.h"
#include "client/server.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/stream.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LINES_PER_TURN 4

void connection_close(struct connection *connection) {
	struct client_server *server = connection->session.server;

	loop_timer_cancel(server->loop, &connection->timer);
	loop_remove(&connection->source);
	close(connection->source.fd);
	*connection->place = connection->next;
	if (connection->next != NULL)
		connection->next->place = connection->place;
	session_fini(&connection->session);
	server->counters.clients--;
	free(connection);
}

static uint64_t deadline_ns(const struct connection *connection) {
	const struct client_config *config = &connection->session.server->config;
	uint64_t at_ns = RAS_NEVER;

	if (connection->lingering)
		return connection->since_ns + config->drain_ns;
	if (connection->mark != 0)
		return connection->drain_at_ns;
	if (!connection->session.busy && connection->session.monitor == 0)
		at_ns = connection->since_ns + config->idle_ns;
	return at_ns;
}

// Wait for these events and for the next deadline. Must be the last call of each turn.
static void connection_await(struct connection *connection, uint32_t events) {
	struct client_server *server = connection->session.server;
	size_t left = text_size(&connection->session.out);
	uint64_t at_ns;

	// Start a deadline for the bytes queued now: the client must accept them within drain_ns.
	// Bytes queued later do not extend it.
	if (connection->mark != 0 && connection->sent >= connection->mark)
		connection->mark = 0;
	if (connection->mark == 0 && left > 0) {
		connection->mark = connection->sent + left;
		connection->drain_at_ns = loop_now_ns(server->loop) + server->config.drain_ns;
	}

	at_ns = deadline_ns(connection);
	loop_set_events(&connection->source, events);
	// Without memory for the timer only this deadline is lost.
	if (at_ns == RAS_NEVER || loop_timer_set(server->loop, &connection->timer, at_ns) < 0)
		loop_timer_cancel(server->loop, &connection->timer);
}

// Send a bounded part of the output. Returns false if the client is gone.
static bool output_flush(struct connection *connection) {
	struct text *out = &connection->session.out;
	size_t size = text_size(out);
	ssize_t sent;

	if (out->failed)
		return false;
	if (size > LOOP_STEP_BYTES_MAX)
		size = LOOP_STEP_BYTES_MAX;
	if (size > 0) {
		sent = stream_send(connection->source.fd, text_front(out), size);
		if (sent < 0 && sent != -EAGAIN)
			return false;
		if (sent > 0) {
			text_consume(out, (size_t)sent);
			connection->sent += (uint64_t)sent;
		}
	}
	return true;
}

enum next {
	NEXT_ANSWER, // output was added: send it and continue
	NEXT_TURN,   // continue in the next turn
	NEXT_INPUT,
	NEXT_WAIT, // wait for a result
	NEXT_FINISH,
};

// Continue the answer, or start the next one. Called with empty output.
static enum next answer_advance(struct connection *connection) {
	struct session *session = &connection->session;
	struct client_server *server = session->server;
	char line[CLIENT_LINE_BYTES_MAX];
	int err;

	if (session->busy) {
		if (session->step == NULL)
			return NEXT_WAIT;
		session_step(session);
		connection->since_ns = loop_now_ns(server->loop);
		return NEXT_TURN;
	}
	if (session->closing)
		return NEXT_FINISH;
	if (monitor_has_events(session)) {
		monitor_write_events(session);
		return NEXT_TURN;
	}
	err = lines_next(&connection->lines, line);
	if (err == 0) {
		connection->since_ns = loop_now_ns(server->loop);
		session_answer_line(session, line);
		return NEXT_ANSWER;
	}
	if (err == -EAGAIN && !connection->ended)
		return NEXT_INPUT;
	server->counters.lines_too_long += err == -EMSGSIZE;
	return NEXT_FINISH;
}

static void connection_pump(struct connection *connection) {
	enum next next = NEXT_ANSWER;

	for (uint32_t lines = 0; next == NEXT_ANSWER && lines <= LINES_PER_TURN; lines++) {
		if (!output_flush(connection)) {
			connection_close(connection);
			return;
		}
		if (text_size(&connection->session.out) > 0)
			break;
		next = answer_advance(connection);
	}
	switch (next) {
	case NEXT_ANSWER:
	case NEXT_TURN:
		connection_await(connection, EPOLLOUT);
		break;
	case NEXT_INPUT:
		connection_await(connection, EPOLLIN);
		break;
	case NEXT_WAIT:
		connection_await(connection, 0);
		break;
	case NEXT_FINISH:
		// Shut down after the last answer and linger. Closing with unread input would cause
		// a reset, which may overtake the answer.
		if (connection->ended || shutdown(connection->source.fd, SHUT_WR) < 0) {
			connection_close(connection);
			break;
		}
		connection->lingering = true;
		connection->since_ns = loop_now_ns(connection->session.server->loop);
		connection_await(connection, EPOLLIN);
		break;
	}
}

static void connection_ready(struct loop_source *source, uint32_t events) {
	struct connection *connection = container_of(source, struct connection, source);
	bool readable = (events & EPOLLIN) != 0;
	char dropped[4096];
	size_t room;
	ssize_t size;
	void *into;

	if (connection->lingering) {
		size = stream_receive(source->fd, dropped, sizeof(dropped));
		if (size == 0 || (size < 0 && size != -EAGAIN))
			connection_close(connection);
		return;
	}
	// A hang-up while input is paused: the client is gone and cannot receive an answer.
	if ((events & (EPOLLERR | EPOLLHUP)) != 0 && !readable) {
		connection_close(connection);
		return;
	}
	into = lines_room(&connection->lines, &room);
	if (readable && room > 0 && !connection->ended) {
		size = stream_receive(source->fd, into, room);
		if (size < 0 && size != -EAGAIN) {
			connection_close(connection);
			return;
		}
		if (size >= 0) {
			connection->ended = size == 0;
			lines_filled(&connection->lines, (size_t)size);
		}
	}
	connection_pump(connection);
}

static void connection_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct connection *connection = container_of(timer, struct connection, timer);
	struct client_server *server = connection->session.server;
	bool slow = connection->lingering || connection->mark != 0;

	if (now_ns < deadline_ns(connection)) {
		connection_await(connection, connection->source.events);
		return;
	}
	if (slow)
		server->counters.closed_slow++;
	else
		server->counters.closed_idle++;
	log_event(
		LOG_LEVEL_INFO, "client_closed",
		log_str("reason", slow ? "the client does not read its answers" : "idle"),
		log_u64("unsent_bytes", text_size(&connection->session.out))
	);
	connection_close(connection);
}

static void connection_wake(struct session *session) {
	struct connection *connection = (struct connection *)session;

	loop_set_events(&connection->source, EPOLLOUT);
}

void connection_notify_events(struct connection *connection) {
	const struct session *session = &connection->session;

	if (session->monitor != 0 && !session->busy && !connection->lingering)
		loop_set_events(&connection->source, EPOLLOUT);
}

int connection_open(
	struct client_server *server, int fd, const struct connection_credentials *credentials
) {
	struct connection *connection = calloc(1, sizeof(*connection));
	int err;

	if (connection == NULL) {
		close(fd);
		return -ENOMEM;
	}
	session_init(&connection->session, server);
	connection->session.uid = credentials->uid;
	connection->session.privileged = credentials->privileged;
	connection->session.tcp = !credentials->local;
	connection->session.wake = connection_wake;
	connection->source = (struct loop_source
	){.fd = fd, .events = EPOLLIN, .rank = LOOP_CLIENTS, .ready = connection_ready};
	connection->timer.expired = connection_expired;
	connection->since_ns = loop_now_ns(server->loop);
	err = loop_add(server->loop, &connection->source);
	if (err < 0) {
		close(fd);
		free(connection);
		return err;
	}
	connection->next = server->connections;
	connection->place = &server->connections;
	if (connection->next != NULL)
		connection->next->place = &connection->next;
	server->connections = connection;
	server->counters.clients++;
	connection_await(connection, EPOLLIN);
	return 0;
}
