// SPDX-License-Identifier: BSD-3-Clause
// Checks that this machine has the configured RDMA devices, and everything that the software device
// needs. Drivers are queried as by `tocsin devices`; no device stays open.
#include "agent.h"
#include "check.h"

#include <dataplane/device_choice.h>
#include <dataplane/gpu_page.h>
#include <dataplane/soft.h>
#include <lib/config.h>
#include <lib/must.h>
#include <lib/port_holder.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct machine {
	struct topology *topology;
	struct device_facts *facts; // the last entry is the software device
	uint32_t count;
};

// Reject a target whose name, NUMA node or GPU does not exist, or whose device cannot have pairs. A
// port that is down is accepted, since it may come up.
static void check_target(
	const struct machine *machine,
	const struct device_target *target,
	const struct config_list *list,
	struct config_load *load
) {
	struct device_query query = {
		.topology = machine->topology,
		.target = *target,
		.facts = machine->facts,
		.count = machine->count,
	};
	struct device_choice *choice = NULL;
	struct device_gpus gpus = {0};
	struct parse_error error = {.text = "out of memory"};
	char why[DEVICE_CHOICE_TEXT_BYTES];

	if (target->kind == DEVICE_TARGET_CUDA) {
		device_gpus_init(&gpus);
		query.gpus = &gpus;
	}
	if (device_choice_create(&query, &error, &choice) != 0) {
		config_reject_key(load, list, "%s", error.text);
	} else if (target->kind == DEVICE_TARGET_NIC && choice->best_count == 0) {
		device_choice_say(choice, why);
		config_reject_key(load, list, "%s", why);
	}
	device_choice_destroy(choice);
	device_gpus_fini(&gpus);
}

// Return true if the configuration requires the software device. A mere fallback does not count,
// because the agent starts without it.
static bool target_requires_soft(
	const struct machine *machine,
	const struct device_target *target,
	const struct device_section *soft
) {
	bool is_set_up = soft->wire[0] != '\0' || soft->address[0] != '\0';

	switch (target->kind) {
	case DEVICE_TARGET_SOFT:
		return true;
	case DEVICE_TARGET_AUTO:
	case DEVICE_TARGET_BEST:
		return is_set_up && device_choice_needs_soft(machine->facts, machine->count);
	case DEVICE_TARGET_NIC:
		return strcmp(target->name, SOFT_DEVICE_NAME) == 0;
	case DEVICE_TARGET_CPU:
	case DEVICE_TARGET_CUDA:
	case DEVICE_TARGET_NONE:
		break;
	}
	return false;
}

static void check_soft(struct agent *probe, struct config_load *load) {
	const struct device_section *soft = soft_device_section(probe->settings);
	char reason[SOFT_REASON_MAX + 1];
	struct port_holder holder;
	struct soft_config config;
	struct parse_error error;
	int err = soft_device_config(probe, &error, &config);

	if (err != 0) {
		config_reject_key(load, &probe->settings->overlay.listen, "%s", error.text);
		return;
	}
	err = soft_config_check(&config, reason);
	if (err == 0)
		return;
	if (err == -EADDRINUSE) {
		port_holder_find(PORT_UDP, &config.address, &holder);
		if (check_holder_may_be_agent(&holder))
			return;
	}
	if (config.wire == SOFT_WIRE_DPDK)
		config_reject_key(load, &soft->wire, "%s", reason);
	else if (soft->address[0] != '\0')
		config_reject_key(load, &soft->address, "%s", reason);
	else
		config_reject_key(
			load, &probe->settings->node.device, "no software device: %s", reason
		);
}

void check_devices(struct agent *probe, bool has_address, struct config_load *load) {
	const struct config_list *list = &probe->settings->node.device;
	const struct device_section *soft = soft_device_section(probe->settings);
	struct device_facts *facts = NULL, *more;
	struct machine machine = {0};
	bool wants_soft = false;
	int err;

	if (!config_key_is_valid(load, list))
		return;
	err = device_list(&verbs_calls_system, NULL, &facts, &machine.count);
	if (err == 0) {
		more = realloc(facts, (machine.count + 1) * sizeof(*facts));
		err = more == NULL ? -ENOMEM : 0;
		machine.facts = more == NULL ? facts : more;
	}
	if (err == 0) {
		soft_device_facts(&machine.facts[machine.count++]);
		err = topology_create(&machine.topology);
	}
	if (err != 0)
		config_reject_key(
			load, list, "RDMA devices cannot be listed: %s", strerrordesc_np(-err)
		);
	for (size_t n = 0; n < list->count && err == 0; n++) {
		struct device_target target;

		must(device_target_parse(list->items[n], strlen(list->items[n]), NULL, &target) == 0
		);
		check_target(&machine, &target, list, load);
		wants_soft = wants_soft || target_requires_soft(&machine, &target, soft);
	}
	if (soft->address[0] != '\0')
		has_address = true;
	if (wants_soft && has_address &&
	    (soft->section == NULL ||
	     (config_key_is_valid(load, &soft->wire) && config_key_is_valid(load, &soft->address))))
		check_soft(probe, load);
	topology_destroy(machine.topology);
	free(machine.facts);
}

// Try to map a page of each GPU. Only a trial shows what the driver, its kernel module and the GPU
// support.
void check_report_gpus(const struct agent_settings *settings, FILE *stream) {
	const struct config_list *list = &settings->node.device;

	for (size_t n = 0; n < list->count && settings->probe.gpu; n++) {
		char reason[CUDA_REASON_MAX + 1] = "";
		struct gpu_page_config wanted = {.word = 1};
		struct gpu_page *page = NULL;
		struct device_target target;

		must(device_target_parse(list->items[n], strlen(list->items[n]), NULL, &target) == 0
		);
		wanted.ordinal = target.number;
		if (target.kind == DEVICE_TARGET_CUDA &&
		    gpu_page_create(&wanted, reason, &page) != 0)
			fprintf(stream,
				"note: peers cannot read memory of cuda:%u, only the pulse in host memory: %s\n",
				target.number, reason);
		gpu_page_destroy(page);
	}
}
