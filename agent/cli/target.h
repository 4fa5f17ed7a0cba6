// SPDX-License-Identifier: BSD-3-Clause
// Agent that a command queries, transport and timeout. They come from the shared options, the
// environment and defaults.
#pragma once

#include "command.h"

#include <lib/contact.h>

#include <stddef.h>

#define TARGET_NAME_BYTES_MAX 63
#define TARGET_TEXT_BYTES_MAX 160 // limit of the agent for a reason

extern const struct option_spec target_options[];
size_t target_option_count(enum command_target target);

struct target {
	struct contact_target agent;
	bool json; // --json was given
};

// Return the target that a contact was initialized with.
static inline const struct target *target_of(const struct contact *contact) {
	_Static_assert(offsetof(struct target, agent) == 0, "the pointer below is that of agent");
	return (const struct target *)contact->target;
}

// Return true if --json was given.
bool target_wants_json(const struct arguments *arguments);

// Initialize a target; strings are borrowed from the arguments and the environment. A host name is
// resolved, which may block. Returns 0, or the exit status after an error message.
int target_init(
	struct target *target, const struct command *command, const struct arguments *arguments
);

// Return true if the word may be a node name in a line of the client protocol.
bool target_is_name(const char *word);
