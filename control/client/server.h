// SPDX-License-Identifier: BSD-3-Clause
// What the sessions of one server share. Owned by server.c.
#pragma once

#include "client/monitor.h"
#include "client/rate.h"
#include "client/session.h"

#include <control/fabric.h>
#include <control/loop.h>

struct connection;

struct client_listener {
	struct loop_source source;
	struct client_server *server;
	bool local; // the Unix socket
};

struct client_server {
	struct loop *loop;
	struct overlay *overlay;
	const struct fabric_calls *fabric_calls;
	struct fabric *fabric;	     // NULL: no devices
	const struct checks *checks; // NULL: not yet, or no more
	struct client_config config;
	struct client_counters counters;
	char *socket_path;
	char *version;
	char *cluster;
	uint64_t socket_device, socket_inode; // of what is ours to unlink
	struct client_listener tcp, local;
	int owner_fd; // asks the kernel who connected by TCP; -1: it does not tell
	struct loop_timer accept_again;
	struct rate asks;  // questions to other nodes
	struct rate reads; // bytes that PROBE reads
	struct monitors monitors;
	struct connection *connections;
	struct served *served;	     // questions of other nodes under way
	struct jobs_book *comm_book; // who came last in communicators; NULL: no memory for it
};
