// SPDX-License-Identifier: BSD-3-Clause
// What the ring example is asked to do.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RANKS_MAX 1024u
#define NOBODY UINT32_MAX
#define SOCKETS_MAX 16u

struct ring_options {
	uint32_t ranks;
	uint32_t kill, freeze, straggle, mismatch, pause; // a rank, or NOBODY
	bool deadlock, cycle;
	bool on_signal;	       // it happens when the program gets SIGUSR1
	uint32_t after_s;      // when it happens
	uint32_t seconds;      // how long the job runs at most
	uint32_t operation_us; // computing between two operations
	// Of several agents on this machine, which the ranks take in turn; none: as usual.
	const char *sockets[SOCKETS_MAX];
	uint32_t socket_count;
};

// Exits by itself after --help (0) or a mistake (2).
void ring_options_read(int argc, char **argv, struct ring_options *ret_options);
