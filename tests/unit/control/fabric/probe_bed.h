// SPDX-License-Identifier: BSD-3-Clause
// Fabrics that probe each other on the fabric's bed; their observations are recorded.
#pragma once

#include "control/fabric/fabric_bed.h"

#define SEC RAS_NS_PER_SEC
#define US UINT64_C(1000)

// The last reports that an agent received about each other one.
struct heard {
	struct observation last[PLAYED_MAX];
	uint32_t count[PLAYED_MAX];
	uint32_t silent[PLAYED_MAX];
	// Last reported number of hung workers; number of reports without one.
	uint32_t hung[PLAYED_MAX], cleared[PLAYED_MAX];
};

extern struct heard told[PLAYED_MAX];

// Callback for fabric_observations() with an element of `told`.
void bed_note_observation(void *ctx, const struct observation *observation);
void bed_note_hung(void *ctx, uint64_t peer, uint32_t hung, uint32_t workers);
void bed_start_probing(uint32_t agent);

// cmocka fixtures: two linked agents that probe each other; or three agents that are not started,
// of which the first two are linked.
int bed_probing_pair_open(void **state);
int bed_probing_three_open(void **state);
#define PAIR(name) cmocka_unit_test_setup_teardown(name, bed_probing_pair_open, bed_pair_close)
#define THREE(name) cmocka_unit_test_setup_teardown(name, bed_probing_three_open, bed_pair_close)

// Return the kind of the last observation that `observer` received; OBSERVATION_NO_PAIR if it
// received none.
enum observation_kind bed_seen(uint32_t observer, uint32_t subject);
struct fabric_probe_counters bed_probes(uint32_t agent);
bool bed_find_path(uint32_t agent, uint32_t peer, struct fabric_path_view *ret_view);
