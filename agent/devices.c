// SPDX-License-Identifier: BSD-3-Clause
// Finds the RDMA devices of this node before the overlay starts, and adds devices that appear
// later.
//
// Device discovery calls drivers, which may hang, so it runs on a thread of its own. If a driver
// does not return within DISCOVERY_SECONDS, the agent abandons the thread and its memory. It then
// continues without RDMA, or with the software device if that is a target.
#include "agent.h"
#include "discovery.h"

#include <control/fabric.h>
#include <dataplane/soft.h>
#include <lib/config.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/thread.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DISCOVERY_SECONDS 20 // loading a driver from a slow disk takes several seconds
static void let_go(struct discovery *discovery) {
	if (atomic_exchange_explicit(&discovery->let_go, true, memory_order_acq_rel))
		free(discovery);
}

static void *discover_thread(void *arg) {
	struct discovery *discovery = arg;

	discovery->err = discovery_scan(discovery);
	let_go(discovery);
	return NULL;
}

// Run the discovery on a thread. Returns 0, -ETIMEDOUT if it hangs and was abandoned, or -errno if
// no thread could be created.
static int discovery_run_thread(struct discovery *discovery) {
	struct timespec until;
	pthread_t thread;
	int err = thread_start_masked("tocsin-devices", discover_thread, discovery, &thread);

	if (err != 0) {
		let_go(discovery); // releases the reference of the thread that was not created
		return err;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DISCOVERY_SECONDS;
	err = pthread_timedjoin_np(thread, NULL, &until);
	if (err == 0)
		return discovery->err;
	pthread_detach(thread);
	return -ETIMEDOUT;
}

const struct device_section *
device_section_find(const struct agent_settings *settings, const char *name) {
	const struct device_section *const *section = settings->devices;

	while (*section != NULL && strcmp(config_section_name((*section)->section), name) != 0)
		section++;
	return *section;
}

static struct device_settings device_settings_read(const struct device_section *section) {
	static const uint16_t mtus[] = {0, 256, 512, 1024, 2048, 4096};

	if (section == NULL)
		return device_settings_default;
	return (struct device_settings){
		.port = (uint8_t)section->port,
		.gid_index = section->gid_index,
		.mtu = mtus[section->mtu],
		.traffic_class = (uint8_t)section->traffic_class,
		.service_level = (uint8_t)section->service_level,
		.timeout = (uint8_t)section->timeout,
		.retry = (uint8_t)section->retry,
		.rnr_retry = (uint8_t)section->rnr_retry,
		.min_rnr_timer = (uint8_t)section->min_rnr_timer,
		.pkey_index = section->pkey_index,
	};
}

// Add a discovered device. Returns false if the configuration names another port of it.
static bool device_add_found(struct agent *agent, const struct found *found) {
	struct agent_device *device = &agent->devices[agent->device_count];
	const struct device_section *rail = device_section_find(agent->settings, found->name);
	struct device_settings settings = device_settings_read(
		rail != NULL ? rail : device_section_find(agent->settings, found->device)
	);

	if (found->port != 0 && settings.port != 0 && settings.port != found->port)
		return false;
	agent->device_count++;

	device->calls = found->calls;
	device->guid = found->guid;
	device->announce_after_open = found->waits;
	device->is_fallback = found->is_fallback;
	device->gpu = found->gpu && agent->settings->probe.gpu;
	device->gpu_ordinal = found->gpu_ordinal;
	memcpy(device->name, found->name, sizeof(device->name));
	memcpy(device->device, found->device, sizeof(device->device));
	device->settings = settings;
	if (found->port != 0)
		device->settings.port = found->port;
	device->link_layer = found->responder == DEVICE_RESPONDER_IN_PROCESS ? RAS_LINK_LAYER_SOFT
			     : found->link == DEVICE_LINK_INFINIBAND ? RAS_LINK_LAYER_INFINIBAND
								     : RAS_LINK_LAYER_ETHERNET;
	if (device->settings.retry == 7)
		log_event(
			LOG_LEVEL_WARN, "retry_for_ever", log_str("device", device->name),
			log_str("effect", "with Soft-RoCE an operation to a dead peer never ends")
		);
	return true;
}

// Log the result of the discovery at the start. Missing devices are no error.
static void
discovery_report(const struct agent *agent, const struct discovery *discovery, int err) {
	if (err == -ETIMEDOUT)
		log_event(
			LOG_LEVEL_ERROR, "rdma_device_stuck",
			log_str("effect",
				agent->device_count == 0
					? "a driver call does not return; this node has no RDMA"
					: "a driver call does not return; devices with drivers are not used"
			)
		);
	else if (err != 0)
		log_event(LOG_LEVEL_ERROR, "rdma_off", log_errno("error", err));
	else if (discovery->reason[0] != '\0')
		log_event(
			LOG_LEVEL_WARN, "rdma_missing", log_str("reason", discovery->reason),
			log_u64("devices", agent->device_count)
		);
	if (agent->device_count > 1)
		log_event(
			LOG_LEVEL_INFO, "rdma_rails", log_u64("rails", agent->device_count),
			log_u64("left_out", discovery->left_out),
			log_str("note",
				"each rail is probed, and all rails share the budget; [node] device = best uses one device only"
			)
		);
	for (uint32_t n = 0; n < agent->device_count; n++)
		log_event(
			LOG_LEVEL_INFO, "rdma_device_chosen",
			log_str("device", agent->devices[n].name),
			log_str("why", err == 0 ? discovery->why : "the device needs no driver")
		);
}

// Add only the software device after the discovery failed. An abandoned thread may still write its
// results, so they are not read.
static void device_add_soft_only(struct agent *agent, const struct discovery *discovery) {
	struct device_facts facts;

	if (!discovery->soft || discovery_count_soft(discovery) == 0)
		return;
	soft_device_facts(&facts);
	(void)device_add_found(
		agent,
		&(struct found){
			.calls = &verbs_calls_soft,
			.name = SOFT_DEVICE_NAME,
			.device = SOFT_DEVICE_NAME,
			.link = facts.port.link,
			.responder = facts.responder,
		}
	);
}

// Return true if the target needs one device and has it.
static bool
target_is_served(const struct agent *agent, uint32_t target, const struct found *found) {
	return agent->discovery->targets[target].kind != DEVICE_TARGET_AUTO && !found->is_fallback;
}

int devices_start(struct agent *agent) {
	const struct config_list *list = &agent->settings->node.device;
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	struct parse_error error = {.text = ""};
	int err;

	agent->discovery = calloc(1, sizeof(*agent->discovery));
	if (discovery == NULL || agent->discovery == NULL) {
		free(discovery);
		return -ENOMEM;
	}
	for (size_t n = 0; n < list->count && n < DISCOVERY_TARGETS_MAX; n++)
		must(device_target_parse(
			     list->items[n], strlen(list->items[n]), &error,
			     &discovery->targets[discovery->target_count++]
		     ) == 0);
	agent->device_count = 0;
	if (discovery->target_count == 1 && discovery->targets[0].kind == DEVICE_TARGET_NONE) {
		free(discovery);
		return 0;
	}

	// The software device is created in advance; the discovery decides whether it is needed.
	error.text[0] = '\0';
	discovery->soft = soft_device_make(agent, &error) == 0;
	snprintf(
		discovery->soft_reason, sizeof(discovery->soft_reason), "%.*s",
		DISCOVERY_SOFT_BYTES - 1, error.text
	);
	memcpy(agent->discovery->targets, discovery->targets, sizeof(discovery->targets));
	agent->discovery->target_count = discovery->target_count;
	err = discovery_run_thread(discovery);
	if (err == 0) {
		for (uint32_t n = 0; n < discovery->count; n++) {
			const struct found *found = &discovery->found[n];

			if (device_add_found(agent, found))
				agent->discovery->served[found->target] =
					target_is_served(agent, found->target, found);
		}
		agent->near_cpus = discovery->near_cpus;
		agent->discovery->digest = discovery->digest;
		agent->discovery->has_unjudged = discovery->has_unjudged;
	} else {
		agent->discovery->has_unjudged = true;
		device_add_soft_only(agent, discovery);
	}
	discovery_report(agent, discovery, err);
	let_go(discovery);
	return 0;
}

void devices_stop(struct agent *agent) {
	agent->device_count = 0;
	free(agent->discovery);
	agent->discovery = NULL;
}

// Devices that appear later.

void devices_add_discovered(struct agent *agent, const struct discovery *discovery) {
	uint32_t before = agent->device_count;

	if (discovery->unchanged)
		return;
	agent->discovery->digest = discovery->digest;
	agent->discovery->has_unjudged = discovery->has_unjudged;
	for (uint32_t n = 0; n < discovery->count; n++) {
		const struct found *found = &discovery->found[n];
		bool is_known = false;
		int err;

		for (uint32_t k = 0; k < agent->device_count && !is_known; k++)
			is_known = strcmp(agent->devices[k].name, found->name) == 0;
		if (is_known || agent->device_count == AGENT_DEVICES_MAX ||
		    !device_add_found(agent, found))
			continue;
		err = fabric_part_add(agent, &agent->devices[agent->device_count - 1]);
		if (err != 0)
			agent->device_count--;
		// The device is already there under another name.
		if (err == -EEXIST)
			continue;
		if (err != 0) {
			log_event(
				LOG_LEVEL_ERROR, "rdma_device_not_added",
				log_str("device", found->name), log_errno("error", err)
			);
			continue;
		}
		agent->discovery->served[found->target] =
			target_is_served(agent, found->target, found);
		log_event(
			LOG_LEVEL_INFO, "rdma_device_late", log_str("device", found->name),
			log_str("effect", "the device is used as soon as it is up")
		);
	}
	if (agent->device_count != before && agent->checks != NULL)
		checks_part_reload(agent);
	log_event(
		LOG_LEVEL_INFO, "rdma_looked", log_u64("listed", discovery->listed),
		log_u64("added", agent->device_count - before)
	);
}
