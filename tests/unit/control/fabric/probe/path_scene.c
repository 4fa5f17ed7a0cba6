// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/probe/path_scene.h"

#define BEATS_A_SECOND 10

struct heap scene_heap;
struct scene scene;

const struct ras_memory scene_memory = HEAP_MEMORY(&scene_heap);

int scene_make(void **state) {
	const struct path_memory_config config = {0};

	(void)state;
	scene = (struct scene){.now_ns = 1000 * SEC, .random = 88172645463325252};
	assert_int_equal(path_memory_create(&config, &scene_memory, &scene.path), 0);
	return 0;
}

int scene_drop(void **state) {
	(void)state;
	assert_null(path_memory_destroy(scene.path));
	return 0;
}

uint64_t scene_draw(uint64_t below) {
	scene.random ^= scene.random << 13;
	scene.random ^= scene.random >> 7;
	scene.random ^= scene.random << 17;
	return scene.random % below;
}

struct path_probe scene_answered(uint32_t size, uint64_t latency_ns) {
	uint64_t at_ns = scene.beats_at_ns != 0 ? scene.beats_at_ns : scene.now_ns;

	return (struct path_probe){
		.at_ns = scene.now_ns,
		.size = size,
		.answered = true,
		.is_read = true,
		.latency_ns = latency_ns,
		.incarnation = INCARNATION,
		.beats = at_ns / (SEC / BEATS_A_SECOND),
	};
}

struct path_probe scene_unanswered(uint32_t size) {
	return (struct path_probe){.at_ns = scene.now_ns, .size = size, .is_read = true};
}

void scene_tell(const struct path_probe *probe) {
	path_memory_add(scene.path, probe);
	scene.kind = path_memory_judge(scene.path, scene.now_ns, scene.like_ns);
	scene.now_ns += SEC;
}

void scene_good(uint32_t size, uint64_t latency_ns) {
	struct path_probe probe = scene_answered(size, latency_ns);

	scene_tell(&probe);
}

void scene_lost(uint32_t size) {
	struct path_probe probe = scene_unanswered(size);

	scene_tell(&probe);
}

void scene_good_for(uint32_t seconds, uint64_t latency_ns) {
	for (uint32_t n = 0; n < seconds; n++)
		scene_good(0, latency_ns + scene_draw(latency_ns / 20));
}

struct path_summary scene_summary(void) {
	struct path_summary now;

	path_memory_summary(scene.path, &now);
	return now;
}
