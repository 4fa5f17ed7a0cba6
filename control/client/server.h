// SPDX-License-Identifier: BSD-3-Clause
// State shared by the sessions of one server. Owned by server.c.
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
	const struct checks *checks; // NULL: not started, or already stopped
	struct client_config config;
	struct client_counters counters;
	char *socket_path;
	char *version;
	char *cluster;
	// identify our socket file, so that only ours is unlinked
	uint64_t socket_device, socket_inode;
	struct client_listener tcp, local;
	int owner_fd; // queries the owner of a TCP connection; -1: not available
	struct loop_timer accept_again;
	struct rate asks;  // questions to other nodes
	struct rate reads; // bytes read by PROBE
	struct monitors monitors;
	struct connection *connections;
	struct served *served; // running calls of other nodes
	struct jobs_wait_history
		*comm_book; // history of late ranks in communicators; NULL: no memory
};
