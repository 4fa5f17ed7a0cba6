// SPDX-License-Identifier: BSD-3-Clause
// The client protocol: lines in; tables, JSON and NCCL's reports out.
//
// It is served on TCP (loopback only; every user, read-only) and on a Unix socket. On the Unix
// socket every user may read. All other commands need root, the agent's own user or one group; the
// kernel reports the user. The server runs on the loop's thread in the rank LOOP_CLIENTS. A command
// with a long answer writes it in steps, at most one per turn.
//
// A line ends in "\n"; a "\r" before it is dropped. Commands are case-insensitive. A line of
// CLIENT_LINE_BYTES_MAX bytes without an end closes the connection. Several lines may arrive at
// once; each is answered before the next one is parsed.
//
// NCCL's commands, as its RAS speaks them (client protocol 2):
//
//	CLIENT PROTOCOL x	"SERVER PROTOCOL 2"
//	TIMEOUT seconds		"OK"; for questions to all nodes, 0: no limit
//	SET FORMAT text|json	"OK"
//	[VERBOSE ]STATUS	the report; the connection closes after it
//	MONITOR [groups]	"OK", then events; lifecycle, trace, all
//	an unknown command	"ERROR: Unknown command ..."
//
// Tocsin's own commands, each answered in the selected format:
//
//	PEERS [state]		HEALTH [node|*]		EVENTS [since [until]]		LINKS
//	COMMS [job]		WHY node|job|comm	PING node		COUNTERS
//	WHY node @time		HISTORY node [since [until]]
//	DEVICES			PAIRS			PROBE node [count [bytes [us]]]
//	CHECKS
//	NODE node command	forwards one of these or a STATUS to another node
//	REPORT node reason	MAINT node on|off	LOG level
//	FORGET node|--unreachable|--remembered
//
// End of an answer: in text, the last line is "OK", or the only line is "ERROR: " with the reason.
// No other line is "OK" or begins with "ERROR: ". In JSON, the whole answer is one object on one
// line, with the key "error" on failure.
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
struct history;
struct jobhost;
struct jobhost_counters;
struct keeper_counters;
struct loop;
struct overlay;
struct overlay_served;
struct spawn_counters;
struct http_counters;
struct webhook_counters;

#define CLIENT_LINE_BYTES_MAX 1024
#define CLIENT_DETAIL_BYTES 256

struct client_config {
	struct sock_addr listen; // port 0: any free port; SOCK_ADDR_NONE: no TCP
	const char *socket_path; // NULL: no Unix socket
	mode_t socket_mode;
	bool has_group;
	gid_t group; // group whose members may use all commands on the Unix socket
	uint32_t clients_max;
	uint64_t idle_ns;    // maximum time between two complete lines
	uint64_t drain_ns;   // maximum time for a client to accept its output
	uint32_t asks_per_s; // questions to other nodes, per user
	uint32_t asks_burst;
	uint32_t read_bytes_per_s; // bytes read by PROBE, per unprivileged user
	uint32_t read_bytes_burst;
	const char *version; // version of Tocsin
	const char *cluster;
	const struct health *health;   // verdict store; NULL: none
	struct jobs_limits job_limits; // when a communicator counts as waiting, and when as stuck
	// Counters of the agent's other parts, for COUNTERS. They may be NULL, and must outlive the
	// server.
	const struct spawn_counters *spawn;
	const struct keeper_counters *keepers;
	const struct webhook_counters *webhook;
	const struct http_counters *http;
	const struct jobhost_counters *jobs;
	// Handler of the command LEVEL, such as jobhost_request_level(); NULL: not supported.
	int (*ask_level
	)(struct jobhost *jobhost, const char *level, uint64_t for_ns, const char *job);
	struct jobhost *jobhost;
	struct history *history; // NULL: none; must outlive the server
};

// Set the defaults: no listener and 64 clients. Idle time is five minutes, drain time ten seconds.
// Questions: 5 a second, 10 at once. Reads: 8 MiB a second, 64 MiB at once.
void client_config_init(struct client_config *config);

// Listen for clients, and answer calls from other nodes (overlay_set_call_server()). Strings are
// copied. A Unix socket that no process serves is replaced. Returns 0, or -errno with an
// explanation: -EADDRINUSE (another process serves the socket), -ENAMETOOLONG, -ENOMEM, ...
int client_server_create(
	struct loop *loop,
	const struct client_config *config,
	struct overlay *overlay,
	char ret_detail[static CLIENT_DETAIL_BYTES],
	struct client_server **ret_server
);
// Close all clients at once. Call before the overlay and the loop are destroyed.
struct client_server *client_server_destroy(struct client_server *server);

// Set the fabric, once it exists. Call with NULL before the fabric is destroyed.
void client_server_use_fabric(
	struct client_server *server, const struct fabric_calls *calls, struct fabric *fabric
);

// Set the local checks, once they exist. Call with NULL before they are destroyed.
void client_server_use_checks(struct client_server *server, const struct checks *checks);

// Return the TCP address, with the port that the kernel chose; SOCK_ADDR_NONE without TCP.
struct sock_addr client_server_address(const struct client_server *server);

// Answer a call from another node; an overlay_serve_fn, with the server as ctx. The line is
// "text|json timeout command", with the timeout in seconds or "-". The answer is in the client
// protocol. Only commands that read are allowed.
void client_serve_call(void *ctx, struct overlay_served *served, const char *line);

struct client_counters {
	uint64_t accepted, turned_away, accept_failures;
	uint64_t lines, lines_unknown, lines_denied, lines_too_long;
	uint64_t reports, asks_refused, remote_served;
	uint64_t monitor_events, monitor_lost;
	uint64_t closed_idle, closed_slow, closed_for_room;
	uint32_t clients; // current number
};

const struct client_counters *client_counters(const struct client_server *server);
