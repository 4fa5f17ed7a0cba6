// SPDX-License-Identifier: BSD-3-Clause
// How the processes of a mesh find each other, whoever started them: Slurm's or MPI's launcher by
// its environment, a person or a script by --rank and --ranks, or this program itself on one
// machine.
//
// All meet at process 0: at an address that each is told (--rendezvous HOST[:PORT], or the first
// node of a Slurm step), or that process 0 writes into a file which all see.
#pragma once

#include "mesh_lead.h"
#include "mesh_member.h"
#include "why.h"

#include <stdint.h>

#define MESH_PORT 18521

struct mesh_options {
	uint32_t local;		// processes of this machine, started by us; 0: others start them
	bool agents;		// through running agents; no process of ours but this one
	uint32_t at_once;	// 0: as many as processors allow
	const char *rendezvous; // "HOST[:PORT]", "file:PATH"; NULL: by the launcher
	const char *hosts;	// print commands for these, in Slurm's syntax; NULL: no
	bool rank_given, ranks_given;
	uint32_t rank, ranks;
	uint16_t port; // where process 0 listens; 0: MESH_PORT, where others are told a free one
};

// By options, else by the environment of Slurm, Open MPI or another MPI: -ENOENT with the reason
// where neither says.
int mesh_find_rank(
	const struct mesh_options *options, struct mesh_member *member, struct lab_why *why
);

// Where process 0 is, for `member`: an address, or the file that will say so.
int mesh_find_place(
	const struct mesh_options *options, struct mesh_member *member, struct lab_why *why
);

// Process 0: listens where `member` looks for it, and tells the others if it is by a file, which
// holds nothing else. *ret_listener is closed, and the file removed, by mesh_forget_place().
int mesh_open_place(
	const struct mesh_options *options,
	const struct mesh_member *member,
	struct channel_listener *ret_listener,
	struct lab_why *why
);
void mesh_forget_place(const struct mesh_options *options, struct channel_listener *listener);

// What the file says now. -EAGAIN: nothing yet, or a host that is not known (any more); -EBADMSG:
// it is another file; both with the reason.
int mesh_read_place(const char *path, struct sock_addr *ret_address, struct lab_why *why);

// The commands that start the processes by ssh, a line for each; `words` are those of the mesh.
int mesh_print_commands(
	const struct mesh_options *options, int argc, char *const *argv, struct lab_why *why
);
