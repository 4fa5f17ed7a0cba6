// SPDX-License-Identifier: BSD-3-Clause
// tocsin devices: lists the RDMA devices of this machine, and the best ones for a target. It
// queries the drivers directly, without an agent.
#include "local/devices.h"

#include "command.h"

#include <dataplane/soft.h>
#include <lib/scoped.h>

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
		 "whom the device is to serve: auto (the default), best,\n"
		 "cpu:N, cuda:N, nic:NAME, soft or none, as a\n"
		 "configuration says it"},
	[OPTION_EXPLAIN] = {"explain", NULL, "also step by step why it was chosen"},
	[OPTION_JSON] = {"json", NULL, "the same as one JSON object"},
};

static const char details[] =
	"TARGET is one of\n"
	"  auto       whatever is fastest, each device judged from where it is\n"
	"  best       the same; an agent takes this one alone\n"
	"  cpu:N      memory of NUMA node N\n"
	"  cuda:N     memory of the GPU that CUDA calls N\n"
	"  nic:NAME   the device of this name, even while it has no active port\n"
	"  soft       soft0, the software device that an agent makes for itself\n"
	"  none       no device\n"
	"\n"
	"The nearest is taken, of equally near ones the one with the most bandwidth: the\n"
	"narrowest PCIe link on the way, or the port's speed if that is less. From near\n"
	"to far:\n"
	"  switch     a PCI switch in common\n"
	"  bridges    several PCI bridges between, but no host bridge\n"
	"  host       a host bridge or a NUMA node in common\n"
	"  far        another NUMA node, or one that nobody knows\n"
	"  unknown    not in the PCI tree, as Soft-RoCE\n"
	"All that are equal in both are chosen (*), in natural order of their names;\n"
	"host memory is spread over them. PCIe is counted with three quarters of its\n"
	"nominal speed; if no link on the way can be read, a 3rd generation one with 16\n"
	"lanes is assumed (~).\n"
	"\n"
	"For auto an agent takes every port that can have pairs, up to 16, as its rails\n"
	"(rails in JSON); a further port of a device is called as in mlx5_0:2. Those\n"
	"whose port is down or has no address wait (rails_waiting). For any other target\n"
	"it takes the first of the chosen ones, which agents_take in JSON names. For\n"
	"auto and best, where no device here could have pairs even if its port came up,\n"
	"it takes soft0, until such a device comes.\n"
	"\n"
	"Exit status: 0 done; 1 --for names what is not there, or what none of the\n"
	"listed devices can serve (but soft, which needs none), or the devices cannot be\n"
	"listed; 2 a mistake in an option.\n";

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
		command_error("devices", "they cannot be listed: %s", strerrordesc_np(-err));
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

const struct command devices_command = {
	.name = "devices",
	.summary = "List the RDMA devices of this machine, and choose among them",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.run = devices_run,
};
