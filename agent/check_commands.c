// SPDX-License-Identifier: BSD-3-Clause
// Checks of [check NAME] that involve several keys.
#include "check.h"

#include <control/checks.h>
#include <lib/must.h>
#include <lib/parse.h>

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool setting_is_default(const struct config *config, const char *section, const char *key) {
	char origin[CONFIG_ORIGIN_BYTES];

	config_get_origin(config, section, key, origin);
	return strcmp(origin, "default") == 0;
}

// Reject a timeout that is not shorter than the interval. The error names the key that the user
// gave, not the one with a default value.
static void
check_timeout(const struct config *config, const char *section, struct config_load *load) {
	uint64_t interval_ns = config_get_duration_ns(config, section, "interval");
	uint64_t timeout_ns = config_get_duration_ns(config, section, "timeout");
	bool is_given = !setting_is_default(config, section, "timeout");
	char text[PARSE_TEXT_BYTES];

	if (!config_key_is_valid(load, section, "timeout") ||
	    !config_key_is_valid(load, section, "interval") || timeout_ns < interval_ns)
		return;
	format_duration_ns(is_given ? interval_ns : timeout_ns, text);
	if (is_given)
		config_reject_key(
			load, section, "timeout", "must be less than interval, which is %s%s", text,
			setting_is_default(config, section, "interval") ? " by default" : ""
		);
	else
		config_reject_key(
			load, section, "interval",
			"must be more than timeout, which is %s by default; give a shorter timeout",
			text
		);
}

// Reject a check whose reason equals that of another check. Schedulers and alerts tell checks apart
// by the reason.
static void check_reason_is_unique(
	const struct config *config, const char *section, size_t place, struct config_load *load
) {
	struct check_reasons reasons, other;
	const char *before;

	if (check_reasons_build(config_section_name(section), &reasons) != 0) {
		config_reject_key(load, section, "command", "the name needs a letter or a digit");
		return;
	}
	if (check_reasons_clash_with_builtin(&reasons))
		config_reject_key(
			load, section, "command",
			"its reason would be %s, which a built-in check has already; choose another name",
			reasons.unknown
		);
	for (size_t n = 0; n < place; n++) {
		before = config_get_section(config, "check", n);
		if (check_reasons_build(config_section_name(before), &other) == 0 &&
		    check_reasons_clash(&reasons, &other))
			config_reject_key(
				load, section, "command",
				"its reason %s is too similar to that of [%s], %s; choose a name "
				"that differs in its first 19 letters and digits",
				reasons.bad, before, other.bad
			);
	}
}

void check_user_checks(const struct config *config, struct config_load *load) {
	const char *section;

	for (size_t n = 0; (section = config_get_section(config, "check", n)) != NULL; n++) {
		check_timeout(config, section, load);
		check_reason_is_unique(config, section, n, load);
		if (n == CHECKS_USER_MAX)
			config_reject_key(
				load, section, "command", "there may be at most %d checks",
				CHECKS_USER_MAX
			);
	}
}

// Check that the user exists on this machine.
static void check_user(
	const struct config *config, const char *section, const char *key, struct config_load *load
) {
	const char *name = config_get_string(config, section, key);
	const struct passwd *user;

	if (name[0] == '\0' || !config_key_is_valid(load, section, key))
		return;
	user = getpwnam(name); // NOLINT(concurrency-mt-unsafe): before other threads ask
	if (user == NULL)
		config_reject_key(load, section, key, "there is no user %s on this machine", name);
	else if (user->pw_uid != geteuid() && geteuid() != 0)
		config_reject_key(
			load, section, key,
			"only an agent that runs as root can run programs as other users; this one is uid %u",
			geteuid()
		);
}

static void check_program(
	const struct config *config, const char *section, const char *key, struct config_load *load
) {
	char command[CHECKS_COMMAND_MAX + 1], *words[SPAWN_ARGUMENTS_MAX + 1];
	struct stat info;
	const char *why;

	if (!config_key_is_valid(load, section, key))
		return;
	snprintf(command, sizeof(command), "%s", config_get_string(config, section, key));
	must(check_command_split(command, words, &why) == 0);
	if (stat(words[0], &info) != 0)
		why = strerrordesc_np(errno);
	else if (!S_ISREG(info.st_mode))
		why = "it is not a regular file";
	else if ((info.st_mode & S_IWOTH) != 0)
		why = "every user may write to it, and it would run with the agent's privileges";
	else
		why = access(words[0], X_OK) == 0 ? NULL : "it is not executable";
	if (why != NULL)
		config_reject_key(load, section, key, "cannot run %s: %s", words[0], why);
}

void check_programs(const struct config *config, struct config_load *load) {
	const char *section;

	for (size_t n = 0; (section = config_get_section(config, "check", n)) != NULL; n++) {
		check_program(config, section, "command", load);
		check_user(config, section, "user", load);
	}
	if (config_get_string(config, "health", "webhook")[0] != '\0')
		check_program(config, "health", "webhook", load);
	check_user(config, "health", "webhook_user", load);
}
