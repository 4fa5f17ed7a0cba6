// SPDX-License-Identifier: BSD-3-Clause
// Internals shared by the parts that run the built-in checks.
#pragma once

#include "checks/checks_inside.h"
#include "checks/congestion.h"
#include "checks/links.h"

#include <control/fabric.h>
#include <control/keeper.h>

// Keeper that reads sysfs, one device after the other, and its results.
struct builtin_links {
	struct builtin_checks *builtin;
	struct keeper *keeper;
	struct keeper_request request;
	struct link_device_list list;
	uint32_t next; // index in `list` of the device being read, or read next
	bool reading;  // `list` is filled
	struct link_port ports[LINK_PORTS_MAX];
	uint32_t count;
	struct link_book book;
	struct congestion_read reads[CONGESTION_PORTS_MAX];
	uint32_t read_count;
	struct congestion_book congestion;
	uint64_t began_ns;
};

// Bad or good reads in a row before a change, for states that last a moment.
#define BUILTIN_LINK_READS 2

struct builtin_checks {
	struct checks *checks;
	struct checks_builtin_settings settings;
	struct check all[BUILTIN_CHECK_COUNT];
	struct loop_timer look; // runs all checks once per interval
	struct loop_timer watch;
	uint64_t next_ns;
	struct builtin_links links;
	struct keeper *disk;
	struct keeper_request disk_request;
	uint64_t disk_began_ns;
	// When each device of the fabric was first seen down, 0: it is up.
	uint64_t down_ns[FABRIC_DEVICES_MAX];
	struct worker_life lives[CHECKS_WORKERS_MAX];
	uint32_t link_looks; // extra link reads to do soon, since a device came back
	bool book_known;     // the link book was read from disk; links are not read before
	uint64_t saved_ns;
};

void builtin_check_result(
	struct builtin_checks *builtin,
	enum builtin_check which,
	enum check_level level,
	const char *evidence,
	uint64_t took_ns
);

// Append a fault to evidence of VERDICT_EVIDENCE_MAX + 1 bytes. Only the first two faults are
// named.
void builtin_evidence_add(char *evidence, uint32_t *count, const char *text);

// builtin_ports.c: called each second. Reports a change of level at once, and else when `due`.
void builtin_check_ports(struct builtin_checks *builtin, bool due);

// builtin_workers.c: called each second; reports like builtin_check_ports().
void builtin_check_workers(struct builtin_checks *builtin, bool due);

// builtin_workers.c: called each second; reports like builtin_check_ports().
void builtin_check_processor(struct builtin_checks *builtin, bool due);

// builtin_links.c
int builtin_links_start(struct builtin_links *links, struct builtin_checks *builtin);
void builtin_links_stop(struct builtin_links *links);
// Start reading all links, unless an earlier read still runs.
void builtin_links_start_read(struct builtin_links *links);
// Describe a hanging call; returns false if none hangs.
bool builtin_links_describe_hang(const struct builtin_links *links, char *text, size_t size);
