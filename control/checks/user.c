// SPDX-License-Identifier: BSD-3-Clause
// One user-defined check: its schedule and results. Owned by struct checks.
#include "checks/checks_inside.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_BYTES_MAX 4096 // one line of 80 characters, with blank lines before it
#define JITTER_FRACTION 10    // runs vary by a tenth of the interval, half of it to either side

static void schedule_run_at(struct user_check *user, uint64_t at_ns) {
	user->next_ns = at_ns;
	// The first set of a timer may lack memory; later ones reuse its slot. Without a timer the
	// check does not run before a reload, and its age shows that.
	if (loop_timer_set(user->checks->config.loop, &user->timer, at_ns) != 0)
		user->next_ns = UINT64_MAX;
}

// Spread the first runs of many nodes and checks.
static void schedule_first_run(struct user_check *user) {
	uint64_t interval_ns = user->settings.interval_ns;
	uint64_t within_ns =
		interval_ns < CHECKS_FIRST_SPREAD_NS ? interval_ns : CHECKS_FIRST_SPREAD_NS;

	schedule_run_at(
		user,
		loop_now_ns(user->checks->config.loop) + checks_random(user->checks, within_ns)
	);
}

static void user_check_result(
	struct user_check *user, enum check_level level, const char *evidence, uint64_t took_ns
) {
	const struct check_result result = {
		.level = level,
		.evidence = evidence,
		.at_ns = loop_now_ns(user->checks->config.loop),
		.took_ns = took_ns,
	};
	uint64_t spread_ns = user->settings.interval_ns / JITTER_FRACTION;

	user->checks->counters.results[level]++;
	check_result(&user->check, &result);
	schedule_run_at(
		user, user->started_ns + user->settings.interval_ns - spread_ns / 2 +
			      checks_random(user->checks, spread_ns)
	);
}

static void on_program_ended(struct spawn_request *request, const struct spawn_result *result) {
	struct user_check *user = container_of(request, struct user_check, request);
	struct checks_counters *counters = &user->checks->counters;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	enum check_level level =
		check_judge(result, user->settings.convention, user->settings.timeout_ns, evidence);

	counters->timed_out += result->end == SPAWN_TIMED_OUT;
	counters->not_started += result->end == SPAWN_NOT_STARTED;
	user_check_result(user, level, evidence, result->took_ns);
}

static void on_program_stuck(struct spawn_request *request, const struct spawn_stuck *stuck) {
	struct user_check *user = container_of(request, struct user_check, request);

	user->checks->counters.stuck++;
	user->what = *stuck;
	check_state_stuck(&user->check, stuck);
}

static void user_check_due(struct loop_timer *timer, uint64_t now_ns) {
	struct user_check *user = container_of(timer, struct user_check, timer);
	struct checks *checks = user->checks;
	struct spawn_program program = {
		.argv = (const char *const *)user->words,
		.user = user->settings.user,
		.timeout_ns = user->settings.timeout_ns,
		.output_max = OUTPUT_BYTES_MAX,
	};
	char name[sizeof("check ") + CHECKS_NAME_MAX], why[VERDICT_EVIDENCE_MAX + 1];
	const char *const by_name[] = {name, NULL};
	int err;

	must(user->request.job == NULL);
	user->started_ns = now_ns;
	user->next_ns = UINT64_MAX;
	checks->counters.runs++;
	if (user->settings.by_root_helper) {
		snprintf(name, sizeof(name), "check %s", user->settings.name);
		program.argv = by_name;
		program.user = NULL;
		err = spawn_run(checks->config.root_spawn, &program, &user->request);
	} else {
		err = spawn_run(checks->config.spawn, &program, &user->request);
	}
	if (err == 0)
		return;
	checks->counters.skipped++;
	snprintf(
		why, sizeof(why), "user = %.24s needs the unit tocsin-root.socket",
		user->settings.user != NULL ? user->settings.user : "-"
	);
	user_check_result(
		user, CHECK_UNKNOWN,
		err == -ENOTCONN ? why
		: err == -EPIPE	 ? "the spawn helper has ended; restart the agent"
		: err == -EAGAIN ? "not run: the limit of running programs is reached"
				 : "not run: out of memory",
		0
	);
}

static void settings_fini(struct check_settings *settings) {
	free((char *)settings->name);
	free((char *)settings->command);
	free((char *)settings->user);
}

// Precondition: the configuration reader validated the command's syntax.
static int settings_set(struct user_check *user, const struct check_settings *settings) {
	struct check_settings copy = *settings;
	char *split = strdup(settings->command);
	char *words[SPAWN_ARGUMENTS_MAX + 1];
	const char *why;

	copy.name = strdup(settings->name);
	copy.command = strdup(settings->command);
	copy.user = settings->user != NULL ? strdup(settings->user) : NULL;
	if (split == NULL || copy.name == NULL || copy.command == NULL ||
	    (copy.user == NULL && settings->user != NULL)) {
		settings_fini(&copy);
		free(split);
		return -ENOMEM;
	}
	must(check_command_split(split, words, &why) == 0);
	settings_fini(&user->settings);
	free(user->split);
	user->settings = copy;
	user->split = split;
	memcpy(user->words, words, sizeof(words));
	user->check.confirm = settings->confirm;
	user->check.clear = settings->clear;
	return 0;
}

int user_check_create(
	struct checks *checks, const struct check_settings *settings, struct user_check **ret_user
) {
	struct user_check *user = calloc(1, sizeof(*user));

	if (user == NULL)
		return -ENOMEM;
	user->checks = checks;
	user->timer.expired = user_check_due;
	user->request.ended = on_program_ended;
	user->request.stuck = on_program_stuck;
	check_init(&user->check, &checks->reporter, settings->name);
	must(check_reasons_build(settings->name, &user->check.reasons) == 0);
	if (settings_set(user, settings) != 0) {
		user_check_destroy(user);
		return -ENOMEM;
	}
	check_state_unknown(&user->check, "the check has not run yet");
	schedule_first_run(user);
	*ret_user = user;
	return 0;
}

struct user_check *user_check_destroy(struct user_check *user) {
	if (user == NULL)
		return NULL;
	loop_timer_cancel(user->checks->config.loop, &user->timer);
	spawn_cancel(&user->request);
	settings_fini(&user->settings);
	free(user->split);
	free(user);
	return NULL;
}

// A hanging program is not started a second time, so its request stays whatever the new settings
// are.
int user_check_change(struct user_check *user, const struct check_settings *settings) {
	const struct check_settings *old = &user->settings;
	bool same_user = old->user == NULL || settings->user == NULL
				 ? old->user == settings->user
				 : strcmp(old->user, settings->user) == 0;
	bool same_run = strcmp(old->command, settings->command) == 0 && same_user &&
			old->by_root_helper == settings->by_root_helper &&
			old->convention == settings->convention &&
			old->timeout_ns == settings->timeout_ns;
	bool same = same_run && old->interval_ns == settings->interval_ns;
	int err = settings_set(user, settings);

	if (err != 0 || same || user->check.stuck)
		return err;
	if (!same_run)
		spawn_cancel(&user->request);
	if (user->request.job == NULL)
		schedule_first_run(user);
	return 0;
}

void user_check_view_fill(const struct user_check *user, struct check_view *ret_view) {
	check_view_fill(&user->check, ret_view);
	ret_view->command = user->settings.command;
	ret_view->interval_ns = user->settings.interval_ns;
	ret_view->timeout_ns = user->settings.timeout_ns;
	ret_view->running = user->request.job != NULL;
	ret_view->what = user->what;
	ret_view->next_ns = user->next_ns;
}
