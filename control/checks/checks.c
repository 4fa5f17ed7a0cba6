// SPDX-License-Identifier: BSD-3-Clause
// All checks of this node.
#include "checks/checks_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// xorshift64* generator; only spreads runs over time.
uint64_t checks_random(struct checks *checks, uint64_t range) {
	checks->random ^= checks->random >> 12;
	checks->random ^= checks->random << 25;
	checks->random ^= checks->random >> 27;
	return range == 0 ? 0 : checks->random * UINT64_C(0x2545f4914f6cdd1d) % range;
}

int checks_create(const struct checks_config *config, struct checks **ret_checks) {
	struct checks *checks = calloc(1, sizeof(*checks));

	if (checks == NULL)
		return -ENOMEM;
	checks->config = *config;
	checks->random = config->random_seed | 1;
	checks->reporter = (struct check_reporter
	){.say = config->say, .ctx = config->say_ctx, .subject = config->subject};
	*ret_checks = checks;
	return 0;
}

struct checks *checks_destroy(struct checks *checks) {
	if (checks == NULL)
		return NULL;
	for (uint32_t n = 0; n < checks->user_count; n++)
		user_check_destroy(checks->user[n]);
	builtin_checks_destroy(checks->builtin);
	free(checks);
	return NULL;
}

static struct user_check *check_find(const struct checks *checks, const char *name) {
	for (uint32_t n = 0; n < checks->user_count; n++) {
		if (strcmp(checks->user[n]->check.name, name) == 0)
			return checks->user[n];
	}
	return NULL;
}

// Remove old checks first, so that new ones find room.
int checks_set_user(struct checks *checks, const struct check_settings *settings, uint32_t count) {
	uint32_t kept = 0;
	int err = 0;

	for (uint32_t n = 0; n < checks->user_count; n++)
		checks->user[n]->keep = false;
	for (uint32_t n = 0; n < count; n++) {
		struct user_check *user = check_find(checks, settings[n].name);

		if (user != NULL)
			user->keep = true;
	}
	for (uint32_t n = 0; n < checks->user_count; n++) {
		struct user_check *user = checks->user[n];

		if (user->keep) {
			checks->user[kept++] = user;
			continue;
		}
		check_retract(&user->check);
		user_check_destroy(user);
	}
	checks->user_count = kept;
	for (uint32_t n = 0; n < count && err == 0; n++) {
		struct user_check *user = check_find(checks, settings[n].name);

		if (user != NULL)
			err = user_check_change(user, &settings[n]);
		else
			err = user_check_create(
				checks, &settings[n], &checks->user[checks->user_count]
			);
		checks->user_count += user == NULL && err == 0;
	}
	return err;
}

int checks_set_builtin(struct checks *checks, const struct checks_builtin_settings *settings) {
	int err = 0;

	if (checks->builtin == NULL)
		err = builtin_checks_create(checks, &checks->builtin);
	return err == 0 ? builtin_checks_configure(checks->builtin, settings) : err;
}

void check_view_fill(const struct check *check, struct check_view *ret_view) {
	*ret_view = (struct check_view){
		.name = check->name,
		.command = "",
		.ran = check->ran,
		.level = check->level,
		.evidence = check->evidence,
		.at_ns = check->at_ns,
		.took_ns = check->took_ns,
		.told = check->told,
		.reason = check_reason(check),
		.stuck = check->stuck,
		.next_ns = UINT64_MAX,
	};
	memcpy(ret_view->counts, check->counts, sizeof(ret_view->counts));
}

uint32_t checks_count(const struct checks *checks) {
	return checks->user_count +
	       (checks->builtin != NULL ? builtin_check_count(checks->builtin) : 0);
}

void checks_at(const struct checks *checks, uint32_t n, struct check_view *ret_view) {
	if (n < checks->user_count)
		user_check_view_fill(checks->user[n], ret_view);
	else
		builtin_view_fill(checks->builtin, n - checks->user_count, ret_view);
}

uint32_t checks_congestion(const struct checks *checks, const struct congestion_port **ret_ports) {
	return checks->builtin != NULL ? builtin_congestion(checks->builtin, ret_ports) : 0;
}

uint64_t checks_retransmits(const struct checks *checks, const char *device) {
	const struct congestion_port *ports = NULL;
	uint32_t count = checks_congestion(checks, &ports);
	uint64_t resent = CONGESTION_UNKNOWN;

	for (uint32_t n = 0; n < count; n++) {
		uint64_t again = ports[n].totals[CONGESTION_RETRANSMITS];
		uint64_t adaptive = ports[n].totals[CONGESTION_ADAPTIVE_RETRANSMITS];

		if (!congestion_port_is_of_device(&ports[n], device))
			continue;
		if (again != CONGESTION_UNKNOWN)
			resent = again;
		if (adaptive != CONGESTION_UNKNOWN)
			resent = (resent != CONGESTION_UNKNOWN ? resent : 0) + adaptive;
	}
	return resent;
}

static void count_check_state(const struct check *check, struct checks_counters *counters) {
	counters->checks++;
	counters->warning += check->told == CHECK_WARNING;
	counters->critical += check->told == CHECK_CRITICAL;
	counters->unknown += check->unknown || check->stuck;
	counters->stuck_now += check->stuck;
}

void checks_counters(const struct checks *checks, struct checks_counters *ret_counters) {
	struct checks_counters counters = checks->counters;

	counters.statements = checks->reporter.statements;
	for (uint32_t n = 0; n < checks->user_count; n++)
		count_check_state(&checks->user[n]->check, &counters);
	for (uint32_t n = checks->user_count; n < checks_count(checks); n++)
		count_check_state(
			builtin_check_at(checks->builtin, n - checks->user_count), &counters
		);
	*ret_counters = counters;
}
