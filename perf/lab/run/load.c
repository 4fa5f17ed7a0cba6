// SPDX-License-Identifier: BSD-3-Clause
// Allocate and free a load.
#include "run/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t load_receives(const struct plan *plan) {
	return plan_op_has_receiver(plan->op) ? 2 * plan->depth : 0;
}

int load_create(
	const struct plan *plan, const struct load_pair *pairs, bool serves, struct load *ret_load
) {
	struct load load = {
		.pair_count = plan->pairs,
		.depth = plan->depth,
		.sends = !serves || plan->both_ways,
	};

	if (serves || plan->both_ways)
		load.receive_count = load_receives(plan);
	memcpy(load.pairs, pairs, plan->pairs * sizeof(*pairs));
	load.ops = calloc((size_t)load.pair_count * load.depth, sizeof(*load.ops));
	load.receives =
		calloc((size_t)load.pair_count * load.receive_count + 1, sizeof(*load.receives));
	if (load.ops == NULL || load.receives == NULL) {
		load_release(&load);
		return -ENOMEM;
	}
	*ret_load = load;
	return 0;
}

void load_release(struct load *load) {
	free(load->ops);
	free(load->receives);
	load->ops = load->receives = NULL;
}
