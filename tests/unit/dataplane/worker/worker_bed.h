// SPDX-License-Identifier: BSD-3-Clause
// Workers on their own threads, and the control thread's side of each.
#pragma once

#include "worker/worker_impl.h"

#include <support/cmocka.h>

// Clock of all workers; main() initializes it.
extern struct clock monotonic;

// Return a configuration of "worker-1", on any processor, without anything to poll.
struct worker_config config_of(enum idle_policy policy);
struct worker *started(const struct worker_config *config, struct worker_facts *ret_facts);
// A config.request function that returns each request as an event.
void echo(void *ctx, struct worker *worker, const struct worker_record *record);

// Wait for the next event, without a time limit.
struct worker_record next_event(struct worker *worker);
void wait_until_blocked(struct worker *worker);
