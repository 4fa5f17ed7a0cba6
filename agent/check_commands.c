// SPDX-License-Identifier: BSD-3-Clause
// Checks of [check NAME] that involve several keys.
#include "check.h"
#include "root_helper.h"
#include "settings.h"

#include <control/checks.h>
#include <control/spawn.h>
#include <lib/capability.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/user.h>

#include <errno.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Reject a timeout that is not shorter than the interval. The error names the key that the user
// gave, not the one with a default value.
static void validate_check_timeout(const struct check_section *check, struct config_load *load) {
	bool is_given = !config_key_is_default(load, &check->timeout_ns);
	char text[PARSE_TEXT_BYTES];

	if (!config_key_is_valid(load, &check->timeout_ns) ||
	    !config_key_is_valid(load, &check->interval_ns) ||
	    check->timeout_ns < check->interval_ns)
		return;
	format_duration_ns(is_given ? check->interval_ns : check->timeout_ns, text);
	if (is_given)
		config_reject_key(
			load, &check->timeout_ns, "must be less than interval, which is %s%s", text,
			config_key_is_default(load, &check->interval_ns) ? " by default" : ""
		);
	else
		config_reject_key(
			load, &check->interval_ns,
			"must be more than timeout, which is %s by default; give a shorter timeout",
			text
		);
}

// Reject a check whose reason equals that of another check. Schedulers and alerts tell checks apart
// by the reason.
static void check_reason_is_unique(
	const struct check_section *const *checks, size_t place, struct config_load *load
) {
	const struct check_section *check = checks[place];
	struct check_reasons reasons, other;

	if (check_reasons_build(config_section_name(check->section), &reasons) != 0) {
		config_reject_key(load, &check->command, "the name needs a letter or a digit");
		return;
	}
	if (check_reasons_clash_with_builtin(&reasons))
		config_reject_key(
			load, &check->command,
			"its reason would be %s, which a built-in check has already; choose another name",
			reasons.unknown
		);
	for (size_t n = 0; n < place; n++) {
		const char *before = checks[n]->section;

		if (check_reasons_build(config_section_name(before), &other) == 0 &&
		    check_reasons_clash(&reasons, &other))
			config_reject_key(
				load, &check->command,
				"its reason %s is too similar to that of [%s], %s; choose a name "
				"that differs in its first 19 letters and digits",
				reasons.bad, before, other.bad
			);
	}
}

void check_user_checks(const struct agent_settings *settings, struct config_load *load) {
	const struct check_section *const *checks = settings->checks;

	for (size_t n = 0; checks[n] != NULL; n++) {
		validate_check_timeout(checks[n], load);
		check_reason_is_unique(checks, n, load);
		if (n == CHECKS_USER_MAX)
			config_reject_key(
				load, &checks[n]->command, "there may be at most %d checks",
				CHECKS_USER_MAX
			);
	}
}

// Check that the user exists on this machine.
static void check_user(const char *const *member, struct config_load *load) {
	const char *name = *member;
	bool can_change = capability_is_effective(CAP_SETUID);
	const struct passwd *user;

	if (name[0] == '\0' || !config_key_is_valid(load, member))
		return;
	user = getpwnam(name); // NOLINT(concurrency-mt-unsafe): before other threads ask
	if (user == NULL)
		config_reject_key(load, member, "there is no user %s on this machine", name);
	else if (user->pw_uid != geteuid() && !can_change && access(ROOT_HELPER_SOCKET, W_OK) != 0)
		config_reject_key(
			load, member,
			"user %u may not become another user, and the unit tocsin-root.socket is "
			"out of reach: %s: %s",
			geteuid(), ROOT_HELPER_SOCKET, strerrordesc_np(errno)
		);
}

struct program_fault {
	char command[CHECKS_COMMAND_MAX + 1]; // cut behind the program's path
	char why[FILE_TRUST_DETAIL_BYTES];
};

// Return the user who runs a program, or our own user if there is no such user.
static uid_t program_user(const char *name) {
	uid_t user;

	return name[0] != '\0' && user_find_id(name, &user) == 0 ? user : geteuid();
}

// Return false, with the reason, if the program of a command will not be run.
static bool
program_is_usable(const char *command, const char *user, struct program_fault *ret_fault) {
	char *words[SPAWN_ARGUMENTS_MAX + 1];
	scoped_mem char *resolved = NULL;
	const char *why;

	snprintf(ret_fault->command, sizeof(ret_fault->command), "%s", command);
	must(check_command_split(ret_fault->command, words, &why) == 0);
	if (spawn_program_resolve(words[0], program_user(user), ret_fault->why, &resolved) != 0)
		return false;
	snprintf(ret_fault->why, sizeof(ret_fault->why), "it is not executable");
	return access(resolved, X_OK) == 0;
}

static void check_program(const char *const *member, const char *user, struct config_load *load) {
	struct program_fault fault;

	if (config_key_is_valid(load, member) && !program_is_usable(*member, user, &fault))
		config_reject_key(load, member, "cannot run %s: %s", fault.command, fault.why);
}

static void report_program(const char *section, const char *command, const char *user) {
	struct program_fault fault;

	if (!program_is_usable(command, user, &fault))
		log_event(
			LOG_LEVEL_WARN, "program_unusable", log_str("section", section),
			log_str("program", fault.command), log_str("reason", fault.why)
		);
}

void report_unusable_programs(const struct agent_settings *settings) {
	const struct check_section *check;

	for (size_t n = 0; (check = settings->checks[n]) != NULL; n++)
		report_program(check->section, check->command, check->user);
	if (settings->health.webhook[0] != '\0')
		report_program("health", settings->health.webhook, settings->health.webhook_user);
}

void check_programs(const struct agent_settings *settings, struct config_load *load) {
	const struct check_section *check;

	for (size_t n = 0; (check = settings->checks[n]) != NULL; n++) {
		check_program(&check->command, check->user, load);
		check_user(&check->user, load);
	}
	if (settings->health.webhook[0] != '\0')
		check_program(&settings->health.webhook, settings->health.webhook_user, load);
	check_user(&settings->health.webhook_user, load);
}
