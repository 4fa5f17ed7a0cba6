// SPDX-License-Identifier: BSD-3-Clause
// Access to Slurm: reads and changes nodes. There are two implementations: the program scontrol
// (slurm_scontrol.c), and slurmrestd over HTTP (slurm_rest.c). Both bound the answers that they
// accept, and have a deadline.
#pragma once

#include "slurm/slurm_tables.h"

#define SLURM_WHY_BYTES 256

struct slurm_way;

struct slurm_way_ops {
	// Read all nodes, or only the node `only`. Returns 0, -EBADMSG if none is named, or another
	// -errno.
	int (*read
	)(struct slurm_way *way,
	  const char *only,
	  struct slurm_nodes *ret_nodes,
	  char ret_why[static SLURM_WHY_BYTES]);
	// Drain the node if `reason` is given, otherwise undrain it.
	int (*update
	)(struct slurm_way *way,
	  const char *node,
	  const char *reason,
	  char ret_why[static SLURM_WHY_BYTES]);
};

struct slurm_way {
	const struct slurm_way_ops *ops;
	const char *place; // program or URL
	uint64_t timeout_ns;
	const char *api, *token_file, *user; // for slurmrestd; the last two may be NULL
};

extern const struct slurm_way_ops slurm_scontrol_ops, slurm_rest_ops;

#define SLURM_REST_API "v0.0.40"

// Options of a command that select the access; NULL: not given.
struct slurm_way_options {
	const char *scontrol, *rest, *rest_api, *rest_token, *rest_user;
};

#define SLURM_OPTION_RECORD(names)                                               \
	{                                                                        \
		"record", "FILE",                                                \
			"record of our drains; it is created if it is missing\n" \
			"(default in /var/lib/tocsin:\n" names ")"               \
	}
#define SLURM_OPTION_REST                                                         \
	{                                                                         \
		"rest", "URL",                                                    \
			"use slurmrestd instead of scontrol: http://HOST:PORT,\n" \
			"https://HOST[:PORT] or unix:PATH"                        \
	}
#define SLURM_OPTION_REST_API \
	{ "rest-api", "VERSION", "version of slurmrestd's API (default " SLURM_REST_API ")" }
#define SLURM_OPTION_REST_TOKEN \
	{ "rest-token", "FILE", "file with the JWT for slurmrestd (default: $SLURM_JWT)" }
#define SLURM_OPTION_REST_USER \
	{ "rest-user", "NAME", "user name, if the token does not contain it" }
#define SLURM_OPTION_SCONTROL \
	{ "scontrol", "PATH", "program to run (default scontrol)" }

// Set *ret_way from the options. Returns 0, or EXIT_USAGE after an error message.
int slurm_way_select(
	const char *command, const struct slurm_way_options *words, struct slurm_way *ret_way
);
// Return the default record of "sync" or "check", and create its directory if it is missing.
const char *slurm_record_default(const char *mode);
