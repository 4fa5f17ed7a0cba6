// SPDX-License-Identifier: BSD-3-Clause
// One node reads the pulses of its neighbours and reports its observations.
#include "random.h"
#include "verdicts.h"
#include "world.h"

#include <lib/must.h>

#include <string.h>

#define STANDING_NS (1500 * WORLD_MS)
#define QUIET_NS (1500 * WORLD_MS)     // a link is probed after so much silence
#define AFTERWARDS_NS (60 * WORLD_SEC) // how long reads go on after the overlay dropped the link
#define GOOD_AGAIN_NS (10 * WORLD_SEC)
#define PATTERN 10

// Indexes into the sizes, in the order of the agent's probe schedule.
static const uint8_t pattern[PATTERN] = {1, 0, 0, 2, 0, 0, 0, 2, 0, 0};

static const uint32_t sizes[PATH_SIZES + 1] = {0, 1024, 4096, 65536, 0};

static struct pulse_path *path_to(const struct verdict_node *own, uint32_t peer) {
	for (uint32_t n = 0; n < own->path_count; n++) {
		if (own->paths[n].peer == peer)
			return &own->paths[n];
	}
	return NULL;
}

bool verdicts_reads(const struct world *world, uint32_t observer, uint32_t node) {
	return path_to(&world->verdicts->nodes[observer], node) != NULL;
}

bool verdicts_reads_on(const struct world *world, uint32_t observer, uint32_t node) {
	const struct pulse_path *path = path_to(&world->verdicts->nodes[observer], node);

	return path != NULL && path->linked && path->until_ns > world_now(world);
}

static void
memory_add(struct pulse_path *path, uint64_t at_ns, uint32_t size, const struct found *found) {
	struct path_probe probe = {
		.at_ns = at_ns,
		.size = size,
		.answered = found->answered,
		.is_read = true,
		.latency_ns = found->latency_ns,
		.incarnation = size > 0 ? 1 : 0,
		.beats = found->beats,
	};

	path_memory_add(path->memory, &probe);
}

// Give the path a history of good reads, one per second.
static void path_remember(struct world *world, struct pulse_path *path) {
	struct verdicts *verdicts = world->verdicts;
	struct path_memory_config config = {0};
	uint64_t from_ns = world_now(world) - VERDICTS_PAST_S * WORLD_SEC;

	if (path->memory != NULL)
		return;
	must(world_now(world) >= VERDICTS_PAST_S * WORLD_SEC);
	must(path_memory_create(&config, &verdicts->memory, &path->memory) == 0);
	for (uint32_t n = 0; n < VERDICTS_PAST_S; n++) {
		uint64_t at_ns = from_ns + n * WORLD_SEC;
		uint32_t size = pattern[path->count++ % PATTERN];
		struct found found = {
			.answered = true,
			.beats = 1 + at_ns / VERDICTS_BEAT_NS,
			.latency_ns = VERDICTS_BASE_NS + 200 * size +
				      random_below(&verdicts->random, VERDICTS_BASE_NS / 5),
		};

		memory_add(path, at_ns, size, &found);
		(void)path_memory_judge(path->memory, at_ns, VERDICTS_BASE_NS);
	}
}

static void path_drop(struct verdict_node *own, uint32_t at) {
	own->paths[at].memory = path_memory_destroy(own->paths[at].memory);
	own->paths[at] = own->paths[--own->path_count];
}

void verdicts_forget_paths(struct world *world, struct verdict_node *own) {
	while (own->path_count > 0)
		path_drop(own, own->path_count - 1);
	pool_give(
		world->pool, own->paths,
		own->paths != NULL ? VERDICTS_PATHS_MAX * sizeof(*own->paths) : 0
	);
	own->paths = NULL;
}

static void path_add(struct world *world, struct verdict_node *own, uint32_t peer) {
	struct pulse_path *path;

	if (own->paths == NULL)
		own->paths =
			pool_take_zeroed(world->pool, VERDICTS_PATHS_MAX * sizeof(*own->paths));
	if (own->path_count == VERDICTS_PATHS_MAX)
		return;
	path = &own->paths[own->path_count++];
	*path = (struct pulse_path){
		.peer = peer,
		.linked = true,
		.beats_ns = world_now(world),
		.kind = OBSERVATION_NO_PAIR,
		.reach = VERDICT_REACH_ANSWERS,
	};
	if (verdicts_latency_matters(world, own->node->index, peer))
		path_remember(world, path);
}

// Return whether reads of the path end: the overlay has no link there any more. A watched peer is
// read on, as by the rotation of a real fabric.
static bool path_is_over(
	const struct world *world, const struct verdict_node *own, const struct pulse_path *path
) {
	const struct verdict_node *far = &world->verdicts->nodes[path->peer];
	struct ras_peer peer;

	if (world_now(world) >= path->until_ns)
		return true;
	if (ras_peer_find(own->node->ras, far->node->record->id, &peer) != 0)
		return true;
	return peer.state == RAS_LEFT ||
	       (peer.state == RAS_ALIVE && path->misses == 0 && !far->watched && !own->watched);
}

// Read every peer that the overlay has a link to. Peers without a link are read for some time
// more, unless they left or are alive.
static void paths_follow(struct world *world, struct verdict_node *own) {
	struct ras_link_info link;

	for (uint32_t n = 0; n < own->path_count; n++)
		own->paths[n].linked = false;
	for (uint32_t n = 0; ras_link_at(own->node->ras, n, &link) == 0; n++) {
		uint32_t peer = world_node_of_id(world, link.peer);
		struct pulse_path *path;

		if (peer == NET_NOBODY)
			continue;
		path = path_to(own, peer);
		if (path == NULL && link.ready)
			path_add(world, own, peer);
		else if (path != NULL)
			path->linked = true;
	}
	for (uint32_t n = own->path_count; n-- > 0;) {
		struct pulse_path *path = &own->paths[n];

		if (path->linked) {
			path->until_ns = world_now(world) + AFTERWARDS_NS;
			continue;
		}
		if (path_is_over(world, own, path))
			path_drop(own, n);
	}
}

static enum verdict_reach
path_reach(struct world *world, const struct verdict_node *own, const struct pulse_path *path) {
	const struct verdict_node *far = &world->verdicts->nodes[path->peer];
	struct ras_link_info link;
	uint64_t now_ns = world_now(world);
	uint64_t silent_ns = RAS_NEVER;
	uint64_t bad_ns = path->misses > 0 ? path->miss_ns : path->beats_ns;
	bool bad = path->kind == OBSERVATION_SILENT || path->kind == OBSERVATION_STANDING;
	enum verdict_reach reach;

	for (uint32_t n = 0; ras_link_at(own->node->ras, n, &link) == 0; n++) {
		if (link.peer == far->node->record->id)
			silent_ns = link.ready ? link.silent_ns : RAS_NEVER;
	}
	if (bad ? silent_ns < QUIET_NS && silent_ns + bad_ns <= now_ns : silent_ns < 2 * QUIET_NS)
		return VERDICT_REACH_ANSWERS;
	if (silent_ns < QUIET_NS)
		return VERDICT_REACH_UNKNOWN;
	reach = verdicts_knock(world, own, far);
	return reach == VERDICT_REACH_UNKNOWN && !bad ? VERDICT_REACH_ANSWERS : reach;
}

// Judge the own port as the agent does. Reads of the own device do not count, since the NIC loops
// them internally. One other peer is enough.
static bool port_is_good(const struct world *world, const struct verdict_node *own) {
	uint32_t others = 0, others_read = 0;
	struct ras_peer peer;

	for (uint32_t n = 0; n < own->path_count; n++) {
		const struct pulse_path *path = &own->paths[n];
		const struct verdict_node *far = &world->verdicts->nodes[path->peer];

		if (path->kind == OBSERVATION_NO_PAIR ||
		    world->net.nodes[path->peer].host == world->net.nodes[own->node->index].host ||
		    ras_peer_find(own->node->ras, far->node->record->id, &peer) != 0 ||
		    peer.state != RAS_ALIVE)
			continue;
		others++;
		others_read += path->kind != OBSERVATION_SILENT;
	}
	return others < 2 || others_read > 0;
}

static void path_tell(struct world *world, struct verdict_node *own, struct pulse_path *path) {
	const struct verdict_node *far = &world->verdicts->nodes[path->peer];
	struct ras_peer peer;
	struct observation observation = {
		.observer = own->node->record->id,
		.subject = far->node->record->id,
		.kind = path->kind,
		.responder = far->responder,
		.reach = path->reach,
		.own_good = port_is_good(world, own),
		.device = "dev0",
		.peer_device = "dev0",
		.median_ns = VERDICTS_BASE_NS,
		.baseline_ns = VERDICTS_BASE_NS,
	};

	if (ras_peer_find(own->node->ras, observation.subject, &peer) != 0)
		return;
	observation.incarnation = peer.incarnation;
	// The observation's age counts from the last seen advance of the counter.
	if (path->kind == OBSERVATION_GOOD)
		observation.age_ms = (uint32_t)((world_now(world) - path->beats_ns) / WORLD_MS);
	if (path->memory != NULL) {
		struct path_summary summary;

		path_memory_summary(path->memory, &summary);
		if (path->kind == OBSERVATION_DEGRADED || path->kind == OBSERVATION_LOSSY)
			observation.age_ms = (uint32_t
			)((world_now(world) - path_summary_seen_ns(&summary, world_now(world))) /
			  WORLD_MS);
		observation.median_ns = (uint32_t)summary.median_ns;
		observation.baseline_ns = (uint32_t)summary.baseline_ns;
		observation.lost_permille = summary.lost_permille;
		observation.lost_bytes =
			sizes[path->kind == OBSERVATION_GOOD ? summary.unproven_size_index
							     : summary.lost_size_index];
	}
	path->told_ns = world_now(world);
	(void)observation_exchange_update(own->exchange, world_now(world), &observation);
}

static void path_judged(
	struct world *world,
	struct verdict_node *own,
	struct pulse_path *path,
	enum observation_kind kind
) {
	const struct verdict_node *far = &world->verdicts->nodes[path->peer];
	uint64_t now_ns = world_now(world);
	enum observation_kind before = path->kind;
	enum verdict_reach reach;
	bool dull;

	path->kind = kind;
	dull = kind == OBSERVATION_GOOD && !far->watched && !own->watched &&
	       far->node->state == NODE_UP;
	reach = dull ? VERDICT_REACH_ANSWERS : path_reach(world, own, path);
	if (kind == before && reach == path->reach &&
	    now_ns < path->told_ns + (dull ? GOOD_AGAIN_NS : WORLD_SEC / 2))
		return;
	path->reach = reach;
	path_tell(world, own, path);
}

// Judge one path beside the node's other paths.
static enum observation_kind
path_judge(struct world *world, const struct verdict_node *own, struct pulse_path *path) {
	struct path_summary summaries[VERDICTS_PATHS_MAX];
	uint32_t count = 0, self = 0;

	for (uint32_t n = 0; n < own->path_count; n++) {
		if (&own->paths[n] == path)
			self = count;
		// Treat a path without history as healthy.
		summaries[count] = (struct path_summary
		){.median_ns = VERDICTS_BASE_NS, .baseline_ns = VERDICTS_BASE_NS};
		if (own->paths[n].memory != NULL)
			path_memory_summary(own->paths[n].memory, &summaries[count]);
		count++;
	}
	return path_memory_judge(
		path->memory, world_now(world), path_expected_ns(summaries, count, self)
	);
}

static void
read_size(struct world *world, struct verdict_node *own, struct pulse_path *path, uint32_t size) {
	uint64_t now_ns = world_now(world);
	struct found found;

	verdicts_read(world, own, path->peer, size, &found);
	if (path->memory != NULL && found.answered)
		memory_add(path, now_ns, size, &found);
	if (!found.answered) {
		verdicts_miss_at(own, path->peer, size, now_ns + VERDICTS_READ_LIMIT_NS);
		return;
	}
	path->misses = 0;
	if (found.beats != path->beats) {
		path->beats = found.beats;
		path->beats_ns = now_ns;
	}
	if (path->memory != NULL)
		path_judged(world, own, path, path_judge(world, own, path));
	else if (now_ns >= path->beats_ns + STANDING_NS)
		path_judged(world, own, path, OBSERVATION_STANDING);
	else
		path_judged(
			world, own, path,
			path->kind == OBSERVATION_STANDING && path->beats_ns != now_ns
				? OBSERVATION_STANDING
				: OBSERVATION_GOOD
		);
}

// Read the next size of the pattern, and once a second a size that was lost before.
static void look_at(struct world *world, struct verdict_node *own, struct pulse_path *path) {
	struct path_retry retry;
	bool retries = path->memory != NULL &&
		       path_memory_next_retry(path->memory, world_now(world), &retry);

	read_size(world, own, path, pattern[path->count++ % PATTERN]);
	if (retries)
		read_size(world, own, path, retry.size);
}

void verdicts_missed(
	struct world *world,
	struct verdict_node *own,
	uint32_t peer,
	uint32_t size,
	uint64_t begun_ns
) {
	struct pulse_path *path = path_to(own, peer);

	if (path == NULL || begun_ns < world->verdicts->nodes[own->node->index].resumed_ns)
		return;
	if (path->misses++ == 0)
		path->miss_ns = begun_ns;
	if (path->memory != NULL) {
		struct found found = {.answered = false};

		memory_add(path, begun_ns, size, &found);
		path_judged(world, own, path, path_judge(world, own, path));
	} else if (path->misses > 1) {
		path_judged(world, own, path, OBSERVATION_SILENT);
	}
}

void verdicts_resume(struct world *world, struct verdict_node *own) {
	own->resumed_ns = world_now(world);
	for (uint32_t n = 0; n < own->path_count; n++) {
		struct pulse_path *path = &own->paths[n];

		path->misses = 0;
		path->beats_ns = world_now(world);
		if (path->memory != NULL)
			path_memory_paused(path->memory, world_now(world));
	}
}

void verdicts_look(struct world *world, struct verdict_node *own, uint32_t phase) {
	if (phase == 0)
		paths_follow(world, own);
	for (uint32_t n = 0; n < own->path_count; n++) {
		if (own->paths[n].peer % VERDICTS_PHASES == phase)
			look_at(world, own, &own->paths[n]);
	}
}

void verdicts_settle_paths(struct world *world) {
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		struct verdict_node *own = &world->verdicts->nodes[n];

		for (uint32_t m = 0; m < own->path_count; m++) {
			struct pulse_path *path = &own->paths[m];

			if (path->memory != NULL && path->kind == OBSERVATION_GOOD &&
			    !verdicts_latency_matters(world, n, path->peer))
				path->memory = path_memory_destroy(path->memory);
		}
	}
}

static void node_remember(struct world *world, struct verdict_node *own, uint32_t peer) {
	struct pulse_path *path = path_to(own, peer);

	if (path != NULL)
		path_remember(world, path);
}

void verdicts_remember(struct world *world, uint32_t node) {
	struct verdict_node *own = &world->verdicts->nodes[node];

	for (uint32_t n = 0; n < world->options.nodes; n++)
		node_remember(world, &world->verdicts->nodes[n], node);
	for (uint32_t n = 0; n < own->path_count; n++)
		path_remember(world, &own->paths[n]);
}

void verdicts_path_fault(struct world *world, const struct path_fault *fault) {
	struct verdicts *verdicts = world->verdicts;

	must(verdicts->fault_count < VERDICTS_FAULTS_MAX);
	verdicts->faults[verdicts->fault_count++] = *fault;
	if (fault->loss > 0)
		net_pair_leak(&world->net, fault->a, fault->b, fault->loss);
	if (fault->cut)
		return;
	node_remember(world, &verdicts->nodes[fault->a], fault->b);
	node_remember(world, &verdicts->nodes[fault->b], fault->a);
}

void verdicts_path_heal(struct world *world, uint32_t a, uint32_t b) {
	struct verdicts *verdicts = world->verdicts;

	net_pair_leak(&world->net, a, b, 0);

	for (uint32_t n = verdicts->fault_count; n-- > 0;) {
		const struct path_fault *fault = &verdicts->faults[n];

		if ((fault->a == a && fault->b == b) || (fault->a == b && fault->b == a))
			verdicts->faults[n] = verdicts->faults[--verdicts->fault_count];
	}
}
