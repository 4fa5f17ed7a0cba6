// SPDX-License-Identifier: BSD-3-Clause
// Rotation: peers that are no neighbours are visited in turn. A visit asks for a pair and probes it
// a few times. If nothing came back, it tries once more over a new pair. The results are kept as
// compact statistics.
#include "fabric/probing.h"

#include <lib/container.h>
#include <lib/must.h>

#include <stdlib.h>

#define PAIR_WAIT_NS (5 * RAS_NS_PER_SEC) // time limit for getting a pair
#define VISIT_NS (15 * RAS_NS_PER_SEC)
#define TRIES_MAX 2
#define OTHER_RAIL_EACH 8 // one visit in so many is of another rail in the subnet
#define TARGETS_INTERVAL_NS (5 * RAS_NS_PER_SEC) // between two scans of the whole view

// Targets.

static bool pair_is_wanted(const struct fabric *fabric, uint64_t peer, uint32_t device) {
	struct pairing_view view;
	uint32_t cursor = 0;

	while (pairing_next(fabric->pairing, &cursor, &view)) {
		if (view.wanted && view.key.peer == peer && view.key.device == device)
			return true;
	}
	return false;
}

// Keep the statistics of known peers, and those that a visit under way writes to.
static bool peer_stats_are_kept(void *ctx, uint64_t peer) {
	const struct probing *probing = ctx;
	struct ras_peer found;

	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage != PROBED_PATH_FREE && probed_path->visit &&
		    probed_path->key.peer == peer)
			return true;
	}
	return ras_peer_find(overlay_ras(probing->fabric->overlay), peer, &found) == 0;
}

// Return whether the peer has another rail in the same subnet. Rails that belong together are
// probed steadily or in turn, other rails of the subnet only once in a while.
static bool target_has_other_rail(const struct fabric *fabric, const struct probe_target *target) {
	char name[DEVICE_NAME_MAX + 1];
	struct ras_peer peer;

	return ras_peer_find(overlay_ras(fabric->overlay), target->peer, &peer) == 0 &&
	       rails_find_other(&fabric->nics[target->device], peer.record, 0, name);
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

// Neighbours are few, so they are removed afterwards.
static uint32_t
targets_drop_neighbours(const struct fabric *fabric, struct probe_target *targets, uint32_t count) {
	struct pairing_view view;
	uint32_t cursor = 0, kept = 0;

	while (pairing_next(fabric->pairing, &cursor, &view)) {
		for (uint32_t n = 0; view.wanted && n < count; n++) {
			if (targets[n].peer == view.key.peer &&
			    targets[n].device == view.key.device &&
			    !target_has_other_rail(fabric, &targets[n]))
				targets[n].peer = 0;
		}
	}
	for (uint32_t n = 0; n < count; n++) {
		if (targets[n].peer != 0)
			targets[kept++] = targets[n];
	}
	return kept;
}

static void visit_set_timer(struct probing *probing) {
	uint64_t at_ns = probe_schedule_next_visit_ns(probing->schedule);

	if (at_ns < loop_now_ns(probing->fabric->loop))
		at_ns = loop_now_ns(probing->fabric->loop);
	must(loop_timer_set(probing->fabric->loop, &probing->visit, at_ns) == 0);
}

void visits_update_targets(struct probing *probing, uint64_t now_ns) {
	struct fabric *fabric = probing->fabric;
	struct probe_target *targets;
	struct ras_view view;
	uint32_t count;

	if (!fabric->config.probe.on || !fabric->config.probe.rotation ||
	    now_ns < probing->targets_ns)
		return;
	probing->targets_ns = now_ns + TARGETS_INTERVAL_NS;
	ras_view(overlay_ras(fabric->overlay), &view);
	targets = calloc((size_t)view.slots_max * fabric->nic_count + 1, sizeof(*targets));
	if (targets == NULL)
		return; // the next pass is soon
	count = collect_targets(fabric, targets);
	count = targets_drop_neighbours(fabric, targets, count);
	(void
	)probe_schedule_set_targets(probing->schedule, targets, count); // no memory: tried again
	free(targets);
	if (view.number != probing->view_number)
		compact_table_sweep(&probing->compact_table, peer_stats_are_kept, probing);
	probing->view_number = view.number;
	visit_set_timer(probing);
}

// One visit.

// Called from inside the pairing, so the next pass handles the answer.
static void on_pairing_answer(struct pairing_waiter *waiter, const struct pairing_answer *answer) {
	struct probed_path *probed_path = container_of(waiter, struct probed_path, waiter);

	probed_path->waits = false;
	probed_path->answered = true;
	probed_path->answer = *answer;
	probing_pass_soon(probed_path->probing->fabric);
}

static void visit_request_pair(struct probed_path *probed_path) {
	struct fabric *fabric = probed_path->probing->fabric;
	uint64_t now_ns = fabric_clock_ns(fabric);

	probed_path->tries++;
	probed_path->outcomes = 0;
	if (probed_path->scheduled)
		probe_schedule_remove(probed_path->probing->schedule, probed_path->place);
	probed_path->scheduled = false;
	probed_path->waiter.answered = on_pairing_answer;
	probed_path->waits = !pairing_request(
		fabric->pairing, now_ns, &probed_path->key, now_ns + PAIR_WAIT_NS,
		&probed_path->waiter, &probed_path->answer
	);
	probed_path->answered = !probed_path->waits;
}

static bool visit_find_other_rail(
	const struct probing *probing,
	const struct probe_target *target,
	const struct ras_record *record,
	struct pairing_key *ret_key
) {
	const struct nic *nic = &probing->fabric->nics[target->device];
	struct pairing_key key = {.device = nic->number, .peer = record->id};
	uint64_t turn = probing->counters.visits / OTHER_RAIL_EACH;

	if (!rails_find_other(nic, record, (uint32_t)(turn % RAILS_MAX), key.peer_device) &&
	    !rails_find_other(nic, record, 0, key.peer_device))
		return false;
	*ret_key = key;
	return true;
}

static bool visit_find_key(
	const struct probing *probing,
	const struct probe_target *target,
	struct pairing_key *ret_key
) {
	const struct fabric *fabric = probing->fabric;
	bool across = probing->counters.visits % OTHER_RAIL_EACH == OTHER_RAIL_EACH - 1, wanted;
	struct ras_peer peer;

	if (target->device >= fabric->nic_count ||
	    fabric->nics[target->device].state != FABRIC_DEVICE_UP ||
	    ras_peer_find(overlay_ras(fabric->overlay), target->peer, &peer) != 0 ||
	    peer.state == RAS_DEAD || peer.state == RAS_LEFT)
		return false;
	wanted = pair_is_wanted(fabric, target->peer, target->device);
	if ((wanted || across) && visit_find_other_rail(probing, target, peer.record, ret_key))
		return true;
	return !wanted &&
	       neighbours_find_key(&fabric->nics[target->device], peer.record, ret_key) ==
		       RAIL_FOUND;
}

static void visit_begin(struct probing *probing, const struct probe_target *target) {
	struct pairing_key key;
	struct compact_stats *stats;
	struct probed_path *probed_path;

	if (!visit_find_key(probing, target, &key) || probed_path_find(probing, &key) != NULL)
		return;
	stats = compact_table_get(&probing->compact_table, &key);
	probed_path = stats != NULL ? probed_path_make(probing, &key) : NULL;
	if (probed_path == NULL)
		return;
	probed_path->visit = true;
	probed_path->stats = stats;
	probed_path->memory = path_memory_destroy(probed_path->memory);
	probed_path->until_ns = fabric_clock_ns(probing->fabric) + VISIT_NS;
	probing->counters.visits++;
	visit_request_pair(probed_path);
	if (probed_path->answered)
		probing_pass_soon(probing->fabric);
}

static void on_visit(struct loop_timer *timer, uint64_t now_ns) {
	struct probing *probing = container_of(timer, struct probing, visit);
	struct probe_target target;

	if (probe_schedule_visit_begin(probing->schedule, now_ns, &target))
		visit_begin(probing, &target);
	visit_set_timer(probing);
}

static void visit_end(struct probed_path *probed_path, uint64_t now_ns) {
	if (!probed_path->probed)
		probed_path->probing->counters.visits_unpaired++;
	else
		observations_report_visit(probed_path, now_ns);
	probed_path_drop(probed_path);
}

void visits_advance(struct probing *probing, uint64_t now_ns) {
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];
		enum pairing_reason reason = probed_path->answer.failure.reason;
		bool is_over = now_ns >= probed_path->until_ns ||
			       (probed_path->stage == PROBED_PATH_WATCHED &&
				probed_path->outcomes >= PROBE_VISIT_PROBES);

		if (probed_path->stage == PROBED_PATH_FREE || !probed_path->visit ||
		    probed_path->going || probed_path->waits)
			continue;
		if (is_over) {
			visit_end(probed_path, now_ns);
		} else if (probed_path->answered) {
			probed_path->answered = false;
			if (reason == PAIRING_REASON_NONE)
				probed_path_follow(probed_path, probed_path->answer.generation);
			else if (reason == PAIRING_NO_DEVICE || reason == PAIRING_DEVICE_GONE)
				// The peer may have other devices than we know.
				rails_ask_again(probing->fabric, probed_path->key.peer);
			if (probed_path->stage == PROBED_PATH_BARE)
				visit_end(probed_path, now_ns);
		} else if (probed_path->stage == PROBED_PATH_BARE) {
			// The pair failed. The loss in the first try does not tell why, so try a
			// new pair.
			if (probed_path->lost_last && probed_path->tries < TRIES_MAX)
				visit_request_pair(probed_path);
			else
				visit_end(probed_path, now_ns);
		}
	}
}

void visits_start(struct probing *probing) {
	probing->visit.expired = on_visit;
}

void visits_disable(struct probing *probing) {
	must(probe_schedule_set_targets(probing->schedule, NULL, 0) == 0); // needs no memory
	visits_stop(probing);
}

void visits_stop(struct probing *probing) {
	loop_timer_cancel(probing->fabric->loop, &probing->visit);
}
