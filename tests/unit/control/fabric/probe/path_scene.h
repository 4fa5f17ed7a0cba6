// SPDX-License-Identifier: BSD-3-Clause
// A path, probed in virtual time; its behaviour is a row of a table or a few lines of a test.
#pragma once

#include <support/cmocka.h>
#include <support/heap.h>
#include <verdict/path_memory.h>

#define SEC RAS_NS_PER_SEC
#define US UINT64_C(1000)
#define INCARNATION (UINT64_C(3) << 16) // of the peer

struct scene {
	struct path_memory *path;
	uint64_t now_ns;
	uint64_t like_ns;
	uint64_t random;
	uint64_t beats_at_ns; // since when the counter stands still; 0: it advances
	enum observation_kind kind;
};

extern struct scene scene;
extern struct heap scene_heap;
extern const struct ras_memory scene_memory; // allocates from that heap

// cmocka fixtures.
int scene_make(void **state);
int scene_drop(void **state);
#define SCENE(name) cmocka_unit_test_setup_teardown(name, scene_make, scene_drop)

uint64_t scene_draw(uint64_t below);
struct path_probe scene_answered(uint32_t size, uint64_t latency_ns);
struct path_probe scene_unanswered(uint32_t size);
// Add one probe, judge the path, and advance by a second.
void scene_tell(const struct path_probe *probe);
void scene_good(uint32_t size, uint64_t latency_ns);
void scene_lost(uint32_t size);
// Add good reads of the smallest size with slightly different latencies.
void scene_good_for(uint32_t seconds, uint64_t latency_ns);
struct path_summary scene_summary(void);
