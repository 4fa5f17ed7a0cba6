// SPDX-License-Identifier: BSD-3-Clause
// What a parent tells the agent of the process that it started.
#pragma once

#include <tocsin/job_socket.h>

#include <stdint.h>

// Where the agent is told. Without one nothing is told, and it is looked for again.
struct teller {
	int fd; // -1: not connected
};

// Says that this process is a parent. Waits for nothing.
void teller_open(struct teller *teller);
void teller_close(struct teller *teller);
// After poll() found it readable: the agent has gone, or refuses.
void teller_read(struct teller *teller);
// How the child ended, before it is reaped.
void teller_exited(struct teller *teller, enum job_exit cause, int value);
