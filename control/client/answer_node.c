// SPDX-License-Identifier: BSD-3-Clause
// NODE node command: forwards a command to another node and passes its answer on as it arrives.
//
// If the answer breaks off, an error line follows on a line of its own.
#include "client/answers.h"
#include "client/names.h"
#include "client/remote.h"
#include "client/server.h"

#include <lib/escape.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODE_TIMEOUT_NS (15 * RAS_NS_PER_SEC)
#define NODE_AHEAD_BYTES (256u << 10) // buffered here; the rest waits at the other node
#define QUOTED_BYTES 96
#define NAMES_BYTES 512 // holds the names of all commands

struct node_call {
	struct overlay_call call;
	struct session *session;
	char name[NAMES_TEXT_BYTES];
	bool ended;
	bool held; // a piece was refused with -EAGAIN
	bool middle_of_line;
	int err;
	struct text came;
};

static void node_drop(void *work) {
	struct node_call *node = work;

	if (!node->ended)
		overlay_call_cancel(&node->call);
	text_fini(&node->came);
	free(node);
}

const char *node_call_error_text(int err) {
	const char *words = strerrordesc_np(-err);

	switch (err) {
	case -ETIMEDOUT:
		return "did not answer in time";
	case -EHOSTDOWN:
		return "is down; `tocsin why` shows what this agent knows of it";
	case -EHOSTUNREACH:
		return "cannot be reached now; `tocsin why` shows what this agent knows of it";
	case -ECONNREFUSED:
		return "refuses questions of other nodes";
	case -ECANCELED:
		return "cannot be asked: this agent is leaving";
	case -EAGAIN:
		return "cannot be asked now: too many questions wait for answers";
	default:
		return words != NULL ? words : "sent an invalid answer";
	}
}

static bool node_step(struct session *session) {
	struct node_call *node = session->work;
	size_t size = text_size(&node->came);

	if (size > SESSION_STEP_BYTES)
		size = SESSION_STEP_BYTES;
	if (size > 0) {
		text_add(&session->out, text_front(&node->came), size);
		node->middle_of_line = text_front(&node->came)[size - 1] != '\n';
		text_consume(&node->came, size);
	}
	if (node->held && text_size(&node->came) == 0) {
		node->held = false;
		overlay_call_ready(&node->call);
	}
	if (text_size(&node->came) > 0)
		return false;
	if (!node->ended) {
		session->step = NULL;
		return false;
	}
	if (node->err < 0) {
		if (node->middle_of_line)
			text_add(&session->out, "\n", 1);
		session_fail(session, "%s %s", node->name, node_call_error_text(node->err));
	}
	return true;
}

static int on_piece(struct overlay_call *call, const void *data, size_t size) {
	struct node_call *node = (struct node_call *)call;

	if (text_size(&node->came) >= NODE_AHEAD_BYTES) {
		node->held = true;
		return -EAGAIN;
	}
	text_add(&node->came, data, size);
	if (node->session->step == NULL)
		session_continue(node->session, node_step);
	return 0;
}

static void on_end(struct overlay_call *call, int err) {
	struct node_call *node = (struct node_call *)call;

	node->ended = true;
	node->err = node->came.failed ? -ENOMEM : err;
	if (node->session->step == NULL)
		session_continue(node->session, node_step);
}

void answer_node(struct session *session, const char *rest) {
	char copy[CLIENT_LINE_BYTES_MAX], quoted[QUOTED_BYTES], names[NAMES_BYTES] = "";
	const char *inner = "";
	size_t used = 0;
	struct node_call *node;
	struct text line = {0};
	struct ras_peer peer;
	enum verb verb;
	int err;

	if (!names_parse_next(session, &rest, &peer))
		return;
	snprintf(copy, sizeof(copy), "%s", rest);
	verb = command_parse(copy, &inner);
	if (!commands[verb].remote) {
		for (verb = 0; verb < VERB_COUNT && used < sizeof(names); verb++) {
			if (commands[verb].remote)
				used += (size_t)snprintf(
					names + used, sizeof(names) - used, "%s%s",
					used > 0 ? ", " : "", commands[verb].name
				);
		}
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(
			session, "%s cannot be sent to another node; the commands that can are %s",
			quoted, names
		);
		return;
	}
	remote_line_format(session, rest, &line);
	if (line.failed)
		session_fail(session, "out of memory");
	if (line.failed || !session_charge_question(session)) {
		text_fini(&line);
		return;
	}
	node = calloc(1, sizeof(*node));
	if (session_begin(session, NULL, node_drop, node)) {
		node->session = session;
		node->call.piece = on_piece;
		node->call.ended = on_end;
		names_format_record(peer.record, node->name);
		err = overlay_call_start(
			session->server->overlay, peer.record->id, text_front(&line),
			session_timeout_ns(session, NODE_TIMEOUT_NS), &node->call
		);
		if (err != 0) {
			node->ended = true;
			session_fail(session, "%s %s", node->name, node_call_error_text(err));
			session_end(session);
		}
	}
	// The end of a report is the end of the connection.
	session->closing = strcasecmp(rest, commands[VERB_STATUS].name) == 0 ||
			   strcasecmp(rest, commands[VERB_VERBOSE_STATUS].name) == 0;
	text_fini(&line);
}
