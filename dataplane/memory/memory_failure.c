// SPDX-License-Identifier: BSD-3-Clause
// Remembers refused registrations: registering is expensive, and a repeated try would fail again.
#include "memory/memory_impl.h"

#include <string.h>

static bool
failure_matches(const struct memory_failure *failure, const struct memory_normal_request *wanted) {
	return failure->address == wanted->address && failure->length == wanted->length &&
	       failure->access == wanted->access && failure->allocation == wanted->allocation;
}

const struct memory_failure *
memory_failure_find(struct memory_registry *registry, const struct memory_normal_request *wanted) {
	uint64_t now_ns = clock_now_ns(registry->config.clock);

	for (uint32_t n = 0; n < MEMORY_FAILURES_MAX; n++) {
		const struct memory_failure *failure = &registry->failures[n];

		if (failure->until_ns > now_ns && failure_matches(failure, wanted))
			return failure;
	}
	return NULL;
}

// Remember a failure; replaces the oldest one.
void memory_failure_remember(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	int err,
	const char *reason
) {
	struct memory_failure *failure =
		&registry->failures[registry->failure_next++ % MEMORY_FAILURES_MAX];

	*failure = (struct memory_failure){
		.address = wanted->address,
		.length = wanted->length,
		.access = wanted->access,
		.allocation = wanted->allocation,
		.until_ns = clock_now_ns(registry->config.clock) + registry->config.failure_ns,
		.err = err,
	};
	memcpy(failure->reason, reason, strlen(reason) + 1);
}
