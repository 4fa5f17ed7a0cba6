// SPDX-License-Identifier: BSD-3-Clause
// A way to Slurm: what is read of its nodes, and what is changed. There are two: the program
// scontrol (slurm_scontrol.c) and slurmrestd over HTTP (slurm_rest.c). Both are believed within
// bounds only, and have a deadline.
#pragma once

#include "slurm/slurm_tables.h"

#define SLURM_WHY_BYTES 256

struct slurm_way;

struct slurm_way_ops {
	// All nodes, or only this one. -EBADMSG where none is named; else -errno of what went
	// wrong.
	int (*read
	)(struct slurm_way *way,
	  const char *only,
	  struct slurm_nodes *ret_nodes,
	  char ret_why[static SLURM_WHY_BYTES]);
	// Drains it with the reason, or undrains it if there is none.
	int (*update
	)(struct slurm_way *way,
	  const char *node,
	  const char *reason,
	  char ret_why[static SLURM_WHY_BYTES]);
};

struct slurm_way {
	const struct slurm_way_ops *ops;
	const char *place; // a program, or an address
	uint64_t timeout_ns;
	const char *api, *token_file, *user; // of slurmrestd; the last two may be NULL
};

extern const struct slurm_way_ops slurm_scontrol_ops, slurm_rest_ops;

#define SLURM_REST_API "v0.0.40"

// What a command is told of its way; NULL: not given.
struct slurm_way_words {
	const char *scontrol, *rest, *rest_api, *rest_token, *rest_user;
};

#define SLURM_OPTION_RECORD(names)                                                           \
	{                                                                                    \
		"record", "FILE",                                                            \
			"which drains are ours; it is made if it is not there (default in\n" \
			"/var/lib/tocsin: " names ")"                                        \
	}
#define SLURM_OPTION_REST                                                         \
	{                                                                         \
		"rest", "URL",                                                    \
			"ask slurmrestd instead of scontrol: http://HOST:PORT,\n" \
			"https://HOST[:PORT] or unix:PATH"                        \
	}
#define SLURM_OPTION_REST_API \
	{ "rest-api", "VERSION", "of slurmrestd (default " SLURM_REST_API ")" }
#define SLURM_OPTION_REST_TOKEN \
	{ "rest-token", "FILE", "the JWT for slurmrestd (default: what SLURM_JWT holds)" }
#define SLURM_OPTION_REST_USER \
	{ "rest-user", "NAME", "the user, where the token does not name it" }
#define SLURM_OPTION_SCONTROL \
	{ "scontrol", "PATH", "the program to ask (default scontrol)" }

// 0, or EXIT_USAGE after a complaint of the command's.
int slurm_way_take(
	const char *command, const struct slurm_way_words *words, struct slurm_way *ret_way
);
// The file of "sync" or "check", whose directory is made if need be.
const char *slurm_record_default(const char *mode);
