// SPDX-License-Identifier: BSD-3-Clause
// Checks with a fake spawn, a clock set by the test, and a fake store that records statements.
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
	int spawn_answer; // result of spawn_run(): 0 or an error
	struct spawn_request *running[CHECKS_USER_MAX];
	char running_what[CHECKS_USER_MAX][256]; // arguments, joined by "|"
	const char *running_as[CHECKS_USER_MAX]; // NULL: the agent's own user
	uint64_t running_timeout_ns[CHECKS_USER_MAX];
	uint32_t started, cancelled; // counts
};

extern struct bed bed;

int bed_begin(void **state);
int bed_end(void **state);
void bed_turn(uint64_t ns); // advances the clock in steps, with turns of the loop between
// Return the running program whose command begins with this word; fails if there is none.
struct spawn_request *bed_running(const char *program);
bool bed_runs(const char *program);
// Turn the loop until the program runs, then end it with this result.
void bed_exit(const char *program, int status, const char *out);
void bed_ends(const char *program, const struct spawn_result *result);
// Return the last verdict stated for a reason; VERDICT_NONE if there was none.
enum verdict bed_said(const char *reason);
const char *bed_evidence(const char *reason);
