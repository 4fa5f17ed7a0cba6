// SPDX-License-Identifier: BSD-3-Clause
// Tracks which nodes this agent hears now. An agent that hears few may be cut off itself. A node
// that falls silent with several others may be the first of half of the cluster.
#include "inside.h"

#define HEARD_RECHECK_NS (250 * MS) // by then a quiet link is heard again, or its peer is suspected
// Many: this fraction of the view (a third), and at least two.
#define FADING_MANY_SHARE 3
// Many silent nodes wait for each other this long after the last sign.
#define FADING_WAIT_NS (2 * SEC)

// Update whether the node is missing: the overlay misses it, or it was found silent and is about to
// be missed.
void fading_update(
	struct verdict_engine *engine, struct subject *subject, bool silent, uint64_t now_ns
) {
	enum ras_state state = subject_peer(engine, subject)->state;
	bool fading = silent && state == RAS_ALIVE;
	bool missed = fading || state == RAS_SUSPECT || state == RAS_UNREACHABLE ||
		      (state == RAS_DEAD && subject->counted);

	if (missed && !subject->missed)
		engine->last_missing_ns = now_ns;
	subject->missed = missed;
	if (fading != subject->fading)
		engine->fading += fading ? 1 : -1u;
	subject->fading = fading;
}

static bool signs_are_many(uint64_t signs, uint64_t view) {
	return signs > 1 && FADING_MANY_SHARE * signs >= view;
}

static uint64_t view_size(const struct verdict_engine *engine) {
	return (uint64_t)engine->members.of_state[RAS_ALIVE] + brake_missing_node_count(engine);
}

bool fading_many_recently(
	const struct verdict_engine *engine, struct subject *subject, uint64_t now_ns
) {
	uint64_t until_ns = engine->last_missing_ns + FADING_WAIT_NS;

	if (now_ns >= until_ns ||
	    !signs_are_many(brake_missing_node_count(engine) + engine->fading, view_size(engine)))
		return false;
	hold_until(subject, until_ns);
	return true;
}

void heard_evaluate(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct heard *ret_heard
) {
	uint64_t view = view_size(engine);
	uint64_t newest_ns = subject->missed ? engine->last_missing_ns : now_ns;
	enum verdict held = subject->held.verdict;
	bool alive = subject_peer(engine, subject)->state == RAS_ALIVE;
	uint32_t fading = engine->fading + (alive && !subject->fading);
	struct verdict_links links = {0};
	uint64_t signs;
	bool many;

	if (engine->ops.links != NULL)
		engine->ops.links(engine->ops_ctx, subject_peer(engine, subject)->id, &links);
	// Count the members that may be missing, the subject included.
	signs = brake_missing_node_count(engine) + (fading > links.quiet ? fading : links.quiet);
	// If the node was judged down before the others fell silent, their silence casts no doubt
	// on it.
	ret_heard->named = held == VERDICT_MGMT_NET_DOWN || held == VERDICT_FABRIC_DOWN ||
			   held == VERDICT_NODE_DOWN;
	if (ret_heard->named) {
		ret_heard->peer = ret_heard->alone = true;
		ret_heard->most = view > 2 * (uint64_t)brake_missing_node_count(engine);
		return;
	}
	ret_heard->peer = !links.peer_is_quiet;
	many = signs_are_many(signs, view);
	ret_heard->alone = !many || now_ns >= newest_ns + FADING_WAIT_NS;
	ret_heard->most = ret_heard->alone && view > 2 * signs;
	// While the brake is on, no verdict depends on this. All subjects are judged again when it
	// ends.
	if (engine->braking)
		return;
	if (!ret_heard->alone)
		hold_until(subject, newest_ns + FADING_WAIT_NS);
	if (links.peer_is_quiet || links.quiet > 0)
		hold_until(subject, now_ns + HEARD_RECHECK_NS);
}
