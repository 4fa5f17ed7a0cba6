// SPDX-License-Identifier: BSD-3-Clause
// A client on a socket: its lines in, its answers out, and how long it may take over either.
//
// Nothing is read while an answer is under way or waits to be taken, so a client that asks and
// does not read holds one answer's step of memory, no more. The end of what a client sends does
// not end what it is sent: answers are delivered before its connection is closed.
#pragma once

#include "client/lines.h"
#include "client/session.h"

#include <control/loop.h>

struct connection {
	struct session session; // first
	struct loop_source source;
	struct loop_timer timer;
	struct connection *next, **place;
	struct lines lines;
	bool ended;	   // nothing more will come from it
	bool lingering;	   // all was said: what it still sends is read and dropped until it closes
	uint64_t since_ns; // of the last complete line or answer, or of the linger
	uint64_t sent;	   // bytes, ever
	uint64_t mark;	   // of these, to be reached by drain_at_ns; 0: none
	uint64_t drain_at_ns;
};

struct connection_credentials {
	uint32_t uid; // SESSION_NO_UID: not known
	bool privileged;
	bool local; // by the Unix socket
};

// Takes the descriptor over, also when it fails. -ENOMEM, or what epoll says.
int connection_open(
	struct client_server *server, int fd, const struct connection_credentials *credentials
);
void connection_close(struct connection *connection);
// There may be events for it, if it monitors.
void connection_news(struct connection *connection);
