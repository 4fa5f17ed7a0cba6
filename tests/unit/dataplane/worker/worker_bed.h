// SPDX-License-Identifier: BSD-3-Clause
// Workers on threads of their own, and the control thread's end of each.
#pragma once

#include "worker/worker_impl.h"

#include <support/cmocka.h>

// Of all workers here: main() begins it.
extern struct clock monotonic;

// Of "worker-1", on any processor, that has nothing to poll.
struct worker_config config_of(enum idle_policy policy);
struct worker *started(const struct worker_config *config, struct worker_facts *ret_facts);
// As config.request: each comes back as an event.
void echo(void *ctx, struct worker *worker, const struct worker_record *record);

// Waits for an event, not for a time.
struct worker_record next_event(struct worker *worker);
void wait_until_blocked(struct worker *worker);
