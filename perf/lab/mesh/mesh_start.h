// SPDX-License-Identifier: BSD-3-Clause
// Start of a mesh: how its processes get their ranks and find process 0.
//
// The processes are started by Slurm, an MPI launcher, a user with --rank and --ranks, or this
// program (one machine). Launchers pass the rank in the environment.
//
// All processes connect to process 0. Its address is --rendezvous HOST[:PORT] or the first node of
// a Slurm step. Alternatively process 0 writes its address to a shared file.
#pragma once

#include "mesh/mesh_lead.h"
#include "mesh/mesh_member.h"
#include "run/why.h"

#include <stdint.h>

#define MESH_PORT 18521

struct mesh_options {
	// Number of processes to start on this machine; 0: started by others.
	uint32_t local;
	bool congestion, incast; // measured as well, see <mesh_flows.h>
	bool agents;		 // measure through running agents, with this single process
	uint32_t at_once;	 // maximum number of concurrent pairs; 0: limited by the processors
	const char *rendezvous;	 // "HOST[:PORT]" or "file:PATH"; NULL: from the launcher
	// Hosts in Slurm's syntax to print the start commands for; NULL: none.
	const char *hosts;
	bool rank_given, ranks_given;
	uint32_t rank, ranks;
	uint16_t port; // port of process 0; 0: MESH_PORT, or a free port with a rendezvous file
};

// Set the rank and count of `member`, from options or from the environment of Slurm, Open MPI or
// another MPI. Returns 0, or -ENOENT with the reason in `why` if neither is set, or -EINVAL.
int mesh_find_rank(
	const struct mesh_options *options, struct mesh_member *member, struct lab_why *why
);

// Set the address of process 0 in `member`, or the file that will contain the address.
int mesh_find_lead_address(
	const struct mesh_options *options, struct mesh_member *member, struct lab_why *why
);

// Process 0: listen at the address that the others use. With a rendezvous file, write the address
// and the token to it, for this user only; the file contains nothing else. Else the token is
// published for processes on this machine. Undo both with mesh_withdraw_rendezvous(). After a
// failure nothing is left to undo.
int mesh_publish_lead(
	const struct mesh_options *options,
	const struct mesh_member *member,
	const char *token,
	struct channel_listener *ret_listener,
	struct lab_why *why
);
void mesh_withdraw_rendezvous(
	const struct mesh_options *options, const char *token, struct channel_listener *listener
);

// Read the rendezvous file; *ret_token is "" if it has no token. Returns 0, -EAGAIN (missing,
// empty, or its host is unknown) or -EBADMSG (some other file, or a token that other users can
// read), with the reason in `why`.
int mesh_read_lead_file(
	const char *path,
	struct sock_addr *ret_address,
	char ret_token[static TOKEN_BYTES],
	struct lab_why *why
);

// Print the ssh commands that start the processes, one per line. `argv` is the command line of the
// mesh. Without a way to share a token, standard error gets a hint.
int mesh_print_commands(
	const struct mesh_options *options,
	bool has_token_file,
	int argc,
	char *const *argv,
	struct lab_why *why
);
