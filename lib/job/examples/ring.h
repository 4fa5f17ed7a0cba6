// SPDX-License-Identifier: BSD-3-Clause
// Options of the ring example.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RANKS_MAX 1024u
#define NOBODY UINT32_MAX
#define SOCKETS_MAX 16u

struct ring_options {
	uint32_t ranks;
	uint32_t kill, freeze, straggle, mismatch, pause; // rank number, or NOBODY
	bool deadlock, cycle;
	bool on_signal;	       // inject the fault on SIGUSR1
	uint32_t after_s;      // time of the fault, seconds
	uint32_t seconds;      // longest run time of the job, seconds
	uint32_t operation_us; // computing time between two operations, microseconds
	// Job sockets of several agents on this machine, used by the ranks in turn; none: the
	// default.
	const char *sockets[SOCKETS_MAX];
	uint32_t socket_count;
};

// Read the options. Exits after --help (status 0) or an error (status 2).
void ring_options_read(int argc, char **argv, struct ring_options *ret_options);
