// SPDX-License-Identifier: BSD-3-Clause
// Reports from a parent to the agent about the process that it started.
#pragma once

#include <tocsin/job_socket.h>

#include <stdint.h>

// Connection to the agent. Without an agent nothing is reported, and the connection is retried.
struct exit_reporter {
	int fd; // -1: not connected
};

// Connect and register this process as a parent. Does not block.
void exit_reporter_open(struct exit_reporter *exit_reporter);
void exit_reporter_close(struct exit_reporter *exit_reporter);
// Read after poll() reported the connection readable: the agent has exited or refuses.
void exit_reporter_read(struct exit_reporter *exit_reporter);
// Report how the child ended; must be called before the child is reaped.
void exit_reporter_send_exit(struct exit_reporter *exit_reporter, enum job_exit cause, int value);
