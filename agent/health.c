// SPDX-License-Identifier: BSD-3-Clause
// Creates the store of verdicts from the configuration.
#include "agent.h"

#include <control/health.h>

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

int health_part_start(struct agent *agent) {
	struct health_config config = {
		.observes_only = !agent->settings->health.act,
		.confirm_ns = agent->settings->health.confirm_ns,
		.topology = agent->settings->health.topology,
		.drain_rate_percent = agent->settings->health.drain_rate,
		.drain_out_percent = agent->settings->health.drain_out,
	};
	char detail[256] = "";
	int err;

	if (getrandom(&config.random_seed, sizeof(config.random_seed), 0) !=
	    (ssize_t)sizeof(config.random_seed))
		return -EIO;
	err = health_create(agent->loop, agent->overlay, &config, detail, &agent->health);
	if (err != 0 && detail[0] != '\0')
		snprintf(agent->detail, sizeof(agent->detail), "[health] topology: %s", detail);
	return err;
}

void health_part_stop(struct agent *agent) {
	agent->health = health_destroy(agent->health);
}
