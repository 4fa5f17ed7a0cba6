// SPDX-License-Identifier: BSD-3-Clause
// A client server on a real loop and real sockets, over an overlay that the test plays.
//
// The overlay and the questions to the core are defined in client_bench.c, so the real ones are
// not linked: what the cluster looks like is what the test puts in here. Time stands still.
#pragma once

#include <control/client.h>
#include <control/loop.h>
#include <control/overlay.h>
#include <control/state.h>
#include <lib/clock.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <jansson.h>

#define BENCH_PEERS_MAX 1100
#define BENCH_EVENTS_MAX 4096

struct overlay {
	struct ras_interner *interner;
	struct ras_record *records[BENCH_PEERS_MAX];
	struct ras_peer peers[BENCH_PEERS_MAX];
	uint32_t peer_count;
	struct ras_link_info links[8];
	uint32_t link_count;
	const char *missing[4]; // of the roster
	struct ras_view view;	// counts are those of the peers
	struct ras_event events[BENCH_EVENTS_MAX];
	const char *text; // of the last event
	struct overlay_reach reach;
	const char *join_problem; // NULL: none
	bool alone;
	uint32_t remembered_forgotten; // so often
	const char *mistake;	       // the same
	struct overlay_strangers strangers;
	uint32_t event_capacity;
	uint64_t event_next;
	struct overlay_listener *listeners;

	int ask_err;
	uint64_t ask_timeout_ns;
	enum ras_collect_kind ask_kind;
	uint32_t asked, forgotten;
	struct overlay_question *questions;

	int ping_err;
	uint32_t ping_cancelled;
	struct overlay_ping *ping;

	int call_err;
	uint32_t call_cancelled, call_readies;
	struct overlay_call *call;
	char call_line[CLIENT_LINE_BYTES_MAX];
	uint64_t call_timeout_ns;

	uint64_t served_life_ns; // 0: a minute
	overlay_serve_fn *serve;
	void *serve_ctx;
	char served[1 << 16];
	size_t served_size;
	bool served_ended;
	int served_err;

	char order[256];
	int order_err;
	struct overlay_maintenance_order maintenance; // as ordered
};

struct bench {
	struct clock clock;
	struct loop *loop;
	struct overlay overlay;
	struct client_config config;
	struct client_server *server;
	struct state_event earlier[4];
	uint32_t earlier_count;
	struct ras_missing_peer missing[8]; // of the answer
	char directory[64];
	char path[96];
	char question[64]; // the beginning of what was said last
	bool whole;	   // what is shown is for no terminal
};

extern struct bench bench;

// cmocka's setup and teardown: TCP on any port and a Unix socket; three nodes n1 (self), n2, n3.
int bench_start(void **state);
int bench_stop(void **state);
#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, bench_start, bench_stop)
// The same server with other settings.
void bench_restart(void);

uint64_t bench_add_peer(const char *name, const char *host, enum ras_state state);
struct ras_peer *bench_peer(const char *name);
void bench_add_event(
	enum ras_event_kind kind, const char *name, enum ras_cause cause, uint64_t value
);
void bench_answer(struct overlay_answer *answer);
struct overlay_answer *bench_answer_new(void);

int bench_connect(void); // TCP
// The same of another user, as far as the kernel tells; the test is skipped where it cannot be.
int bench_connect_from(uint32_t uid);
int bench_connect_local(void); // the Unix socket
void bench_turn(void);
void bench_send(int fd, const char *text, size_t size);
void bench_say(int fd, const char *text);
// Return the bytes received after some turns of the loop, terminated. The buffer is valid until the
// next call.
const char *bench_hear(int fd);
// The same as the program tocsin prints it: of JSON a page, "ERROR: why", or "OK" for an order.
// It lasts until the next.
const char *bench_shown(int fd);
// Until the server ends the connection.
const char *bench_hear_all(int fd);
bool bench_is_open(int fd);
// Says, and hears what must be one line of JSON. The caller's to put.
json_t *bench_ask_json(int fd, const char *text);
// Fail if a key of the answer, at any depth, does not name the one unit of its quantity.
void bench_assert_units(const json_t *value);
// Fails if a line has more characters.
void bench_assert_narrow(const char *text, size_t columns);
// Finds words in a page: blanks and ends of lines are alike, and one is as good as many.
const char *bench_find(const char *text, const char *words);
