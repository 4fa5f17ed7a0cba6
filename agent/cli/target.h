// SPDX-License-Identifier: BSD-3-Clause
// Agent that a command queries, transport and timeout. They come from the shared options, the
// environment and defaults.
#pragma once

#include "command.h"

#include <lib/sockaddr.h>

#include <stdint.h>
#include <sys/un.h>

#define TARGET_NAME_BYTES_MAX 63
#define TARGET_TEXT_BYTES_MAX 160 // limit of the agent for a reason
#define TARGET_PORT 28029

extern const struct option_spec target_options[];
size_t target_option_count(enum command_target target);

struct target {
	const char *command_name;
	// Node that must answer, reached through the queried agent; NULL: the queried agent.
	const char *node;
	const char *path;	  // Unix socket; NULL: use `address` or the default
	struct sock_addr address; // SOCK_ADDR_NONE: use `path` or the default
	bool json;
	bool orders;
	uint64_t timeout_ns; // 0: not given
};

// Return true if --json was given.
bool target_wants_json(const struct arguments *arguments);

// Initialize a target; strings are borrowed from the arguments and the environment. A host name is
// resolved, which may block. Returns 0, or the exit status after an error message.
int target_init(
	struct target *target, const struct command *command, const struct arguments *arguments
);

// Current location of the agent; the default depends on which sockets exist.
struct target_place {
	union {
		struct sockaddr generic;
		struct sockaddr_un local;
		struct sockaddr_storage any;
	} address;
	socklen_t length;
	char text[256];	  // address as text
	char absent[256]; // default socket that was not found; "": none
};
void target_find(const struct target *target, struct target_place *ret_place);

// Return true if the word may be a node name in a line of the client protocol.
bool target_is_name(const char *word);
