// SPDX-License-Identifier: BSD-3-Clause
// A client's session: checks permissions and runs commands.
#include "client/session.h"

#include "client/answers.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <control/health.h>
#include <lib/escape.h>
#include <lib/must.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_BYTES 96
#define WORD_BYTES 32
#define ERROR_BYTES 1536 // holds a line and a message about it

static answer_fn *const answers[VERB_COUNT] = {
	[VERB_CLIENT_PROTOCOL] = answer_client_protocol,
	[VERB_TIMEOUT] = answer_timeout,
	[VERB_SET_FORMAT] = answer_set_format,
	[VERB_STATUS] = answer_status,
	[VERB_VERBOSE_STATUS] = answer_status,
	[VERB_MONITOR] = answer_monitor,
	[VERB_PEERS] = answer_peers,
	[VERB_LINKS] = answer_links,
	[VERB_HEALTH] = answer_health,
	[VERB_EVENTS] = answer_events,
	[VERB_COMMS] = answer_comms,
	[VERB_WHY] = answer_why,
	[VERB_HISTORY] = answer_history,
	[VERB_PING] = answer_ping,
	[VERB_COUNTERS] = answer_counters,
	[VERB_CHECKS] = answer_checks,
	[VERB_DEVICES] = answer_devices,
	[VERB_PAIRS] = answer_pairs,
	[VERB_PROBE] = answer_probe,
	[VERB_PATHS] = answer_paths,
	[VERB_PATH] = answer_path,
	[VERB_MATRIX] = answer_matrix,
	[VERB_CONNS] = answer_conns,
	[VERB_MAINTENANCE] = answer_maintenance,
	[VERB_NODE] = answer_node,
	[VERB_REPORT] = answer_report,
	[VERB_MAINT] = answer_maint,
	[VERB_FORGET] = answer_forget,
	[VERB_LEVEL] = answer_level,
	[VERB_LOG] = answer_log,
};

void session_init(struct session *session, struct client_server *server) {
	*session = (struct session
	){.server = server, .uid = SESSION_NO_UID, .timeout_s = SESSION_TIMEOUT_UNSET};
}

void session_fini(struct session *session) {
	session_end(session);
	text_fini(&session->out);
}

const struct ras *session_ras(const struct session *session) {
	return overlay_ras(session->server->overlay);
}

const struct verdict_engine *session_verdict_engine(const struct session *session) {
	const struct health *health = session->server->config.health;

	return health != NULL ? health_engine(health) : NULL;
}

// Check the permission. The privilege was determined when the client connected.
static bool command_is_allowed(struct session *session, const struct command *command) {
	const struct client_config *config = &session->server->config;
	char group[48] = "", word[WORD_BYTES];
	size_t length = strlen(command->name);

	if (session->remote && !command->remote) {
		session_fail(session, "%s is not available to other nodes", command->name);
		return false;
	}
	if (!command->changes || session->privileged)
		return true;
	session->server->counters.lines_denied++;
	if (config->has_group)
		snprintf(group, sizeof(group), " and members of group %u", config->group);
	if (session->tcp) {
		session_fail(
			session,
			"%s works only through the Unix socket: TCP does not tell the agent who "
			"you are",
			command->name
		);
		return false;
	}
	// The program tocsin spells the command in lower case.
	must(length < WORD_BYTES);
	for (size_t n = 0; n <= length; n++)
		word[n] = (char)tolower((unsigned char)command->name[n]);
	session_fail(
		session, "`tocsin %s` is for root and the agent's own user%s; you are uid %u", word,
		group, session->uid
	);
	return false;
}

// Choose JSON or text. Returns false for an old client that needs a text format which no longer
// exists.
static bool format_choose(struct session *session, const char *rest) {
	char node[CLIENT_LINE_BYTES_MAX], copy[CLIENT_LINE_BYTES_MAX];
	const struct command *command = &commands[session->verb];

	// With NODE, the other node answers the command after the name.
	if (session->verb == VERB_NODE && command_word(&rest, node, sizeof(node))) {
		snprintf(copy, sizeof(copy), "%s", rest);
		command = &commands[command_parse(copy, &rest)];
	}
	session->json = session->format == SESSION_FORMAT_JSON;
	if (command->seeds || session->json)
		return true;
	if (command->changes && session->format == SESSION_FORMAT_TEXT)
		return true; // a changing command still answers in text: OK or an error
	if (session->format == SESSION_FORMAT_TEXT) {
		session_fail(
			session,
			"tocsind %s answers %s in JSON only: use the tocsin of its version, or ask "
			"with --json",
			session->server->version, command->name
		);
		return false;
	}
	session->json = true;
	return true;
}

void session_answer_line(struct session *session, char *line) {
	struct client_counters *counters = &session->server->counters;
	const struct command *command;
	const char *rest = "";
	char quoted[QUOTED_BYTES];

	must(!session->busy);
	counters->lines++;
	session->verb = command_parse(line, &rest);
	command = &commands[session->verb];
	if (session->verb == VERB_UNKNOWN) {
		counters->lines_unknown++;
		text_print(&session->out, "ERROR: Unknown command %s\n", line);
		return;
	}
	if (!format_choose(session, rest) || !command_is_allowed(session, command))
		return;
	if (command->arguments == NULL && *rest != '\0') {
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(
			session, "%s takes no arguments, but %s follows", command->name, quoted
		);
		return;
	}
	answers[session->verb](session, rest);
}

void session_step(struct session *session) {
	if (session->busy && session->step != NULL && session->step(session))
		session_end(session);
}

void session_ok(struct session *session) {
	if (session->json)
		text_print(&session->out, "{\"ok\":true}\n");
	else
		text_print(&session->out, "OK\n");
}

static void send_object(struct session *session, json_t *object) {
	text_add_json(&session->out, object);
	text_add(&session->out, "\n", 1);
}

void session_fail(struct session *session, const char *format, ...) {
	char text[ERROR_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (session->json)
		send_object(session, json_pack("{s:o}", "error", safe_string_json(text)));
	else
		text_print(&session->out, "ERROR: %s\n", text);
}

void session_add_schema(json_t *object) {
	json_object_set_new(object, "schema", json_integer(SESSION_JSON_SCHEMA));
}

void session_json(struct session *session, json_t *object) {
	session_add_schema(object);
	send_object(session, object);
}

bool session_begin(
	struct session *session, session_step_fn *step, session_drop_fn *drop, void *work
) {
	must(!session->busy);
	if (work == NULL) {
		session_fail(session, "out of memory");
		return false;
	}
	session->busy = true;
	session->step = step;
	session->drop = drop;
	session->work = work;
	return true;
}

void session_continue(struct session *session, session_step_fn *step) {
	must(session->busy);
	session->step = step;
	session->wake(session);
}

void session_end(struct session *session) {
	if (session->drop != NULL)
		session->drop(session->work);
	session->busy = false;
	session->step = NULL;
	session->drop = NULL;
	session->work = NULL;
}

// Return the key for rate limits. It separates TCP from the Unix socket, so that root's programs on
// either do not use each other's share.
static uint64_t session_rate_key(const struct session *session) {
	return session->uid | (uint64_t)session->tcp << 32;
}

bool session_charge_question(struct session *session) {
	struct client_server *server = session->server;

	if (rate_try_consume(
		    &server->asks, session_rate_key(session), 1, !session->privileged,
		    loop_now_ns(server->loop)
	    ))
		return true;
	server->counters.asks_refused++;
	session_fail(
		session,
		"too many questions to other nodes or about the past: %u a second are allowed, "
		"try again",
		server->config.asks_per_s
	);
	return false;
}

bool session_charge_read(struct session *session, uint64_t bytes) {
	struct client_server *server = session->server;
	char asked[SHOW_BYTES], burst[SHOW_BYTES], rate[SHOW_BYTES];

	if (session->privileged || rate_try_consume(
					   &server->reads, session_rate_key(session), bytes, true,
					   loop_now_ns(server->loop)
				   ))
		return true;
	server->counters.asks_refused++;
	show_bytes(bytes, asked);
	show_bytes(server->config.read_bytes_burst, burst);
	show_bytes(server->config.read_bytes_per_s, rate);
	session_fail(
		session,
		"%s from other nodes: a user without privileges may read %s at once and %s a "
		"second, all such users together %u times as much; try again",
		asked, burst, rate, RATE_SHARED
	);
	return false;
}

uint64_t session_timeout_ns(const struct session *session, uint64_t unset_ns) {
	if (session->timeout_s == SESSION_TIMEOUT_UNSET)
		return unset_ns;
	if (session->timeout_s == 0)
		return RAS_COLLECT_TIMEOUT_MAX_NS;
	return session->timeout_s * RAS_NS_PER_SEC;
}
