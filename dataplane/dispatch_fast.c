// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/dispatch.h>
#include <dataplane/lane.h>
#include <dataplane/prober.h>

void dispatch_request(void *ctx, struct worker *worker, const struct worker_record *record) {
	(void)ctx;
	switch (record->kind) {
	case PROBER_REQUEST_RUN:
	case PROBER_REQUEST_STOP:
		// Control's own pointer, as it sent it.
		prober_request(
			(struct prober *)(uintptr_t)record->words[0], // NOLINT
			worker, record
		);
		return;
	default:
		lane_request(NULL, worker, record);
	}
}
