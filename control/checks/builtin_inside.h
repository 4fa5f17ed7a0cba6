// SPDX-License-Identifier: BSD-3-Clause
// What the parts that run the agent's own checks share.
#pragma once

#include "checks/checks_inside.h"
#include "checks/congestion.h"
#include "checks/links.h"

#include <control/fabric.h>
#include <control/keeper.h>

// The keeper that reads sysfs, device after device, and what it has read.
struct builtin_links {
	struct builtin_checks *builtin;
	struct keeper *keeper;
	struct keeper_request request;
	struct link_device_list list;
	uint32_t next; // of the list: under way, or to be read
	bool reading;  // the list is there
	struct link_port ports[LINK_PORTS_MAX];
	uint32_t count;
	struct link_book book;
	struct congestion_read reads[CONGESTION_PORTS_MAX];
	uint32_t read_count;
	struct congestion_book congestion;
	uint64_t began_ns;
};

#define BUILTIN_LINK_LOOKS 2 // in a row, of what may be down for a moment

struct builtin_checks {
	struct checks *checks;
	struct checks_builtin_settings settings;
	struct check all[BUILTIN_CHECK_COUNT];
	struct loop_timer look; // at each interval
	struct loop_timer watch;
	uint64_t next_ns;
	struct builtin_links links;
	struct keeper *disk;
	struct keeper_request disk_request;
	uint64_t disk_began_ns;
	uint64_t down_ns[FABRIC_DEVICES_MAX]; // when each device of the fabric was first seen so
	struct worker_life lives[CHECKS_WORKERS_MAX];
	uint32_t link_looks; // that are to come soon: a device is back
	bool book_known;     // as it was on the disk; before, links are not looked at
	uint64_t saved_ns;
};

void builtin_result(
	struct builtin_checks *builtin,
	enum builtin_check which,
	enum check_level level,
	const char *evidence,
	uint64_t took_ns
);

// One more thing that is wrong, in evidence of VERDICT_EVIDENCE_MAX + 1 bytes: two are named.
void builtin_add(char *evidence, uint32_t *count, const char *text);

// builtin_ports.c: said at once, and then once an interval, when it is due.
void builtin_look_at_ports(struct builtin_checks *builtin, bool due);

// builtin_workers.c: each second, and told as ports are.
void builtin_look_at_workers(struct builtin_checks *builtin, bool due);

// builtin_links.c
int builtin_links_start(struct builtin_links *links, struct builtin_checks *builtin);
void builtin_links_stop(struct builtin_links *links);
// A look begins, unless the one before still goes on.
void builtin_links_look(struct builtin_links *links);
// What hangs, in words; false: nothing does.
bool builtin_links_hang(const struct builtin_links *links, char *text, size_t size);
