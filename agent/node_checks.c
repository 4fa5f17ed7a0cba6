// SPDX-License-Identifier: BSD-3-Clause
// The local checks, by the configuration.
#include "agent.h"

#include <control/checks.h>
#include <control/client.h>
#include <lib/config.h>
#include <lib/log.h>

#include <errno.h>
#include <sys/random.h>

static void read_settings(
	const struct config *config, const char *section, struct check_settings *ret_settings
) {
	*ret_settings = (struct check_settings){
		.name = config_section_name(section),
		.command = config_get_string(config, section, "command"),
		.convention = config_get_enum(config, section, "convention") == 0 ? CHECK_NAGIOS
										  : CHECK_NPD,
		.interval_ns = config_get_duration_ns(config, section, "interval"),
		.timeout_ns = config_get_duration_ns(config, section, "timeout"),
		.confirm = (uint32_t)config_get_int(config, section, "confirm"),
		.clear = (uint32_t)config_get_int(config, section, "clear"),
	};
}

static int set_user(struct agent *agent) {
	struct check_settings settings[CHECKS_USER_MAX];
	const char *section;
	uint32_t count = 0;

	while (count < CHECKS_USER_MAX &&
	       (section = config_get_section(agent->config, "check", count)) != NULL)
		read_settings(agent->config, section, &settings[count++]);
	return checks_set_user(agent->checks, settings, count);
}

// Until there is a store of verdicts, `tocsin checks` and the log are where they are seen.
static void say(void *ctx, const struct statement *statement) {
	(void)ctx;
	(void)statement;
}

int checks_part_start(struct agent *agent) {
	struct checks_config config = {
		.subject = ras_self_id(overlay_ras(agent->overlay)),
		.loop = agent->loop,
		.spawn = agent->spawn,
		.say = say,
		.say_ctx = agent,
	};
	int err;

	if (getrandom(&config.random_seed, sizeof(config.random_seed), 0) !=
	    (ssize_t)sizeof(config.random_seed))
		return -EIO;
	err = checks_create(&config, &agent->checks);
	if (err == 0)
		err = set_user(agent);
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
	int err = set_user(agent);

	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "checks_not_reloaded", log_errno("error", err));
}
