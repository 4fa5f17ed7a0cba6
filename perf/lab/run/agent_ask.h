// SPDX-License-Identifier: BSD-3-Clause
// Client of an agent on this machine, over its Unix socket and its line protocol. The agent
// measures with its own workers and pairs.
#pragma once

#include "run/why.h"

#include <lib/contact.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_NAME_BYTES 64
#define AGENT_TIMES_MAX 65536u // reads per question; limit of the agent
#define AGENT_BYTES_MAX 65536u // bytes per read; size of the page that agents expose

struct agent {
	struct contact_target target;
	struct contact contact;
};

// Connect to an agent. With `path` NULL, use $TOCSIN_SOCKET, else the socket of this user's agent,
// else the system's socket. `signal_fd` is readable when the user interrupts; -1: never. Returns 0,
// or -errno with the reason in `why`. The agent must not move, and must be closed in either case.
int agent_open(struct agent *agent, const char *path, int signal_fd, struct lab_why *why);
void agent_close(struct agent *agent);
// Send one question and parse its answer, which the caller must json_decref(). Returns 0,
// -EREMOTEIO if the agent answers with an error, -EINTR if interrupted, or another -errno.
int agent_ask(struct agent *agent, const char *question, json_t **ret_answer, struct lab_why *why);

// Return true if the name can be part of a question: no spaces or control characters, not too long.
bool agent_name_is_word(const char *name);

// A series of reads of one node's page, made by the agent of another node.
struct agent_reads {
	const char *from; // node that reads; NULL: the node of the asked agent
	const char *to;
	uint32_t count; // at most AGENT_TIMES_MAX
	uint64_t bytes; // at most AGENT_BYTES_MAX
	// Filled in from the answer.
	char device[AGENT_NAME_BYTES], peer_device[AGENT_NAME_BYTES];
	bool in_process; // the peer's device answers only while its agent runs
	uint64_t took_ns;
	uint64_t *times_ns; // `count` times; the caller frees them
};

// Run the reads and fill in the answer. Returns 0 or an error of agent_ask(). Returns -EPROTO if
// the agent is too old to report single times, or if the answer is malformed.
int agent_read(struct agent *agent, struct agent_reads *reads, struct lab_why *why);
