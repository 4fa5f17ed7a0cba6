// SPDX-License-Identifier: BSD-3-Clause
// One who asks, on a socket or from another node, and the command that is being answered.
//
// A command writes to `out`. One that can say all at once does so; one with more to say, or
// that must wait for others, begins work: step() is called when `out` is empty, adds at most
// about SESSION_STEP_BYTES and says whether that was all. Waiting is work without a step.
// The owner of the session moves `out` on and is told by wake() when there is something to do.
#pragma once

#include "client/command.h"
#include "client/text.h"

#include <control/client.h>
#include <control/overlay.h>
#include <lib/show.h>

#include <jansson.h>

#define SESSION_STEP_BYTES (32u << 10)
#define SESSION_STEP_ROWS 1024
#define SESSION_NO_UID UINT32_MAX	    // the kernel does not tell
#define SESSION_REMOTE_UID (UINT32_MAX - 1) // other nodes, together
#define SESSION_TIMEOUT_UNSET UINT32_MAX

struct client_server;
struct session;

typedef bool session_step_fn(struct session *session); // true: that was all
typedef void session_drop_fn(void *work);	       // cancels what is under way, frees

// As the client set it. Tocsin's own commands are answered in JSON where it set nothing.
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
	void (*wake)(struct session *session); // the owner's; not called from inside its calls
	struct text out;
	enum session_format format;
	bool json; // the command that is being answered is answered in JSON
	bool privileged;
	bool remote;  // asked by another node
	bool tcp;     // orders are not taken from there, whoever it is
	bool closing; // no more commands: ends when `out` is empty
	uint32_t uid;
	uint32_t timeout_s; // 0: none

	bool busy; // a command is being answered
	enum verb verb;
	session_step_fn *step; // NULL: waits
	session_drop_fn *drop;
	void *work;

	uint32_t monitor;      // enum session_group; 0: none
	uint64_t monitor_next; // sequence of the next event to be told
	uint64_t monitor_lost;
};

void session_init(struct session *session, struct client_server *server);
void session_fini(struct session *session);
// Answers a line, or begins to. Only while not busy.
void session_line(struct session *session, char *line);
// One step of what is under way, if it does not wait.
void session_step(struct session *session);

// For commands.

const struct ras *session_ras(const struct session *session);

// The end of an answer of Tocsin's own.
void session_ok(struct session *session);
__attribute__((format(printf, 2, 3))) void
session_fail(struct session *session, const char *format, ...);
void session_json(struct session *session, json_t *object);

// Work passes to the session, which drops it at the end. Nothing is begun if work is NULL: the
// answer is then that there is no memory.
bool session_begin(
	struct session *session, session_step_fn *step, session_drop_fn *drop, void *work
);
// What was waited for has come.
void session_continue(struct session *session, session_step_fn *step);
void session_end(struct session *session);

// Whether one more question to other nodes is allowed; else the answer was given.
bool session_may_ask(struct session *session);
// The same for bytes that are read from another node.
bool session_may_read(struct session *session, uint64_t bytes);
uint64_t session_timeout_ns(const struct session *session, uint64_t unset_ns);
