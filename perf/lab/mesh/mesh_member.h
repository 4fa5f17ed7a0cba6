// SPDX-License-Identifier: BSD-3-Clause
// A process of a mesh: follows the orders of the lead, one measurement at a time. Each measurement
// runs in its own child. So no state remains for the next one, and a crash affects only one cell.
#pragma once

#include "mesh/mesh_wire.h"
#include "run/token.h"

#include <dataplane/device.h>
#include <lib/sockaddr.h>

#include <stdint.h>

struct mesh_member {
	uint32_t rank, count;
	char rack[MESH_HOST_BYTES]; // "": unknown
	struct sock_addr lead;
	const char *place;	  // file with the address of the lead; NULL: `lead` is set
	uint64_t patience_ns;	  // timeout until the lead listens
	struct lab_access access; // used if `secrets` is NULL
	const struct proof_secrets *secrets; // of the lead that started this process
	const char *device;		     // as in lab_session
	struct device_settings settings;
	int signal_fd;
};

// Follow orders until the lead has no more. Returns 0, or -errno with the reason in `why`.
int mesh_member_run(const struct mesh_member *member, struct lab_why *why);
