// SPDX-License-Identifier: BSD-3-Clause
// Routes worker requests to lanes and probers.
#include <dataplane/dispatch.h>
#include <dataplane/lane.h>
#include <dataplane/prober.h>

void dispatch_worker_request(void *ctx, struct worker *worker, const struct worker_record *record) {
	(void)ctx;
	switch (record->kind) {
	case PROBER_REQUEST_RUN:
	case PROBER_REQUEST_STOP:
	case PROBER_REQUEST_WATCH:
	case PROBER_REQUEST_UNWATCH:
	case PROBER_REQUEST_PROBE_NOW:
		prober_request(worker_word_to_pointer(record->words[0]), worker, record);
		return;
	default:
		lane_request(NULL, worker, record);
	}
}
