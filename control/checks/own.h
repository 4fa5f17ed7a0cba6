// SPDX-License-Identifier: BSD-3-Clause
// The agent's own checks, by name.
#pragma once

#include <control/checks.h>

enum own_check {
	OWN_LINKS,    // of RDMA devices: whether they are up
	OWN_RATES,    // and as fast as they should be
	OWN_ERRORS,   // and without too many of them
	OWN_DRIVERS,  // whether calls into drivers come back
	OWN_MEMORY,   // the agent's own
	OWN_PRESSURE, // the machine's memory
	OWN_DISK,     // the state directory's
	OWN_CHECK_COUNT,
};

const char *own_check_name(enum own_check own);
void own_check_reasons(enum own_check own, struct check_reasons *ret_reasons);
