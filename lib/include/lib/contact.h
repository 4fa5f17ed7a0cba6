// SPDX-License-Identifier: BSD-3-Clause
// One connection to an agent, which carries requests of the client protocol one by one.
//
// Every step has a deadline. A refused connection is tried four times within a second, since the
// agent may be starting. Each try may take three seconds. An answer may take as long as the target
// allows.
//
// Return values of the functions below, besides 0:
//   -EREMOTEIO  the agent answered, and the answer is no
//   -EINTR      a watched descriptor is readable
//   other       no agent answered: not running, too late, disconnected, or not a tocsind
// The reason is in contact->why, one sentence safe for a terminal. After any error but -EREMOTEIO
// the connection is unusable.
#pragma once

#include <lib/sockaddr.h>

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTACT_SYSTEM_SOCKET "/run/tocsin/tocsind.sock"
#define CONTACT_PORT 28029

#define CONTACT_WHY_BYTES 640
#define CONTACT_WATCHED_MAX 2
// Limit for one line, or for an answer up to the end of the stream.
#define CONTACT_ANSWER_BYTES_MAX ((size_t)64 << 20)

// The agent to ask. Without path and address it is the agent of this user, then the system's agent,
// then (unless `local`) the agent on CONTACT_PORT of this host.
struct contact_target {
	const char *command_name; // of `tocsin`, for messages; NULL: the contact must be silent
	const char *node;	  // the node that must answer; NULL: the agent that is asked
	const char *path;	  // Unix socket, which fits into an address; NULL: see above
	struct sock_addr address; // SOCK_ADDR_NONE: see above
	bool local;		  // only a Unix socket
	uint64_t timeout_ns;	  // limit of other nodes; 0: the default
};

struct contact {
	const struct contact_target *target;
	int fd;
	int watched[CONTACT_WATCHED_MAX]; // -1: none
	char *data;
	size_t begin, end, capacity;
	uint64_t answer_ns; // timeout of an answer; may be changed before a request
	uint64_t due_ns;
	uint32_t protocol;	 // protocol version of the agent
	bool whole;		 // tables in text are not cut to the width of a terminal
	bool silent;		 // no message on stderr while waiting
	uint64_t wait_report_ns; // time to report the wait; UINT64_MAX: reported
	char place[256];
	char why[CONTACT_WHY_BYTES];
};

// Initialize a contact. The target must outlive it.
void contact_init(struct contact *contact, const struct contact_target *target);
void contact_fini(struct contact *contact);

// Connect (again) and set the answer format.
int contact_open(struct contact *contact, bool json);
// Tell the agent how long other nodes may take from now on.
int contact_set_timeout(struct contact *contact, uint64_t seconds);

// Send a request, relayed to the target's node if it names one.
int contact_ask(struct contact *contact, const char *question);
// Return everything up to the end of the stream, as NCCL's reports need.
int contact_read_to_end(struct contact *contact, const char **ret_text);

// Send a request and read the whole answer. The caller releases *ret_answer.
int contact_json(struct contact *contact, const char *question, json_t **ret_answer);
