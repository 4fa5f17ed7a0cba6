// SPDX-License-Identifier: BSD-3-Clause
// A webhook: a program of the user that runs at each verdict change. The change is one line of JSON
// on standard input, because all users of a machine can read arguments.
//
// The spawn helper runs the program for one change after another, in order; nothing waits for it.
// Meanwhile up to WEBHOOK_QUEUE changes are queued. Beyond that the oldest are dropped, and the
// next change reports how many. A program that fails, hangs or cannot start does not run again for
// the same change. The log records when failures begin and when they end.
//
// Loop thread only.
#pragma once

#include <control/spawn.h>
#include <verdict/verdict.h>

struct webhook;

#define WEBHOOK_QUEUE 64

struct webhook_counters {
	uint64_t told;	  // programs that exited with 0
	uint64_t failed;  // programs that failed or did not start
	uint64_t dropped; // changes dropped because the queue was full
};

struct webhook_config {
	const char *command; // format of check_command_split()
	const char *user;    // NULL: the agent's own
	// Name by which the root helper knows the program; NULL: the spawn helper runs it.
	const char *root_name;
	uint64_t timeout_ns;
	struct webhook_counters *counters; // must outlive the webhook
};

// Returns 0, -EINVAL or -E2BIG (the command), or -ENOMEM.
int webhook_create(
	struct spawn *spawn, const struct webhook_config *config, struct webhook **ret_webhook
);
// Kill the running program and drop the queue. `webhook` may be NULL.
struct webhook *webhook_destroy(struct webhook *webhook);

struct webhook_change {
	const char *cluster;
	const char *observer; // the node that reports the change
	const char *node;
	enum verdict before;
	enum verdict_advice advice; // what may be done now
	enum verdict_advice would;  // what [health] act = no holds back; NOTHING: nothing
	const struct verdict_view *now;
};

void webhook_notify(struct webhook *webhook, const struct webhook_change *change);
