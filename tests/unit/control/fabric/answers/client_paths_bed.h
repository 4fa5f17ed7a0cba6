// SPDX-License-Identifier: BSD-3-Clause
// A fabric with paths that a test plays, behind a client server that is asked for them.
#pragma once

#include "control/client/client_bench.h"

#include <control/fabric.h>
#include <ras/payload.h>
#include <verdict/observation.h>

#define PATHS_MAX 64

struct fabric {
	struct fabric_path_view views[PATHS_MAX];
	struct ras_path_row rows[PATHS_MAX];
	uint32_t count;
	uint64_t interval_ns;
};

extern struct fabric fabric;

// cmocka's setup: the bench, its server on a fabric that has no path yet.
int begin(void **state);
#define PATHS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, bench_stop)

int connect_json(void); // TCP, to a server that answers in JSON

// Steady for 754 s; without answers where the median is 0.
struct ras_path_row a_row(const char *peer, enum observation_kind seen, uint64_t median_ns);
// One more path of this agent's fabric.
void add_own(const struct ras_path_row *row);
// Deliver the answer of the other end of a path, or a part of it.
void say(struct overlay_call *call, const char *text);
