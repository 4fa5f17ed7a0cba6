// SPDX-License-Identifier: BSD-3-Clause
// A run between two ends: what they say to each other on the control connection, and when.
//
//	client			server
//	HELLO (plan)	->
//			<-	HELLO, or why not
//	ENDPOINT	<->	ENDPOINT	device and pair are made
//	CONNECTED	<->	CONNECTED
//	of each size:
//	STEP		->
//			<-	STEP_READY	it answers
//	... warm-up ...
//	MARK		->
//			<-	MARKED		of --device-time, if the server looks at stamps
//	... samples ...
//	STEP_END	->
//			<-	STEP_NOISE
//	BYE		->
//
// An end that cannot go on says why, so that it is told on both.
#pragma once

#include "end.h"
#include "result.h"

#include <lib/sockaddr.h>

// When each operation is due: read once, before, for a pipe gives it once.
struct lab_trace {
	uint64_t *due_ns, count;
};

struct lab_session {
	struct sock_addr address; // of the client: the server's; of the server: where it listens
	const char *device;	  // as lab_end_config
	struct device_settings settings;
	struct cpu_set cores;
	bool cores_given;
	uint32_t priority; // real-time, of the worker; 0: none
	struct messages_place memory;
	struct plan plan;
	uint32_t given;		// plan_part: what of it the server was told
	struct lab_trace trace; // of PLAN_TRACE, the client's
	// Of the server. Called when it listens; NULL: it tells people.
	void (*announce)(void *ctx, const struct sock_addr *address);
	void *announce_ctx;
	uint64_t patience_ns;		   // for a client to come; 0: for ever
	bool quick;			   // one of many: short warm-up, memory not locked, no file
	const struct lab_machine *machine; // as lab_end_config
	size_t file_bytes;		   // of the client: what its file may have
	int signal_fd;			   // readable when a person wants it to end; -1: never
};

// Returns 0, or -errno with the reason; *run has what there is by then, complete or not. It is
// released by the caller either way.
int session_client(const struct lab_session *session, struct lab_run *run, struct lab_why *why);
// Serves one client, whose plan it hands over, also where it fails later. Who connects and says
// nothing of ours is told, and the client waited for.
int session_server(const struct lab_session *session, struct plan *ret_plan, struct lab_why *why);

// What both do.

struct lab_hello {
	char version[32];
	struct plan plan; // the client's
};

int session_send_hello(struct channel *channel, const struct plan *plan, struct lab_why *why);
// Errors as channel_receive().
int session_receive_hello(
	struct channel *channel,
	struct deadline deadline,
	struct lab_hello *ret_hello,
	struct lab_why *why
);
// One end of a session that goes on.
struct lab_party {
	struct channel channel;
	struct plan plan;
	bool serves;
	struct lab_environment environment[2]; // ours, theirs
	struct lab_end *end;
};

// Opens the end, exchanges endpoints and environments, connects.
int session_connect(
	const struct lab_session *session, struct lab_party *party, struct lab_why *why
);
// Tells the other end why it is over, if it is for a reason, and gives back what the party has.
void session_end(struct lab_party *party, const struct lab_why *why);
// Why the player ended before its time.
int session_say_failure(const struct player *player, struct lab_why *why);
struct deadline session_soon(void);
