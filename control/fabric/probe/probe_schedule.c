// SPDX-License-Identifier: BSD-3-Clause
// Plans the next probe of each path and its size, within a budget.
#include "probe_inside.h"

#include <lib/must.h>

#include <errno.h>

#define PROBE_PACKETS_LEAST 2  // packets of the cheapest probe
#define LARGE_SIZE_INDEX 3     // index of the largest size
#define LARGE_PROBE_INTERVAL 5 // without losses, at most every fifth probe is large
#define SIZE_PATTERN_LENGTH 5

const uint32_t probe_bytes[PATH_SIZES] = {8, 1024, 0, 65536};

// The first probe identifies the peer: only sizes above 8 bytes read the whole head of a pulse.
static const uint32_t patterns[2][SIZE_PATTERN_LENGTH] = {{1, 0, 0, 2, 0}, {0, 0, 2, 0, 0}};
static const uint32_t visit_pattern[PROBE_VISIT_PROBES] = {1, 0, 2, 0, 3};
static const uint32_t write_pattern[PROBE_WRITE_PATTERN] = {0, 1, 0, 2};
#define VISIT_WRITE 2 // index in visit_pattern that is a write: large packets go the other way, too

uint32_t probe_size_bytes(uint32_t size, uint32_t mtu) {
	return probe_bytes[size] != 0 ? probe_bytes[size] : mtu;
}

struct probe_cost probe_cost(uint32_t bytes, uint32_t mtu) {
	uint32_t packets = 1 + (bytes + mtu - 1) / mtu;

	return (struct probe_cost){packets, bytes + packets * PROBE_PACKET_BYTES};
}

static uint64_t random_draw(struct probe_schedule *schedule) {
	schedule->random ^= schedule->random << 13;
	schedule->random ^= schedule->random >> 7;
	schedule->random ^= schedule->random << 17;
	return schedule->random;
}

// Budget.

static int budget_init(
	struct probe_budget_ring *purse, const struct ras_memory *memory, struct probe_cost budget
) {
	purse->budget = budget;
	purse->max = (uint32_t)(budget.packets / PROBE_PACKETS_LEAST) + 1;
	purse->spent = memory->allocate(memory->ctx, purse->max * sizeof(purse->spent[0]));
	return purse->spent != NULL ? 0 : -ENOMEM;
}

static void budget_fini(struct probe_budget_ring *purse, const struct ras_memory *memory) {
	if (purse->spent != NULL)
		memory->release(memory->ctx, purse->spent, purse->max * sizeof(purse->spent[0]));
}

static bool budget_has_room(const struct probe_budget_ring *purse, struct probe_cost cost) {
	return purse->held < purse->max &&
	       purse->last.packets + cost.packets <= purse->budget.packets &&
	       purse->last.bytes + cost.bytes <= purse->budget.bytes;
}

// Return the earliest time from at_ns on at which the budget allows this cost. Drops entries that
// are a second old by then.
static uint64_t
budget_room_at_ns(struct probe_budget_ring *purse, uint64_t at_ns, struct probe_cost cost) {
	while (purse->held > 0) {
		const struct probe_budget_entry *oldest = &purse->spent[purse->oldest];
		uint64_t over_ns = oldest->at_ns + RAS_NS_PER_SEC;

		if (over_ns > at_ns && budget_has_room(purse, cost))
			break;
		at_ns = over_ns > at_ns ? over_ns : at_ns;
		purse->last.packets -= oldest->cost.packets;
		purse->last.bytes -= oldest->cost.bytes;
		purse->oldest = (purse->oldest + 1) % purse->max;
		purse->held--;
	}
	return at_ns;
}

static void budget_spend(struct probe_budget_ring *purse, uint64_t at_ns, struct probe_cost cost) {
	must(purse->held < purse->max);
	purse->spent[(purse->oldest + purse->held++) % purse->max] =
		(struct probe_budget_entry){at_ns, cost};
	purse->last.packets += cost.packets;
	purse->last.bytes += cost.bytes;
}

// Return whether the share of large probes allows one now; unused share is limited to one probe.
static bool large_probe_is_allowed(
	const struct probe_schedule *schedule, uint64_t at_ns, struct probe_cost cost
) {
	const struct probe_cost *budget = &schedule->planned.budget;

	return at_ns >= schedule->large_at_ns && cost.packets <= budget->packets &&
	       cost.bytes <= budget->bytes;
}

// Return whether this path has waited longest for a large probe. In three of four turns lossy paths
// come first, so that their recovery is seen soon.
static bool
path_is_first_for_large(const struct probe_schedule *schedule, const struct probe_path *path) {
	bool losers_first = schedule->large_count % 4 != 3;

	for (uint32_t n = 0; n < PROBE_PATHS_MAX; n++) {
		const struct probe_path *other = &schedule->paths[n];

		if (!other->used || other->visit)
			continue;
		if (losers_first && other->loses != path->loses) {
			if (other->loses)
				return false;
		} else if (other->large_ns < path->large_ns) {
			return false;
		}
	}
	return true;
}

// Paths.

static struct probe_path *schedule_path_get(struct probe_schedule *schedule, uint32_t path) {
	must(path < PROBE_PATHS_MAX && schedule->paths[path].used);
	return &schedule->paths[path];
}

void probe_schedule_add(
	struct probe_schedule *schedule, uint64_t now_ns, uint32_t path, uint32_t mtu, bool visit
) {
	must(path < PROBE_PATHS_MAX && !schedule->paths[path].used);
	must(mtu > 0);
	// Probe a new path soon, since its first result is awaited.
	schedule->paths[path] = (struct probe_path){
		.used = true,
		.visit = visit,
		.mtu = mtu,
		.next_ns = now_ns + random_draw(schedule) % PROBE_VISIT_GAP_NS,
	};
	if (visit)
		schedule->visit_count++;
	else
		schedule->neighbour_count++;
	probe_intervals_update(schedule);
}

static void path_drop_extra_probe(struct probe_path *path, enum probe_extra between) {
	if (path->between != between)
		return;
	path->between = PROBE_EXTRA_NONE;
	path->next_ns = path->read_ns;
}

void probe_schedule_set_writes(struct probe_schedule *schedule, uint32_t path, bool writes) {
	struct probe_path *changed = schedule_path_get(schedule, path);

	if (changed->writes == writes)
		return;
	changed->writes = writes;
	path_drop_extra_probe(changed, PROBE_EXTRA_WRITE);
	probe_intervals_update(schedule);
}

void probe_schedule_set_gpu(struct probe_schedule *schedule, uint32_t path, bool gpu) {
	struct probe_path *changed = schedule_path_get(schedule, path);

	if (changed->gpu == gpu)
		return;
	changed->gpu = gpu;
	path_drop_extra_probe(changed, PROBE_EXTRA_GPU);
	probe_intervals_update(schedule);
}

void probe_schedule_set_lossy(struct probe_schedule *schedule, uint32_t path, bool loses) {
	schedule_path_get(schedule, path)->loses = loses;
}

void probe_schedule_remove(struct probe_schedule *schedule, uint32_t path) {
	struct probe_path *gone = schedule_path_get(schedule, path);

	gone->used = false;
	if (gone->visit)
		schedule->visit_count--;
	else
		schedule->neighbour_count--;
	probe_intervals_update(schedule);
}

// Planning.

static bool path_needs_large_probe(
	const struct probe_schedule *schedule, const struct probe_path *path, uint64_t at_ns
) {
	return path->count >= path->large_count + (path->loses ? 1 : LARGE_PROBE_INTERVAL) &&
	       large_probe_is_allowed(
		       schedule, at_ns, probe_cost(probe_bytes[LARGE_SIZE_INDEX], path->mtu)
	       ) &&
	       path_is_first_for_large(schedule, path);
}

static uint32_t
choose_read_size(struct probe_schedule *schedule, struct probe_path *path, uint64_t at_ns) {
	struct probe_cost large = probe_cost(probe_bytes[LARGE_SIZE_INDEX], path->mtu);
	uint32_t size;

	if (path->visit) {
		size = visit_pattern[path->count % PROBE_VISIT_PROBES];
		return size != LARGE_SIZE_INDEX || large_probe_is_allowed(schedule, at_ns, large)
			       ? size
			       : 0;
	}
	// On a path with writes every second large probe is a write, planned in the turn of a
	// write.
	if (!(path->writes && path->large_write) && path_needs_large_probe(schedule, path, at_ns))
		return LARGE_SIZE_INDEX;
	return patterns[path->count / SIZE_PATTERN_LENGTH % 2][path->count % SIZE_PATTERN_LENGTH];
}

static uint32_t
choose_write_size(struct probe_schedule *schedule, struct probe_path *path, uint64_t at_ns) {
	if (path->visit)
		return visit_pattern[VISIT_WRITE];
	if (path->large_write && path_needs_large_probe(schedule, path, at_ns))
		return LARGE_SIZE_INDEX;
	return write_pattern[path->write_count % PROBE_WRITE_PATTERN];
}

static struct probe_path *path_first_due(struct probe_schedule *schedule, uint32_t *ret_path) {
	struct probe_path *first = NULL;

	for (uint32_t n = 0; n < PROBE_PATHS_MAX; n++) {
		struct probe_path *path = &schedule->paths[n];

		if (!path->used || (path->visit && path->count >= PROBE_VISIT_PROBES) ||
		    (first != NULL && path->next_ns >= first->next_ns))
			continue;
		first = path;
		*ret_path = n;
	}
	return first;
}

// Jitter by an eighth to either side, so that agents that started together drift apart.
static uint64_t time_jittered(struct probe_schedule *schedule, uint64_t ns) {
	return ns - ns / 8 + random_draw(schedule) % (ns / 4 + 1);
}

static void
path_schedule_next(struct probe_schedule *schedule, struct probe_path *path, uint64_t at_ns) {
	uint64_t due_ns = path->next_ns;

	if (path->between != PROBE_EXTRA_NONE) {
		path->between = PROBE_EXTRA_NONE;
		path->next_ns = path->read_ns;
		return;
	}

	if (path->visit) {
		path->next_ns = at_ns + time_jittered(schedule, PROBE_VISIT_GAP_NS);
		return;
	}
	// Continue from the due time, so that short delays do not add up. A turn in the past is
	// skipped.
	path->next_ns = due_ns + time_jittered(schedule, schedule->interval_ns);
	if (path->next_ns <= at_ns) {
		schedule->counters.skipped++;
		path->next_ns = at_ns + time_jittered(schedule, schedule->interval_ns);
	}
	// An extra probe is planned between two reads and does not delay them.
	if (path->writes && path->count % PROBE_WRITE_EACH == 0)
		path->between = PROBE_EXTRA_WRITE;
	else if (path->gpu && path->count % PROBE_WRITE_EACH == PROBE_WRITE_EACH / 2)
		path->between = PROBE_EXTRA_GPU;
	if (path->between != PROBE_EXTRA_NONE) {
		path->read_ns = path->next_ns;
		path->next_ns = at_ns + (path->read_ns - at_ns) / 2;
	}
}

static void
count_probe(struct probe_schedule *schedule, const struct probe_due *due, struct probe_cost cost) {
	schedule->counters.planned[due->size]++;
	schedule->counters.writes += due->write;
	schedule->counters.gpu_reads += due->gpu;
	schedule->counters.packets += cost.packets;
	schedule->counters.bytes += cost.bytes;
}

static void path_plan_probe(
	struct probe_schedule *schedule,
	struct probe_path *path,
	struct probe_cost cost,
	const struct probe_due *due
) {
	budget_spend(&schedule->planned, due->at_ns, cost);
	count_probe(schedule, due, cost);
	if (due->size == LARGE_SIZE_INDEX) {
		schedule->large_at_ns =
			due->at_ns + probe_share_ns(schedule, cost, PROBE_LARGE_SHARE_PERMILLE);
		schedule->large_count++;
		path->large_ns = due->at_ns;
		path->large_count = path->count;
		path->large_write = !due->write;
	}
	path->write_count += due->write;
	path->gpu_count += due->gpu;
	path->count += path->between == PROBE_EXTRA_NONE;
	path_schedule_next(schedule, path, due->at_ns);
}

uint32_t probe_schedule_plan(
	struct probe_schedule *schedule,
	uint64_t from_ns,
	uint64_t until_ns,
	struct probe_due *dues,
	uint32_t max
) {
	uint32_t count = 0;

	if (schedule->planned_ns < from_ns)
		schedule->planned_ns = from_ns;
	while (count < max) {
		struct probe_due due = {.at_ns = schedule->planned_ns};
		struct probe_path *path = path_first_due(schedule, &due.path);
		struct probe_cost cost;
		uint64_t wish_ns;

		if (path == NULL)
			break;
		// Without a call of the planner no turn was missed.
		if (path->next_ns < from_ns)
			path->next_ns = from_ns;
		wish_ns = path->next_ns > due.at_ns ? path->next_ns : due.at_ns;
		if (wish_ns >= until_ns)
			break;
		due.write = path->visit ? path->writes && path->count == VISIT_WRITE
					: path->between == PROBE_EXTRA_WRITE;
		due.gpu = path->between == PROBE_EXTRA_GPU;
		if (due.gpu)
			due.size = path->gpu_count % PROBE_GPU_SIZES;
		else
			due.size = due.write ? choose_write_size(schedule, path, wish_ns)
					     : choose_read_size(schedule, path, wish_ns);
		due.bytes = probe_size_bytes(due.size, path->mtu);
		cost = probe_cost(due.bytes, path->mtu);
		due.at_ns = budget_room_at_ns(&schedule->planned, wish_ns, cost);
		schedule->planned_ns = due.at_ns;
		if (due.at_ns >= until_ns)
			break;
		schedule->counters.delayed += due.at_ns > path->next_ns;
		path_plan_probe(schedule, path, cost, &due);
		dues[count++] = due;
	}
	return count;
}

bool probe_schedule_urgent(
	struct probe_schedule *schedule,
	uint64_t now_ns,
	uint32_t path,
	uint32_t size,
	bool write,
	struct probe_due *ret_due
) {
	uint32_t mtu = schedule_path_get(schedule, path)->mtu;
	struct probe_due due = {
		.at_ns = now_ns,
		.path = path,
		.size = size,
		.bytes = probe_size_bytes(size, mtu),
		.write = write,
	};
	struct probe_cost cost = probe_cost(due.bytes, mtu);

	// The time must not be before the last entry, which would reopen an expired second.
	if (budget_room_at_ns(&schedule->urgent, now_ns, (struct probe_cost){0}) > now_ns ||
	    !budget_has_room(&schedule->urgent, cost)) {
		schedule->counters.urgent_refused++;
		return false;
	}
	budget_spend(&schedule->urgent, now_ns, cost);
	count_probe(schedule, &due, cost);
	schedule->counters.urgent++;
	*ret_due = due;
	return true;
}

// Life.

static int budgets_create(
	const struct probe_schedule_config *config,
	const struct ras_memory *memory,
	struct probe_budget_ring *ret_planned,
	struct probe_budget_ring *ret_urgent
) {
	struct probe_budget_ring planned = {0}, urgent = {0};
	struct probe_cost budget = {
		.packets = config->packets,
		.bytes = config->bytes,
	};
	struct probe_cost kept;

	must(config->interval_ns != 0);
	if (budget.packets < PROBE_PACKETS_MIN)
		budget.packets = PROBE_PACKETS_MIN;
	if (budget.bytes < PROBE_BYTES_MIN)
		budget.bytes = PROBE_BYTES_MIN;
	// The reserve for urgent probes is a tenth, but at least one probe of 1 KiB.
	kept = (struct probe_cost){budget.packets / 10, budget.bytes / 10};
	if (kept.packets < PROBE_PACKETS_LEAST)
		kept.packets = PROBE_PACKETS_LEAST;
	budget.packets -= kept.packets;
	budget.bytes -= kept.bytes;
	if (budget_init(&planned, memory, budget) != 0 || budget_init(&urgent, memory, kept) != 0) {
		budget_fini(&planned, memory);
		return -ENOMEM;
	}
	*ret_planned = planned;
	*ret_urgent = urgent;
	return 0;
}

int probe_schedule_create(
	const struct probe_schedule_config *config,
	const struct ras_memory *memory,
	struct probe_schedule **ret_schedule
) {
	struct probe_schedule *schedule = memory->allocate(memory->ctx, sizeof(*schedule));

	if (schedule == NULL)
		return -ENOMEM;
	schedule->memory = *memory;
	schedule->asked_ns = config->interval_ns;
	schedule->random = config->random_seed | 1;
	schedule->order_seed = config->random_seed;
	if (budgets_create(config, memory, &schedule->planned, &schedule->urgent) != 0) {
		probe_schedule_destroy(schedule);
		return -ENOMEM;
	}
	probe_intervals_update(schedule);
	*ret_schedule = schedule;
	return 0;
}

int probe_schedule_configure(
	struct probe_schedule *schedule, uint64_t now_ns, const struct probe_schedule_config *config
) {
	struct probe_budget_ring planned, urgent;
	int err = budgets_create(config, &schedule->memory, &planned, &urgent);

	if (err != 0)
		return err;
	if (schedule->planned_ns < now_ns)
		schedule->planned_ns = now_ns;
	// The old budget's entries are not converted; the new budget counts as spent for one
	// second.
	budget_spend(&planned, schedule->planned_ns, planned.budget);
	budget_spend(&urgent, now_ns, urgent.budget);
	budget_fini(&schedule->planned, &schedule->memory);
	budget_fini(&schedule->urgent, &schedule->memory);
	schedule->planned = planned;
	schedule->urgent = urgent;
	schedule->large_at_ns = now_ns;
	schedule->asked_ns = config->interval_ns;
	probe_intervals_update(schedule);
	for (uint32_t n = 0; n < PROBE_PATHS_MAX; n++) {
		if (schedule->paths[n].used && !schedule->paths[n].visit)
			schedule->paths[n].next_ns =
				now_ns + random_draw(schedule) % schedule->interval_ns;
	}
	if (schedule->visit_at_ns > now_ns + schedule->visit_ns)
		schedule->visit_at_ns = now_ns + schedule->visit_ns;
	return 0;
}

struct probe_schedule *probe_schedule_destroy(struct probe_schedule *schedule) {
	struct ras_memory memory;

	if (schedule == NULL)
		return NULL;
	memory = schedule->memory;
	budget_fini(&schedule->planned, &memory);
	budget_fini(&schedule->urgent, &memory);
	probe_targets_fini(schedule);
	memory.release(memory.ctx, schedule, sizeof(*schedule));
	return NULL;
}

const struct probe_schedule_counters *probe_schedule_counters(const struct probe_schedule *schedule
) {
	return &schedule->counters;
}
