// SPDX-License-Identifier: BSD-3-Clause
// A program of the user that is told of each verdict that changes, as a line of JSON on its
// standard input: arguments are for all users of a machine to read.
//
// Changes are told one after another, in their order, by the spawn helper: nothing waits for the
// program. While it runs, up to WEBHOOK_QUEUE of them wait; beyond that the oldest are dropped, and
// the next one says how many. A program that fails, hangs or cannot be started is not asked again
// for the same change; it is logged when that begins and when it ends.
//
// All on the loop's thread.
#pragma once

#include <control/spawn.h>
#include <verdict/verdict.h>

struct webhook;

#define WEBHOOK_QUEUE 64

struct webhook_counters {
	uint64_t told;	  // programs that ended with 0
	uint64_t failed;  // those that did not, or were never started
	uint64_t dropped; // changes for which there was no room
};

struct webhook_config {
	const char *command; // as check_command_split() takes it
	const char *user;    // NULL: the agent's own
	uint64_t timeout_ns;
	struct webhook_counters *counters; // outlive it
};

// -EINVAL, -E2BIG (the command), -ENOMEM.
int webhook_create(
	struct spawn *spawn, const struct webhook_config *config, struct webhook **ret_webhook
);
// What runs is ended, what waits is forgotten. NULL is fine.
struct webhook *webhook_destroy(struct webhook *webhook);

struct webhook_change {
	const char *cluster;
	const char *observer; // the node that tells
	const char *node;
	enum verdict before;
	enum verdict_advice advice; // what may be done now
	const struct verdict_view *now;
};

void webhook_tell(struct webhook *webhook, const struct webhook_change *change);
