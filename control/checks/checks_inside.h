// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the checks share.
#pragma once

#include "checks/builtin.h"
#include "checks/check.h"

struct user_check {
	struct check check;
	struct checks *checks;
	struct spawn_request request;
	struct loop_timer timer;
	struct check_settings settings; // its strings are its own
	char *words[SPAWN_ARGUMENTS_MAX + 1];
	char *split; // that the words are in
	uint64_t started_ns, next_ns;
	struct spawn_stuck what; // while the check is stuck
	bool keep;		 // among the new ones
};

struct checks {
	struct checks_config config;
	struct check_reporter reporter;
	struct user_check *user[CHECKS_USER_MAX];
	uint32_t user_count;
	struct builtin_checks *builtin; // NULL: they do not look
	uint64_t random;
	struct checks_counters counters; // of what is not counted by a check
};

// user.c
// Its first run is a short while from now, and it says that it is unknown. -ENOMEM.
int user_check_create(
	struct checks *checks, const struct check_settings *settings, struct user_check **ret_user
);
// Without a word: check_retract() before, if it should be taken back.
struct user_check *user_check_destroy(struct user_check *user);
// New settings for the same name. -ENOMEM: as before.
int user_check_change(struct user_check *user, const struct check_settings *settings);
void user_check_look(const struct user_check *user, struct check_view *ret_view);

// checks.c
// From 0 to below `range`.
uint64_t checks_random(struct checks *checks, uint64_t range);
// What all kinds of checks show.
void checks_look(const struct check *check, struct check_view *ret_view);
