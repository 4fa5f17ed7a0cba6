// SPDX-License-Identifier: BSD-3-Clause
// EAL and telemetry in a build without DPDK (-Ddpdk=off): EAL never runs, and nothing is published.
#include <dataplane/eal.h>
#include <dataplane/telemetry.h>

#include <errno.h>

int eal_start(const struct eal_config *config, struct eal_facts *ret_facts) {
	(void)config;
	(void)ret_facts;
	return -EOPNOTSUPP;
}

void eal_stop(void) {
}

void eal_remove_directory(void) {
}

bool eal_is_built(void) {
	return false;
}

bool eal_is_running(void) {
	return false;
}

int eal_thread_register(void) {
	return 0;
}

void eal_thread_unregister(void) {
}

int telemetry_start(void) {
	return -EOPNOTSUPP;
}

int telemetry_add_worker(const char *name, const struct worker *worker) {
	(void)name;
	(void)worker;
	return 0;
}

int telemetry_add_lane(const char *name, const struct lane *lane) {
	(void)name;
	(void)lane;
	return 0;
}

void telemetry_remove(const void *object) {
	(void)object;
}
