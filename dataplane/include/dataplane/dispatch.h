// SPDX-License-Identifier: BSD-3-Clause
// Hands a worker's requests to the lane or prober that they are for.
#pragma once

#include <dataplane/worker.h>

// worker_config.request of a worker with lanes and probers; ctx is not used. Hot.
void dispatch_request(void *ctx, struct worker *worker, const struct worker_record *record);
