// SPDX-License-Identifier: BSD-3-Clause
// Replacement in a build without DPDK: creating a pair always fails.
#include "run/floor_memif.h"

#include <errno.h>
#include <stddef.h>

int memif_pair_create(
	const struct clock *clock, struct memif_pair **ret_pair, struct lab_why *why
) {
	(void)clock;
	(void)ret_pair;
	return lab_fail(why, -EOPNOTSUPP, "needs DPDK: build with -Ddpdk=shared");
}

struct memif_pair *memif_pair_destroy(struct memif_pair *pair) {
	(void)pair;
	return NULL;
}

bool memif_pair_send(struct memif_pair *pair, int end) {
	(void)pair;
	(void)end;
	return false;
}

bool memif_pair_receive(struct memif_pair *pair, int end) {
	(void)pair;
	(void)end;
	return false;
}
