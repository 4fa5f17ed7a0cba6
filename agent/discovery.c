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
struct look {
	struct discovery *discovery;
	struct device_query query;
	uint32_t target; // index of the current target
	bool fell_back;	 // target replaced by the software device
};

static void note_gpu(const struct look *look, struct found *found) {
	const struct device_target *target = &look->query.target;

	if (target->kind != DEVICE_TARGET_CUDA || found->gpu)
		return;
	found->gpu = true;
	found->gpu_ordinal = target->number;
}

static void device_add(const struct look *look, const struct device_facts *facts) {
	struct discovery *discovery = look->discovery;

	for (uint32_t n = 0; n < discovery->count; n++) {
		if (strcmp(discovery->found[n].name, facts->name) != 0)
			continue;
		discovery->found[n].is_fallback =
			discovery->found[n].is_fallback && look->fell_back;
		note_gpu(look, &discovery->found[n]);
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
		.target = look->target,
		.is_fallback = look->fell_back,
	};
	note_gpu(look, &discovery->found[discovery->count - 1]);
	memcpy(discovery->found[discovery->count - 1].name, facts->name, sizeof(facts->name));
	memcpy(discovery->found[discovery->count - 1].device, facts->name, sizeof(facts->name));
}

// Add every port that can have pairs, now or later, once.
static int add_rails(const struct look *look, bool beside_others) {
	struct discovery *discovery = look->discovery;
	const struct device_query *query = &look->query;
	struct device_rail rails[DEVICE_RAILS_MAX];
	uint32_t count, kept = discovery->count;
	int err = device_rails(
		&verbs_calls_system, query->facts, query->count, rails, &count, &discovery->left_out
	);

	for (uint32_t n = 0; err == 0 && n < count; n++) {
		struct device_facts facts = query->facts[rails[n].device];

		memcpy(facts.name, rails[n].name, sizeof(facts.name));
		facts.port.link = rails[n].link;
		device_add(look, &facts);
		if (discovery->count == kept)
			continue; // already added for another target, or no room left
		discovery->found[kept].waits = rails[n].waits && beside_others;
		memcpy(discovery->found[kept].device, query->facts[rails[n].device].name,
		       sizeof(facts.name));
		discovery->found[kept++].port = rails[n].port;
	}
	return err;
}

// Record why a target has no device. If the software device is missing, the reason of its failed
// creation is added.
static void say_missing(struct discovery *discovery, const struct device_target *target) {
	const char *reason = discovery->soft ? "" : discovery->soft_reason;

	if (target->kind == DEVICE_TARGET_SOFT)
		snprintf(
			discovery->reason, sizeof(discovery->reason), "no software device: %s",
			reason
		);
	else
		snprintf(
			discovery->reason, sizeof(discovery->reason), "%s%s%s", discovery->why,
			reason[0] != '\0' ? "; and no software device: " : "", reason
		);
}

// Return the first device that only waits for a port or an address, or NULL. The fabric retries it
// every second, so that a port that is down at the start can be used later.
static const struct device_facts *
find_awaiting(const struct device_choice *choice, const struct device_query *query) {
	for (uint32_t n = 0; n < choice->count; n++) {
		if (choice->judgements[n].verdict == DEVICE_AWAITS_PORT)
			return &query->facts[choice->judgements[n].device];
	}
	return NULL;
}

// Add the awaited device; for `auto` add all rails.
static void take_awaiting(const struct look *look, const struct device_facts *facts) {
	struct discovery *discovery = look->discovery;

	snprintf(
		discovery->why, sizeof(discovery->why), "none can be used yet; awaited is %s: %s",
		facts->name, facts->reason
	);
	if (look->query.target.kind != DEVICE_TARGET_AUTO || add_rails(look, false) != 0)
		device_add(look, facts);
}

static void devices_choose(const struct look *look) {
	struct discovery *discovery = look->discovery;
	const struct device_query *query = &look->query;
	struct device_choice *choice = NULL;
	struct parse_error error = {.text = ""};

	if (device_choice_create(query, &error, &choice) != 0) {
		snprintf(discovery->reason, sizeof(discovery->reason), "%s", error.text);
		return;
	}
	device_choice_say(choice, discovery->why);
	if (choice->best_count > 0) {
		const struct device_facts *best = &query->facts[choice->judgements[0].device];

		if (discovery->count == 0) // an earlier target has already set it
			(void)topology_near_cpus(query->topology, best->pci, &discovery->near_cpus);
		if (query->target.kind != DEVICE_TARGET_AUTO || add_rails(look, true) != 0)
			device_add(look, best);
	} else if (find_awaiting(choice, query) != NULL) {
		take_awaiting(look, find_awaiting(choice, query));
	} else {
		say_missing(discovery, &query->target);
	}
	device_choice_destroy(choice);
}

static bool is_soft(const struct device_target *target) {
	return target->kind == DEVICE_TARGET_SOFT ||
	       (target->kind == DEVICE_TARGET_NIC && strcmp(target->name, SOFT_DEVICE_NAME) == 0);
}

// Return the number of targets that are the software device; such a target needs no driver call.
uint32_t discovery_count_soft(const struct discovery *discovery) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < discovery->target_count; n++)
		count += is_soft(&discovery->targets[n]);
	return count;
}

// Return true if a driver may be temporarily unable to open a device. No event announces when it
// can, so the scan is repeated.
static bool is_unclear(const struct device_query *query) {
	for (uint32_t n = 0; n < query->count; n++) {
		const struct device_facts *facts = &query->facts[n];

		if (facts->transport == IBV_TRANSPORT_IB && !facts->usable && !facts->awaits_port)
			return true;
	}
	return false;
}

// List the system's devices. Returns -EALREADY if the list is unchanged and only changes were
// requested.
static int list_system(struct discovery *discovery, struct device_query *query) {
	uint64_t before = discovery->digest;
	struct device_facts *facts;
	int err = device_list_digest(&verbs_calls_system, &discovery->digest);

	if (err == 0 && discovery->only_if_changed && discovery->digest == before)
		return -EALREADY;
	if (err == 0)
		err = device_list(&verbs_calls_system, NULL, &facts, &query->count);
	if (err != 0)
		return err;
	query->facts = facts;
	discovery->listed = query->count;
	discovery->unclear = is_unclear(query);
	return 0;
}

// List the system's devices, followed by the software device. The software device is not opened
// here; it takes its port when it is first used.
static int devices_list(struct discovery *discovery, struct device_query *query) {
	struct device_facts *more;
	int err = 0;

	if (discovery_count_soft(discovery) < discovery->target_count)
		err = list_system(discovery, query);
	if (err != 0 || !discovery->soft)
		return err;
	more = realloc((void *)query->facts, (query->count + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	soft_device_facts(&more[query->count++]);
	query->facts = more;
	return 0;
}

static bool falls_back(const struct look *look) {
	const struct device_query *query = &look->query;

	return (query->target.kind == DEVICE_TARGET_AUTO || query->target.kind == DEVICE_TARGET_BEST
	       ) &&
	       look->discovery->soft && device_choice_needs_soft(query->facts, query->count);
}

static void look_for(struct look *look, struct device_gpus *gpus) {
	struct discovery *discovery = look->discovery;

	look->query.target = discovery->targets[look->target];
	look->fell_back = falls_back(look);
	if (look->fell_back)
		look->query.target.kind = DEVICE_TARGET_SOFT;
	if (look->query.target.kind == DEVICE_TARGET_CUDA && look->query.gpus == NULL) {
		device_gpus_init(gpus);
		look->query.gpus = gpus;
	}
	devices_choose(look);
	if (look->fell_back)
		snprintf(
			discovery->why, sizeof(discovery->why),
			"this machine has no RDMA device that will do"
		);
}

int discovery_look(struct discovery *discovery) {
	struct look look = {.discovery = discovery};
	struct topology *topology = NULL;
	struct device_gpus gpus = {0};
	int err = devices_list(discovery, &look.query);

	discovery->unchanged = err == -EALREADY;
	if (err == 0)
		err = topology_create(&topology);
	look.query.topology = topology;
	for (; look.target < discovery->target_count && err == 0; look.target++) {
		if (!discovery->served[look.target])
			look_for(&look, &gpus);
	}
	device_gpus_fini(&gpus);
	topology_destroy(topology);
	free((void *)look.query.facts);
	return discovery->unchanged ? 0 : err;
}
