// SPDX-License-Identifier: BSD-3-Clause
// A schedule with a clock set by the test; every planned probe is recorded and counted.
#include <support/cmocka.h>
#include <support/heap.h>
#include <verdict/probe_schedule.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEC RAS_NS_PER_SEC
#define FRAME_NS SEC
#define DUES_MAX 4096
#define KEPT_MAX 400000
#define CLUSTERS 60
#define LARGE 3
// The default configuration of an agent.
#define USUAL .interval_ns = SEC, .packets = 100, .bytes = 512 * 1024

static struct heap heap;

static const struct ras_memory memory = HEAP_MEMORY(&heap);

struct cluster {
	struct probe_schedule_config config;
	uint32_t neighbours, targets;
	uint32_t mtu;
	bool writes; // all peers accept writes
	bool gpu;    // all peers expose memory of a GPU
};

struct kept {
	bool write, gpu;
	uint64_t at_ns;
	uint32_t path, size;
	uint64_t packets, bytes;
};

static struct {
	struct probe_schedule *schedule;
	struct cluster cluster;
	uint64_t now_ns;
	uint64_t random;
	struct kept kept[KEPT_MAX];
	uint32_t kept_count;
	uint32_t visited[20000]; // number of visits, by target
	uint64_t first_round_ns; // when all targets had been visited
	uint32_t unvisited;
	bool visiting[PROBE_PATHS_MAX];
	uint32_t visit_probes[PROBE_PATHS_MAX]; // planned since the visit began
} world;

static uint64_t draw(uint64_t below) {
	world.random ^= world.random << 13;
	world.random ^= world.random >> 7;
	world.random ^= world.random << 17;
	return world.random % below;
}

static void add(uint64_t at_ns, uint32_t path, bool visit) {
	probe_schedule_add(world.schedule, at_ns, path, world.cluster.mtu, visit);
	probe_schedule_set_writes(world.schedule, path, world.cluster.writes);
	probe_schedule_set_gpu(world.schedule, path, world.cluster.gpu);
}

static void world_open(const struct cluster *cluster) {
	static struct probe_target targets[20000];

	heap_refill(&heap);
	memset(&world, 0, sizeof(world));
	world.cluster = *cluster;
	world.random = cluster->config.random_seed | 1;
	world.now_ns = 500 * SEC;
	world.unvisited = cluster->targets;
	assert_int_equal(probe_schedule_create(&cluster->config, &memory, &world.schedule), 0);
	for (uint32_t n = 0; n < cluster->neighbours; n++)
		add(world.now_ns, n, false);
	for (uint32_t n = 0; n < cluster->targets; n++)
		targets[n] = (struct probe_target){.peer = n, .device = 0};
	assert_int_equal(probe_schedule_set_targets(world.schedule, targets, cluster->targets), 0);
}

static void world_close(void) {
	world.schedule = probe_schedule_destroy(world.schedule);
	assert_null(world.schedule);
}

static void keep(const struct probe_due *due) {
	uint32_t mtu = world.cluster.mtu;
	uint64_t packets = 1 + (due->bytes + mtu - 1) / mtu;

	assert_true(world.kept_count < KEPT_MAX);
	world.visit_probes[due->path] += world.visiting[due->path];
	world.kept[world.kept_count++] = (struct kept){
		.write = due->write,
		.gpu = due->gpu,
		.at_ns = due->at_ns,
		.path = due->path,
		.size = due->size,
		.packets = packets,
		.bytes = due->bytes + packets * PROBE_PACKET_BYTES,
	};
}

static void begin_visit(const struct probe_target *target, uint64_t at_ns) {
	uint32_t path = world.cluster.neighbours;

	if (world.visited[target->peer]++ == 0 && --world.unvisited == 0)
		world.first_round_ns = at_ns;
	while (path < PROBE_PATHS_MAX && world.visiting[path])
		path++;
	assert_true(path < PROBE_PATHS_MAX);
	world.visiting[path] = true;
	world.visit_probes[path] = 0;
	add(at_ns, path, true);
}

static void visits_of_frame(void) {
	uint64_t at_ns;

	while ((at_ns = probe_schedule_next_visit_ns(world.schedule)) < world.now_ns + FRAME_NS) {
		struct probe_target target;

		at_ns = at_ns > world.now_ns ? at_ns : world.now_ns;
		assert_true(probe_schedule_visit_begin(world.schedule, at_ns, &target));
		begin_visit(&target, at_ns);
	}
	for (uint32_t n = 0; n < PROBE_PATHS_MAX; n++) {
		if (!world.visiting[n] || world.visit_probes[n] < PROBE_VISIT_PROBES)
			continue;
		probe_schedule_remove(world.schedule, n);
		world.visiting[n] = false;
	}
}

static void urgent_of_frame(void) {
	uint64_t at_ns = world.now_ns;

	for (uint32_t n = 0; n < 20 && world.cluster.neighbours > 0; n++) {
		uint32_t path = (uint32_t)draw(world.cluster.neighbours);
		struct probe_due due;

		at_ns += draw(FRAME_NS / 20);
		if (probe_schedule_urgent(
			    world.schedule, at_ns, path, (uint32_t)draw(2), draw(2) != 0, &due
		    ))
			keep(&due);
	}
}

static void frame(void) {
	static struct probe_due dues[DUES_MAX];
	uint64_t last_ns = world.now_ns;
	uint32_t count;

	visits_of_frame();
	count = probe_schedule_plan(
		world.schedule, world.now_ns, world.now_ns + FRAME_NS, dues, DUES_MAX
	);
	for (uint32_t n = 0; n < count; n++) {
		assert_in_range(dues[n].at_ns, last_ns, world.now_ns + FRAME_NS - 1);
		last_ns = dues[n].at_ns;
		keep(&dues[n]);
	}
	world.now_ns += FRAME_NS;
}

static int by_time(const void *a, const void *b) {
	const struct kept *left = a, *right = b;

	return left->at_ns < right->at_ns ? -1 : left->at_ns > right->at_ns;
}

// Check each second that ends with a probe, since such seconds hold the most.
static void assert_within_budget(void) {
	uint64_t packets = 0, bytes = 0;
	uint32_t first = 0;

	qsort(world.kept, world.kept_count, sizeof(world.kept[0]), by_time);
	for (uint32_t n = 0; n < world.kept_count; n++) {
		packets += world.kept[n].packets;
		bytes += world.kept[n].bytes;
		while (world.kept[first].at_ns + SEC <= world.kept[n].at_ns) {
			packets -= world.kept[first].packets;
			bytes -= world.kept[first++].bytes;
		}
		assert_in_range(packets, 0, world.cluster.config.packets);
		assert_in_range(bytes, 0, world.cluster.config.bytes);
	}
}

static struct probe_schedule_facts facts(void) {
	struct probe_schedule_facts now;

	probe_schedule_facts(world.schedule, &now);
	return now;
}

static struct cluster draw_cluster(uint64_t seed) {
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

	world.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	return (struct cluster){
		.config =
			{
				.interval_ns = (SEC / 10) << draw(6),
				.packets = (uint32_t)(PROBE_PACKETS_MIN + draw(500)),
				.bytes = PROBE_BYTES_MIN << draw(7),
				.random_seed = draw(UINT64_MAX),
			},
		.neighbours = (uint32_t)draw(40),
		.targets = (uint32_t)draw(300),
		.mtu = mtus[draw(5)],
		.writes = draw(2) == 0,
		.gpu = draw(2) == 0,
	};
}

static void no_second_ever_holds_more_than_the_budget(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= CLUSTERS; seed++) {
		struct cluster cluster = draw_cluster(seed);

		world_open(&cluster);
		for (uint32_t n = 0; n < 60; n++) {
			// Sometimes nothing is planned for a while.
			world.now_ns += draw(10) == 0 ? draw(5 * SEC) : 0;
			urgent_of_frame();
			frame();
		}
		assert_within_budget();
		assert_true(cluster.neighbours == 0 || world.kept_count > 0);
		world_close();
	}
}

static uint64_t larger(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

static void frames(uint32_t count) {
	for (uint32_t n = 0; n < count; n++) {
		urgent_of_frame();
		frame();
	}
}

static void other_settings_hold_at_once_and_no_second_holds_more_than_both_allow(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= CLUSTERS; seed++) {
		struct cluster cluster = draw_cluster(seed), other = draw_cluster(seed + CLUSTERS);
		struct probe_schedule_config before = cluster.config;
		uint32_t first;

		world_open(&cluster);
		frames(20);
		assert_int_equal(
			probe_schedule_configure(world.schedule, world.now_ns, &other.config), 0
		);
		first = world.kept_count;
		frames(40);
		world.cluster.config.packets =
			(uint32_t)larger(before.packets, other.config.packets);
		world.cluster.config.bytes = larger(before.bytes, other.config.bytes);
		assert_within_budget();
		assert_true(cluster.neighbours == 0 || world.kept_count > first);
		assert_true(facts().interval_ns >= other.config.interval_ns);
		// Earlier probes come first in time, too.
		world.kept_count -= first;
		memmove(world.kept, world.kept + first, world.kept_count * sizeof(world.kept[0]));
		world.cluster.config = other.config;
		assert_within_budget();
		world_close();
	}
}

static void long_interval_that_becomes_short_is_not_waited_for(void **state) {
	struct cluster cluster = {.config = {USUAL}, .neighbours = 4, .mtu = 1024};
	struct probe_schedule_config quick = {
		.interval_ns = SEC / 10, .packets = 100, .bytes = 512 * 1024};
	uint32_t before;

	(void)state;
	cluster.config.interval_ns = 60 * SEC;
	world_open(&cluster);
	for (uint32_t n = 0; n < 5; n++)
		frame();
	before = world.kept_count;
	assert_int_equal(probe_schedule_configure(world.schedule, world.now_ns, &quick), 0);
	for (uint32_t n = 0; n < 5; n++)
		frame();
	assert_true(world.kept_count >= before + 4 * 10);
	world_close();
}

static void neighbours_are_probed_as_often_as_the_facts_say(void **state) {
	static const uint32_t neighbours[] = {1, 2, 8, 20, 60, 200};

	(void)state;
	for (size_t n = 0; n < sizeof(neighbours) / sizeof(neighbours[0]); n++) {
		struct cluster cluster = {
			.config = {USUAL, .random_seed = n + 1},
			.neighbours = neighbours[n],
			.targets = 100,
			.mtu = 1024,
		};
		uint32_t times[PROBE_PATHS_MAX] = {0};
		uint64_t expected;

		world_open(&cluster);
		for (uint32_t s = 0; s < 300; s++)
			frame();
		expected = 300 * SEC / facts().interval_ns;
		for (uint32_t k = 0; k < world.kept_count; k++)
			times[world.kept[k].path]++;
		for (uint32_t k = 0; k < cluster.neighbours; k++)
			assert_in_range(times[k], expected * 8 / 10, expected * 12 / 10 + 1);
		assert_true(neighbours[n] > 20 || facts().interval_ns == SEC);
		world_close();
	}
}

static void large_probes_take_at_most_a_fifth_and_every_path_gets_them(void **state) {
	struct cluster cluster = {
		.config = {USUAL, .random_seed = 7},
		.neighbours = 12,
		.mtu = 1024,
	};
	uint32_t large[PROBE_PATHS_MAX] = {0};
	uint64_t packets = 0;

	(void)state;
	world_open(&cluster);
	for (uint32_t n = 0; n < 600; n++)
		frame();
	for (uint32_t n = 0; n < world.kept_count; n++) {
		if (world.kept[n].size != LARGE)
			continue;
		packets += world.kept[n].packets;
		large[world.kept[n].path]++;
	}
	assert_in_range(packets, 1, 600 * 100 / 5);
	for (uint32_t n = 0; n < cluster.neighbours; n++)
		assert_in_range(large[n], 5, 20);
	world_close();
}

static void path_that_loses_gets_most_of_the_large_probes_and_not_all(void **state) {
	struct cluster cluster = {
		.config = {USUAL, .random_seed = 7},
		.neighbours = 12,
		.mtu = 1024,
	};
	uint32_t large[PROBE_PATHS_MAX] = {0}, sum = 0;

	(void)state;
	world_open(&cluster);
	probe_schedule_set_lossy(world.schedule, 5, true);
	for (uint32_t n = 0; n < 600; n++)
		frame();
	for (uint32_t n = 0; n < world.kept_count; n++) {
		large[world.kept[n].path] += world.kept[n].size == LARGE;
		sum += world.kept[n].size == LARGE;
	}
	assert_in_range(large[5], sum * 6 / 10, sum * 9 / 10);
	for (uint32_t n = 0; n < cluster.neighbours; n++)
		assert_true(large[n] > 0);
	world_close();
}

static int by_path_and_time(const void *a, const void *b) {
	const struct kept *left = a, *right = b;

	return left->path != right->path ? (left->path > right->path ? 1 : -1) : by_time(a, b);
}

static void writes_come_between_reads_that_are_as_many_as_without(void **state) {
	struct cluster cluster = {
		.config = {USUAL, .random_seed = 7},
		.neighbours = 8,
		.mtu = 4096,
		.writes = true,
	};
	uint32_t reads[PROBE_PATHS_MAX] = {0}, writes[PROBE_PATHS_MAX] = {0};
	uint64_t gap_ns = 0, read_ns = 0;

	(void)state;
	world_open(&cluster);
	assert_int_equal(facts().interval_ns, SEC);
	for (uint32_t n = 0; n < 400; n++)
		frame();
	qsort(world.kept, world.kept_count, sizeof(world.kept[0]), by_path_and_time);
	for (uint32_t n = 0; n < world.kept_count; n++) {
		const struct kept *kept = &world.kept[n];

		if (kept->write) {
			writes[kept->path]++;
			continue;
		}
		if (reads[kept->path]++ > 0 && kept->at_ns - read_ns > gap_ns)
			gap_ns = kept->at_ns - read_ns;
		read_ns = kept->at_ns;
	}
	assert_true(gap_ns < 3 * SEC / 2);
	for (uint32_t n = 0; n < cluster.neighbours; n++) {
		assert_in_range(reads[n], 390, 410);
		assert_in_range(
			writes[n], reads[n] / PROBE_WRITE_EACH - 2, reads[n] / PROBE_WRITE_EACH + 2
		);
	}
	world_close();
}

static void every_path_is_read_and_written_in_every_size(void **state) {
	struct cluster cluster = {
		.config = {USUAL, .random_seed = 7},
		.neighbours = 12,
		.targets = 20,
		.mtu = 4096,
		.writes = true,
	};
	uint32_t times[2][PATH_SIZES][PROBE_PATHS_MAX] = {{{0}}}, written = 0;

	(void)state;
	world_open(&cluster);
	for (uint32_t n = 0; n < 900; n++)
		frame();
	assert_within_budget();
	for (uint32_t n = 0; n < world.kept_count; n++) {
		const struct kept *kept = &world.kept[n];

		times[kept->write][kept->size][kept->path]++;
		written += kept->write;
	}
	for (uint32_t n = 0; n < cluster.neighbours; n++) {
		for (uint32_t size = 0; size < PATH_SIZES; size++)
			assert_true(times[0][size][n] >= 3 && times[1][size][n] >= 3);
	}
	assert_true(times[1][2][cluster.neighbours] > 0); // probes of visits
	assert_int_equal(probe_schedule_counters(world.schedule)->writes, written);
	world_close();
}

static void who_takes_no_writes_any_more_is_read_on_at_once(void **state) {
	struct cluster cluster = {.config = {USUAL}, .neighbours = 3, .mtu = 1024, .writes = true};
	uint32_t written;

	(void)state;
	world_open(&cluster);
	while (probe_schedule_counters(world.schedule)->writes < 4)
		frame();
	written = world.kept_count;
	for (uint32_t n = 0; n < cluster.neighbours; n++)
		probe_schedule_set_writes(world.schedule, n, false);
	for (uint32_t n = 0; n < 20; n++)
		frame();
	assert_in_range(world.kept_count - written, 20 * 3 - 5, 20 * 3 + 5);
	for (uint32_t n = written; n < world.kept_count; n++)
		assert_false(world.kept[n].write);
	world_close();
}

static void memory_of_gpus_is_read_between_reads_that_are_as_many_as_without(void **state) {
	struct cluster cluster = {
		.config = {USUAL, .random_seed = 7},
		.neighbours = 6,
		.targets = 10,
		.mtu = 4096,
		.writes = true,
		.gpu = true,
	};
	uint32_t reads[PROBE_PATHS_MAX] = {0}, of_gpu[2][PROBE_PATHS_MAX] = {{0}};

	(void)state;
	world_open(&cluster);
	assert_int_equal(facts().interval_ns, SEC);
	for (uint32_t n = 0; n < 400; n++)
		frame();
	assert_within_budget();
	for (uint32_t n = 0; n < world.kept_count; n++) {
		const struct kept *kept = &world.kept[n];

		assert_false(kept->gpu && (kept->write || kept->size > 1));
		// A visit does not read GPU memory.
		assert_false(kept->gpu && kept->path >= cluster.neighbours);
		if (kept->gpu)
			of_gpu[kept->size][kept->path]++;
		else if (!kept->write)
			reads[kept->path]++;
	}
	for (uint32_t n = 0; n < cluster.neighbours; n++) {
		uint32_t each = reads[n] / PROBE_WRITE_EACH;

		assert_in_range(reads[n], 390, 410);
		assert_in_range(of_gpu[0][n] + of_gpu[1][n], each - 2, each + 2);
		assert_in_range(of_gpu[0][n], of_gpu[1][n], of_gpu[1][n] + 1);
	}
	world_close();
}

static void whose_gpu_is_read_no_more_is_read_on_at_once(void **state) {
	struct cluster cluster = {.config = {USUAL}, .neighbours = 3, .mtu = 1024, .gpu = true};
	uint32_t before;

	(void)state;
	world_open(&cluster);
	while (probe_schedule_counters(world.schedule)->gpu_reads < 4)
		frame();
	before = world.kept_count;
	for (uint32_t n = 0; n < cluster.neighbours; n++)
		probe_schedule_set_gpu(world.schedule, n, false);
	for (uint32_t n = 0; n < 20; n++)
		frame();
	assert_in_range(world.kept_count - before, 20 * 3 - 5, 20 * 3 + 5);
	for (uint32_t n = before; n < world.kept_count; n++)
		assert_false(world.kept[n].gpu);
	world_close();
}

static void large_probe_that_no_second_can_hold_is_never_sent(void **state) {
	struct cluster cluster = {
		.config = {USUAL, .random_seed = 7},
		.neighbours = 4,
		.mtu = 256, // 257 packets
	};

	(void)state;
	world_open(&cluster);
	for (uint32_t n = 0; n < 100; n++)
		frame();
	assert_int_equal(probe_schedule_counters(world.schedule)->planned[LARGE], 0);
	assert_true(probe_schedule_counters(world.schedule)->planned[2] > 0);
	world_close();
}

static void all_targets_are_visited_within_the_time_that_is_stated(void **state) {
	static const struct cluster clusters[] = {
		{.config = {USUAL}, .neighbours = 2, .targets = 1, .mtu = 4096},
		{.config = {USUAL}, .neighbours = 6, .targets = 56, .mtu = 4096},
		{.config = {USUAL}, .neighbours = 14, .targets = 200, .mtu = 1024},
		{.config = {USUAL}, .neighbours = 20, .targets = 980, .mtu = 1024},
		{.config = {USUAL}, .neighbours = 60, .targets = 300, .mtu = 1024},
		{.config = {USUAL}, .neighbours = 28, .targets = 2000, .mtu = 4096},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(clusters) / sizeof(clusters[0]); n++) {
		uint64_t begin_ns, took_ns, stated_ns;

		world_open(&clusters[n]);
		begin_ns = world.now_ns;
		stated_ns = facts().coverage_ns;
		assert_int_equal(stated_ns, facts().visit_ns * clusters[n].targets);
		while (world.unvisited > 0 && world.now_ns < begin_ns + 2 * stated_ns + 5 * SEC)
			frame();
		took_ns = world.first_round_ns - begin_ns;
		assert_in_range(took_ns, 0, stated_ns + SEC);
		// Each visit's probes were planned, and those of the neighbours, too.
		assert_in_range(facts().visits, 0, 64);
		assert_in_range(
			probe_schedule_counters(world.schedule)->skipped, 0, world.kept_count / 50
		);
		for (uint32_t k = 0; k < clusters[n].targets; k++)
			assert_true(world.visited[k] > 0);
		world_close();
	}
}

static void round_goes_on_when_targets_come_and_go(void **state) {
	struct cluster cluster = {.config = {USUAL}, .neighbours = 2, .targets = 100, .mtu = 4096};
	struct probe_target targets[150];

	(void)state;
	world_open(&cluster);
	for (uint32_t n = 0; n < 5; n++)
		frame();
	for (uint32_t n = 0; n < 150; n++)
		targets[n] = (struct probe_target){.peer = n};
	assert_int_equal(probe_schedule_set_targets(world.schedule, targets, 150), 0);
	while (probe_schedule_counters(world.schedule)->rounds < 2)
		frame();
	for (uint32_t n = 0; n < 150; n++)
		assert_in_range(world.visited[n], 1, 3);
	assert_in_range(
		facts().round_ns, 150 * facts().visit_ns - SEC, 150 * facts().visit_ns + SEC
	);
	assert_int_equal(probe_schedule_set_targets(world.schedule, NULL, 0), 0);
	assert_int_equal(probe_schedule_next_visit_ns(world.schedule), RAS_NEVER);
	assert_int_equal(facts().coverage_ns, 0);
	world_close();
}

static void order_of_visits_differs_from_agent_to_agent(void **state) {
	struct cluster cluster = {.config = {USUAL}, .targets = 50, .mtu = 4096};
	struct probe_target target;
	uint64_t first[8];
	uint32_t same = 0;

	(void)state;
	for (uint64_t n = 0; n < 8; n++) {
		cluster.config.random_seed = n * 977 + 1;
		world_open(&cluster);
		assert_true(probe_schedule_visit_begin(world.schedule, world.now_ns, &target));
		first[n] = target.peer;
		world_close();
		for (uint64_t k = 0; k < n; k++)
			same += first[k] == first[n];
	}
	assert_in_range(same, 0, 5);
}

static void urgent_one_is_at_once_or_not_at_all(void **state) {
	struct cluster cluster = {
		.config = {USUAL},
		.neighbours = 1,
		.mtu = 4096,
	};
	struct probe_due due;

	(void)state;
	world_open(&cluster);
	for (uint32_t n = 0; n < 5; n++) {
		assert_true(probe_schedule_urgent(world.schedule, world.now_ns, 0, 0, false, &due));
		assert_int_equal(due.at_ns, world.now_ns);
		assert_int_equal(due.bytes, 8);
	}
	assert_false(probe_schedule_urgent(world.schedule, world.now_ns, 0, 0, false, &due));
	assert_true(probe_schedule_urgent(world.schedule, world.now_ns + SEC, 0, 1, false, &due));
	assert_int_equal(due.bytes, 1024);
	assert_int_equal(probe_schedule_counters(world.schedule)->urgent_refused, 1);
	world_close();
}

static void pause_of_the_planner_is_not_caught_up(void **state) {
	struct cluster cluster = {
		.config = {.interval_ns = SEC, .packets = 1000, .bytes = UINT64_C(16) << 20},
		.neighbours = 10,
		.targets = 100,
		.mtu = 4096,
	};
	uint32_t before;

	(void)state;
	world_open(&cluster);
	for (uint32_t n = 0; n < 10; n++)
		frame();
	world.now_ns += 600 * SEC;
	before = world.kept_count;
	frame();
	// One or two probes for each neighbour and each current visit.
	assert_in_range(world.kept_count - before, 10, 60);
	world_close();
}

static void two_agents_drift_apart(void **state) {
	struct cluster cluster = {.config = {USUAL}, .neighbours = 1, .mtu = 4096};
	uint64_t last[2];

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		cluster.config.random_seed = n + 1;
		world_open(&cluster);
		for (uint32_t s = 0; s < 200; s++)
			frame();
		last[n] = world.kept[world.kept_count - 1].at_ns;
		world_close();
	}
	assert_int_not_equal(last[0], last[1]);
}

static void without_memory_nothing_is_left_half(void **state) {
	const struct probe_schedule_config config = {USUAL};
	struct probe_schedule *schedule = NULL;
	struct probe_target target = {.peer = 1};

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		heap_leave(&heap, n);
		assert_int_equal(probe_schedule_create(&config, &memory, &schedule), -ENOMEM);
		assert_null(schedule);
	}
	heap_leave(&heap, 3);
	assert_int_equal(probe_schedule_create(&config, &memory, &schedule), 0);
	assert_int_equal(probe_schedule_set_targets(schedule, &target, 1), -ENOMEM);
	assert_int_equal(probe_schedule_next_visit_ns(schedule), RAS_NEVER);
	for (uint32_t n = 0; n < 2; n++) {
		heap_leave(&heap, n);
		assert_int_equal(probe_schedule_configure(schedule, 0, &config), -ENOMEM);
	}
	probe_schedule_destroy(schedule);
}

UNIT_GROUP(probe_schedule) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_second_ever_holds_more_than_the_budget),
		cmocka_unit_test(
			other_settings_hold_at_once_and_no_second_holds_more_than_both_allow
		),
		cmocka_unit_test(long_interval_that_becomes_short_is_not_waited_for),
		cmocka_unit_test(neighbours_are_probed_as_often_as_the_facts_say),
		cmocka_unit_test(path_that_loses_gets_most_of_the_large_probes_and_not_all),
		cmocka_unit_test(large_probes_take_at_most_a_fifth_and_every_path_gets_them),
		cmocka_unit_test(writes_come_between_reads_that_are_as_many_as_without),
		cmocka_unit_test(every_path_is_read_and_written_in_every_size),
		cmocka_unit_test(who_takes_no_writes_any_more_is_read_on_at_once),
		cmocka_unit_test(memory_of_gpus_is_read_between_reads_that_are_as_many_as_without),
		cmocka_unit_test(whose_gpu_is_read_no_more_is_read_on_at_once),
		cmocka_unit_test(large_probe_that_no_second_can_hold_is_never_sent),
		cmocka_unit_test(all_targets_are_visited_within_the_time_that_is_stated),
		cmocka_unit_test(round_goes_on_when_targets_come_and_go),
		cmocka_unit_test(order_of_visits_differs_from_agent_to_agent),
		cmocka_unit_test(urgent_one_is_at_once_or_not_at_all),
		cmocka_unit_test(pause_of_the_planner_is_not_caught_up),
		cmocka_unit_test(two_agents_drift_apart),
		cmocka_unit_test(without_memory_nothing_is_left_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
