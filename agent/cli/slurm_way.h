// SPDX-License-Identifier: BSD-3-Clause
// A way to Slurm: what is read of its nodes, and what is changed. There are two: the program
// scontrol (slurm_scontrol.c) and slurmrestd over HTTP (slurm_rest.c). Both are believed within
// bounds only, and have a deadline.
#pragma once

#include "slurm_tables.h"

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
