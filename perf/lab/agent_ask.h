// SPDX-License-Identifier: BSD-3-Clause
// Questions to an agent of this machine, over its Unix socket, by its line protocol: what it
// measures for us it measures itself, on its own workers and pairs.
#pragma once

#include "why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_SOCKET "/run/tocsin/tocsind.sock"
#define AGENT_NAME_BYTES 64
#define AGENT_TIMES_MAX 65536u // of one question, by the agent
#define AGENT_BYTES_MAX 65536u // of one read: so large is the page that agents show

struct json_t;

struct agent {
	int fd; // -1: none
	const char *path;
	char *data;
	size_t used, capacity;
	int signal_fd;	     // readable when a person wants it to end; -1: never
	uint32_t patience_s; // for an answer
};

// `path` NULL: $TOCSIN_SOCKET, else the agent of this user, else that of the system. -errno with
// the reason.
int agent_open(const char *path, int signal_fd, struct agent *ret_agent, struct lab_why *why);
void agent_close(struct agent *agent);
// One question, and its answer, which is the caller's to put. -EREMOTEIO: the agent's answer is no;
// -EINTR: interrupted.
int agent_ask(
	struct agent *agent, const char *question, struct json_t **ret_answer, struct lab_why *why
);

// Whether it may stand in a question.
bool agent_name_is_word(const char *name);

// Reads of the page of a node, one after the other, by another one's agent.
struct agent_reads {
	const char *from; // who reads; NULL: the agent that is asked
	const char *to;
	uint32_t count; // at most AGENT_TIMES_MAX
	uint64_t bytes; // at most AGENT_BYTES_MAX
	// Of the answer.
	char device[AGENT_NAME_BYTES], peer_device[AGENT_NAME_BYTES];
	bool in_process; // the peer's device answers only while its agent runs
	uint64_t took_ns;
	uint64_t *times_ns; // `count` of them, the caller's to free
};

// Errors as above; -EPROTO: it is of a version that tells no times, or answers something else.
int agent_read(struct agent *agent, struct agent_reads *reads, struct lab_why *why);
