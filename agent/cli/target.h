// SPDX-License-Identifier: BSD-3-Clause
// Which agent a command speaks with, by what way, and how long it waits: the options that commands
// share, the environment, and what is taken if neither says.
#pragma once

#include "command.h"

#include <lib/sockaddr.h>

#include <stdint.h>
#include <sys/un.h>

#define TARGET_NAME_BYTES_MAX 63
#define TARGET_TEXT_BYTES_MAX 160 // of a reason, as the agent has it
#define TARGET_PORT 28029

extern const struct option_spec target_options[];
size_t target_option_count(enum command_target target);

struct target {
	const char *command_name;
	const char *node;	  // who is to answer, NULL: who is asked
	const char *path;	  // of a Unix socket, NULL: address, or the default
	struct sock_addr address; // SOCK_ADDR_NONE: path, or the default
	bool json;
	bool orders;
	uint64_t timeout_ns; // 0: not given
};

// Whether --json was given.
bool target_wants_json(const struct arguments *arguments);

// Strings stay those of the arguments and the environment. 0, or the exit status after a
// complaint. A host's name is looked up, which blocks as long as the resolver does.
int target_init(
	struct target *target, const struct command *command, const struct arguments *arguments
);

// Where the agent should be now; for the default this depends on what exists.
struct target_place {
	union {
		struct sockaddr generic;
		struct sockaddr_un local;
		struct sockaddr_storage any;
	} address;
	socklen_t length;
	char text[256];	  // of it, for people
	char absent[256]; // a socket that was looked for before and is not there; "": none
};
void target_find(const struct target *target, struct target_place *ret_place);

// Whether it may stand in a line of the client protocol as the name of a node.
bool target_is_name(const char *word);
