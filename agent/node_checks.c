// SPDX-License-Identifier: BSD-3-Clause
// Creates the local checks from the configuration.
#include "agent.h"

#include <control/checks.h>
#include <control/client.h>
#include <control/fabric.h>
#include <control/health.h>
#include <lib/config.h>
#include <lib/log.h>
#include <lib/must.h>

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static int checks_configure_user(struct agent *agent) {
	struct check_settings settings[CHECKS_USER_MAX];
	const struct check_section *check;
	uint32_t count = 0;

	while (count < CHECKS_USER_MAX && (check = agent->settings->checks[count]) != NULL)
		settings[count++] = (struct check_settings){
			.name = config_section_name(check->section),
			.command = check->command,
			.user = check->user[0] != '\0' ? check->user : NULL,
			.by_root_helper = programs_need_root_helper(agent, check->user),
			.convention = check->convention,
			.interval_ns = check->interval_ns,
			.timeout_ns = check->timeout_ns,
			.confirm = check->confirm,
			.clear = check->clear,
		};
	return checks_set_user(agent->checks, settings, count);
}

static void checks_add_device(
	struct checks_builtin_settings *settings,
	const char *name,
	uint8_t port,
	uint32_t expect_mbps
) {
	struct checks_device *device = &settings->devices[settings->device_count];

	if (settings->device_count == CHECKS_DEVICES_MAX)
		return;
	snprintf(device->name, sizeof(device->name), "%s", name);
	device->port = port;
	device->expect_mbps = expect_mbps;
	settings->device_count++;
}

static uint32_t expect_rate(const struct device_section *section) {
	const char *text = section->expect_rate;
	uint32_t mbps = 0;

	if (text[0] != '\0')
		must(checks_rate_parse(text, strlen(text), NULL, &mbps) == 0);
	return mbps;
}

// Add the devices that the agent uses, and the devices with expect_rate. The software device is
// left out, because the kernel does not know it.
static void
checks_add_devices(const struct agent *agent, struct checks_builtin_settings *settings) {
	const struct device_section *section;

	for (uint32_t n = 0; n < agent->device_count; n++) {
		const struct agent_device *device = &agent->devices[n];

		section = device_section_find(agent->settings, device->device);
		if (!device->calls->in_process)
			checks_add_device(
				settings, device->device, device->settings.port,
				section != NULL ? expect_rate(section) : 0
			);
	}
	for (size_t n = 0; (section = agent->settings->devices[n]) != NULL; n++) {
		const char *name = config_section_name(section->section);
		uint32_t mbps = expect_rate(section);
		bool is_used = false;

		for (uint32_t k = 0; k < agent->device_count && !is_used; k++)
			is_used = strcmp(agent->devices[k].device, name) == 0;
		if (mbps > 0 && !is_used)
			checks_add_device(settings, name, (uint8_t)section->port, mbps);
	}
}

static int checks_configure_builtin(struct agent *agent) {
	struct checks_builtin_settings settings = {
		.interval_ns = agent->settings->health.interval_ns,
		.memory_max_bytes = agent->settings->health.memory_limit_bytes,
		.disk_free_bytes = agent->settings->health.disk_free_bytes,
	};
	const struct config_list *off = &agent->settings->health.off;

	for (uint32_t n = 0; n < CHECKS_BUILTIN_COUNT; n++) {
		for (size_t k = 0; k < off->count; k++)
			settings.off[n] |= strcmp(off->items[k], checks_builtin_name(n)) == 0;
	}
	checks_add_devices(agent, &settings);
	return checks_set_builtin(agent->checks, &settings);
}

static int on_check_statement(void *ctx, const struct statement *statement) {
	const struct agent *agent = ctx;

	return health_add_statement(agent->health, statement);
}

int checks_part_start(struct agent *agent) {
	struct checks_config config = {
		.subject = ras_self_id(overlay_ras(agent->overlay)),
		.loop = agent->loop,
		.spawn = agent->spawn,
		.root_spawn = agent->root_spawn,
		.keepers = &agent->keeper_counters,
		.fabric_calls = &fabric_calls,
		.fabric = agent->fabric,
		.worker_at = workers_describe,
		.worker_ctx = agent,
		.say = on_check_statement,
		.say_ctx = agent,
	};
	const char *directory = agent->settings->node.state_directory;
	int err;

	if (agent->state != NULL)
		config.state_directory = directory;
	if (getrandom(&config.random_seed, sizeof(config.random_seed), 0) !=
	    (ssize_t)sizeof(config.random_seed))
		return -EIO;
	err = checks_create(&config, &agent->checks);
	if (err == 0)
		err = checks_configure_user(agent);
	if (err == 0)
		err = checks_configure_builtin(agent);
	if (err != 0) {
		agent->checks = checks_destroy(agent->checks);
		return err;
	}
	client_server_use_checks(agent->clients, agent->checks);
	return 0;
}

void checks_part_stop(struct agent *agent) {
	client_server_use_checks(agent->clients, NULL);
	agent->checks = checks_destroy(agent->checks);
}

void checks_part_reload(struct agent *agent) {
	int err = checks_configure_user(agent);

	if (err == 0)
		err = checks_configure_builtin(agent);
	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "checks_not_reloaded", log_errno("error", err));
}
