// SPDX-License-Identifier: BSD-3-Clause
// Choice of the granter, and the decision on each drain.
#include "grants_inside.h"

#include <errno.h>
#include <string.h>

#define CHECK_INTERVAL_NS SEC	 // interval of checks while a drain is wanted
#define CHECK_DELAY_NS (50 * MS) // delay that collects several changes
// A node whose doubt ended more recently may fall silent again, with others.
#define RECENT_RETURN_NS (15 * SEC)

const char *grant_reason_text(enum grant grant) {
	static const char *const words[GRANT_COUNT] = {
		[GRANT_GIVEN] = "granted",
		[GRANT_NOT_MEMBER] = "this agent is not a member of the cluster",
		[GRANT_BRAKE] = "too many nodes went bad at once: a network fault is more likely",
		[GRANT_MINORITY] = "this agent finds no more than half of the nodes alive",
		[GRANT_COMMON_EVENT] =
			"more nodes fell silent with it than may be drained in ten minutes",
		[GRANT_RATE_LIMIT] = "the limit of drains in ten minutes is reached",
		[GRANT_TOO_MANY_OUT] = "the limit of nodes out of service is reached",
		[GRANT_KEY_CHANGED] =
			("its key changed less than ten minutes ago, and only the node itself "
			 "reports the fault"),
		[GRANT_IMPROVING] = "the newest evidence about the node is better already",
		[GRANT_TABLE_FULL] = "the table of grants is full",
		[GRANT_NO_GRANTER] =
			"no member may grant it: all are critical, or joined a moment ago",
		[GRANT_PENDING] = "the granter has not granted it yet",
	};

	return words[grant];
}

int grants_create(
	const struct verdict_engine *engine,
	const struct grants_config *config,
	const struct ras_memory *memory,
	const struct grants_ops *ops,
	void *ops_ctx,
	struct grants **ret_grants
) {
	struct grants *grants = memory->allocate(memory->ctx, sizeof(*grants));

	if (grants == NULL)
		return -ENOMEM;
	grants->engine = engine;
	grants->config = *config;
	grants->memory = *memory;
	grants->ops = *ops;
	grants->ops_ctx = ops_ctx;
	grants->next_ns = RAS_NEVER;
	grants->service = memory->allocate(memory->ctx, sizeof(*grants->service));
	if (grants->service == NULL) {
		memory->release(memory->ctx, grants, sizeof(*grants));
		return -ENOMEM;
	}
	grants->service->is_old = true;
	*ret_grants = grants;
	return 0;
}

struct grants *grants_destroy(struct grants *grants) {
	struct ras_memory memory;

	if (grants == NULL)
		return NULL;
	memory = grants->memory;
	array_release(&memory, grants->rows, grants->capacity, sizeof(*grants->rows));
	array_release(&memory, grants->young, grants->young_capacity, sizeof(*grants->young));
	memory.release(memory.ctx, grants->service, sizeof(*grants->service));
	memory.release(memory.ctx, grants, sizeof(*grants));
	return NULL;
}

const struct grants_counters *grants_counters(const struct grants *grants) {
	return &grants->counters;
}

// Choice of the granter.

void grants_expect(struct grants *grants, uint32_t nodes, bool alone) {
	grants->service->is_old |= grants->expected != nodes;
	grants->expected = nodes;
	grants->alone = alone;
}

// Return the index of the id, or the index where it belongs.
static uint32_t young_index(const struct grants *grants, uint64_t id) {
	uint32_t low = 0, high = grants->young_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (grants->young[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool young_index_matches(const struct grants *grants, uint32_t at, uint64_t id) {
	return at < grants->young_count && grants->young[at].id == id;
}

void grants_member_alive(struct grants *grants, uint64_t now_ns, uint64_t id) {
	uint32_t kept = 0, at;

	// Drop members that are no longer young, at most once per CHECK_INTERVAL_NS: thousands may
	// join together.
	if (now_ns >= grants->young_swept_ns + CHECK_INTERVAL_NS) {
		grants->young_swept_ns = now_ns;
		for (uint32_t n = 0; n < grants->young_count; n++) {
			if (now_ns < grants->young[n].since_ns + GRANTS_MEMBER_MIN_AGE_NS)
				grants->young[kept++] = grants->young[n];
		}
		grants->young_count = kept;
	}
	at = young_index(grants, id);
	if (!young_index_matches(grants, at, id)) {
		if (array_grow(
			    &grants->memory, (void **)&grants->young, &grants->young_capacity,
			    grants->young_count + 1, sizeof(*grants->young)
		    ) != 0)
			return;
		memmove(&grants->young[at + 1], &grants->young[at],
			(grants->young_count++ - at) * sizeof(*grants->young));
	}
	grants->young[at] = (struct young){id, now_ns};
	grants->joiner = true;
	grants_wake(grants, now_ns + CHECK_INTERVAL_NS);
}

static bool member_is_young(const struct grants *grants, uint64_t now_ns, uint64_t id) {
	uint32_t at = young_index(grants, id);

	return young_index_matches(grants, at, id) &&
	       now_ns < grants->young[at].since_ns + GRANTS_MEMBER_MIN_AGE_NS;
}

static bool member_may_grant(const struct grants *grants, uint64_t now_ns, uint32_t row) {
	const struct member_row *member = &grants->engine->members.rows[row];
	struct verdict_view view;

	if (member->id == 0 || (member->state != RAS_ALIVE && member->id != grants->config.self) ||
	    member_is_young(grants, now_ns, member->id))
		return false;
	verdict_view_fill(grants->engine, row, &view);
	return verdict_grade_of(view.verdict) != VERDICT_GRADE_CRITICAL;
}

uint64_t grants_current_granter(const struct grants *grants, uint64_t now_ns) {
	const struct members *members = &grants->engine->members;
	uint64_t lowest = 0;

	if (!grants->engine->self.joined)
		return 0;
	for (uint32_t row = 0; row < members->count; row++) {
		uint64_t id = members->rows[row].id;

		if (id != 0 && (lowest == 0 || id < lowest) &&
		    member_may_grant(grants, now_ns, row))
			lowest = id;
	}
	return lowest;
}

bool grants_are_ours(const struct grants *grants, uint64_t now_ns) {
	const struct members *members = &grants->engine->members;
	uint32_t self = members_find(members, grants->config.self);

	if (!grants->engine->self.joined || self == MEMBERS_NONE ||
	    !member_may_grant(grants, now_ns, self))
		return false;
	for (uint32_t row = 0; row < members->count; row++) {
		if (members->rows[row].id < grants->config.self &&
		    member_may_grant(grants, now_ns, row))
			return false;
	}
	return true;
}

// Decision on each drain.

// Return the start of the node's silence on the overlay or the fabric; RAS_NEVER: it is not silent.
static uint64_t silent_since_ns(const struct grants *grants, const struct subject *subject) {
	uint8_t state = subject_peer(grants->engine, subject)->state;

	// Only the process is gone; the node is not silent.
	if (subject->held.verdict == VERDICT_AGENT_DOWN)
		return RAS_NEVER;
	// A node that was silent before this agent joined has no doubt_began_ns.
	if (state == RAS_SUSPECT || state_is_out_of_service(state))
		return subject->doubt_began_ns != 0 ? subject->doubt_began_ns : subject->state_ns;
	return subject->silent ? subject->silent_ns : RAS_NEVER;
}

// Return whether two observers other than `but_for` fail to read the node. If one node is cut off,
// only that node fails to read the others. If the fabric is partitioned, most nodes are unread by
// several.
static bool node_is_unread_by_others(
	const struct verdict_engine *engine, const struct subject *subject, uint64_t but_for
) {
	uint64_t first = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		uint64_t observer = evidence->observation.observer;

		if (evidence->observation.kind != OBSERVATION_SILENT || observer == but_for ||
		    observer == first || !triangulate_counts(engine, evidence))
			continue;
		if (first != 0)
			return true;
		first = observer;
	}
	return false;
}

// Return whether more than `most` nodes, this one included, are unread by several observers. The
// fabric is then partitioned. A node whose observers are all on the other side only looks cut off.
static bool fabric_is_partitioned(
	const struct verdict_engine *engine, const struct subject *subject, uint32_t most
) {
	uint64_t id = subject_peer(engine, subject)->id;
	uint32_t unread = 0;

	if (subject_peer(engine, subject)->state != RAS_ALIVE)
		return false;
	// The node's own statement supports its verdict, so it does not only look cut off.
	for (uint32_t n = 0; n < subject->said_count; n++) {
		if (subject->said[n].statement.verdict == subject->held.verdict)
			return false;
	}
	for (uint32_t n = 0; n < engine->subject_count && unread <= most; n++) {
		const struct subject *other = engine->subjects[n];

		unread += other == subject || node_is_unread_by_others(engine, other, id);
	}
	return unread > most;
}

// Return whether more than `most` nodes, this one included, fell silent at about the same time,
// less than GRANTS_INTERVAL_NS ago.
static bool fell_silent_together(
	const struct grants *grants, uint64_t now_ns, const struct subject *subject, uint32_t most
) {
	const struct verdict_engine *engine = grants->engine;
	uint64_t since_ns = subject != NULL ? silent_since_ns(grants, subject) : RAS_NEVER;
	uint32_t together = 0;

	if (since_ns == RAS_NEVER || now_ns >= since_ns + GRANTS_INTERVAL_NS)
		return false;
	if (fabric_is_partitioned(engine, subject, most))
		return true;
	for (uint32_t n = 0; n < engine->subject_count && together <= most; n++) {
		const struct subject *other = engine->subjects[n];
		// A node whose doubt ended a moment ago still counts, since it may fall again.
		bool is_back = subject_peer(engine, other)->state == RAS_ALIVE &&
			       other->back_ns != 0 && now_ns < other->back_ns + RECENT_RETURN_NS &&
			       other->held.verdict != VERDICT_AGENT_DOWN;
		uint64_t other_ns =
			is_back ? other->doubt_began_ns : silent_since_ns(grants, other);
		uint64_t apart_ns = other_ns > since_ns ? other_ns - since_ns : since_ns - other_ns;

		together += other_ns != RAS_NEVER && apart_ns <= BRAKE_WINDOW_NS;
	}
	return together > most;
}

// Return a reason that blocks all drains, even those already granted; else GRANT_GIVEN.
static enum grant refusal_for_all_nodes(const struct grants *grants, uint64_t now_ns) {
	const struct service *service;

	if (!grants->engine->self.joined)
		return GRANT_NOT_MEMBER;
	if (verdict_brake_is_on(grants->engine))
		return GRANT_BRAKE;
	service = grants_service(grants, now_ns);
	return 2 * (uint64_t)service->alive <= service->nodes ? GRANT_MINORITY : GRANT_GIVEN;
}

// Return whether the node came with another key a moment ago, and the verdict rests on what it
// reports itself.
static bool node_with_new_key_accuses_itself(const struct member_row *member, uint64_t now_ns) {
	const struct held *held = member->subject != NULL ? &member->subject->held : NULL;

	return held != NULL && held->observer_count == 1 && held->observers[0] == member->id &&
	       member->key_changed_s != 0 &&
	       now_ns < member->key_changed_s * SEC + GRANTS_NEW_KEY_NS;
}

// Return a reason that blocks the drain of this node, even if it is granted; else GRANT_GIVEN.
static enum grant
refusal_of_granted(const struct grants *grants, uint64_t now_ns, const struct member_row *member) {
	enum grant of_all = refusal_for_all_nodes(grants, now_ns);

	if (of_all == GRANT_GIVEN && node_with_new_key_accuses_itself(member, now_ns))
		return GRANT_KEY_CHANGED;
	return of_all;
}

static enum grant
refusal_for_node(const struct grants *grants, uint64_t now_ns, const struct member_row *member) {
	const struct service *service = grants_service(grants, now_ns);
	uint32_t rate = grants_share(service->nodes, grants->config.rate_percent);
	enum grant of_granted = refusal_of_granted(grants, now_ns, member);

	if (of_granted != GRANT_GIVEN)
		return of_granted;
	// A dead or unreachable node is already counted as out of service.
	if (!state_is_out_of_service(member->state) &&
	    service->out + 1 > grants_share(service->nodes, grants->config.out_percent))
		return GRANT_TOO_MANY_OUT;
	if (service->granted >= rate)
		return GRANT_RATE_LIMIT;
	if (fell_silent_together(grants, now_ns, member->subject, rate))
		return GRANT_COMMON_EVENT;
	if (member->subject != NULL && member->subject->better_since_ns != RAS_NEVER)
		return GRANT_IMPROVING;
	if (grants->count == GRANTS_MAX)
		return GRANT_TABLE_FULL;
	return grants_current_granter(grants, now_ns) != 0 ? GRANT_PENDING : GRANT_NO_GRANTER;
}

// In a cluster of one no other member can agree, so its own verdict suffices.
static bool is_cluster_of_one(const struct grants *grants, uint64_t id) {
	const uint32_t *of = grants->engine->members.of_state;

	return id == grants->config.self && grants->engine->self.joined && !grants->alone &&
	       grants->expected <= 1 && of[RAS_ALIVE] == 1 &&
	       of[RAS_SUSPECT] + of[RAS_UNREACHABLE] + of[RAS_DEAD] == 0;
}

enum grant grants_decide(const struct grants *grants, uint64_t now_ns, uint64_t id) {
	uint32_t row = members_find(&grants->engine->members, id);
	const struct granted *granted = grants_find(grants, id);
	const struct member_row *member;

	if (row == MEMBERS_NONE)
		return GRANT_PENDING;
	member = &grants->engine->members.rows[row];
	if (granted != NULL && grant_is_in_force(grants, granted, now_ns))
		return refusal_of_granted(grants, now_ns, member);
	if (is_cluster_of_one(grants, id))
		return GRANT_GIVEN;
	return refusal_for_node(grants, now_ns, member);
}

// Granting.

// Grant a drain or extend its grant. Returns false if the node has to wait.
static bool grant_or_extend(struct grants *grants, uint64_t now_ns, uint32_t row) {
	const struct member_row *member = &grants->engine->members.rows[row];
	struct granted *granted = grants_find(grants, member->id);

	if (granted != NULL && grant_is_in_force(grants, granted, now_ns)) {
		if (refusal_of_granted(grants, now_ns, member) == GRANT_GIVEN)
			granted->until_ns = now_ns + GRANTS_LIFETIME_NS;
		return true;
	}
	if (refusal_for_node(grants, now_ns, member) != GRANT_PENDING ||
	    (granted == NULL && grants_add(grants, member->id, &granted) != 0)) {
		grants->counters.withheld++;
		return false;
	}
	grants->service->is_old = true;
	*granted = (struct granted){
		.id = member->id,
		.start = ras_incarnation_start(member->incarnation),
		.first_ns = now_ns,
		.until_ns = now_ns + GRANTS_LIFETIME_NS,
	};
	grants->counters.given++;
	grants->ops.given(grants->ops_ctx, member->id);
	return true;
}

void grants_check_soon(struct grants *grants, uint64_t now_ns) {
	grants_wake(grants, now_ns + CHECK_DELAY_NS);
}

void grants_tick(struct grants *grants, uint64_t now_ns) {
	const struct verdict_engine *engine = grants->engine;
	bool waits = false;

	grants->next_ns = RAS_NEVER;
	grants_expire(grants, now_ns);
	if (!grants_are_ours(grants, now_ns)) {
		// The granter may leave, and this agent may become the granter. While this agent is
		// young, check more often.
		grants_wake(
			grants, now_ns + (member_is_young(grants, now_ns, grants->config.self)
						  ? CHECK_INTERVAL_NS
						  : GRANTS_REPEAT_NS)
		);
		return;
	}
	for (uint32_t n = 0; n < engine->subject_count; n++) {
		uint32_t row = engine->subjects[n]->peer;
		struct verdict_view view;

		verdict_view_fill(engine, row, &view);
		if (grants->ops.wants(grants->ops_ctx, now_ns, &view))
			waits |= !grant_or_extend(grants, now_ns, row);
		else
			waits |= view.advice == VERDICT_ADVICE_DRAIN_LATER;
	}
	if (waits)
		grants_wake(grants, now_ns + CHECK_INTERVAL_NS);
	grants_publish(grants, now_ns, grants->joiner);
	grants->joiner = false;
}
