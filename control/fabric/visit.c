// SPDX-License-Identifier: BSD-3-Clause
// Rotation: those that are no neighbours are visited in turn. A visit asks for a pair, probes it a
// few times, and once more over a new pair if nothing came back; what was seen goes into a brief.
#include "fabric/probing.h"

#include <lib/container.h>
#include <lib/must.h>

#include <stdlib.h>
#include <string.h>

#define PAIR_NS (5 * RAS_NS_PER_SEC) // in which there has to be a pair
#define VISIT_NS (15 * RAS_NS_PER_SEC)
#define TRIES_MAX 2
#define ACROSS_EACH 8 // visits, then one is of a rail beside the one that belongs to ours
#define TARGETS_NS (5 * RAS_NS_PER_SEC) // between two looks at the whole view

static uint64_t now_of(const struct probing *probing) {
	return loop_clock_ns(probing->fabric->loop);
}

// Targets.

static bool is_wanted(const struct fabric *fabric, uint64_t peer, uint32_t device) {
	struct pairing_view view;
	uint32_t cursor = 0;

	while (pairing_next(fabric->pairing, &cursor, &view)) {
		if (view.wanted && view.key.peer == peer && view.key.device == device)
			return true;
	}
	return false;
}

// What a visit under way writes to is kept, whatever becomes of its peer meanwhile.
static bool is_kept(void *ctx, uint64_t peer) {
	const struct probing *probing = ctx;
	struct ras_peer found;

	for (uint32_t n = 0; n < probing->trails_used; n++) {
		const struct trail *trail = &probing->trails[n];

		if (trail->stage != TRAIL_FREE && trail->visit && trail->key.peer == peer)
			return true;
	}
	return ras_peer_find(overlay_ras(probing->fabric->overlay), peer, &found) == 0;
}

// Rails that belong to each other are probed steadily, or in turn; those beside them in the same
// subnet once in a while.
static bool has_across(const struct fabric *fabric, const struct probe_target *target) {
	char name[DEVICE_NAME_MAX + 1];
	struct ras_peer peer;

	return ras_peer_find(overlay_ras(fabric->overlay), target->peer, &peer) == 0 &&
	       rails_across(&fabric->nics[target->device], peer.record, 0, name);
}

static uint32_t collect_targets(const struct fabric *fabric, struct probe_target *targets) {
	const struct ras *ras = overlay_ras(fabric->overlay);
	struct ras_view view;
	uint32_t count = 0;

	ras_view(ras, &view);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		struct ras_peer peer;

		if (ras_peer_at(ras, slot, &peer) != 0 || peer.record->id == ras_self_id(ras) ||
		    peer.state == RAS_DEAD || peer.state == RAS_LEFT)
			continue;
		for (uint32_t n = 0; n < fabric->nic_count; n++) {
			if (!fabric->nics[n].retired)
				targets[count++] = (struct probe_target){peer.record->id, n};
		}
	}
	return count;
}

// Neighbours are few, so they are taken out afterwards.
static uint32_t
without_neighbours(const struct fabric *fabric, struct probe_target *targets, uint32_t count) {
	struct pairing_view view;
	uint32_t cursor = 0, kept = 0;

	while (pairing_next(fabric->pairing, &cursor, &view)) {
		for (uint32_t n = 0; view.wanted && n < count; n++) {
			if (targets[n].peer == view.key.peer &&
			    targets[n].device == view.key.device &&
			    !has_across(fabric, &targets[n]))
				targets[n].peer = 0;
		}
	}
	for (uint32_t n = 0; n < count; n++) {
		if (targets[n].peer != 0)
			targets[kept++] = targets[n];
	}
	return kept;
}

static void set_timer(struct probing *probing) {
	uint64_t at_ns = probe_schedule_visit_at(probing->schedule);

	if (at_ns < loop_now_ns(probing->fabric->loop))
		at_ns = loop_now_ns(probing->fabric->loop);
	must(loop_timer_set(probing->fabric->loop, &probing->visit, at_ns) == 0);
}

void visits_targets(struct probing *probing, uint64_t now_ns) {
	struct fabric *fabric = probing->fabric;
	struct probe_target *targets;
	struct ras_view view;
	uint32_t count;

	if (!fabric->config.probe.on || !fabric->config.probe.rotation ||
	    now_ns < probing->targets_ns)
		return;
	probing->targets_ns = now_ns + TARGETS_NS;
	ras_view(overlay_ras(fabric->overlay), &view);
	targets = calloc((size_t)view.slots_max * fabric->nic_count + 1, sizeof(*targets));
	if (targets == NULL)
		return; // the next look is soon
	count = collect_targets(fabric, targets);
	count = without_neighbours(fabric, targets, count);
	(void)probe_schedule_targets(probing->schedule, targets, count); // without memory likewise
	free(targets);
	if (view.number != probing->view_number)
		briefs_sweep(&probing->briefs, is_kept, probing);
	probing->view_number = view.number;
	set_timer(probing);
}

// One visit.

// From inside the pairing.
static void on_answer(struct pairing_waiter *waiter, const struct pairing_answer *answer) {
	struct trail *trail = container_of(waiter, struct trail, waiter);

	trail->waits = false;
	trail->answered = true;
	trail->answer = *answer;
	probing_look(trail->probing->fabric);
}

static void ask_for_pair(struct trail *trail) {
	struct fabric *fabric = trail->probing->fabric;
	uint64_t now_ns = now_of(trail->probing);

	trail->tries++;
	trail->outcomes = 0;
	if (trail->scheduled)
		probe_schedule_remove(trail->probing->schedule, trail->place);
	trail->scheduled = false;
	trail->waiter.answered = on_answer;
	trail->waits = !pairing_request(
		fabric->pairing, now_ns, &trail->key, now_ns + PAIR_NS, &trail->waiter,
		&trail->answer
	);
	trail->answered = !trail->waits;
}

static bool find_across(
	const struct probing *probing,
	const struct probe_target *target,
	const struct ras_record *record,
	struct pairing_key *ret_key
) {
	const struct nic *nic = &probing->fabric->nics[target->device];
	struct pairing_key key = {.device = nic->number, .peer = record->id};
	uint64_t turn = probing->counters.visits / ACROSS_EACH;

	if (!rails_across(nic, record, (uint32_t)(turn % RAILS_MAX), key.peer_device) &&
	    !rails_across(nic, record, 0, key.peer_device))
		return false;
	*ret_key = key;
	return true;
}

static bool find_key(
	const struct probing *probing,
	const struct probe_target *target,
	struct pairing_key *ret_key
) {
	const struct fabric *fabric = probing->fabric;
	bool across = probing->counters.visits % ACROSS_EACH == ACROSS_EACH - 1, wanted;
	struct ras_peer peer;

	if (target->device >= fabric->nic_count ||
	    fabric->nics[target->device].state != FABRIC_DEVICE_UP ||
	    ras_peer_find(overlay_ras(fabric->overlay), target->peer, &peer) != 0 ||
	    peer.state == RAS_DEAD || peer.state == RAS_LEFT)
		return false;
	wanted = is_wanted(fabric, target->peer, target->device);
	if ((wanted || across) && find_across(probing, target, peer.record, ret_key))
		return true;
	return !wanted &&
	       neighbours_key(&fabric->nics[target->device], peer.record, ret_key) == RAIL_FOUND;
}

static void visit_begin(struct probing *probing, const struct probe_target *target) {
	struct pairing_key key;
	struct path_brief *brief;
	struct trail *trail;

	if (!find_key(probing, target, &key) || trail_find(probing, &key) != NULL)
		return;
	brief = briefs_take(&probing->briefs, &key);
	trail = brief != NULL ? trail_make(probing, &key) : NULL;
	if (trail == NULL)
		return;
	trail->visit = true;
	trail->brief = brief;
	trail->memory = path_memory_destroy(trail->memory);
	trail->until_ns = now_of(probing) + VISIT_NS;
	probing->counters.visits++;
	ask_for_pair(trail);
	if (trail->answered)
		probing_look(probing->fabric);
}

static void on_visit(struct loop_timer *timer, uint64_t now_ns) {
	struct probing *probing = container_of(timer, struct probing, visit);
	struct probe_target target;

	if (probe_schedule_visit(probing->schedule, now_ns, &target))
		visit_begin(probing, &target);
	set_timer(probing);
}

static void visit_end(struct trail *trail, uint64_t now_ns) {
	if (!trail->probed)
		trail->probing->counters.visits_unpaired++;
	else
		sights_visited(trail, now_ns);
	trail_drop(trail);
}

// The peer may have others than we know.
static bool is_of_device(enum pairing_reason reason) {
	return reason == PAIRING_NO_DEVICE || reason == PAIRING_DEVICE_GONE;
}

static void look_at(struct trail *trail, uint64_t now_ns) {
	if (trail->going || trail->waits)
		return;
	if (now_ns >= trail->until_ns ||
	    (trail->stage == TRAIL_WATCHED && trail->outcomes >= PROBE_VISIT_PROBES)) {
		visit_end(trail, now_ns);
	} else if (trail->answered) {
		trail->answered = false;
		if (trail->answer.failure.reason == PAIRING_REASON_NONE)
			trail_follow(trail, trail->answer.generation);
		else if (is_of_device(trail->answer.failure.reason))
			rails_doubt(trail->probing->fabric, trail->key.peer);
		if (trail->stage == TRAIL_BARE)
			visit_end(trail, now_ns);
	} else if (trail->stage == TRAIL_BARE) {
		// Its pair failed: with what was lost the first time nobody can tell why.
		if (trail->lost_last && trail->tries < TRIES_MAX)
			ask_for_pair(trail);
		else
			visit_end(trail, now_ns);
	}
}

void visits_look(struct probing *probing, uint64_t now_ns) {
	for (uint32_t n = 0; n < probing->trails_used; n++) {
		struct trail *trail = &probing->trails[n];

		if (trail->stage != TRAIL_FREE && trail->visit)
			look_at(trail, now_ns);
	}
}

void visits_start(struct probing *probing) {
	probing->visit.expired = on_visit;
}

void visits_off(struct probing *probing) {
	must(probe_schedule_targets(probing->schedule, NULL, 0) == 0); // takes no memory
	visits_stop(probing);
}

void visits_stop(struct probing *probing) {
	loop_timer_cancel(probing->fabric->loop, &probing->visit);
}
