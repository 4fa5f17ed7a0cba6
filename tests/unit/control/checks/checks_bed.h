// SPDX-License-Identifier: BSD-3-Clause
// Checks with a spawn that the test plays, a clock that it turns, and a store that writes down
// what is said.
#pragma once

#include <control/checks.h>

#define BED_SEC UINT64_C(1000000000)
#define BED_SAID_MAX 1024

struct bed {
	struct clock clock;
	struct loop *loop;
	struct checks *checks;
	struct statement said[BED_SAID_MAX];
	uint32_t said_count;
	int spawn_answer; // of spawn_run(): 0, or what it refuses with
	struct spawn_request *running[CHECKS_USER_MAX];
	char running_what[CHECKS_USER_MAX][256]; // words with "|" between
	const char *running_as[CHECKS_USER_MAX]; // NULL: the agent's own user
	uint64_t running_timeout_ns[CHECKS_USER_MAX];
	uint32_t started, cancelled; // times
};

extern struct bed bed;

int bed_begin(void **state);
int bed_end(void **state);
void bed_turn(uint64_t ns); // the clock, in steps, with turns of the loop between
// What runs, by its first word; it must.
struct spawn_request *bed_running(const char *program);
bool bed_runs(const char *program);
// Turns until it runs, and ends it so.
void bed_exit(const char *program, int status, const char *out);
void bed_ends(const char *program, const struct spawn_result *result);
// The last that was said for a reason; VERDICT_NONE: nothing.
enum verdict bed_said(const char *reason);
const char *bed_evidence(const char *reason);
