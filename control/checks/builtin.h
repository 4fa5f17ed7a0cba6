// SPDX-License-Identifier: BSD-3-Clause
// The agent's own checks, by name.
#pragma once

#include <control/checks.h>
#include <control/congestion.h>

#include <assert.h>

struct check;

enum builtin_check {
	BUILTIN_LINKS,	  // of RDMA devices: whether they are up
	BUILTIN_RATES,	  // and as fast as they should be
	BUILTIN_ERRORS,	  // and without too many of them
	BUILTIN_PAUSES,	  // whether they hold the fabric back all the time
	BUILTIN_DRIVERS,  // whether calls into drivers come back
	BUILTIN_PORTS,	  // of devices that the agent measures with: whether they can be used
	BUILTIN_WORKERS,  // whether its polling threads go on
	BUILTIN_MEMORY,	  // the agent's own
	BUILTIN_PRESSURE, // the machine's memory
	BUILTIN_DISK,	  // the state directory's
	BUILTIN_CHECK_COUNT,
};
static_assert(BUILTIN_CHECK_COUNT == CHECKS_BUILTIN_COUNT, "a place for each");

void builtin_check_reasons(enum builtin_check builtin, struct check_reasons *ret_reasons);

struct check_level_words {
	enum check_level level;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// machine.c. proc: "/proc". What cannot be read is unknown.
void builtin_judge_memory(
	const char *proc, uint64_t max_bytes, struct check_level_words *ret_words
);
void builtin_judge_pressure(const char *proc, struct check_level_words *ret_words);

// What a keeper found of a file system.
struct builtin_disk {
	int err; // of statfs(): -errno
	bool read_only;
	uint64_t free_bytes, free_files, files; // for us
};
void builtin_read_disk(const char *directory, struct builtin_disk *ret_disk);
void builtin_judge_disk(
	const struct builtin_disk *disk,
	const char *directory,
	uint64_t free_min_bytes,
	struct check_level_words *ret_words
);

// builtin_run.c: when they look, and where.
struct builtin_checks;

int builtin_create(struct checks *checks, struct builtin_checks **ret_own);
struct builtin_checks *builtin_destroy(struct builtin_checks *builtin);
int builtin_set(struct builtin_checks *builtin, const struct checks_builtin_settings *settings);
uint32_t builtin_count(const struct builtin_checks *builtin); // that are not off
const struct check *builtin_at(const struct builtin_checks *builtin, uint32_t n);
uint32_t
builtin_congestion(const struct builtin_checks *builtin, const struct congestion_port **ret_ports);
void builtin_look(const struct builtin_checks *builtin, uint32_t n, struct check_view *ret_view);
