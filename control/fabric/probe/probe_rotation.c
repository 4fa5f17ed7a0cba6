// SPDX-License-Identifier: BSD-3-Clause
// Rotation of visits over the targets that are no neighbours, and the intervals.
#include "probe_inside.h"

#include <lib/splitmix.h>

#include <errno.h>

#define BASE_MTU 1024 // default without a path; most fabrics have at least this MTU
#define PLACES_LEAST 64

// Intervals.

static uint64_t time_larger(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

// Rounded up, so that no share is exceeded.
static uint64_t share_duration_ns(uint64_t cost, uint64_t budget, uint32_t share_permille) {
	uint64_t share = budget * share_permille;

	return (cost * 1000 * RAS_NS_PER_SEC + share - 1) / share;
}

uint64_t probe_share_ns(
	const struct probe_schedule *schedule, struct probe_cost cost, uint32_t share_permille
) {
	return time_larger(
		share_duration_ns(cost.packets, schedule->planned.budget.packets, share_permille),
		share_duration_ns(cost.bytes, schedule->planned.budget.bytes, share_permille)
	);
}

// Return the cost of `times` probes of each size. The large size is excluded, since it has its own
// share.
static struct probe_cost probes_cost(const uint32_t *times, uint32_t mtu) {
	struct probe_cost sum = {0};

	for (uint32_t size = 0; size < 3; size++) {
		struct probe_cost one = probe_cost(probe_size_bytes(size, mtu), mtu);

		sum.packets += times[size] * one.packets;
		sum.bytes += times[size] * one.bytes;
	}
	return sum;
}

static void
cost_add_share(struct probe_cost *sum, struct probe_cost more, uint64_t times, uint64_t parts) {
	sum->packets += (times * more.packets + parts - 1) / parts;
	sum->bytes += (times * more.bytes + parts - 1) / parts;
}

// Return the cost of ten reads of a neighbour: seven of 8 bytes, one of 1 KiB, two of the MTU. The
// accompanying writes and GPU reads are added, rounded up.
static struct probe_cost ten_reads_cost(const struct probe_path *path) {
	static const uint32_t reads[] = {7, 1, 2}, writes[] = {2, 1, 1}, of_gpu[] = {1, 1, 0};
	const uint64_t parts = (uint64_t)PROBE_WRITE_EACH * PROBE_WRITE_PATTERN;
	struct probe_cost sum = probes_cost(reads, path->mtu);

	if (path->writes)
		cost_add_share(&sum, probes_cost(writes, path->mtu), 10, parts);
	if (path->gpu)
		cost_add_share(
			&sum, probes_cost(of_gpu, path->mtu), 10,
			(uint64_t)PROBE_WRITE_EACH * PROBE_GPU_SIZES
		);
	return sum;
}

static uint32_t rotation_share_permille(uint64_t rate, uint64_t budget) {
	uint64_t used = rate * 1000 / budget + 1;

	if (used + PROBE_ROTATION_LEAST_PERMILLE > 1000 - PROBE_LARGE_SHARE_PERMILLE)
		return PROBE_ROTATION_LEAST_PERMILLE;
	return (uint32_t)(1000 - PROBE_LARGE_SHARE_PERMILLE - used);
}

void probe_intervals_update(struct probe_schedule *schedule) {
	static const uint32_t visit_reads[] = {3, 1, 1};
	struct probe_cost ten = {0}, rate;
	uint32_t mtu = 0;

	for (uint32_t n = 0; n < PROBE_PATHS_MAX; n++) {
		const struct probe_path *path = &schedule->paths[n];
		struct probe_cost own;

		if (!path->used || path->visit)
			continue;
		own = ten_reads_cost(path);
		ten.packets += own.packets;
		ten.bytes += own.bytes;
		if (mtu == 0 || path->mtu < mtu)
			mtu = path->mtu;
	}
	schedule->interval_ns = time_larger(
		schedule->asked_ns,
		probe_share_ns(schedule, ten, PROBE_NEIGHBOURS_SHARE_PERMILLE) / 10
	);
	rate.packets = ten.packets * (RAS_NS_PER_SEC / 10) / schedule->interval_ns;
	rate.bytes = ten.bytes * (RAS_NS_PER_SEC / 10) / schedule->interval_ns;
	ten = probes_cost(visit_reads, mtu != 0 ? mtu : BASE_MTU);
	schedule->visit_ns = time_larger(
		share_duration_ns(
			ten.packets, schedule->planned.budget.packets,
			rotation_share_permille(rate.packets, schedule->planned.budget.packets)
		),
		share_duration_ns(
			ten.bytes, schedule->planned.budget.bytes,
			rotation_share_permille(rate.bytes, schedule->planned.budget.bytes)
		)
	);
	schedule->visit_ns = time_larger(schedule->visit_ns, PROBE_VISIT_LEAST_NS);
	if (schedule->place_count > 0)
		schedule->visit_ns = time_larger(
			schedule->visit_ns, PROBE_ROUND_LEAST_NS / schedule->place_count
		);
}

void probe_schedule_facts(
	const struct probe_schedule *schedule, struct probe_schedule_facts *ret_facts
) {
	*ret_facts = (struct probe_schedule_facts){
		.neighbours = schedule->neighbour_count,
		.visits = schedule->visit_count,
		.targets = schedule->place_count,
		.interval_ns = schedule->interval_ns,
		.visit_ns = schedule->visit_ns,
		.coverage_ns = schedule->place_count * schedule->visit_ns,
		.round_ns = schedule->round_ns,
	};
}

// Targets.

void probe_targets_fini(struct probe_schedule *schedule) {
	if (schedule->places != NULL)
		schedule->memory.release(
			schedule->memory.ctx, schedule->places,
			schedule->place_max * sizeof(schedule->places[0])
		);
	schedule->places = NULL;
	schedule->place_count = schedule->place_max = 0;
}

// Return the hashed position of a target in this schedule.
static uint64_t target_order_hash(const struct probe_target *target, uint64_t seed) {
	uint64_t mixed = target->peer ^ seed ^ ((uint64_t)target->device << 56);

	return splitmix_next(&mixed);
}

// Heap sort, since qsort() may allocate memory.
static void places_sift(struct probe_target_position *places, uint32_t from, uint32_t count) {
	struct probe_target_position moved = places[from];
	uint32_t place = from;

	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child >= count)
			break;
		if (child + 1 < count && places[child + 1].order > places[child].order)
			child++;
		if (places[child].order <= moved.order)
			break;
		places[place] = places[child];
		place = child;
	}
	places[place] = moved;
}

static void places_sort(struct probe_target_position *places, uint32_t count) {
	for (uint32_t n = count / 2; n-- > 0;)
		places_sift(places, n, count);
	for (uint32_t n = count; n-- > 1;) {
		struct probe_target_position largest = places[0];

		places[0] = places[n];
		places[n] = largest;
		places_sift(places, 0, n);
	}
}

int probe_schedule_set_targets(
	struct probe_schedule *schedule, const struct probe_target *targets, uint32_t count
) {
	if (count > schedule->place_max) {
		uint32_t max = count + count / 4 > PLACES_LEAST ? count + count / 4 : PLACES_LEAST;
		struct probe_target_position *places =
			schedule->memory.allocate(schedule->memory.ctx, max * sizeof(places[0]));

		if (places == NULL)
			return -ENOMEM;
		probe_targets_fini(schedule);
		schedule->places = places;
		schedule->place_max = max;
	}
	for (uint32_t n = 0; n < count; n++)
		schedule->places[n] = (struct probe_target_position){
			.order = target_order_hash(&targets[n], schedule->order_seed),
			.target = targets[n],
		};
	places_sort(schedule->places, count);
	schedule->place_count = count;
	probe_intervals_update(schedule);
	return 0;
}

// Return the index after the last visited target, place_count after the end, 0 before the first
// visit.
static uint32_t next_target_index(const struct probe_schedule *schedule) {
	uint32_t low = 0, high = schedule->place_count;

	if (!schedule->begun)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (schedule->places[middle].order > schedule->last_order)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint64_t probe_schedule_next_visit_ns(const struct probe_schedule *schedule) {
	return schedule->place_count > 0 ? schedule->visit_at_ns : RAS_NEVER;
}

bool probe_schedule_visit_begin(
	struct probe_schedule *schedule, uint64_t now_ns, struct probe_target *ret_target
) {
	uint32_t place;

	if (schedule->place_count == 0 || now_ns < schedule->visit_at_ns)
		return false;
	place = next_target_index(schedule);
	if (place == schedule->place_count)
		place = 0;
	if (place == 0) {
		if (schedule->begun) {
			schedule->round_ns = now_ns - schedule->round_begin_ns;
			schedule->counters.rounds++;
		}
		schedule->round_begin_ns = now_ns;
	}
	schedule->begun = true;
	schedule->last_order = schedule->places[place].order;
	schedule->counters.visits++;
	// Continue from the due time, so that delays of the timer do not add up.
	schedule->visit_at_ns += schedule->visit_ns;
	if (schedule->visit_at_ns <= now_ns)
		schedule->visit_at_ns = now_ns + schedule->visit_ns;
	*ret_target = schedule->places[place].target;
	return true;
}
