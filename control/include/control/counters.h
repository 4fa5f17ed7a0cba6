// SPDX-License-Identifier: BSD-3-Clause
// All counters of this agent by name: one table for clients, HTTP and tests.
//
// The control thread reads the values into a plain array, which can then be passed to any thread.
// counter_at() describes the n-th value.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTERS_MAX 512
#define COUNTER_LABELS_BYTES 96

enum counter_kind {
	COUNTER_COUNT,
	COUNTER_GAUGE,
	COUNTER_TIME,	 // total time in nanoseconds
	COUNTER_LONGEST, // longest time in nanoseconds; a gauge
};

struct counter {
	const char *group; // such as "overlay"
	const char *name;  // such as "frames_sent"
	const char *help;  // a phrase without a full stop
	enum counter_kind kind;
	// labels of one series of several, such as reason="no route"; else ""
	char labels[COUNTER_LABELS_BYTES];
};

// Written by the HTTP thread, read by any; relaxed, because no other data depends on them.
struct http_counters {
	_Atomic uint64_t pages_written;
	_Atomic uint64_t readers_dropped;
};

struct checks;
struct client_counters;
struct fabric;
struct fabric_calls;
struct health;
struct keeper_counters;
struct jobhost;
struct jobhost_counters;
struct loop_counters;
struct overlay_maintenance_counters;
struct overlay_reach_counters;
struct ras;
struct spawn_counters;
struct state;
struct transport_counters;
struct webhook_counters;

// The objects that hold the counters; NULL for a part that this agent does not run.
struct counter_sources {
	const struct ras *ras;
	const struct transport_counters *transport;
	const struct loop_counters *loop;
	const struct client_counters *clients;
	const struct state *state;
	const struct overlay_reach_counters *reach;
	const struct overlay_maintenance_counters *maintenance;
	const struct spawn_counters *spawn;
	const struct keeper_counters *keepers; // totals over all keepers
	const struct webhook_counters *webhook;
	const struct http_counters *http;
	const struct checks *checks;
	const struct fabric_calls *fabric_calls;
	const struct fabric *fabric;
	const struct health *health;
	const struct jobhost_counters *jobs;
	const struct jobhost *jobhost;
};

// Return the number of counters: constant, at most COUNTERS_MAX.
uint32_t counters_count(void);
// Describe the n-th counter. Counters with the same group and name are adjacent.
void counter_at(uint32_t n, struct counter *ret_counter);

// Read all counters into `values`, which has room for counters_count() of them. Control thread
// only.
void counters_read(const struct counter_sources *sources, uint64_t *values);
