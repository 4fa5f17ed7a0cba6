// SPDX-License-Identifier: BSD-3-Clause
// A client on a socket: its lines, its answers, and the time limits of both.
//
// Nothing is read while an answer is being made or waits to be sent. So a client that asks and does
// not read costs the memory of one answer step. A client may end its sending side; its answers are
// still delivered before the connection closes.
#pragma once

#include "client/lines.h"
#include "client/session.h"

#include <control/loop.h>

struct connection {
	struct session session; // must be first
	struct loop_source source;
	struct loop_timer timer;
	struct connection *next, **place;
	struct lines lines;
	bool ended;	   // the client has ended its sending side
	bool lingering;	   // all answers are sent; further input is dropped until the client closes
	uint64_t since_ns; // time of the last complete line or answer, or the start of lingering
	uint64_t sent;	   // bytes sent in total
	uint64_t mark;	   // value that `sent` must reach by drain_at_ns; 0: none
	uint64_t drain_at_ns;
};

struct connection_credentials {
	uint32_t uid; // SESSION_NO_UID: unknown
	bool privileged;
	bool local; // connected through the Unix socket
};

// Start a connection and take over the descriptor, even on failure. Returns 0, -ENOMEM, or the
// error of epoll.
int connection_open(
	struct client_server *server, int fd, const struct connection_credentials *credentials
);
void connection_close(struct connection *connection);
// Notify a connection of new events, in case the client monitors.
void connection_notify_events(struct connection *connection);
