// SPDX-License-Identifier: BSD-3-Clause
// Internals shared by the parts of the checks.
#pragma once

#include "checks/builtin.h"
#include "checks/check.h"

struct user_check {
	struct check check;
	struct checks *checks;
	struct spawn_request request;
	struct loop_timer timer;
	struct check_settings settings; // owns its strings
	char *words[SPAWN_ARGUMENTS_MAX + 1];
	char *split; // storage of `words`
	uint64_t started_ns, next_ns;
	struct spawn_stuck what; // valid while the check is stuck
	bool keep;		 // part of the new configuration
};

struct checks {
	struct checks_config config;
	struct check_reporter reporter;
	struct user_check *user[CHECKS_USER_MAX];
	uint32_t user_count;
	struct builtin_checks *builtin; // NULL: built-in checks do not run
	uint64_t random;
	struct checks_counters counters; // counters that no single check owns
};

// user.c
// Create a check of the user. It states unknown until its first run shortly after. Returns 0 or
// -ENOMEM.
int user_check_create(
	struct checks *checks, const struct check_settings *settings, struct user_check **ret_user
);
// Free a check without withdrawing its statements. Call check_retract() first if needed.
struct user_check *user_check_destroy(struct user_check *user);
// Apply new settings under the same name. Returns 0, or -ENOMEM with the old ones kept.
int user_check_change(struct user_check *user, const struct check_settings *settings);
void user_check_view_fill(const struct user_check *user, struct check_view *ret_view);

// checks.c
// Return a random number below `range`.
uint64_t checks_random(struct checks *checks, uint64_t range);
// Fill the part of the view that all kinds of checks share.
void check_view_fill(const struct check *check, struct check_view *ret_view);
