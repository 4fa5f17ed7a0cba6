// SPDX-License-Identifier: BSD-3-Clause
// Finds the RDMA devices that match the configured targets, at the start and again later.
#include "discovery.h"

#include "agent.h"

#include <dataplane/device_rails.h>
#include <dataplane/soft.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// State of one search; it handles one target after the other.
struct target_search {
	struct discovery *discovery;
	struct device_query query;
	uint32_t target;	 // index of the current target
	bool uses_soft_fallback; // target replaced by the software device
};

static void device_note_gpu(const struct target_search *target_search, struct found *found) {
	const struct device_target *target = &target_search->query.target;

	if (target->kind != DEVICE_TARGET_CUDA || found->gpu)
		return;
	found->gpu = true;
	found->gpu_ordinal = target->number;
}

static void
device_add(const struct target_search *target_search, const struct device_facts *facts) {
	struct discovery *discovery = target_search->discovery;

	for (uint32_t n = 0; n < discovery->count; n++) {
		if (strcmp(discovery->found[n].name, facts->name) != 0)
			continue;
		discovery->found[n].is_fallback =
			discovery->found[n].is_fallback && target_search->uses_soft_fallback;
		device_note_gpu(target_search, &discovery->found[n]);
		return;
	}
	if (discovery->count == DISCOVERY_FOUND_MAX)
		return;
	discovery->found[discovery->count++] = (struct found){
		.calls = facts->responder == DEVICE_RESPONDER_IN_PROCESS ? &verbs_calls_soft
									 : &verbs_calls_system,
		.link = facts->port.link,
		.responder = facts->responder,
		.guid = facts->guid,
		.target = target_search->target,
		.is_fallback = target_search->uses_soft_fallback,
	};
	device_note_gpu(target_search, &discovery->found[discovery->count - 1]);
	memcpy(discovery->found[discovery->count - 1].name, facts->name, sizeof(facts->name));
	memcpy(discovery->found[discovery->count - 1].device, facts->name, sizeof(facts->name));
}

// Add every port that can have pairs, now or later, once.
static int device_add_rails(const struct target_search *target_search, bool beside_others) {
	struct discovery *discovery = target_search->discovery;
	const struct device_query *query = &target_search->query;
	struct device_rail rails[DEVICE_RAILS_MAX];
	uint32_t count, kept = discovery->count;
	int err = device_rails(
		&verbs_calls_system, query->facts, query->count, rails, &count, &discovery->left_out
	);

	for (uint32_t n = 0; err == 0 && n < count; n++) {
		struct device_facts facts = query->facts[rails[n].device];

		memcpy(facts.name, rails[n].name, sizeof(facts.name));
		facts.port.link = rails[n].link;
		device_add(target_search, &facts);
		if (discovery->count == kept)
			continue; // already added for another target, or no room left
		discovery->found[kept].waits = rails[n].waits && beside_others;
		memcpy(discovery->found[kept].device, query->facts[rails[n].device].name,
		       sizeof(facts.name));
		discovery->found[kept++].port = rails[n].port;
	}
	return err;
}

// Return the first device that only waits for a port or an address, or NULL. The fabric retries it
// every second, so that a port that is down at the start can be used later.
static const struct device_facts *
find_awaiting_device(const struct device_choice *choice, const struct device_query *query) {
	for (uint32_t n = 0; n < choice->count; n++) {
		if (choice->judgements[n].verdict == DEVICE_AWAITS_PORT)
			return &query->facts[choice->judgements[n].device];
	}
	return NULL;
}

// Add the awaited device; for `auto` add all rails.
static void
add_awaiting_device(const struct target_search *target_search, const struct device_facts *facts) {
	struct discovery *discovery = target_search->discovery;

	snprintf(
		discovery->why, sizeof(discovery->why),
		"no device can be used yet; the agent waits for %s: %s", facts->name, facts->reason
	);
	if (target_search->query.target.kind != DEVICE_TARGET_AUTO ||
	    device_add_rails(target_search, false) != 0)
		device_add(target_search, facts);
}

static void devices_choose(const struct target_search *target_search) {
	struct discovery *discovery = target_search->discovery;
	const struct device_query *query = &target_search->query;
	struct device_choice *choice = NULL;
	struct parse_error error = {.text = ""};
	const char *no_soft = discovery->soft ? "" : discovery->soft_reason;

	if (device_choice_create(query, &error, &choice) != 0) {
		snprintf(discovery->reason, sizeof(discovery->reason), "%s", error.text);
		return;
	}
	device_choice_say(choice, discovery->why);
	if (choice->best_count > 0) {
		const struct device_facts *best = &query->facts[choice->judgements[0].device];

		if (discovery->count == 0) // an earlier target has already set it
			(void)topology_near_cpus(query->topology, best->pci, &discovery->near_cpus);
		if (query->target.kind != DEVICE_TARGET_AUTO ||
		    device_add_rails(target_search, true) != 0)
			device_add(target_search, best);
	} else if (find_awaiting_device(choice, query) != NULL) {
		add_awaiting_device(target_search, find_awaiting_device(choice, query));
	} else if (query->target.kind == DEVICE_TARGET_SOFT) {
		snprintf(
			discovery->reason, sizeof(discovery->reason), "no software device: %s",
			no_soft
		);
	} else {
		snprintf(
			discovery->reason, sizeof(discovery->reason), "%s%s%s", discovery->why,
			no_soft[0] != '\0' ? "; and no software device: " : "", no_soft
		);
	}
	device_choice_destroy(choice);
}

// Return the number of targets that are the software device; such a target needs no driver call.
uint32_t discovery_count_soft(const struct discovery *discovery) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < discovery->target_count; n++) {
		const struct device_target *target = &discovery->targets[n];

		count += target->kind == DEVICE_TARGET_SOFT ||
			 (target->kind == DEVICE_TARGET_NIC &&
			  strcmp(target->name, SOFT_DEVICE_NAME) == 0);
	}
	return count;
}

// List the system's devices, followed by the software device. The software device is not opened
// here; it takes its port when it is first used. Returns -EALREADY if the system's list is
// unchanged and only changes were requested.
static int devices_list_all(struct discovery *discovery, struct device_query *query) {
	uint64_t before = discovery->digest;
	struct device_facts *facts, *more;
	int err;

	if (discovery_count_soft(discovery) < discovery->target_count) {
		err = device_list_digest(&verbs_calls_system, &discovery->digest);
		if (err == 0 && discovery->only_if_changed && discovery->digest == before)
			return -EALREADY;
		if (err == 0)
			err = device_list(&verbs_calls_system, NULL, &facts, &query->count);
		if (err != 0)
			return err;
		query->facts = facts;
		discovery->listed = query->count;

		// A driver may be temporarily unable to open a device. No event announces when it
		// can, so the scan is repeated.
		discovery->has_unjudged = false;
		for (uint32_t n = 0; n < query->count; n++)
			discovery->has_unjudged |= facts[n].transport == IBV_TRANSPORT_IB &&
						   !facts[n].usable && !facts[n].awaits_port;
	}
	if (!discovery->soft)
		return 0;
	more = realloc((void *)query->facts, (query->count + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	soft_device_facts(&more[query->count++]);
	query->facts = more;
	return 0;
}

static void target_find_devices(struct target_search *target_search, struct device_gpus *gpus) {
	struct discovery *discovery = target_search->discovery;
	struct device_query *query = &target_search->query;
	struct device_target *target = &query->target;

	*target = discovery->targets[target_search->target];
	target_search->uses_soft_fallback =
		(target->kind == DEVICE_TARGET_AUTO || target->kind == DEVICE_TARGET_BEST) &&
		discovery->soft && device_choice_needs_soft(query->facts, query->count);
	if (target_search->uses_soft_fallback)
		target->kind = DEVICE_TARGET_SOFT;
	if (target->kind == DEVICE_TARGET_CUDA && query->gpus == NULL) {
		device_gpus_init(gpus);
		query->gpus = gpus;
	}
	devices_choose(target_search);
	if (target_search->uses_soft_fallback)
		snprintf(
			discovery->why, sizeof(discovery->why),
			"this machine has no suitable RDMA device"
		);
}

int discovery_scan(struct discovery *discovery) {
	struct target_search target_search = {.discovery = discovery};
	struct topology *topology = NULL;
	struct device_gpus gpus = {0};
	int err = devices_list_all(discovery, &target_search.query);

	discovery->unchanged = err == -EALREADY;
	if (err == 0)
		err = topology_create(&topology);
	target_search.query.topology = topology;
	for (; target_search.target < discovery->target_count && err == 0; target_search.target++) {
		if (!discovery->served[target_search.target])
			target_find_devices(&target_search, &gpus);
	}
	device_gpus_fini(&gpus);
	topology_destroy(topology);
	free((void *)target_search.query.facts);
	return discovery->unchanged ? 0 : err;
}
