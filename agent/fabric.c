// SPDX-License-Identifier: BSD-3-Clause
// RDMA parts of the agent: the path table of workers, and the fabric run by the control thread.
#include "agent.h"

#include <control/client.h>
#include <control/congestion.h>
#include <control/fabric.h>
#include <control/health.h>
#include <control/history.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

// Limits on pairs of one device: pairs to neighbours, on-demand pairs, and pairs requested by
// peers. A node's pairs are split over its rails. PAIRS_MIN still has room for the neighbours (21
// at 1,024 nodes) and for short visits.
#define PAIRS_MAX 256
#define PAIRS_PER_NODE 768
#define PAIRS_MIN 48

int paths_part_start(struct agent *agent) {
	return path_table_create(&agent->paths);
}

void paths_part_stop(struct agent *agent) {
	agent->paths = path_table_destroy(agent->paths);
}

static void soft_counters(struct soft_counters *ret_counters) {
	// Zeros if the device is not open yet.
	(void)soft_counters_read(SOFT_DEVICE_NAME, ret_counters);
}

// Return a device's retransmits from the checks, which start after the fabric and stop before it.
static uint64_t device_retransmits(void *ctx, const char *device) {
	const struct agent *agent = ctx;

	return agent->checks != NULL ? checks_retransmits(agent->checks, device)
				     : CONGESTION_UNKNOWN;
}

static void on_observation(void *ctx, const struct observation *observation) {
	const struct agent *agent = ctx;

	health_add_observation(agent->health, observation);
}

static void on_peer_workers_hung(void *ctx, uint64_t peer, uint32_t hung, uint32_t workers) {
	const struct agent *agent = ctx;

	health_set_hung_workers(agent->health, peer, hung, workers);
}

// Count a probe in the history, which starts before the fabric and stops after it.
static void on_probed(
	void *ctx,
	const struct pairing_key *key,
	const char *device,
	bool answered,
	uint64_t latency_ns
) {
	const struct agent *agent = ctx;
	struct history_path_name path = {.peer = key->peer};

	snprintf(path.device, sizeof(path.device), "%s", device);
	snprintf(path.peer_device, sizeof(path.peer_device), "%s", key->peer_device);
	history_add_probe(agent->history, &path, answered, latency_ns);
}

static struct fabric_probe_config probe_config(const struct agent *agent) {
	return (struct fabric_probe_config){
		.on = agent->settings->probe.enabled,
		.rotation = agent->settings->probe.rotation,
		.interval_ns = agent->settings->probe.interval_ns,
		.packets = agent->settings->probe.packets,
		.bytes = agent->settings->probe.bytes,
	};
}

void fabric_part_reload(struct agent *agent) {
	struct fabric_probe_config config = probe_config(agent);
	int err = agent->fabric != NULL ? fabric_configure_probes(agent->fabric, &config) : 0;

	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "probe_not_reloaded", log_errno("error", err));
}

static uint32_t device_pairs_max(uint32_t devices) {
	uint32_t share = devices > 0 ? PAIRS_PER_NODE / devices : PAIRS_MAX;

	return share > PAIRS_MAX ? PAIRS_MAX : share < PAIRS_MIN ? PAIRS_MIN : share;
}

static struct fabric_device fabric_device_config(const struct agent_device *device) {
	struct fabric_device to = {
		.calls = device->calls,
		.settings = device->settings,
		.announce_after_open = device->announce_after_open,
		.is_fallback = device->is_fallback,
		.gpu = device->gpu,
		.gpu_ordinal = device->gpu_ordinal,
	};

	memcpy(to.name, device->name, sizeof(to.name));
	memcpy(to.device, device->device, sizeof(to.device));
	return to;
}

int fabric_part_add(struct agent *agent, const struct agent_device *device) {
	struct fabric_device to = fabric_device_config(device);

	return fabric_add_device(
		agent->fabric, &to, device->guid, device_pairs_max(agent->device_count)
	);
}

int fabric_part_start(struct agent *agent) {
	struct fabric_config config = {
		.worker_count = agent->worker_count,
		.paths = agent->paths,
		.device_count = agent->device_count,
		.pair_max = device_pairs_max(agent->device_count),
		.driver_calls = &agent->keeper_counters,
		.resent = device_retransmits,
		.resent_ctx = agent,
		.schedstats = workers_schedstats,
		.schedstats_ctx = agent,
		.soft_counters = soft_counters,
		.state = agent->state,
		.probed = agent->history != NULL ? on_probed : NULL,
		.probed_ctx = agent,
	};
	int err;

	config.probe = probe_config(agent);
	for (uint32_t n = 0; n < agent->device_count; n++)
		config.devices[n] = fabric_device_config(&agent->devices[n]);
	workers_list(agent, config.workers, config.probers);
	memcpy(config.interface, agent->interface, sizeof(config.interface));
	if (getrandom(&config.random_seed, sizeof(config.random_seed), 0) !=
	    (ssize_t)sizeof(config.random_seed))
		return -EIO;
	err = fabric_create(agent->loop, agent->overlay, &config, &agent->fabric);
	if (err != 0)
		return err;
	fabric_observations(agent->fabric, on_observation, on_peer_workers_hung, agent);
	client_server_use_fabric(agent->clients, &fabric_calls, agent->fabric);
	return 0;
}

void fabric_part_stop(struct agent *agent) {
	workers_stop_threads(agent); // otherwise workers would use memory that is being freed
	agent->fabric = fabric_destroy(agent->fabric);
	client_server_use_fabric(agent->clients, NULL, NULL);
}
