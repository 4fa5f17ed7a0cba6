// SPDX-License-Identifier: BSD-3-Clause
// Which RDMA devices this node measures with, found out once, before it tells others of itself.
//
// Enumeration asks drivers, which may hang: it runs on a thread of its own, and an agent whose
// driver does not come back in DISCOVERY_SECONDS goes on without RDMA, or with the software device
// if that is among what was asked for. That thread is left behind with its memory.
#include "agent.h"

#include <control/fabric.h>
#include <dataplane/device_choice.h>
#include <dataplane/device_rails.h>
#include <dataplane/soft.h>
#include <lib/config.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DISCOVERY_SECONDS 20 // loading its driver from a cold disk on a busy machine takes some
#define REASON_BYTES 512
#define SOFT_REASON_BYTES 200

struct found {
	const struct verbs_calls *calls;
	char name[DEVICE_NAME_MAX + 1]; // of the rail
	char device[DEVICE_NAME_MAX + 1];
	uint8_t port; // 0: as the settings of the device say
	enum device_link link;
	enum device_responder responder;
};

struct discovery {
	struct device_target targets[FABRIC_DEVICES_MAX];
	uint32_t target_count;
	bool soft;			     // there can be a software device
	char soft_reason[SOFT_REASON_BYTES]; // else why not
	// What came of it.
	int err;
	char reason[REASON_BYTES]; // of what was asked for and is not there
	char why[DEVICE_WHY_BYTES];
	struct found found[FABRIC_DEVICES_MAX];
	struct cpu_set near_cpus;
	uint32_t count, left_out;
	// Whoever comes second frees it. Acquire-release: what the one wrote is seen by the other.
	atomic_bool let_go;
};

static void add(struct discovery *discovery, const struct device_facts *facts) {
	for (uint32_t n = 0; n < discovery->count; n++) {
		if (strcmp(discovery->found[n].name, facts->name) == 0)
			return;
	}
	if (discovery->count == FABRIC_DEVICES_MAX)
		return;
	discovery->found[discovery->count++] = (struct found){
		.calls = facts->responder == DEVICE_RESPONDER_IN_PROCESS ? &verbs_calls_soft
									 : &verbs_calls_system,
		.link = facts->port.link,
		.responder = facts->responder,
	};
	memcpy(discovery->found[discovery->count - 1].name, facts->name, sizeof(facts->name));
	memcpy(discovery->found[discovery->count - 1].device, facts->name, sizeof(facts->name));
}

// Every port that can have pairs, once.
static int add_rails(struct discovery *discovery, const struct device_query *query) {
	struct device_rail rails[DEVICE_RAILS_MAX];
	uint32_t count, kept = discovery->count;
	int err = device_rails(
		&verbs_calls_system, query->facts, query->count, rails, &count, &discovery->left_out
	);

	for (uint32_t n = 0; err == 0 && n < count; n++) {
		struct device_facts facts = query->facts[rails[n].device];

		memcpy(facts.name, rails[n].name, sizeof(facts.name));
		facts.port.link = rails[n].link;
		add(discovery, &facts);
		if (discovery->count == kept)
			continue; // it was named, too, or there is no room
		memcpy(discovery->found[kept].device, query->facts[rails[n].device].name,
		       sizeof(facts.name));
		discovery->found[kept++].port = rails[n].port;
	}
	return err;
}

// Of the software device it is better known why it is missing.
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

// Of those that only wait for a port or an address, the first: it is tried each second, and the
// state at the start does not decide for the agent's life.
static const struct device_facts *
find_awaiting(const struct device_choice *choice, const struct device_query *query) {
	for (uint32_t n = 0; n < choice->count; n++) {
		if (choice->judgements[n].verdict == DEVICE_AWAITS_PORT)
			return &query->facts[choice->judgements[n].device];
	}
	return NULL;
}

static void take_awaiting(struct discovery *discovery, const struct device_facts *facts) {
	snprintf(
		discovery->why, sizeof(discovery->why), "none can be used yet; awaited is %s: %s",
		facts->name, facts->reason
	);
	add(discovery, facts);
}

static void choose(struct discovery *discovery, const struct device_query *query) {
	struct device_choice *choice = NULL;
	struct parse_error error = {.text = ""};

	if (device_choice_create(query, &error, &choice) != 0) {
		snprintf(discovery->reason, sizeof(discovery->reason), "%s", error.text);
		return;
	}
	device_choice_say(choice, discovery->why);
	if (choice->best_count > 0) {
		const struct device_facts *best = &query->facts[choice->judgements[0].device];

		if (discovery->count == 0) // else it stays as it is, or empty
			(void)topology_near_cpus(query->topology, best->pci, &discovery->near_cpus);
		if (query->target.kind != DEVICE_TARGET_AUTO || add_rails(discovery, query) != 0)
			add(discovery, best);
	} else if (find_awaiting(choice, query) != NULL) {
		take_awaiting(discovery, find_awaiting(choice, query));
	} else {
		say_missing(discovery, &query->target);
	}
	device_choice_destroy(choice);
}

static bool is_soft(const struct device_target *target) {
	return target->kind == DEVICE_TARGET_SOFT ||
	       (target->kind == DEVICE_TARGET_NIC && strcmp(target->name, SOFT_DEVICE_NAME) == 0);
}

// Of the targets: how many are the software device, which is had without asking a driver.
static uint32_t count_soft(const struct discovery *discovery) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < discovery->target_count; n++)
		count += is_soft(&discovery->targets[n]);
	return count;
}

// The devices of the system, and behind them the software device, which is not opened for this:
// it takes what it needs, a port above all, when it comes into use.
static int list(const struct discovery *discovery, struct device_query *query) {
	struct device_facts *facts = NULL, *more;
	int err = 0;

	if (count_soft(discovery) < discovery->target_count)
		err = device_list(&verbs_calls_system, NULL, &facts, &query->count);
	if (err != 0 || !discovery->soft) {
		query->facts = facts;
		return err;
	}
	more = realloc(facts, (query->count + 1) * sizeof(*facts));
	if (more == NULL) {
		free(facts);
		return -ENOMEM;
	}
	soft_device_facts(&more[query->count++]);
	query->facts = more;
	return 0;
}

static bool falls_back(const struct discovery *discovery, const struct device_query *query) {
	return (query->target.kind == DEVICE_TARGET_AUTO || query->target.kind == DEVICE_TARGET_BEST
	       ) &&
	       discovery->soft && device_choice_wants_soft(query->facts, query->count);
}

static int discover(struct discovery *discovery) {
	struct topology *topology = NULL;
	struct device_query query = {0};
	struct device_gpus gpus = {0};
	int err = list(discovery, &query);

	if (err == 0)
		err = topology_create(&topology);
	query.topology = topology;
	for (uint32_t n = 0; n < discovery->target_count && err == 0; n++) {
		bool fell_back;

		query.target = discovery->targets[n];
		fell_back = falls_back(discovery, &query);

		if (fell_back)
			query.target.kind = DEVICE_TARGET_SOFT;
		if (query.target.kind == DEVICE_TARGET_CUDA && query.gpus == NULL) {
			device_gpus_init(&gpus);
			query.gpus = &gpus;
		}
		choose(discovery, &query);
		if (fell_back)
			snprintf(
				discovery->why, sizeof(discovery->why),
				"this machine has no RDMA device that will do"
			);
	}
	device_gpus_fini(&gpus);
	topology_destroy(topology);
	free((void *)query.facts);
	return err;
}

static void let_go(struct discovery *discovery) {
	if (atomic_exchange_explicit(&discovery->let_go, true, memory_order_acq_rel))
		free(discovery);
}

static void *discover_thread(void *arg) {
	struct discovery *discovery = arg;

	pthread_setname_np(pthread_self(), "tocsin-devices");
	discovery->err = discover(discovery);
	let_go(discovery);
	return NULL;
}

// 0, -ETIMEDOUT (it hangs: the thread is left behind), or -errno of making it.
static int run(struct discovery *discovery) {
	struct timespec until;
	pthread_t thread;
	int err = pthread_create(&thread, NULL, discover_thread, discovery);

	if (err != 0) {
		let_go(discovery); // for the thread that there is not
		return -err;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DISCOVERY_SECONDS;
	err = pthread_timedjoin_np(thread, NULL, &until);
	if (err == 0)
		return discovery->err;
	pthread_detach(thread);
	return -ETIMEDOUT;
}

static void read_targets(struct agent *agent, struct discovery *discovery) {
	const struct config_list *list = config_get_list(agent->config, "node", "device");
	struct parse_error error;

	for (size_t n = 0; n < list->count && n < FABRIC_DEVICES_MAX; n++)
		must(device_target_parse(
			     list->items[n], strlen(list->items[n]), &error,
			     &discovery->targets[discovery->target_count++]
		     ) == 0);
}

static uint32_t get(const struct config *config, const char *section, const char *key) {
	return (uint32_t)config_get_int(config, section, key);
}

const char *device_section(const struct config *config, const char *name) {
	const char *section;

	for (size_t n = 0; (section = config_get_section(config, "device", n)) != NULL; n++) {
		if (strcmp(config_section_name(section), name) == 0)
			break;
	}
	return section;
}

static struct device_settings settings_of(const struct config *config, const char *name) {
	static const uint16_t mtus[] = {0, 256, 512, 1024, 2048, 4096};
	const char *section = device_section(config, name);

	if (section == NULL)
		return device_settings_default;
	return (struct device_settings){
		.port = (uint8_t)get(config, section, "port"),
		.gid_index = (int)config_get_int(config, section, "gid_index"),
		.mtu = mtus[config_get_enum(config, section, "mtu")],
		.traffic_class = (uint8_t)get(config, section, "traffic_class"),
		.service_level = (uint8_t)get(config, section, "service_level"),
		.timeout = (uint8_t)get(config, section, "timeout"),
		.retry = (uint8_t)get(config, section, "retry"),
		.rnr_retry = (uint8_t)get(config, section, "rnr_retry"),
		.min_rnr_timer = (uint8_t)get(config, section, "min_rnr_timer"),
		.pkey_index = (int)config_get_int(config, section, "pkey_index"),
	};
}

static void take(struct agent *agent, const struct found *found) {
	struct agent_device *device = &agent->devices[agent->device_count];
	struct device_settings settings = settings_of(
		agent->config,
		device_section(agent->config, found->name) != NULL ? found->name : found->device
	);

	if (found->port != 0 && settings.port != 0 && settings.port != found->port)
		return; // another port of it was named
	agent->device_count++;

	device->calls = found->calls;
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
}

// Said once: an agent without RDMA is an agent.
static void tell(const struct agent *agent, const struct discovery *discovery, int err) {
	if (err == -ETIMEDOUT)
		log_event(
			LOG_LEVEL_ERROR, "rdma_device_stuck",
			log_str("effect",
				agent->device_count == 0
					? "a driver does not come back; this node has no RDMA"
					: "a driver does not come back; none of its devices is used"
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
				"each is probed, the budget is split over them; device = best takes "
				"one device alone, as before there were rails")
		);
	for (uint32_t n = 0; n < agent->device_count; n++)
		log_event(
			LOG_LEVEL_INFO, "rdma_device_chosen",
			log_str("device", agent->devices[n].name),
			log_str("why", err == 0 ? discovery->why : "it needs no driver")
		);
}

// While a thread that was left behind may still write to what it found.
static void take_soft_alone(struct agent *agent, const struct discovery *discovery) {
	struct device_facts facts;

	if (!discovery->soft || count_soft(discovery) == 0)
		return;
	soft_device_facts(&facts);
	take(agent, &(struct found){
			    .calls = &verbs_calls_soft,
			    .name = SOFT_DEVICE_NAME,
			    .device = SOFT_DEVICE_NAME,
			    .link = facts.port.link,
			    .responder = facts.responder,
		    });
}

// Made if it may be needed; whether it is, is seen when the others were listed.
static void make_soft(struct agent *agent, struct discovery *discovery) {
	struct parse_error error = {.text = ""};

	discovery->soft = soft_device_make(agent, &error) == 0;
	snprintf(
		discovery->soft_reason, sizeof(discovery->soft_reason), "%.*s",
		SOFT_REASON_BYTES - 1, error.text
	);
}

int devices_start(struct agent *agent) {
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	int err;

	if (discovery == NULL)
		return -ENOMEM;
	read_targets(agent, discovery);
	agent->device_count = 0;
	if (discovery->target_count == 1 && discovery->targets[0].kind == DEVICE_TARGET_NONE) {
		free(discovery);
		return 0;
	}
	make_soft(agent, discovery);
	err = run(discovery);
	for (uint32_t n = 0; err == 0 && n < discovery->count; n++)
		take(agent, &discovery->found[n]);
	if (err == 0)
		agent->near_cpus = discovery->near_cpus;
	else
		take_soft_alone(agent, discovery);
	tell(agent, discovery, err);
	let_go(discovery);
	return 0;
}
