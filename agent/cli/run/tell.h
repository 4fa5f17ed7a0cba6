// SPDX-License-Identifier: BSD-3-Clause
// Reports from a parent to the agent about the process that it started.
#pragma once

#include <tocsin/job_socket.h>

#include <stdint.h>

// Connection to the agent. Without an agent nothing is reported, and the connection is retried.
struct teller {
	int fd; // -1: not connected
};

// Connect and register this process as a parent. Does not block.
void teller_open(struct teller *teller);
void teller_close(struct teller *teller);
// Read after poll() reported the connection readable: the agent has exited or refuses.
void teller_read(struct teller *teller);
// Report how the child ended; must be called before the child is reaped.
void teller_exited(struct teller *teller, enum job_exit cause, int value);
