// SPDX-License-Identifier: BSD-3-Clause
// Every number that this agent counts, by name: one table for clients, HTTP and tests.
//
// The control thread reads the values into a plain array, which may then be handed to any thread;
// counter_at() says what the n-th of them is.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define COUNTERS_MAX 512
#define COUNTER_LABELS_BYTES 96

enum counter_kind {
	COUNTER_COUNT,
	COUNTER_GAUGE,
	COUNTER_TIME,	 // nanoseconds, counted
	COUNTER_LONGEST, // nanoseconds, a gauge
};

struct counter {
	const char *group; // "overlay"
	const char *name;  // "frames_sent"
	const char *help;  // half a sentence
	enum counter_kind kind;
	char labels[COUNTER_LABELS_BYTES]; // of one element of several, as in reason="no route"; ""
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
struct overlay_reach_counters;
struct ras;
struct spawn_counters;
struct state;
struct transport_counters;
struct webhook_counters;

// Where the numbers are; NULL for a part that is not there.
struct counter_sources {
	const struct ras *ras;
	const struct transport_counters *transport;
	const struct loop_counters *loop;
	const struct client_counters *clients;
	const struct state *state;
	const struct overlay_reach_counters *reach;
	const struct spawn_counters *spawn;
	const struct keeper_counters *keepers; // of all together
	const struct webhook_counters *webhook;
	const struct checks *checks;
	const struct fabric_calls *fabric_calls;
	const struct fabric *fabric;
	const struct health *health;
	const struct jobhost_counters *jobs;
	const struct jobhost *jobhost;
};

// At most COUNTERS_MAX; constant.
uint32_t counters_count(void);
// Of those with one group and name, one follows the other.
void counter_at(uint32_t n, struct counter *ret_counter);

// The control thread; counters_count() values.
void counters_read(const struct counter_sources *sources, uint64_t *values);
