// SPDX-License-Identifier: BSD-3-Clause
// Standing probes: planned once a second and handed to the workers. Their outcomes are consumed,
// judged and reported in the same turn, or at once when a probe was not answered.
#include "fabric/probing.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>

#define PLAN_INTERVAL_NS RAS_NS_PER_SEC
// Plan beyond the next turn, so that a late turn does not interrupt probing.
#define PLAN_AHEAD_NS (RAS_NS_PER_SEC / 4)
// A turn this late was not delayed by work: the process was stopped.
#define OWN_PAUSE_NS (RAS_NS_PER_SEC / 2)
#define PLAN_MAX 1024
#define OUTCOMES_PER_STEP 64

static void *probing_allocate(void *ctx, size_t size) {
	(void)ctx;
	return calloc(1, size);
}

static void probing_release(void *ctx, void *memory, size_t size) {
	(void)ctx;
	(void)size;
	free(memory);
}

const struct ras_memory probing_memory = {.allocate = probing_allocate, .release = probing_release};

// Outcomes.

static void
count_outcome(struct fabric_probe_counters *counters, const struct watch_outcome *outcome) {
	uint64_t *sent = outcome->written ? counters->written : counters->sent;
	uint64_t *lost = outcome->written ? counters->writes_lost : counters->lost;

	must(outcome->tag < PATH_SIZES);
	switch (outcome->result) {
	case WATCH_ANSWERED:
		sent[outcome->tag]++;
		counters->answered++;
		break;
	case WATCH_LOST:
		sent[outcome->tag]++;
		lost[outcome->tag]++;
		break;
	case WATCH_VOID:
		sent[outcome->tag]++;
		counters->ended++;
		break;
	case WATCH_NO_PATH:
		counters->without_path++;
		break;
	case WATCH_SKIPPED:
		counters->skipped++;
		break;
	}
}

// Count GPU reads apart from pulse reads, because a GPU's state says nothing about its node.
static void
count_gpu_outcome(struct fabric_probe_counters *counters, const struct watch_outcome *outcome) {
	if (outcome->result == WATCH_NO_PATH) {
		counters->without_path++;
		return;
	}
	if (outcome->result == WATCH_SKIPPED) {
		counters->skipped++;
		return;
	}
	counters->gpu_sent++;
	counters->gpu_lost += outcome->result == WATCH_LOST;
	counters->gpu_refused += outcome->refused;
	counters->gpu_wrong += outcome->wrong;
}

static void consume_outcome(struct probing *probing, const struct watch_outcome *outcome) {
	struct probed_path *probed_path = &probing->probed_paths[outcome->place];

	if (outcome->gpu)
		count_gpu_outcome(&probing->counters, outcome);
	else
		count_outcome(&probing->counters, outcome);
	// An index is reused only after the outcomes of its last watch were consumed.
	if (probed_path->stage != PROBED_PATH_FREE)
		probed_path_outcome(probed_path, outcome);
}

// Consume the outcomes that the workers queued.
static void probing_drain(struct probing *probing) {
	const struct fabric_config *config = &probing->fabric->config;
	struct watch_outcome outcomes[OUTCOMES_PER_STEP];
	uint64_t now_ns = fabric_clock_ns(probing->fabric);
	uint32_t count;

	probing_update_waits(probing, now_ns);

	// Handle a pause of our own before anything is judged: probes from before the pause say
	// nothing about peers.
	if (now_ns > probing->tick_due_ns + OWN_PAUSE_NS) {
		probing->counters.pauses++;
		probing->tick_due_ns = now_ns;
		for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
			if (probing->probed_paths[n].stage != PROBED_PATH_FREE &&
			    probing->probed_paths[n].memory != NULL)
				path_memory_paused(probing->probed_paths[n].memory, now_ns);
		}
	}

	for (uint32_t n = 0; n < config->worker_count; n++) {
		do {
			count = prober_take_outcomes(
				config->probers[n], outcomes, OUTCOMES_PER_STEP
			);
			for (uint32_t k = 0; k < count; k++)
				consume_outcome(probing, &outcomes[k]);
		} while (count == OUTCOMES_PER_STEP);
	}
}

// Planning.

static uint32_t plan_worker_probes(
	struct probing *probing, uint32_t worker, const struct probe_due *dues, uint32_t count
) {
	const struct fabric *fabric = probing->fabric;
	struct watch_due own[PLAN_MAX];
	uint32_t owned = 0;

	for (uint32_t n = 0; n < count; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[dues[n].path];

		if (fabric->nics[probed_path->key.device].worker == worker)
			own[owned++] = (struct watch_due){
				.at_ns = dues[n].at_ns,
				.place = dues[n].path,
				.generation = probed_path->generation,
				.bytes = dues[n].bytes,
				.tag = dues[n].size,
				.write = dues[n].write,
				.gpu = dues[n].gpu,
			};
	}
	if (owned > 0) {
		probing->counters.skipped +=
			owned - prober_plan_probes(fabric->config.probers[worker], own, owned);
		worker_wake(fabric->config.workers[worker]);
	}
	return owned;
}

static void probes_plan(struct probing *probing, uint64_t now_ns) {
	struct probe_due dues[PLAN_MAX];
	uint32_t count, handed;

	do {
		count = probe_schedule_plan(
			probing->schedule, now_ns, now_ns + PLAN_INTERVAL_NS + PLAN_AHEAD_NS, dues,
			PLAN_MAX
		);
		handed = 0;
		for (uint32_t n = 0; handed < count; n++)
			handed += plan_worker_probes(probing, n, dues, count);
	} while (count == PLAN_MAX);
}

// Counters that may be stalled are read again as soon as a read can decide.

static void on_confirm(struct loop_timer *timer, uint64_t now_ns) {
	struct probing *probing = container_of(timer, struct probing, confirm);

	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage == PROBED_PATH_WATCHED && probed_path->memory != NULL &&
		    path_memory_confirm_ns(probed_path->memory) <= now_ns)
			probed_path_confirm(probed_path);
	}
	observations_judge(probing, now_ns);
}

static void confirm_timer_set(struct probing *probing) {
	uint64_t first_ns = RAS_NEVER;

	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[n];
		uint64_t at_ns = RAS_NEVER;

		if (probed_path->stage == PROBED_PATH_WATCHED && probed_path->memory != NULL)
			at_ns = path_memory_confirm_ns(probed_path->memory);
		first_ns = at_ns < first_ns ? at_ns : first_ns;
		at_ns = probed_path->stage != PROBED_PATH_FREE
				? observations_cut_deadline_ns(probed_path)
				: RAS_NEVER;
		first_ns = at_ns < first_ns ? at_ns : first_ns;
	}
	must(loop_timer_set(probing->fabric->loop, &probing->confirm, first_ns) == 0);
}

// Probed pairs.

static void probing_pass(struct probing *probing) {
	struct fabric *fabric = probing->fabric;
	const struct ras *ras = overlay_ras(fabric->overlay);
	uint64_t now_ns = fabric_clock_ns(fabric);
	struct pairing_view view;
	struct ras_peer peer;
	uint32_t cursor = 0;

	if (!fabric->config.probe.on)
		return; // all probed paths are being freed
	for (uint32_t n = 0; n < probing->probed_paths_used; n++)
		probing->probed_paths[n].seen = false;
	while (pairing_next(fabric->pairing, &cursor, &view)) {
		struct probed_path *probed_path;

		if (!view.wanted)
			continue;
		probed_path = probed_path_find(probing, &view.key);
		// A visit is left to end. The next pass makes its path a neighbour's path.
		if (probed_path == NULL)
			probed_path = probed_path_make(probing, &view.key);
		if (probed_path == NULL || probed_path->visit || probed_path->going)
			continue;
		probed_path->seen = true;
		if (view.state == PAIRING_READY)
			probed_path_follow(probed_path, view.generation);
	}

	// The remaining peers are no neighbours any more. If such a peer is down, keep the
	// statistics, because it may come back.
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage == PROBED_PATH_FREE || probed_path->visit ||
		    probed_path->seen)
			continue;
		if (ras_peer_find(ras, probed_path->key.peer, &peer) == 0 &&
		    (peer.state == RAS_DEAD || peer.state == RAS_LEFT))
			probed_path_pause(probed_path);
		else
			probed_path_drop(probed_path);
	}
	visits_advance(probing, now_ns);
}

static void on_pass_job(struct loop_job *job) {
	probing_pass(container_of(job, struct probing, look));
}

void probing_pass_soon(struct fabric *fabric) {
	if (fabric->probing != NULL && !fabric->stopping)
		loop_defer(fabric->loop, &fabric->probing->look);
}

static void on_tick(struct loop_timer *timer, uint64_t now_ns) {
	struct probing *probing = container_of(timer, struct probing, tick);
	struct fabric *fabric = probing->fabric;

	probing_drain(probing);
	probing_pass(probing);
	visits_update_targets(probing, now_ns);
	observations_judge(probing, now_ns);
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		if (probing->probed_paths[n].stage != PROBED_PATH_FREE &&
		    probing->probed_paths[n].gpu != NULL)
			probed_path_plan_gpu_read(&probing->probed_paths[n]);
	}
	path_baselines_save_due(probing, now_ns);
	probes_plan(probing, now_ns);
	probing->tick_due_ns = now_ns + PLAN_INTERVAL_NS;
	must(loop_timer_set(fabric->loop, timer, probing->tick_due_ns) == 0);
}

void probing_pair_withdrawn(struct fabric *fabric, const struct fabric_pair *fabric_pair) {
	struct probing *probing = fabric->probing;

	if (probing == NULL)
		return;
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage == PROBED_PATH_WATCHED &&
		    probed_path->generation == fabric_pair->generation)
			probed_path_unwatch(probed_path);
	}
}

bool probing_uses_nic(const struct fabric *fabric, const struct nic *nic) {
	const struct probing *probing = fabric->probing;

	for (uint32_t n = 0; probing != NULL && n < probing->probed_paths_used; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[n];

		if ((probed_path->stage == PROBED_PATH_WATCHED ||
		     probed_path->stage == PROBED_PATH_LEAVING) &&
		    probed_path->key.device == nic->number)
			return true;
	}
	return false;
}

bool probing_worker_event(struct fabric *fabric, const struct worker_record *record) {
	struct probing *probing = fabric->probing;
	struct probed_path *probed_path;
	struct watch *watch;
	struct nic *nic;

	if (probing == NULL ||
	    (record->kind != PROBER_EVENT_UNWATCHED && record->kind != PROBER_EVENT_OUTCOME))
		return false;
	probing_drain(probing);
	if (record->kind == PROBER_EVENT_OUTCOME) {
		observations_judge(probing, fabric_clock_ns(fabric));
		confirm_timer_set(probing);
		return true;
	}

	// The outcomes of the watch were consumed above, so its index may be reused.
	watch = worker_word_to_pointer(record->words[1]);
	probed_path = container_of(watch, struct probed_path, watch);
	nic = &fabric->nics[probed_path->key.device];
	probed_path_watch_ended(probed_path);
	if (nic->lost || fabric->stopping)
		nic_close(nic);
	fabric_check_stopped(fabric);
	probing_pass_soon(fabric);
	return true;
}

// Lifecycle.

static struct probe_schedule_config probing_schedule_config(const struct fabric *fabric) {
	const struct fabric_probe_config *wanted = &fabric->config.probe;

	return (struct probe_schedule_config){
		.interval_ns = wanted->interval_ns,
		.packets = wanted->packets,
		.bytes = wanted->bytes,
		.random_seed = fabric->config.random_seed,
	};
}

int probing_create(struct fabric *fabric) {
	const struct probe_schedule_config config = probing_schedule_config(fabric);
	struct probing *probing = calloc(1, sizeof(*probing));
	int err;

	if (probing == NULL)
		return -ENOMEM;
	err = probe_schedule_create(&config, &probing_memory, &probing->schedule);
	if (err != 0) {
		free(probing);
		return err;
	}
	probing->fabric = fabric;
	probing->look.run = on_pass_job;
	probing->tick.expired = on_tick;
	probing->confirm.expired = on_confirm;
	probing->tick_due_ns = loop_now_ns(fabric->loop) + PLAN_INTERVAL_NS;
	visits_start(probing);
	fabric->probing = probing;
	path_baselines_read(probing);
	probing->path_baselines_save_ns = probing->tick_due_ns + PATH_BASELINES_SAVE_NS;
	overlay_contributor(fabric->overlay, RAS_COLLECT_PATHS, probing_contribute, fabric);
	must(loop_timer_set(fabric->loop, &probing->tick, probing->tick_due_ns) == 0);
	return 0;
}

static void drop_probed_paths(struct probing *probing, bool visits_only) {
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage != PROBED_PATH_FREE && (probed_path->visit || !visits_only))
			probed_path_drop(probed_path);
	}
}

void probing_stop(struct fabric *fabric) {
	struct probing *probing = fabric->probing;

	if (probing == NULL)
		return;
	loop_timer_cancel(fabric->loop, &probing->tick);
	loop_timer_cancel(fabric->loop, &probing->confirm);
	loop_undefer(fabric->loop, &probing->look);
	visits_stop(probing);
	drop_probed_paths(probing, false);
	loop_undefer(fabric->loop, &probing->look);
}

int fabric_configure_probes(struct fabric *fabric, const struct fabric_probe_config *config) {
	struct fabric_probe_config before = fabric->config.probe;
	struct probing *probing = fabric->probing;
	uint64_t now_ns = fabric_clock_ns(fabric);
	struct probe_schedule_config schedule;
	int err = 0;

	if (fabric->stopping)
		return 0;
	fabric->config.probe = *config;
	schedule = probing_schedule_config(fabric);
	if (probing != NULL)
		err = probe_schedule_configure(probing->schedule, now_ns, &schedule);
	else if (config->on && fabric->config.device_count > 0)
		err = probing_create(fabric);
	if (err != 0) {
		fabric->config.probe = before;
		return err;
	}
	if (probing != NULL) {
		if (!config->on)
			loop_timer_cancel(fabric->loop, &probing->confirm);
		if (!config->on || !config->rotation) {
			visits_disable(probing);
			drop_probed_paths(probing, config->on);
		}
		if (!config->on)
			path_baselines_forget(probing, now_ns);
		probing->targets_ns = 0;
		probing_pass_soon(fabric);
	}
	if (before.on != config->on)
		neighbours_resync_peers(fabric);
	return 0;
}

void probing_destroy(struct fabric *fabric) {
	struct probing *probing = fabric->probing;

	if (probing == NULL)
		return;
	overlay_contributor(fabric->overlay, RAS_COLLECT_PATHS, NULL, NULL);
	// After a forced end some watches have not come back.
	for (uint32_t n = 0; n < probing->probed_paths_used; n++)
		probed_path_release(&probing->probed_paths[n]);
	compact_table_free(&probing->compact_table);
	probe_schedule_destroy(probing->schedule);
	free(probing);
	fabric->probing = NULL;
}
