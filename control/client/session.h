// SPDX-License-Identifier: BSD-3-Clause
// A client on a socket or on another node, and the command that is being answered.
//
// A command writes to `out`. A short answer is written at once. A command with a long answer, or
// one that must wait, starts work. step() is called when `out` is empty. It adds about
// SESSION_STEP_BYTES at most, and returns whether the answer is complete. Work that waits has no
// step. The owner of the session sends `out`, and wake() notifies it when there is something to do.
#pragma once

#include "client/command.h"
#include "client/text.h"

#include <control/client.h>
#include <control/overlay.h>
#include <lib/show.h>

#include <jansson.h>

#define SESSION_STEP_BYTES (32u << 10)
#define SESSION_STEP_ROWS 1024
#define SESSION_NO_UID UINT32_MAX	    // the kernel does not report the user
#define SESSION_REMOTE_UID (UINT32_MAX - 1) // all other nodes together
#define SESSION_TIMEOUT_UNSET UINT32_MAX

struct client_server;
struct session;
struct verdict_engine;

typedef bool session_step_fn(struct session *session); // returns true when the answer is complete
typedef void session_drop_fn(void *work);	       // cancels and frees the work

// Format chosen by the client. If unset, Tocsin's own commands are answered in JSON.
enum session_format {
	SESSION_FORMAT_UNSET,
	SESSION_FORMAT_TEXT,
	SESSION_FORMAT_JSON,
};

enum session_group {
	SESSION_LIFECYCLE = 1,
	SESSION_TRACE = 2,
	SESSION_ALL = 0xff,
};

struct session {
	struct client_server *server;
	// Notifies the owner, which sets the callback. Never called while the owner is inside
	// session_answer_line() or session_step().
	void (*wake)(struct session *session);
	struct text out;
	enum session_format format;
	bool json; // the current command is answered in JSON
	bool privileged;
	bool remote;  // a client of another node
	bool tcp;     // connected over TCP, where no user may use changing commands
	bool closing; // no more commands are accepted; ends when `out` is empty
	uint32_t uid;
	uint32_t timeout_s; // 0: none

	bool busy; // a command is being answered
	enum verb verb;
	session_step_fn *step; // NULL: waits
	session_drop_fn *drop;
	void *work;

	uint32_t monitor;      // enum session_group; 0: none
	uint64_t monitor_next; // sequence of the next event to send
	uint64_t monitor_lost;
};

void session_init(struct session *session, struct client_server *server);
void session_fini(struct session *session);
// Start answering a line. Only while not busy.
void session_answer_line(struct session *session, char *line);
// Run one step of the current work, unless it waits.
void session_step(struct session *session);

// Functions for commands.

const struct ras *session_ras(const struct session *session);
// Return the engine of the verdict store; NULL if there is no store.
const struct verdict_engine *session_verdict_engine(const struct session *session);

// End an answer of one of Tocsin's own commands.
void session_ok(struct session *session);
__attribute__((format(printf, 2, 3))) void
session_fail(struct session *session, const char *format, ...);
// Send an answer as one line, with the number of the schema. Takes the reference.
void session_json(struct session *session, json_t *object);
// Add the number of the schema, which grows when a member changes its meaning or goes away.
#define SESSION_JSON_SCHEMA 2
void session_add_schema(json_t *object);

// Start work, which the session owns and drops at the end. If `work` is NULL, the answer is "out of
// memory" and the result false.
bool session_begin(
	struct session *session, session_step_fn *step, session_drop_fn *drop, void *work
);
// Continue work that waited, with this step.
void session_continue(struct session *session, session_step_fn *step);
void session_end(struct session *session);

// Charge one question to other nodes. Returns false after an error message if the limit is
// exceeded.
bool session_charge_question(struct session *session);
// The same for bytes to be read from another node.
bool session_charge_read(struct session *session, uint64_t bytes);
uint64_t session_timeout_ns(const struct session *session, uint64_t unset_ns);
