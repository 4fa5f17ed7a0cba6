// SPDX-License-Identifier: BSD-3-Clause
// The agent's own checks, by name.
#pragma once

#include <control/checks.h>
#include <control/congestion.h>

#include <assert.h>

struct check;

enum own_check {
	OWN_LINKS,    // of RDMA devices: whether they are up
	OWN_RATES,    // and as fast as they should be
	OWN_ERRORS,   // and without too many of them
	OWN_PAUSES,   // whether they hold the fabric back all the time
	OWN_DRIVERS,  // whether calls into drivers come back
	OWN_PORTS,    // of devices that the agent measures with: whether they can be used
	OWN_WORKERS,  // whether its polling threads go on
	OWN_MEMORY,   // the agent's own
	OWN_PRESSURE, // the machine's memory
	OWN_DISK,     // the state directory's
	OWN_CHECK_COUNT,
};
static_assert(OWN_CHECK_COUNT == CHECKS_OWN_COUNT, "a place for each");

void own_check_reasons(enum own_check own, struct check_reasons *ret_reasons);

struct check_level_words {
	enum check_level level;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// machine.c. proc: "/proc". What cannot be read is unknown.
void own_judge_memory(const char *proc, uint64_t max_bytes, struct check_level_words *ret_words);
void own_judge_pressure(const char *proc, struct check_level_words *ret_words);

// What a keeper found of a file system.
struct own_disk {
	int err; // of statfs(): -errno
	bool read_only;
	uint64_t free_bytes, free_files, files; // for us
};
void own_read_disk(const char *directory, struct own_disk *ret_disk);
void own_judge_disk(
	const struct own_disk *disk,
	const char *directory,
	uint64_t free_min_bytes,
	struct check_level_words *ret_words
);

// own_run.c: when they look, and where.
struct own_checks;

int own_create(struct checks *checks, struct own_checks **ret_own);
struct own_checks *own_destroy(struct own_checks *own);
int own_set(struct own_checks *own, const struct checks_own_settings *settings);
uint32_t own_count(const struct own_checks *own); // that are not off
const struct check *own_at(const struct own_checks *own, uint32_t n);
uint32_t own_congestion(const struct own_checks *own, const struct congestion_port **ret_ports);
void own_look(const struct own_checks *own, uint32_t n, struct check_view *ret_view);
