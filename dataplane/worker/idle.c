// SPDX-License-Identifier: BSD-3-Clause
// Names and initial values of the idle policies.
#include <dataplane/idle.h>
#include <lib/must.h>

#include <errno.h>
#include <string.h>

static const char *const policy_names[IDLE_POLICY_COUNT] = {
	[IDLE_ADAPTIVE] = "adaptive",
	[IDLE_SPIN] = "spin",
	[IDLE_EVENT] = "event",
	[IDLE_WINDOW] = "window",
};

const char *idle_policy_name(enum idle_policy policy) {
	must(policy < IDLE_POLICY_COUNT);
	return policy_names[policy];
}

int idle_policy_parse(const char *name, enum idle_policy *ret_policy) {
	for (int n = 0; n < IDLE_POLICY_COUNT; n++) {
		if (strcmp(name, policy_names[n]) == 0) {
			*ret_policy = (enum idle_policy)n;
			return 0;
		}
	}
	return -EINVAL;
}

void idle_init(struct idle *idle, const struct idle_config *config, uint64_t now_ns) {
	must(config->policy < IDLE_POLICY_COUNT && config->block_ns > 0);
	*idle = (struct idle){
		.config = *config,
		.start_ns = now_ns,
		.last_ns = now_ns,
		.budget_ns = config->block_ns,
		.lead_ns = config->block_ns + config->block_ns / 2,
	};
}
