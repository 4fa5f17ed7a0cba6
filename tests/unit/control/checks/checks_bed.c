// SPDX-License-Identifier: BSD-3-Clause
#include "control/checks/checks_bed.h"

#include <lib/log.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>

struct bed bed;

const char *spawn_end_name(enum spawn_end end) {
	(void)end;
	return "";
}

static int place_of(const struct spawn_request *request) {
	for (int n = 0; n < CHECKS_USER_MAX; n++) {
		if (bed.running[n] == request)
			return n;
	}
	return -1;
}

const char *spawn_failure_text(int status) {
	return strerrordesc_np(-status);
}

int spawn_run(
	struct spawn *spawn, const struct spawn_program *program, struct spawn_request *request
) {
	int place = place_of(NULL);

	(void)spawn;
	assert_null(request->job);
	assert_true(program->output_max <= SPAWN_OUTPUT_BYTES_MAX);
	if (bed.spawn_answer != 0)
		return bed.spawn_answer;
	assert_true(place >= 0);
	bed.running[place] = request;
	bed.running_timeout_ns[place] = program->timeout_ns;
	bed.running_as[place] = program->user;
	bed.running_what[place][0] = '\0';
	for (const char *const *argv = program->argv; *argv != NULL; argv++) {
		size_t used = strlen(bed.running_what[place]);

		snprintf(
			bed.running_what[place] + used, sizeof(bed.running_what[place]) - used,
			"%s%s", used > 0 ? "|" : "", *argv
		);
	}
	request->job = (struct spawn_job *)&bed; // non-NULL: the program runs
	bed.started++;
	return 0;
}

void spawn_cancel(struct spawn_request *request) {
	int place = request->job != NULL ? place_of(request) : -1;

	if (place < 0)
		return;
	bed.running[place] = NULL;
	request->job = NULL;
	bed.cancelled++;
}

static int say(void *ctx, const struct statement *statement) {
	assert_ptr_equal(ctx, &bed);
	assert_true(bed.said_count < BED_SAID_MAX);
	bed.said[bed.said_count++] = *statement;
	return 0;
}

int bed_begin(void **state) {
	struct checks_config config = {.subject = 7, .say = say, .say_ctx = &bed, .random_seed = 5};

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	memset(&bed, 0, sizeof(bed));
	clock_init_fake(&bed.clock, 1000 * BED_SEC);
	assert_int_equal(loop_create(&bed.clock, &bed.loop), 0);
	config.loop = bed.loop;
	assert_int_equal(checks_create(&config, &bed.checks), 0);
	return 0;
}

int bed_end(void **state) {
	(void)state;
	bed.checks = checks_destroy(bed.checks);
	bed.loop = loop_destroy(bed.loop);
	return 0;
}

void bed_turn(uint64_t ns) {
	uint64_t step = ns / 20 + 1;

	for (uint64_t gone = 0; gone < ns; gone += step) {
		clock_advance(&bed.clock, step);
		assert_int_equal(loop_turn(bed.loop, 0), 0);
	}
}

static struct spawn_request *find(const char *program) {
	for (int n = 0; n < CHECKS_USER_MAX; n++) {
		size_t size = strcspn(bed.running_what[n], "|");

		if (bed.running[n] != NULL && strlen(program) == size &&
		    memcmp(bed.running_what[n], program, size) == 0)
			return bed.running[n];
	}
	return NULL;
}

bool bed_runs(const char *program) {
	return find(program) != NULL;
}

struct spawn_request *bed_running(const char *program) {
	struct spawn_request *request = find(program);

	assert_non_null(request);
	return request;
}

void bed_ends(const char *program, const struct spawn_result *result) {
	struct spawn_request *request;

	for (int n = 0; n < 1000 && find(program) == NULL; n++)
		bed_turn(BED_SEC);
	request = bed_running(program);
	bed.running[place_of(request)] = NULL;
	request->job = NULL;
	request->ended(request, result);
}

void bed_exit(const char *program, int status, const char *out) {
	const struct spawn_result result = {
		.end = SPAWN_EXITED,
		.status = status,
		.took_ns = BED_SEC / 100,
		.out = {out, strlen(out), false},
		.err = {"", 0, false},
	};

	bed_ends(program, &result);
}

static const struct statement *last_of(const char *reason) {
	for (uint32_t n = bed.said_count; n-- > 0;) {
		if (strcmp(bed.said[n].reason, reason) == 0)
			return &bed.said[n];
	}
	return NULL;
}

enum verdict bed_said(const char *reason) {
	const struct statement *statement = last_of(reason);

	return statement != NULL ? statement->verdict : VERDICT_NONE;
}

const char *bed_evidence(const char *reason) {
	const struct statement *statement = last_of(reason);

	return statement != NULL ? statement->evidence : "";
}
