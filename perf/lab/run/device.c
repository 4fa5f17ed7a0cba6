// SPDX-License-Identifier: BSD-3-Clause
// Choose and open a device.
#include "run/device.h"

#include <dataplane/device_choice.h>
#include <dataplane/soft_settings.h>
#include <dataplane/topology.h>
#include <lib/escape.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SOFT "soft"

static int open_with_calls(
	const struct verbs_calls *calls,
	const char *name,
	const struct device_settings *settings,
	struct lab_why *why,
	struct device **ret_device
) {
	char reason[DEVICE_REASON_MAX + 1] = "";
	int err = device_open(calls, name, settings, reason, ret_device);

	if (err != 0)
		return lab_fail(
			why, err, "no device %s: %s", name,
			reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	return 0;
}

static int open_soft(
	const struct device_settings *settings,
	const struct sock_addr *local,
	struct lab_why *why,
	struct device **ret_device
) {
	struct lab_why inner = {.text = ""};
	struct soft_config configs[SOFT_DEVICES_MAX], config;
	const char *texts[SOFT_SETTING_COUNT];
	struct parse_error error;
	enum soft_setting wrong;
	uint32_t count;
	int err;

	for (int setting = 0; setting < SOFT_SETTING_COUNT; setting++)
		// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
		texts[setting] = getenv(soft_setting_variables[setting]);
	if (soft_settings_read(texts, &error, &wrong, configs, &count) != 0)
		return lab_fail(why, -EINVAL, "%s: %s", soft_setting_variables[wrong], error.text);
	config = configs[0];
	if (config.address_any && local != NULL) {
		config.address_any = false;
		config.address = *local;
		config.address.port = SOFT_UDP_PORT;
	}
	err = soft_device_add(&config);
	if (err != 0)
		return lab_fail(why, err, "no software device: %s", strerrordesc_np(-err));
	err = open_with_calls(&verbs_calls_soft, config.name, settings, &inner, ret_device);
	if (err == -EADDRNOTAVAIL && config.address_any)
		return lab_fail(
			why, err,
			"%.300s; two ends on one machine use addresses of 127.0.0.0/8, or give "
			"each end its own TOCSIN_SOFT_ADDRESS",
			inner.text
		);
	return err == 0 ? 0 : lab_fail(why, err, "%s", inner.text);
}

int lab_device_choose(
	const struct device_settings *settings,
	struct lab_why *why,
	char ret_name[static DEVICE_NAME_MAX + 1]
) {
	struct device_query query = {.target = {.kind = DEVICE_TARGET_BEST}};
	struct device_choice *choice = NULL;
	struct device_facts *facts = NULL;
	struct topology *topology = NULL;
	struct parse_error error;
	int err = topology_create(&topology);

	memcpy(ret_name, SOFT, sizeof(SOFT));
	if (err == 0)
		err = device_list(&verbs_calls_system, settings, &facts, &query.count);
	query.topology = topology;
	query.facts = facts;
	if (err == 0)
		err = device_choice_create(&query, &error, &choice);
	if (err == 0 && choice->best_count > 0)
		memcpy(ret_name, facts[choice->judgements[0].device].name, DEVICE_NAME_MAX + 1);
	device_choice_destroy(choice);
	free(facts);
	topology_destroy(topology);
	if (err != 0)
		return lab_fail(why, err, "cannot list the devices: %s", strerrordesc_np(-err));
	return 0;
}

int lab_device_open(
	const char *name,
	const struct device_settings *settings,
	const struct sock_addr *local,
	struct lab_why *why,
	struct cpu_set *ret_near,
	struct device **ret_device
) {
	struct topology *topology = NULL;
	char chosen[DEVICE_NAME_MAX + 1];
	int err = 0;

	*ret_near = (struct cpu_set){{0}};
	if (name == NULL) {
		err = lab_device_choose(settings, why, chosen);
		name = chosen;
	}
	if (err != 0)
		return err;
	if (strcmp(name, SOFT) == 0)
		return open_soft(settings, local, why, ret_device);

	// The software device has no location, so only other devices need the topology.
	err = topology_create(&topology);
	if (err != 0)
		return lab_fail(why, err, "cannot list the devices: %s", strerrordesc_np(-err));
	err = open_with_calls(&verbs_calls_system, name, settings, why, ret_device);
	if (err == 0)
		(void)topology_near_cpus(topology, device_facts(*ret_device)->pci, ret_near);
	topology_destroy(topology);
	return err;
}
