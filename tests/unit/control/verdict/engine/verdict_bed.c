// SPDX-License-Identifier: BSD-3-Clause
#include "control/verdict/engine/verdict_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void bed_changed(void *ctx, const struct verdict_change *change) {
	struct bed *bed = ctx;

	bed->last = *change;
	bed->last_now = change->now->verdict;
	bed->changes += change->before != change->now->verdict;
	bed->ripened += change->before == change->now->verdict;
}

static void bed_wake(void *ctx, uint64_t at_ns) {
	struct bed *bed = ctx;

	bed->wake_ns = at_ns;
}

static void bed_links(void *ctx, uint64_t peer, struct verdict_links *ret_links) {
	const struct bed *bed = ctx;

	*ret_links = (struct verdict_links){
		.quiet = (uint32_t)__builtin_popcountll(bed->quiet),
		.peer_is_quiet = peer <= 64 && (bed->quiet >> (peer - 1) & 1) != 0,
	};
}

static const struct verdict_ops bed_ops = {
	.changed = bed_changed, .wake = bed_wake, .links = bed_links};

struct bed *bed_create_bare(const struct verdict_config *config) {
	struct bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	bed->memory = (struct ras_memory)HEAP_MEMORY(&bed->heap);
	bed->now_ns = 1000 * SEC;
	bed->wake_ns = RAS_NEVER;
	assert_int_equal(
		verdict_engine_create(config, &bed->memory, &bed_ops, bed, &bed->engine), 0
	);
	return bed;
}

struct bed *bed_create_with(uint32_t count, const struct verdict_config *config) {
	struct bed *bed = bed_create_bare(config);

	bed->count = count;
	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(bed_state(bed, n, RAS_ALIVE, RAS_CAUSE_NONE), 0);
	return bed;
}

struct bed *bed_create(uint32_t count) {
	return bed_create_with(count, &(struct verdict_config){.self = bed_id(0)});
}

void bed_destroy(struct bed *bed) {
	verdict_engine_destroy(bed->engine);
	assert_int_equal(bed->heap.used_bytes, 0);
	free(bed);
}

void bed_pass(struct bed *bed, uint64_t ns) {
	uint64_t until_ns = bed->now_ns + ns;

	while (bed->wake_ns <= until_ns) {
		assert_true(bed->wake_ns >= bed->now_ns || bed->now_ns == until_ns - ns);
		if (bed->wake_ns > bed->now_ns)
			bed->now_ns = bed->wake_ns;
		bed->wake_ns = RAS_NEVER;
		verdict_tick(bed->engine, bed->now_ns);
	}
	bed->now_ns = until_ns;
}

static const char *bed_host(uint32_t agent) {
	static char host[16];

	snprintf(host, sizeof(host), "h%u", agent);
	return host;
}

struct verdict_peer_update bed_peer(uint32_t agent, enum ras_state state, enum ras_cause cause) {
	struct verdict_peer_update peer = {
		.id = bed_id(agent),
		.incarnation = ras_incarnation(1, 0),
		.state = state,
		.cause = cause,
		.host = bed_host(agent),
		.leaf = "",
	};

	if (state == RAS_DEAD) {
		peer.observer_count = 2;
		peer.observers[0] = bed_id(agent + 1);
		peer.observers[1] = bed_id(agent + 2);
	}
	return peer;
}

int bed_state(struct bed *bed, uint32_t agent, enum ras_state state, enum ras_cause cause) {
	struct verdict_peer_update peer = bed_peer(agent, state, cause);

	return verdict_peer_update(bed->engine, bed->now_ns, &peer);
}

int bed_place(struct bed *bed, uint32_t agent, const char *host, const char *leaf) {
	struct verdict_peer_update peer = bed_peer(agent, RAS_ALIVE, RAS_CAUSE_NONE);

	peer.host = host;
	peer.leaf = leaf;
	return verdict_peer_update(bed->engine, bed->now_ns, &peer);
}

struct observation
bed_observation(uint32_t observer, uint32_t subject, enum observation_kind kind) {
	return (struct observation){
		.observer = bed_id(observer),
		.subject = bed_id(subject),
		.incarnation = ras_incarnation(1, 0),
		.kind = kind,
		.responder = OBSERVATION_RESPONDER_HARDWARE,
		.own_good = true,
		.device = "dev0",
		.peer_device = "dev0",
		.median_ns = 12000,
		.baseline_ns = 4000,
		.lost_permille = kind == OBSERVATION_LOSSY ? 125 : 0,
		.lost_bytes = kind == OBSERVATION_LOSSY ? 65536 : 0,
	};
}

int bed_see_reach(
	struct bed *bed,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	enum verdict_reach reach
) {
	struct observation observation = bed_observation(observer, subject, kind);

	observation.reach = reach;
	return verdict_observation(bed->engine, bed->now_ns, &observation);
}

int bed_see(struct bed *bed, uint32_t observer, uint32_t subject, enum observation_kind kind) {
	return bed_see_reach(bed, observer, subject, kind, VERDICT_REACH_ANSWERS);
}

int bed_say(struct bed *bed, uint32_t agent, enum verdict verdict, const char *reason) {
	struct statement statement = {.subject = bed_id(agent), .verdict = verdict};

	snprintf(statement.reason, sizeof(statement.reason), "%s", reason);
	snprintf(statement.evidence, sizeof(statement.evidence), "it says so");
	return verdict_statement(bed->engine, bed->now_ns, &statement);
}

struct verdict_view bed_view(const struct bed *bed, uint32_t agent) {
	struct verdict_view view;

	assert_int_equal(verdict_view_get(bed->engine, bed_id(agent), &view), 0);
	return view;
}

void bed_expect_at(
	const struct bed *bed,
	uint32_t agent,
	enum verdict verdict,
	const char *reason,
	const char *file,
	int line
) {
	struct verdict_view view = bed_view(bed, agent);

	if (view.verdict == verdict && (reason == NULL || strcmp(view.reason, reason) == 0))
		return;
	print_error(
		"agent %u is %s (%s: %s), not %s (%s)\n", agent, verdict_name(view.verdict),
		view.reason, view.evidence, verdict_name(verdict), reason != NULL ? reason : "any"
	);
	_fail(file, line);
}

void bed_see_two(struct bed *bed, uint32_t subject, enum observation_kind kind) {
	assert_int_equal(bed_see(bed, 1, subject, kind), 0);
	assert_int_equal(bed_see(bed, 2, subject, kind), 0);
}

struct bed *bed_with_fabric_down(void) {
	struct bed *bed = bed_create(8);

	bed_see_two(bed, 5, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	return bed;
}
