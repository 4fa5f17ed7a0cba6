// SPDX-License-Identifier: BSD-3-Clause
// The client protocol: lines in; tables, JSON and NCCL's reports out.
//
// Served on TCP (loopback; everybody, read-only) and on a Unix socket (everybody for what only
// reads; root, the agent's own user and one group for the rest, by the kernel's word on who
// connected). It runs on the loop's thread in the rank LOOP_CLIENTS: a command that has much to
// say says it in steps, at most one a turn.
//
// A line ends in "\n", a "\r" before it is dropped; commands are case-insensitive. A line of
// CLIENT_LINE_BYTES_MAX bytes without its end closes the connection. Several lines may come at
// once; each is answered before the next is looked at.
//
// NCCL's commands, as its RAS speaks them (client protocol 2):
//
//	CLIENT PROTOCOL x	"SERVER PROTOCOL 2"
//	TIMEOUT seconds		"OK"; for questions to all nodes, 0: as long as it takes
//	SET FORMAT text|json	"OK"
//	[VERBOSE ]STATUS	the report, whose end is the end of the connection
//	MONITOR [groups]	"OK", then events; lifecycle, trace, all
//	what is unknown		"ERROR: Unknown command ..."
//
// Tocsin's own, each answered in the format that was set:
//
//	PEERS [state]		HEALTH [node|*]		EVENTS [since]		LINKS
//	COMMS [job]		WHY node|job|comm	PING node		COUNTERS
//	DEVICES			PAIRS			PROBE node [count [bytes [us]]]
//	CHECKS
//	NODE node command	one of these or a STATUS, put to another node
//	REPORT node reason	MAINT node on|off	LOG level
//	FORGET node|--unreachable|--remembered
//
// How a client sees the end: in text the last line is "OK", or the only line is "ERROR: " and
// why (no other line is or begins like that); in JSON the whole answer is one line, an object,
// which has the key "error" if it failed.
#pragma once

#include <lib/sockaddr.h>

#include <jobs/judge.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct checks;
struct client_server;
struct fabric;
struct fabric_calls;
struct health;
struct jobhost;
struct jobhost_counters;
struct keeper_counters;
struct loop;
struct overlay;
struct overlay_served;
struct spawn_counters;
struct webhook_counters;

#define CLIENT_LINE_BYTES_MAX 1024
#define CLIENT_DETAIL_BYTES 256

struct client_config {
	struct sock_addr listen; // port 0: any; SOCK_ADDR_NONE: no TCP
	const char *socket_path; // NULL: none
	mode_t socket_mode;
	bool has_group;
	gid_t group; // whose members may do everything on the Unix socket
	uint32_t clients_max;
	uint64_t idle_ns;    // between two complete lines
	uint64_t drain_ns;   // for what was sent to a client to be taken by it
	uint32_t asks_per_s; // questions to other nodes, per user
	uint32_t asks_burst;
	uint32_t read_bytes_per_s; // by PROBE, per user who may not give orders
	uint32_t read_bytes_burst;
	const char *version; // of the product
	const char *cluster;
	const struct health *health;   // the store of verdicts; NULL: there is none
	struct jobs_limits job_limits; // when a communicator is said to wait, and to be stuck
	// Of the agent's other parts, for COUNTERS; may be NULL, and outlive the server.
	const struct spawn_counters *spawn;
	const struct keeper_counters *keepers;
	const struct webhook_counters *webhook;
	const struct jobhost_counters *jobs;
	// Who takes LEVEL, as jobhost_ask_level() does; NULL: nobody.
	int (*ask_level
	)(struct jobhost *jobhost, const char *level, uint64_t for_ns, const char *job);
	struct jobhost *jobhost;
};

// With the defaults: no listener, 64 clients, five minutes, ten seconds, 5 and 10, 8 and 64 MiB.
void client_config_init(struct client_config *config);

// Listens, and answers what other nodes ask this one (overlay_server()). Strings are copied.
// A Unix socket that nobody answers on is taken over. -errno, and what failed in words:
// -EADDRINUSE (somebody answers there), -ENAMETOOLONG, -ENOMEM, ...
int client_server_create(
	struct loop *loop,
	const struct client_config *config,
	struct overlay *overlay,
	char ret_detail[static CLIENT_DETAIL_BYTES],
	struct client_server **ret_server
);
// Every client is closed at once. Before the overlay and the loop are destroyed.
struct client_server *client_server_destroy(struct client_server *server);

// The fabric to ask, once there is one; NULL before it is taken down.
void client_server_use_fabric(
	struct client_server *server, const struct fabric_calls *calls, struct fabric *fabric
);

// The local checks to look at, once there are any; NULL before they are taken down.
void client_server_use_checks(struct client_server *server, const struct checks *checks);

// Where TCP is served, with the port the kernel chose; SOCK_ADDR_NONE if it is not.
struct sock_addr client_server_address(const struct client_server *server);

// An overlay_serve_fn, ctx the server: "text|json timeout command", where timeout is in seconds
// or "-", answered by the bytes of the client protocol. Commands that only read.
void client_serve(void *ctx, struct overlay_served *served, const char *line);

struct client_counters {
	uint64_t accepted, turned_away, accept_failures;
	uint64_t lines, lines_unknown, lines_denied, lines_too_long;
	uint64_t reports, asks_refused, remote_served;
	uint64_t monitor_events, monitor_lost;
	uint64_t closed_idle, closed_slow, closed_for_room;
	uint32_t clients; // now
};

const struct client_counters *client_counters(const struct client_server *server);
