// SPDX-License-Identifier: BSD-3-Clause
// A process of a mesh: does what the lead orders, one measurement at a time, each in a child of its
// own, so that none leaves anything to the next and one that dies is one cell.
#pragma once

#include "mesh_wire.h"

#include <dataplane/device.h>
#include <lib/sockaddr.h>

#include <stdint.h>

struct mesh_member {
	uint32_t rank, count;
	char rack[MESH_HOST_BYTES]; // "": not known
	struct sock_addr lead;
	const char *place;    // the file that says where the lead is; NULL: `lead` does
	uint64_t patience_ns; // for the lead to listen
	const char *device;   // as lab_session
	struct device_settings settings;
	int signal_fd;
};

// Until the lead has no more orders. -errno with the reason.
int mesh_member_run(const struct mesh_member *member, struct lab_why *why);
