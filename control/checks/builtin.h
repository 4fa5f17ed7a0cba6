// SPDX-License-Identifier: BSD-3-Clause
// The agent's built-in checks.
#pragma once

#include <control/checks.h>
#include <control/congestion.h>

#include <assert.h>

struct check;

enum builtin_check {
	BUILTIN_LINKS,	   // link state of RDMA devices
	BUILTIN_RATES,	   // link speed of RDMA devices
	BUILTIN_ERRORS,	   // error counters of RDMA devices
	BUILTIN_PAUSES,	   // whether ports send pauses all the time
	BUILTIN_DRIVERS,   // whether calls into drivers return
	BUILTIN_PORTS,	   // whether the devices that the agent measures with are usable
	BUILTIN_WORKERS,   // whether the agent's polling threads make progress
	BUILTIN_MEMORY,	   // memory of the agent
	BUILTIN_PRESSURE,  // memory pressure of the machine
	BUILTIN_PROCESSOR, // whether the agent gets processor time
	BUILTIN_DISK,	   // file system of the state directory
	BUILTIN_CHECK_COUNT,
};
static_assert(BUILTIN_CHECK_COUNT == CHECKS_BUILTIN_COUNT, "a place for each");

void builtin_check_reasons(enum builtin_check builtin, struct check_reasons *ret_reasons);

struct check_level_words {
	enum check_level level;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// machine.c. `proc` is "/proc". The level is unknown if a file cannot be read.
void builtin_judge_memory(
	const char *proc, uint64_t max_bytes, struct check_level_words *ret_words
);
void builtin_judge_pressure(const char *proc, struct check_level_words *ret_words);

// State of a file system, as a keeper read it.
struct builtin_disk {
	int err; // -errno of statvfs(), or 0
	bool read_only;
	uint64_t free_bytes, free_files; // what unprivileged users may still take
	uint64_t files;			 // inodes, used or free
};
void builtin_read_disk(const char *directory, struct builtin_disk *ret_disk);
void builtin_judge_disk(
	const struct builtin_disk *disk,
	const char *directory,
	uint64_t free_min_bytes,
	struct check_level_words *ret_words
);

// builtin_run.c: schedules the checks.
struct builtin_checks;

int builtin_checks_create(struct checks *checks, struct builtin_checks **ret_own);
struct builtin_checks *builtin_checks_destroy(struct builtin_checks *builtin);
int builtin_checks_configure(
	struct builtin_checks *builtin, const struct checks_builtin_settings *settings
);
uint32_t builtin_check_count(const struct builtin_checks *builtin); // checks that are not off
const struct check *builtin_check_at(const struct builtin_checks *builtin, uint32_t n);
uint32_t
builtin_congestion(const struct builtin_checks *builtin, const struct congestion_port **ret_ports);
void builtin_view_fill(
	const struct builtin_checks *builtin, uint32_t n, struct check_view *ret_view
);
