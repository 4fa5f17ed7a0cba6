// SPDX-License-Identifier: BSD-3-Clause
// A run between two ends: the messages on the control connection and their order.
//
//	client			server
//	the proof of a common secret, see <proof.h>
//	HELLO (plan)	->
//			<-	HELLO, or ERROR
//	ENDPOINT	<->	ENDPOINT	device and pairs exist
//	CONNECTED	<->	CONNECTED
//	for each size:
//	STEP		->
//			<-	STEP_READY	the server answers
//	... warm-up ...
//	MARK		->
//			<-	MARKED		with --device-time, if the server uses stamps
//	... samples ...
//	STEP_END	->
//			<-	STEP_NOISE
//	BYE		->
//
// An end that fails sends its reason, so that both ends report it.
#pragma once

#include "run/end.h"
#include "run/result.h"
#include "run/token.h"

#include <lib/sockaddr.h>

// Due times of a trace. The file is read once before the run, because it may be a pipe.
struct lab_trace {
	uint64_t *due_ns, count;
};

struct lab_session {
	struct sock_addr address; // client: address of the server; server: address to listen on
	const char *device;	  // as in lab_end_config
	struct device_settings settings;
	struct cpu_set cores;
	bool cores_given;
	uint32_t priority; // real-time priority of the worker; 0: none
	struct messages_place memory;
	struct plan plan;
	uint32_t given;		// server: PLAN_PART_ bits of the options that were given
	struct lab_trace trace; // client: due times of PLAN_TRACE
	// Server: called when it listens; NULL: print the address.
	void (*announce)(void *ctx, const struct sock_addr *address);
	void *announce_ctx;
	uint64_t patience_ns; // timeout for a client to connect; 0: none
	// Short warm-up, memory not locked, no file; for one of many measurements.
	bool quick;
	// Client: called after the warm-up, before the first sample. NULL: sampling begins at once.
	// Returns 0, or -errno with the reason in `why`.
	int (*gather)(void *ctx, struct lab_why *why);
	void *gather_ctx;
	uint64_t windows_min;		   // client, bw: windows to record even beyond the duration
	const struct lab_machine *machine; // as in lab_end_config
	size_t file_bytes;		   // client: size limit of its file
	int signal_fd;			   // readable when the user interrupts; -1: never
	struct lab_access access; // client: used if `secrets` is NULL; server: file to write
	const struct proof_secrets *secrets;
	const char *token; // server: published for clients on this machine; NULL: nothing is
	bool token_is_new; // server: the token is not from the user, and is printed
};

// Run the client. *run gets all results so far, complete or not; the caller releases it in any
// case. Returns 0, or -errno with the reason in `why`.
int session_client(const struct lab_session *session, struct lab_run *run, struct lab_why *why);
// Serve one client that proves a secret. *ret_plan gets the client's plan, also if the session
// fails later. Other connections, and clients whose plan exceeds a limit, are refused with a
// message, and the server continues to wait. Returns 0, or -errno with the reason in `why`.
int session_server(const struct lab_session *session, struct plan *ret_plan, struct lab_why *why);

// Parts of both ends.

struct lab_hello {
	char version[32];
	struct plan plan; // plan of the client
};

int session_send_hello(struct channel *channel, const struct plan *plan, struct lab_why *why);
// Read and check a hello. Returns 0, -EBADMSG, -EPROTO (another release) or -EINVAL (the plan is
// not possible), with the reason in `why`.
int session_read_hello(
	const struct channel_message *message, struct lab_hello *ret_hello, struct lab_why *why
);
// One end of a running session.
struct lab_party {
	struct channel channel;
	struct plan plan;
	bool serves;
	struct lab_environment environment[2]; // [0]: own, [1]: of the other end
	struct lab_end *end;
};

// Open the end, exchange endpoints and environments, and connect the pairs. Returns 0, or -errno
// with the reason in `why`.
int session_connect(
	const struct lab_session *session, struct lab_party *party, struct lab_why *why
);
// End a session. If there is a failure reason, send it to the other end. Release the members of the
// party.
void session_end(struct lab_party *party, const struct lab_why *why);
// Report the failure of the player. Returns 0 if it did not fail, else -EIO with the reason in
// `why`.
int session_fail_player(const struct player *player, struct lab_why *why);
struct deadline session_answer_deadline(void);
