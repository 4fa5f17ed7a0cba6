// SPDX-License-Identifier: BSD-3-Clause
// Answers the calls of other agents' clients, which arrive over the relay.
#include "client/remote.h"

#include "client/server.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/parse.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE_NODES_MAX 16 // calls at the same time

struct served {
	struct session session;
	struct overlay_served *asked;
	struct loop_job job;
	struct loop_timer deadline; // the caller's timeout
	struct served *next;
};

void remote_line_format(const struct session *session, const char *command, struct text *line) {
	const char *format = session->json ? "json" : "text";

	if (session->timeout_s == SESSION_TIMEOUT_UNSET)
		text_print(line, "%s - %s", format, command);
	else
		text_print(line, "%s %u %s", format, session->timeout_s, command);
	text_add(line, "", 1);
}

static bool remote_line_parse_head(struct session *session, const char **line) {
	char word[32];
	uint64_t seconds;

	if (!command_word(line, word, sizeof(word)))
		return false;
	if (strcmp(word, "json") == 0)
		session->format = SESSION_FORMAT_JSON;
	else if (strcmp(word, "text") == 0)
		session->format = SESSION_FORMAT_TEXT;
	else
		return false;
	if (!command_word(line, word, sizeof(word)))
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	if (parse_u64(word, strlen(word), 0, INT_MAX, NULL, &seconds) < 0)
		return false;
	session->timeout_s = (uint32_t)seconds;
	return true;
}

static void served_end(struct served *served, int err) {
	struct client_server *server = served->session.server;
	struct served **place = &server->served;

	while (*place != served)
		place = &(*place)->next;
	*place = served->next;
	loop_undefer(server->loop, &served->job);
	loop_timer_cancel(server->loop, &served->deadline);
	session_fini(&served->session);
	overlay_served_end(served->asked, err);
	free(served);
}

static void served_wake(struct session *session) {
	struct served *served = (struct served *)session;

	loop_defer(session->server->loop, &served->job);
}

// Run one step per turn, as for a client on a socket.
static void served_run(struct loop_job *job) {
	struct served *served = container_of(job, struct served, job);
	struct session *session = &served->session;
	int err = 0;

	session_step(session);
	if (text_size(&session->out) > 0)
		err = overlay_served_write(
			served->asked, text_front(&session->out), text_size(&session->out)
		);
	text_consume(&session->out, text_size(&session->out));
	if (err == 0 && session->out.failed)
		err = -ENOMEM;
	if (err < 0 || !session->busy)
		served_end(served, err);
	else if (session->step != NULL)
		served_wake(session);
}

// End a call whose caller has given up. Some commands have no limit of their own, and would hold
// the place.
static void served_expired(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	served_end(container_of(timer, struct served, deadline), -ETIMEDOUT);
}

void client_serve_call(void *ctx, struct overlay_served *asked, const char *line) {
	struct client_server *server = ctx;
	char copy[CLIENT_LINE_BYTES_MAX];
	struct served *served;
	uint32_t count = 0;

	for (served = server->served; served != NULL; served = served->next)
		count++;
	if (count >= REMOTE_NODES_MAX) {
		overlay_served_end(asked, -EAGAIN);
		return;
	}
	served = calloc(1, sizeof(*served));
	if (served == NULL) {
		overlay_served_end(asked, -ENOMEM);
		return;
	}
	session_init(&served->session, server);
	served->session.remote = true;
	served->session.uid = SESSION_REMOTE_UID;
	served->session.wake = served_wake;
	served->asked = asked;
	served->job.run = served_run;
	served->next = server->served;
	server->served = served;
	server->counters.remote_served++;
	served->deadline.expired = served_expired;
	if (!remote_line_parse_head(&served->session, &line) || strlen(line) >= sizeof(copy)) {
		served_end(served, -EBADMSG);
		return;
	}
	if (loop_timer_set(
		    server->loop, &served->deadline,
		    loop_now_ns(server->loop) + overlay_served_life_ns(asked)
	    ) != 0) {
		served_end(served, -ENOMEM);
		return;
	}
	snprintf(copy, sizeof(copy), "%s", line);
	session_answer_line(&served->session, copy);
	served_wake(&served->session);
}

void remote_stop(struct client_server *server) {
	while (server->served != NULL)
		served_end(server->served, -ECANCELED);
}
