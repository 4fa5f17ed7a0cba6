// SPDX-License-Identifier: BSD-3-Clause
// Routes the requests of a worker to its lanes and probers.
#pragma once

#include <dataplane/worker.h>

// Handle one request. Use as worker_config.request of a worker with lanes and probers; ctx is
// unused. Hot.
void dispatch_worker_request(void *ctx, struct worker *worker, const struct worker_record *record);
