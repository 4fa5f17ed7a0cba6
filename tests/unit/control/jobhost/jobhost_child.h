// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a job by the real library: of this process, and of real ones that do as they are told.
#pragma once

#include "control/jobhost/jobhost_bed.h"

#include <tocsin/job.h>

// A process of its own that holds a rank, by the real library; it does what it is told by letters
// on a pipe, and answers each with one.
struct child {
	pid_t pid;
	int order, answer;
};

struct member {
	struct tocsin_job *job;
	struct tocsin_comm *comm;
};

// Of this process, without a thread: the test polls. It is connected once the agent knows it.
struct member member_open(struct bed *bed, uint32_t rank, uint32_t size);
void member_connect(struct bed *bed, struct member *member);
void member_close(struct bed *bed, struct member *member);
// The next event, if there is one.
bool next_event(struct bed *bed, struct member *member, struct tocsin_event *ret_event);

// Returns once the agent knows the child; of another user where the uid is not 0.
struct child child_start(struct bed *bed, uint32_t rank, uid_t uid);
// Returns once it is done. Letters: child_main().
void child_do(struct child *child, char letter);
// Ends by the signal, or by itself; until the agent knows it.
void child_end(struct bed *bed, struct child *child, int signal);
