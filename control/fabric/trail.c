// SPDX-License-Identifier: BSD-3-Clause
// One path that is probed: its watch follows the pair, its memory takes what the watch brings.
#include "fabric/probing.h"

#include <lib/log.h>
#include <lib/must.h>

#include <stdlib.h>
#include <string.h>

// Twice it and what the second handshake takes have to fit into three seconds.
#define TIMEOUT_UNIT_NS UINT64_C(4096)
#define TIMEOUT_NS (700 * RAS_NS_PER_MS)
// Of six in ten that are small a window wants four.
#define WINDOW_NS (5 * RAS_NS_PER_SEC)

static bool same_key(const struct pairing_key *a, const struct pairing_key *b) {
	return a->device == b->device && a->peer == b->peer &&
	       strcmp(a->peer_device, b->peer_device) == 0;
}

struct trail *trail_find(struct probing *probing, const struct pairing_key *key) {
	for (uint32_t n = 0; n < probing->trails_used; n++) {
		struct trail *trail = &probing->trails[n];

		if (trail->stage != TRAIL_FREE && same_key(&trail->key, key))
			return trail;
	}
	return NULL;
}

static uint32_t free_place(const struct probing *probing) {
	uint32_t place = 0;

	while (place < PROBE_PATHS_MAX && probing->trails[place].stage != TRAIL_FREE)
		place++;
	return place;
}

// A neighbour's, or a bare one that a visit completes; NULL: no room or memory, tried again.
struct trail *trail_make(struct probing *probing, const struct pairing_key *key) {
	const struct path_memory_config config = {.window_ns = WINDOW_NS};
	uint64_t self = ras_self_id(overlay_ras(probing->fabric->overlay));
	struct path_memory *memory = NULL;
	uint32_t place = free_place(probing);
	struct trail *trail;

	if (place == PROBE_PATHS_MAX || path_memory_create(&config, &probing_memory, &memory) != 0)
		return NULL;
	trail = &probing->trails[place];
	*trail = (struct trail){
		.probing = probing,
		.stage = TRAIL_BARE,
		.self = key->peer == self,
		.place = place,
		.key = *key,
		.memory = memory,
		.told = {.kind = SIGHT_NO_PAIR},
		// Whoever has no pair yet is given some time to get one.
		.told_ns = loop_now_ns(probing->fabric->loop),
	};
	if (place >= probing->trails_used)
		probing->trails_used = place + 1;
	return trail;
}

static void trail_unschedule(struct trail *trail) {
	if (trail->scheduled)
		probe_schedule_remove(trail->probing->schedule, trail->place);
	trail->scheduled = false;
}

static void trail_free(struct trail *trail) {
	struct probing *probing = trail->probing;

	must(trail->stage == TRAIL_BARE && !trail->waits);
	trail_unschedule(trail);
	pasts_note(trail);
	path_memory_destroy(trail->memory);
	trail->memory = NULL;
	free(trail->flows);
	trail->flows = NULL;
	free(trail->gpu);
	trail->gpu = NULL;
	trail->stage = TRAIL_FREE;
	while (probing->trails_used > 0 &&
	       probing->trails[probing->trails_used - 1].stage == TRAIL_FREE)
		probing->trails_used--;
}

// The watch.

static struct worker_record record_of(const struct trail *trail, enum prober_request kind) {
	const struct fabric *fabric = trail->probing->fabric;
	uint32_t worker = fabric->nics[trail->key.device].worker;

	return (struct worker_record){
		.kind = kind,
		.words = {worker_word(fabric->config.probers[worker]), worker_word(&trail->watch)},
	};
}

static void trail_post(const struct trail *trail, const struct worker_record *record) {
	struct fabric *fabric = trail->probing->fabric;

	fabric_post(fabric, fabric->nics[trail->key.device].worker, record);
}

// At once, to know who is there now, or whether what was lost was lost by itself.
static void probe_now(struct trail *trail, uint32_t size, bool write) {
	struct worker_record record = record_of(trail, PROBER_REQUEST_NOW);
	struct probe_due due;

	if (!probe_schedule_urgent(
		    trail->probing->schedule, loop_clock_ns(trail->probing->fabric->loop),
		    trail->place, size, write, &due
	    ))
		return;
	record.words[1] = due.path;
	record.words[2] = trail->generation;
	record.words[3] = due.bytes;
	record.words[4] = due.size;
	record.words[5] = due.write;
	trail_post(trail, &record);
}

static void trail_schedule(struct trail *trail, uint32_t mtu) {
	struct probe_schedule *schedule = trail->probing->schedule;

	if (trail->scheduled && mtu == trail->mtu)
		return;
	trail_unschedule(trail);
	probe_schedule_add(
		schedule, loop_clock_ns(trail->probing->fabric->loop), trail->place, mtu,
		trail->visit
	);
	trail->scheduled = true;
	trail->mtu = mtu;
}

static bool takes_writes(const struct trail *trail, const struct bond *bond) {
	return bond->theirs.landing.length >= WATCH_LANDING_BYTES && !trail->refused;
}

// How long a queue pair waits before it sends again what was lost. Only hardware keeps that time:
// where a processor has a hand in it, a late answer is its own.
static uint64_t resend_ns(const struct bond *bond) {
	uint8_t timeout = bond->nic->config.settings.timeout;

	if (bond->nic->parts.facts.responder != DEVICE_RESPONDER_HARDWARE ||
	    bond->theirs.responder != DEVICE_RESPONDER_HARDWARE || timeout == 0)
		return 0; // 0: never
	return TIMEOUT_UNIT_NS << timeout;
}

// Elsewhere the label chooses no way. Where there is no memory nothing is told by label.
static void use_flow(struct trail *trail, const struct bond *bond) {
	if (trail->visit || trail->self || bond->nic->parts.facts.port.link != DEVICE_LINK_ETHERNET)
		return;
	if (trail->flows == NULL)
		trail->flows = calloc(1, sizeof(*trail->flows));
	if (trail->flows != NULL)
		flows_use(trail->flows, bond->flow_label);
}

// Where there is no memory for what is seen of it, it is not read.
static void use_gpu(struct trail *trail, const struct bond *bond) {
	const struct pairing_gpu *shown = &bond->theirs.gpu;

	if (trail->visit || shown->length < WATCH_OWN_BYTES) {
		free(trail->gpu);
		trail->gpu = NULL;
		return;
	}
	if (trail->gpu == NULL)
		trail->gpu = calloc(1, sizeof(*trail->gpu));
	if (trail->gpu != NULL)
		gpu_path_shown(
			trail->gpu, loop_clock_ns(trail->probing->fabric->loop), shown->ordinal,
			shown->word
		);
}

void trail_look_at_gpu(struct trail *trail) {
	uint64_t now_ns = loop_clock_ns(trail->probing->fabric->loop);

	if (trail->scheduled)
		probe_schedule_gpu(
			trail->probing->schedule, trail->place,
			trail->gpu != NULL && gpu_path_is_due(trail->gpu, now_ns)
		);
}

static void take_facts(struct trail *trail, const struct bond *bond) {
	const struct fabric *fabric = trail->probing->fabric;
	const struct device_facts *facts = &bond->nic->parts.facts;
	uint32_t mtu = facts->port.active_mtu;

	if (bond->theirs.endpoint.mtu < mtu)
		mtu = bond->theirs.endpoint.mtu;
	if (trail->start != bond->theirs.start)
		trail->refused = false;
	trail_schedule(trail, mtu);
	probe_schedule_writes(trail->probing->schedule, trail->place, takes_writes(trail, bond));
	trail->responder = bond->theirs.responder;
	trail->speed_mbps = facts->port.speed_mbps;
	trail->shares = bond->theirs.shares_overlay ||
			(fabric->config.interface[0] != '\0' &&
			 strcmp(fabric->config.interface, facts->netdev) == 0);
	trail->flow_label = bond->flow_label;
	if (trail->memory != NULL && trail->known && trail->start != bond->theirs.start)
		path_memory_reopened(trail->memory, loop_clock_ns(fabric->loop));
	if (trail->memory != NULL)
		path_memory_resends(trail->memory, resend_ns(bond));
	trail->late_ns = resend_ns(bond) / PATH_RESEND_EARLY_SHARE;
	use_flow(trail, bond);
	use_gpu(trail, bond);
	trail_look_at_gpu(trail);
	trail->start = bond->theirs.start;
	trail->known = true;
	pasts_take(trail);
}

// A part of the scratch memory, by the reference of the whole.
static struct memory_view scratch_part(const struct nic *nic, uint64_t offset, uint64_t length) {
	struct memory_view view = nic->parts.scratch;

	view.address += offset;
	view.wire_address += offset;
	view.length = length;
	return view;
}

static void trail_watch(struct trail *trail, const struct bond *bond) {
	const struct nic *nic = bond->nic;
	uint64_t own = FABRIC_SCRATCH_WATCHES + (uint64_t)trail->place * WATCH_OWN_BYTES;
	uint64_t sink = (1 + (uint64_t)nic->place) * PULSE_BYTES;
	struct worker_record record = record_of(trail, PROBER_REQUEST_WATCH);

	trail->generation = bond->generation;
	trail->watch = (struct watch){
		.place = trail->place,
		.path = bond->path,
		.peer = bond->peer,
		.generation = bond->generation,
		.timeout_ns = TIMEOUT_NS,
		.write_address = bond->theirs.landing.address,
		.write_key = bond->theirs.landing.key,
		.writes = takes_writes(trail, bond),
		.gpu_address = bond->theirs.gpu.address,
		.gpu_word = bond->theirs.gpu.word,
		.gpu_key = bond->theirs.gpu.key,
		.gpu = trail->gpu != NULL,
		.own = scratch_part(nic, own, WATCH_OWN_BYTES),
		.sink = scratch_part(nic, sink, PULSE_BYTES),
	};
	trail->stage = TRAIL_WATCHED;
	if (trail->brief != NULL)
		path_brief_opened(trail->brief);
	trail_post(trail, &record);
	// Of a visit the small one is first: what is lost behind a larger one says nothing of
	// silence.
	probe_now(trail, trail->lost_last || trail->visit ? 0 : 1, false);
}

void trail_confirm(struct trail *trail) {
	if (trail->stage == TRAIL_WATCHED)
		probe_now(trail, 0, false);
}

void trail_retry(struct trail *trail, uint64_t now_ns) {
	struct probe_schedule *schedule = trail->probing->schedule;
	struct path_retry retry = {.size = 0};
	bool loses = path_memory_retry(trail->memory, now_ns, &retry);

	if (trail->stage != TRAIL_WATCHED)
		return;
	probe_schedule_loses(schedule, trail->place, trail->told.kind == SIGHT_LOSSY);
	if (!(loses || path_memory_doubts(trail->memory)) ||
	    now_ns < trail->retried_ns + PATH_RETRY_NS)
		return;
	trail->retried_ns = now_ns;
	probe_now(trail, retry.size, retry.is_write);
}

void trail_follow(struct trail *trail, uint32_t generation) {
	const struct bond *bond;

	if (trail->stage == TRAIL_WATCHED && trail->generation != generation)
		trail_unwatch(trail);
	if (trail->stage != TRAIL_BARE || trail->going)
		return; // it is watched, or will be when the watch has come back
	bond = bond_find(trail->probing->fabric, generation);
	if (bond == NULL || bond->stage != BOND_IN_LANE || bond->path == PATH_NONE ||
	    bond->theirs.pulse.layout != PULSE_LAYOUT)
		return;
	take_facts(trail, bond);
	trail_watch(trail, bond);
}

void trail_unwatch(struct trail *trail) {
	struct worker_record record = record_of(trail, PROBER_REQUEST_UNWATCH);

	must(trail->stage == TRAIL_WATCHED);
	trail->stage = TRAIL_LEAVING;
	trail_post(trail, &record);
}

void trail_rest(struct trail *trail) {
	if (trail->stage == TRAIL_WATCHED)
		trail_unwatch(trail);
	trail_unschedule(trail);
}

void trail_drop(struct trail *trail) {
	trail->going = true;
	if (trail->waits)
		(void)pairing_cancel(trail->probing->fabric->pairing, &trail->waiter);
	if (trail->stage == TRAIL_WATCHED)
		trail_unwatch(trail);
	if (trail->stage == TRAIL_BARE)
		trail_free(trail);
}

void trail_given_back(struct trail *trail) {
	must(trail->stage == TRAIL_LEAVING);
	trail->stage = TRAIL_BARE;
	if (trail->going)
		trail_free(trail);
}

// Outcomes.

// What it offered is not what it has: each write would cost the pair.
static void stop_writing(struct trail *trail) {
	trail->refused = true;
	trail->probing->counters.writes_refused++;
	if (trail->scheduled)
		probe_schedule_writes(trail->probing->schedule, trail->place, false);
}

// Its own agent says so, too, if it still can. Told again with each read, as long as it is so.
static void look_at_workers(struct trail *trail, const struct watch_outcome *outcome) {
	struct fabric *fabric = trail->probing->fabric;
	bool tells = outcome->hung != 0 || trail->hung != 0;

	if (outcome->workers == 0 || trail->self)
		return;
	trail->hung = outcome->hung;
	if (tells && fabric->hung != NULL)
		fabric->hung(
			fabric->sight_ctx, trail->key.peer,
			(uint32_t)__builtin_popcount(outcome->hung), outcome->workers
		);
}

static enum gpu_read gpu_read_of(const struct watch_outcome *outcome) {
	if (outcome->refused)
		return GPU_READ_REFUSED;
	if (outcome->result == WATCH_LOST)
		return GPU_READ_SILENT;
	return outcome->wrong ? GPU_READ_WRONG : GPU_READ_RIGHT;
}

// How long reads of the pulse take now, of what is usual.
static uint64_t host_permille(const struct trail *trail) {
	struct path_summary summary;

	if (trail->memory == NULL)
		return 1000;
	path_memory_summary(trail->memory, &summary);
	if (summary.baseline_ns == 0 || summary.lately_ns == 0)
		return 1000;
	return (uint64_t)((double)summary.lately_ns * 1000 / (double)summary.baseline_ns);
}

static void tell_gpu(const struct trail *trail) {
	const struct fabric *fabric = trail->probing->fabric;
	const struct gpu_path *gpu = trail->gpu;
	struct ras_peer peer;
	bool known = ras_peer_find(overlay_ras(fabric->overlay), trail->key.peer, &peer) == 0;

	log_event(
		gpu->seen <= FABRIC_GPU_GOOD ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "gpu_path",
		log_bytes(
			"peer", known ? peer.record->name : "?",
			known ? peer.record->name_length : 1
		),
		log_str("device", fabric->nics[trail->key.device].config.name),
		log_str("peer_device", trail->key.peer_device), log_u64("gpu", gpu->ordinal),
		log_str("seen", fabric_gpu_seen_name(gpu->seen))
	);
}

// Of a read that ended with its pair, by no fault of its own, nothing is learnt.
static void gpu_outcome(struct trail *trail, const struct watch_outcome *outcome) {
	uint64_t now_ns = loop_clock_ns(trail->probing->fabric->loop);
	struct gpu_path *gpu = trail->gpu;
	enum fabric_gpu_seen before;

	if (gpu == NULL || outcome->generation != trail->generation ||
	    (outcome->result != WATCH_ANSWERED && outcome->result != WATCH_LOST && !outcome->refused
	    ))
		return;
	before = gpu->seen;
	if (gpu_path_note(
		    gpu, now_ns, gpu_read_of(outcome), outcome->tag == 0, outcome->latency_ns
	    ))
		gpu_path_judge(gpu, now_ns, host_permille(trail));
	if (gpu->seen != before)
		tell_gpu(trail);
	trail_look_at_gpu(trail);
	// Whose fault it was the pulse tells.
	if (outcome->result == WATCH_LOST && trail->stage == TRAIL_WATCHED)
		probe_now(trail, 0, false);
}

static void gpu_host_outcome(struct trail *trail, const struct watch_outcome *outcome) {
	enum fabric_gpu_seen before;

	if (trail->gpu == NULL || outcome->written)
		return;
	before = trail->gpu->seen;
	gpu_path_host(
		trail->gpu, loop_clock_ns(trail->probing->fabric->loop),
		outcome->result == WATCH_ANSWERED
	);
	if (trail->gpu->seen != before)
		tell_gpu(trail);
	trail_look_at_gpu(trail);
}

void trail_outcome(struct trail *trail, const struct watch_outcome *outcome) {
	struct fabric *fabric = trail->probing->fabric;
	const struct path_probe probe = {
		.at_ns = outcome->at_ns,
		.size = outcome->tag,
		.answered = outcome->result == WATCH_ANSWERED,
		.is_read = !outcome->written,
		.latency_ns = outcome->latency_ns,
		.incarnation = outcome->incarnation,
		.beats = outcome->beats,
	};

	trail->outcomes++;
	if (outcome->gpu) {
		gpu_outcome(trail, outcome);
		return;
	}
	if (outcome->written && outcome->refused)
		stop_writing(trail);
	if (outcome->result != WATCH_ANSWERED && outcome->result != WATCH_LOST)
		return;
	look_at_workers(trail, outcome);
	gpu_host_outcome(trail, outcome);
	trail->probed = true;
	trail->lost_last = outcome->result == WATCH_LOST;
	if (trail->memory != NULL)
		path_memory_add(trail->memory, &probe);
	if (trail->flows != NULL && outcome->generation == trail->generation)
		flows_note(
			trail->flows, probe.answered,
			trail->late_ns != 0 && probe.latency_ns >= trail->late_ns,
			probe.is_read && probe.size == 0, probe.latency_ns
		);
	if (trail->brief != NULL)
		path_brief_add(trail->brief, &probe);
	if (outcome->result == WATCH_ANSWERED && outcome->generation == trail->generation)
		pairing_used(fabric->pairing, loop_clock_ns(fabric->loop), trail->generation);
}
