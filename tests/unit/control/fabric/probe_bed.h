// SPDX-License-Identifier: BSD-3-Clause
// Fabrics that probe each other, on the fabric's bed: what each is told of the others is noted.
#pragma once

#include "control/fabric/fabric_bed.h"

#define SEC RAS_NS_PER_SEC
#define US UINT64_C(1000)

// What an agent was told last of each other.
struct heard {
	struct observation last[PLAYED_MAX];
	uint32_t count[PLAYED_MAX];
	uint32_t silent[PLAYED_MAX];
	uint32_t hung[PLAYED_MAX], cleared[PLAYED_MAX]; // workers, as last told; how often none
};

extern struct heard told[PLAYED_MAX];

// What fabric_observations() calls, with one of `told`.
void bed_note_observation(void *ctx, const struct observation *observation);
void bed_note_hung(void *ctx, uint64_t peer, uint32_t hung, uint32_t workers);
void bed_start_probing(uint32_t agent);

// cmocka's: two that have a link and probe each other; three, none started yet, of which the first
// two have a link.
int bed_probing_pair_open(void **state);
int bed_probing_three_open(void **state);
#define PAIR(name) cmocka_unit_test_setup_teardown(name, bed_probing_pair_open, bed_pair_close)
#define THREE(name) cmocka_unit_test_setup_teardown(name, bed_probing_three_open, bed_pair_close)

// Of which kind the last observation was that `observer` was told; that without a pair, if none
// was.
enum observation_kind bed_seen(uint32_t observer, uint32_t subject);
struct fabric_probe_counters bed_probes(uint32_t agent);
bool bed_find_path(uint32_t agent, uint32_t peer, struct fabric_path_view *ret_view);
