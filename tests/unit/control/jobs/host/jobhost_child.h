// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a job that use the real library, in this process or in child processes under the
// test's control.
#pragma once

#include "control/jobs/host/jobhost_bed.h"

#include <tocsin/job.h>

// A separate process that holds a rank through the real library. It executes letters from a pipe
// and answers each with a letter.
struct child {
	pid_t pid;
	int order, answer;
};

struct member {
	struct tocsin_job *job;
	struct tocsin_comm *comm;
};

// Open a member in this process, without a thread: the test polls. It is connected once the agent
// knows it, see member_connect().
struct member member_open(struct bed *bed, uint32_t rank, uint32_t size);
void member_connect(struct bed *bed, struct member *member);
void member_close(struct bed *bed, struct member *member);
// Return the next event, if any.
bool next_event(struct bed *bed, struct member *member, struct tocsin_event *ret_event);

// Return once the agent knows the child; runs as another user if uid is not 0.
struct child child_start(struct bed *bed, uint32_t rank, uid_t uid);
// Return once the letter is done. Letters: child_main().
void child_do(struct child *child, char letter);
// End the child by a signal, or let it exit; returns once the agent knows.
void child_end(struct bed *bed, struct child *child, int signal);
