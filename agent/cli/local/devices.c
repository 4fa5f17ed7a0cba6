// SPDX-License-Identifier: BSD-3-Clause
// tocsin devices: lists the RDMA devices of this machine, and the best ones for a target. It
// queries the drivers directly, without an agent.
#include "local/devices.h"

#include "command.h"

#include <dataplane/soft.h>
#include <lib/scoped.h>
#include <records/devices.h>

#include <string.h>

enum {
	OPTION_FOR,
	OPTION_EXPLAIN,
	OPTION_JSON,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_FOR] =
		{"for", "TARGET",
		 "what the device is for: auto (the default), best, cpu:N,\n"
		 "cuda:N, nic:NAME, soft or none, as in [node] device"},
	[OPTION_EXPLAIN] = {"explain", NULL, "also explain the choice step by step"},
	[OPTION_JSON] = {"json", NULL, "print one JSON object"},
};

static const char details[] =
	"TARGET is one of\n"
	"  auto       the fastest devices, each judged from its own place\n"
	"  best       the same, but an agent takes one device only\n"
	"  cpu:N      memory of NUMA node N\n"
	"  cuda:N     memory of the GPU that CUDA calls N\n"
	"  nic:NAME   the device of this name, even while it has no active port\n"
	"  soft       soft0, the software device that an agent makes for itself\n"
	"  none       no device\n"
	"\n"
	"The nearest devices are chosen, and of equally near ones those with the most\n"
	"bandwidth: that of the narrowest PCIe link on the way, or of the port if that\n"
	"is less. From near to far:\n"
	"  switch     a common PCI switch\n"
	"  bridges    several PCI bridges between, but no host bridge\n"
	"  host       a common host bridge or NUMA node\n"
	"  far        another NUMA node, or an unknown one\n"
	"  unknown    not in the PCI tree, such as Soft-RoCE\n"
	"All devices that are equal in both are chosen (*), in natural order of their\n"
	"names; host memory is spread over them. PCIe counts with three quarters of its\n"
	"nominal speed. If no link on the way can be read, one of generation 3 with 16\n"
	"lanes is assumed (~).\n"
	"\n"
	"For auto an agent takes every port that can have pairs, up to 16, as its rails\n"
	"(rails in JSON). Further ports of a device have names such as mlx5_0:2. A port\n"
	"that is down or has no address waits (rails_waiting). For any other target the\n"
	"agent takes the first chosen device (agents_take in JSON). If no device here\n"
	"could have pairs even with its port up, the agent takes soft0 for auto and\n"
	"best, until such a device appears.\n"
	"\n"
	"Exit status: 0 done; 1 --for names something that does not exist, or that no\n"
	"listed device can serve (except soft, which needs none), or the devices cannot\n"
	"be listed; 2 a mistake in an option.\n";

static int devices_choose(const struct device_query *query, const struct arguments *arguments) {
	struct device_rail rails[DEVICE_RAILS_MAX];
	struct devices devices = {
		.topology = query->topology,
		.explain = arguments->values[OPTION_EXPLAIN] != NULL,
		.rails = rails,
	};
	struct parse_error error = {"out of memory"};
	struct device_choice *choice;
	int status = EXIT_DONE;

	if (device_choice_create(query, &error, &choice) != 0) {
		command_error("devices", "--for: %s", error.text);
		return EXIT_NEGATIVE;
	}
	devices.choice = choice;
	if (choice->target.kind == DEVICE_TARGET_AUTO &&
	    device_rails(
		    &verbs_calls_system, query->facts, query->count, rails, &devices.rail_count,
		    &devices.rails_left_out
	    ) != 0)
		devices.rail_count = 0; // the list of devices is still shown
	if (arguments->values[OPTION_JSON] == NULL) {
		devices_print(&devices, stdout);
	} else if (devices_print_json(&devices, stdout) != 0) {
		command_error("devices", "out of memory");
		status = EXIT_NEGATIVE;
	}
	if (arguments->values[OPTION_FOR] != NULL && choice->best_count == 0 &&
	    choice->target.kind != DEVICE_TARGET_NONE && choice->target.kind != DEVICE_TARGET_SOFT)
		status = EXIT_NEGATIVE;
	device_choice_destroy(choice);
	return status;
}

static int devices_run(const struct arguments *arguments) {
	const char *target = arguments->values[OPTION_FOR];
	struct device_query query = {.target = {.kind = DEVICE_TARGET_AUTO}};
	scoped_mem struct device_facts *facts = NULL;
	struct parse_error error;
	struct topology *topology;
	struct device_gpus gpus;
	int status, err;

	if (target != NULL &&
	    device_target_parse(target, strlen(target), &error, &query.target) != 0) {
		command_error("devices", "--for: %s", error.text);
		return EXIT_USAGE;
	}
	if (query.target.kind == DEVICE_TARGET_NIC &&
	    strcmp(query.target.name, SOFT_DEVICE_NAME) == 0)
		query.target = (struct device_target){.kind = DEVICE_TARGET_SOFT};
	err = device_list(&verbs_calls_system, NULL, &facts, &query.count);
	if (err != 0) {
		command_error(
			"devices", "RDMA devices cannot be listed: %s", strerrordesc_np(-err)
		);
		return EXIT_NEGATIVE;
	}
	err = topology_create(&topology);
	if (err != 0) {
		command_error("devices", "the PCI tree cannot be read: %s", strerrordesc_np(-err));
		return EXIT_NEGATIVE;
	}
	query.facts = facts;
	query.topology = topology;
	// GPUs are listed only for a cuda target, because CUDA's driver starts slowly.
	if (query.target.kind == DEVICE_TARGET_CUDA) {
		device_gpus_init(&gpus);
		query.gpus = &gpus;
	}
	status = devices_choose(&query, arguments);
	if (query.gpus != NULL)
		device_gpus_fini(&gpus);
	topology_destroy(topology);
	return status;
}

static const struct record *const devices_records[] = {
	&machine_device_record, &machine_choice_record, NULL};

const struct command devices_command = {
	.name = "devices",
	.summary = "List the RDMA devices of this machine, and choose among them",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.records = devices_records,
	.run = devices_run,
};
