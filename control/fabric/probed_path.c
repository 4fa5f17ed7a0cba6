// SPDX-License-Identifier: BSD-3-Clause
// One probed path: its watch follows the pair, and its statistics take the outcomes of the watch.
#include "fabric/probing.h"

#include <lib/log.h>
#include <lib/must.h>

#include <stdlib.h>
#include <string.h>

// Two timeouts and the time of a second handshake must fit into three seconds.
#define TIMEOUT_UNIT_NS UINT64_C(4096)
#define PROBE_TIMEOUT_NS (700 * RAS_NS_PER_MS)
// About six of ten reads have the smallest size; a window needs four of them.
#define WINDOW_NS (5 * RAS_NS_PER_SEC)

struct probed_path *probed_path_find(struct probing *probing, const struct pairing_key *key) {
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage != PROBED_PATH_FREE &&
		    pairing_keys_equal(&probed_path->key, key))
			return probed_path;
	}
	return NULL;
}

// Create the path of a neighbour, or a bare path that a visit completes. Returns NULL without a
// free index or memory; the caller tries again.
struct probed_path *probed_path_make(struct probing *probing, const struct pairing_key *key) {
	const struct path_memory_config config = {.window_ns = WINDOW_NS};
	uint64_t self = ras_self_id(overlay_ras(probing->fabric->overlay));
	struct path_memory *memory = NULL;
	struct probed_path *probed_path;
	uint32_t place = 0;

	while (place < PROBE_PATHS_MAX && probing->probed_paths[place].stage != PROBED_PATH_FREE)
		place++;
	if (place == PROBE_PATHS_MAX || path_memory_create(&config, &probing_memory, &memory) != 0)
		return NULL;
	probed_path = &probing->probed_paths[place];
	*probed_path = (struct probed_path){
		.probing = probing,
		.stage = PROBED_PATH_BARE,
		.self = key->peer == self,
		.place = place,
		.key = *key,
		.memory = memory,
		.told = {.kind = OBSERVATION_NO_PAIR},
		// Give a peer without a pair some time to get one.
		.told_ns = loop_now_ns(probing->fabric->loop),
	};
	if (place >= probing->probed_paths_used)
		probing->probed_paths_used = place + 1;
	return probed_path;
}

static void probed_path_unschedule(struct probed_path *probed_path) {
	if (probed_path->scheduled)
		probe_schedule_remove(probed_path->probing->schedule, probed_path->place);
	probed_path->scheduled = false;
}

void probed_path_release(struct probed_path *probed_path) {
	path_memory_destroy(probed_path->memory);
	probed_path->memory = NULL;
	free(probed_path->flows);
	probed_path->flows = NULL;
	free(probed_path->gpu);
	probed_path->gpu = NULL;
}

static void probed_path_free(struct probed_path *probed_path) {
	struct probing *probing = probed_path->probing;

	must(probed_path->stage == PROBED_PATH_BARE && !probed_path->waits);
	probed_path_unschedule(probed_path);
	path_baselines_store(probed_path);
	probed_path_release(probed_path);
	probed_path->stage = PROBED_PATH_FREE;
	while (probing->probed_paths_used > 0 &&
	       probing->probed_paths[probing->probed_paths_used - 1].stage == PROBED_PATH_FREE)
		probing->probed_paths_used--;
}

// The watch.

static struct worker_record
prober_record_make(const struct probed_path *probed_path, enum prober_request kind) {
	const struct fabric *fabric = probed_path->probing->fabric;
	uint32_t worker = fabric->nics[probed_path->key.device].worker;

	return (struct worker_record){
		.kind = kind,
		.words =
			{worker_pointer_to_word(fabric->config.probers[worker]),
			 worker_pointer_to_word(&probed_path->watch)},
	};
}

static void
probed_path_post(const struct probed_path *probed_path, const struct worker_record *record) {
	struct fabric *fabric = probed_path->probing->fabric;

	fabric_post(fabric, fabric->nics[probed_path->key.device].worker, record);
}

// Send one probe at once, to learn who answers now or to confirm a loss.
static void send_urgent_probe(struct probed_path *probed_path, uint32_t size, bool write) {
	struct worker_record record = prober_record_make(probed_path, PROBER_REQUEST_PROBE_NOW);
	struct probe_due due;

	if (!probe_schedule_urgent(
		    probed_path->probing->schedule,
		    loop_clock_ns(probed_path->probing->fabric->loop), probed_path->place, size,
		    write, &due
	    ))
		return;
	record.words[1] = due.path;
	record.words[2] = probed_path->generation;
	record.words[3] = due.bytes;
	record.words[4] = due.size;
	record.words[5] = due.write;
	probed_path_post(probed_path, &record);
}

static bool
peer_takes_writes(const struct probed_path *probed_path, const struct fabric_pair *fabric_pair) {
	return fabric_pair->theirs.write_sink.length >= WATCH_WRITE_SINK_BYTES &&
	       !probed_path->refused;
}

// Return how long a queue pair waits before it sends a lost packet again; 0 if it is not known.
// Only hardware keeps this time: where a processor takes part, a late answer may be its fault.
static uint64_t pair_resend_ns(const struct fabric_pair *fabric_pair) {
	uint8_t timeout = fabric_pair->nic->config.settings.timeout;

	if (fabric_pair->nic->parts.facts.responder != DEVICE_RESPONDER_HARDWARE ||
	    fabric_pair->theirs.responder != DEVICE_RESPONDER_HARDWARE || timeout == 0)
		return 0; // timeout 0: it waits for ever
	return TIMEOUT_UNIT_NS << timeout;
}

// Set the flow label of the pair. Only on Ethernet does it select a route. Without memory there are
// no statistics by label.
static void
path_set_flow_label(struct probed_path *probed_path, const struct fabric_pair *fabric_pair) {
	if (probed_path->visit || probed_path->self ||
	    fabric_pair->nic->parts.facts.port.link != DEVICE_LINK_ETHERNET)
		return;
	if (probed_path->flows == NULL)
		probed_path->flows = calloc(1, sizeof(*probed_path->flows));
	if (probed_path->flows != NULL)
		flows_set_label(probed_path->flows, fabric_pair->flow_label);
}

// Set the GPU page of the pair. Without memory for its statistics, the page is not read.
static void
path_set_gpu_page(struct probed_path *probed_path, const struct fabric_pair *fabric_pair) {
	const struct pairing_gpu *shown = &fabric_pair->theirs.gpu;

	if (probed_path->visit || shown->length < WATCH_SHORT_READ_BYTES) {
		free(probed_path->gpu);
		probed_path->gpu = NULL;
		return;
	}
	if (probed_path->gpu == NULL)
		probed_path->gpu = calloc(1, sizeof(*probed_path->gpu));
	if (probed_path->gpu != NULL)
		gpu_path_set_page(
			probed_path->gpu, loop_clock_ns(probed_path->probing->fabric->loop),
			shown->ordinal, shown->word
		);
}

void probed_path_plan_gpu_read(struct probed_path *probed_path) {
	uint64_t now_ns = loop_clock_ns(probed_path->probing->fabric->loop);

	if (probed_path->scheduled)
		probe_schedule_set_gpu(
			probed_path->probing->schedule, probed_path->place,
			probed_path->gpu != NULL && gpu_path_is_due(probed_path->gpu, now_ns)
		);
}

static void
path_take_pair_facts(struct probed_path *probed_path, const struct fabric_pair *fabric_pair) {
	const struct fabric *fabric = probed_path->probing->fabric;
	const struct device_facts *facts = &fabric_pair->nic->parts.facts;
	struct probe_schedule *schedule = probed_path->probing->schedule;
	uint64_t now_ns = fabric_clock_ns(fabric);
	uint32_t mtu = facts->port.active_mtu;

	if (fabric_pair->theirs.endpoint.mtu < mtu)
		mtu = fabric_pair->theirs.endpoint.mtu;
	if (probed_path->start != fabric_pair->theirs.start)
		probed_path->refused = false;
	if (!probed_path->scheduled || mtu != probed_path->mtu) {
		probed_path_unschedule(probed_path);
		probe_schedule_add(schedule, now_ns, probed_path->place, mtu, probed_path->visit);
		probed_path->scheduled = true;
		probed_path->mtu = mtu;
	}
	probe_schedule_set_writes(
		schedule, probed_path->place, peer_takes_writes(probed_path, fabric_pair)
	);
	probed_path->responder = fabric_pair->theirs.responder;
	probed_path->speed_mbps = facts->port.speed_mbps;
	probed_path->shares = fabric_pair->theirs.shares_overlay ||
			      (fabric->config.interface[0] != '\0' &&
			       strcmp(fabric->config.interface, facts->netdev) == 0);
	probed_path->flow_label = fabric_pair->flow_label;
	if (probed_path->memory != NULL && probed_path->known &&
	    probed_path->start != fabric_pair->theirs.start)
		path_memory_reopened(probed_path->memory, now_ns);
	if (probed_path->memory != NULL)
		path_memory_set_resend(probed_path->memory, pair_resend_ns(fabric_pair));
	probed_path->late_ns = pair_resend_ns(fabric_pair) / PATH_RESEND_EARLY_SHARE;
	path_set_flow_label(probed_path, fabric_pair);
	path_set_gpu_page(probed_path, fabric_pair);
	probed_path_plan_gpu_read(probed_path);
	probed_path->start = fabric_pair->theirs.start;
	probed_path->known = true;
	path_baselines_restore(probed_path);
}

// Return a part of the scratch memory. The part uses the reference of the whole.
static struct memory_view scratch_part(const struct nic *nic, uint64_t offset, uint64_t length) {
	struct memory_view view = nic->parts.scratch;

	view.address += offset;
	view.wire_address += offset;
	view.length = length;
	return view;
}

static void
probed_path_watch(struct probed_path *probed_path, const struct fabric_pair *fabric_pair) {
	const struct nic *nic = fabric_pair->nic;
	uint64_t own =
		FABRIC_SCRATCH_WATCHES + (uint64_t)probed_path->place * WATCH_SHORT_READ_BYTES;
	uint64_t sink = (1 + (uint64_t)nic->place) * PULSE_BYTES;
	struct worker_record record = prober_record_make(probed_path, PROBER_REQUEST_WATCH);

	probed_path->generation = fabric_pair->generation;
	probed_path->watch = (struct watch){
		.place = probed_path->place,
		.path = fabric_pair->path,
		.peer = fabric_pair->peer,
		.generation = fabric_pair->generation,
		.timeout_ns = PROBE_TIMEOUT_NS,
		.write_address = fabric_pair->theirs.write_sink.address,
		.write_key = fabric_pair->theirs.write_sink.key,
		.writes = peer_takes_writes(probed_path, fabric_pair),
		.gpu_address = fabric_pair->theirs.gpu.address,
		.gpu_word = fabric_pair->theirs.gpu.word,
		.gpu_key = fabric_pair->theirs.gpu.key,
		.gpu = probed_path->gpu != NULL,
		.own = scratch_part(nic, own, WATCH_SHORT_READ_BYTES),
		.sink = scratch_part(nic, sink, PULSE_BYTES),
	};
	probed_path->stage = PROBED_PATH_WATCHED;
	if (probed_path->stats != NULL)
		compact_stats_opened(probed_path->stats);
	probed_path_post(probed_path, &record);
	// In a visit the smallest size comes first. A probe that is lost behind a larger one does
	// not prove silence.
	send_urgent_probe(probed_path, probed_path->lost_last || probed_path->visit ? 0 : 1, false);
}

void probed_path_confirm(struct probed_path *probed_path) {
	if (probed_path->stage == PROBED_PATH_WATCHED)
		send_urgent_probe(probed_path, 0, false);
}

void probed_path_retry(struct probed_path *probed_path, uint64_t now_ns) {
	struct probe_schedule *schedule = probed_path->probing->schedule;
	struct path_retry retry = {.size = 0};
	bool loses = path_memory_next_retry(probed_path->memory, now_ns, &retry);

	if (probed_path->stage != PROBED_PATH_WATCHED)
		return;
	probe_schedule_set_lossy(
		schedule, probed_path->place, probed_path->told.kind == OBSERVATION_LOSSY
	);
	if (!(loses || path_memory_needs_reads(probed_path->memory)) ||
	    now_ns < probed_path->retried_ns + PATH_RETRY_NS)
		return;
	probed_path->retried_ns = now_ns;
	if (!loses && probed_path_wait_is_old(probed_path, now_ns))
		retry.size = 1; // the head of the page shows whether the responder waits
	send_urgent_probe(probed_path, retry.size, retry.is_write);
}

void probed_path_follow(struct probed_path *probed_path, uint32_t generation) {
	const struct fabric_pair *fabric_pair;

	if (probed_path->stage == PROBED_PATH_WATCHED && probed_path->generation != generation)
		probed_path_unwatch(probed_path);
	if (probed_path->stage != PROBED_PATH_BARE || probed_path->going)
		return; // already watched, or watched once its watch is back
	fabric_pair = fabric_pair_find(probed_path->probing->fabric, generation);
	if (fabric_pair == NULL || fabric_pair->stage != FABRIC_PAIR_IN_LANE ||
	    fabric_pair->path == FABRIC_PATH_NONE ||
	    fabric_pair->theirs.pulse.layout != PULSE_LAYOUT)
		return;
	path_take_pair_facts(probed_path, fabric_pair);
	probed_path_watch(probed_path, fabric_pair);
}

void probed_path_unwatch(struct probed_path *probed_path) {
	struct worker_record record = prober_record_make(probed_path, PROBER_REQUEST_UNWATCH);

	must(probed_path->stage == PROBED_PATH_WATCHED);
	probed_path->stage = PROBED_PATH_LEAVING;
	probed_path_post(probed_path, &record);
}

void probed_path_pause(struct probed_path *probed_path) {
	if (probed_path->stage == PROBED_PATH_WATCHED)
		probed_path_unwatch(probed_path);
	probed_path_unschedule(probed_path);
}

void probed_path_drop(struct probed_path *probed_path) {
	probed_path->going = true;
	if (probed_path->waits)
		(void)pairing_cancel(probed_path->probing->fabric->pairing, &probed_path->waiter);
	if (probed_path->stage == PROBED_PATH_WATCHED)
		probed_path_unwatch(probed_path);
	if (probed_path->stage == PROBED_PATH_BARE)
		probed_path_free(probed_path);
}

void probed_path_watch_ended(struct probed_path *probed_path) {
	must(probed_path->stage == PROBED_PATH_LEAVING);
	probed_path->stage = PROBED_PATH_BARE;
	if (probed_path->going)
		probed_path_free(probed_path);
}

// Outcomes.

// Report hung workers as the peer's page shows them. The peer's own agent reports them too, if it
// can. The report is repeated with each read while workers hang.
static void
report_hung_workers(struct probed_path *probed_path, const struct watch_outcome *outcome) {
	struct fabric *fabric = probed_path->probing->fabric;
	bool tells = outcome->hung != 0 || probed_path->hung != 0;

	if (outcome->workers == 0 || probed_path->self)
		return;
	probed_path->hung = outcome->hung;
	if (tells && fabric->hung != NULL)
		fabric->hung(
			fabric->observation_ctx, probed_path->key.peer,
			(uint32_t)__builtin_popcount(outcome->hung), outcome->workers
		);
}

// Return the latency of pulse reads now, in per mille of their baseline.
static uint64_t pulse_latency_permille(const struct probed_path *probed_path) {
	struct path_summary summary;

	if (probed_path->memory == NULL)
		return 1000;
	path_memory_summary(probed_path->memory, &summary);
	if (summary.baseline_ns == 0 || summary.lately_ns == 0)
		return 1000;
	return (uint64_t)((double)summary.lately_ns * 1000 / (double)summary.baseline_ns);
}

static void log_gpu_path(const struct probed_path *probed_path) {
	const struct fabric *fabric = probed_path->probing->fabric;
	const struct gpu_path *gpu = probed_path->gpu;
	struct ras_peer peer;
	bool known = ras_peer_find(overlay_ras(fabric->overlay), probed_path->key.peer, &peer) == 0;

	log_event(
		gpu->seen <= FABRIC_GPU_GOOD ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "gpu_path",
		log_bytes(
			"peer", known ? peer.record->name : "?",
			known ? peer.record->name_length : 1
		),
		log_str("device", fabric->nics[probed_path->key.device].config.name),
		log_str("peer_device", probed_path->key.peer_device), log_u64("gpu", gpu->ordinal),
		log_str("seen", fabric_gpu_seen_name(gpu->seen))
	);
}

// Ignore a read that only ended together with its pair.
static void
handle_gpu_outcome(struct probed_path *probed_path, const struct watch_outcome *outcome) {
	uint64_t now_ns = loop_clock_ns(probed_path->probing->fabric->loop);
	struct gpu_path *gpu = probed_path->gpu;
	enum gpu_read read = GPU_READ_CORRECT;
	enum fabric_gpu_seen before;

	if (gpu == NULL || outcome->generation != probed_path->generation ||
	    (outcome->result != WATCH_ANSWERED && outcome->result != WATCH_LOST && !outcome->refused
	    ))
		return;
	if (outcome->refused)
		read = GPU_READ_REFUSED;
	else if (outcome->result == WATCH_LOST)
		read = GPU_READ_SILENT;
	else if (outcome->wrong)
		read = GPU_READ_WRONG;
	before = gpu->seen;
	if (gpu_path_add_read(gpu, now_ns, read, outcome->tag == 0, outcome->latency_ns))
		gpu_path_judge(gpu, now_ns, pulse_latency_permille(probed_path));
	if (gpu->seen != before)
		log_gpu_path(probed_path);
	probed_path_plan_gpu_read(probed_path);
	// A read of the pulse decides whether the path or the GPU is to blame.
	if (outcome->result == WATCH_LOST && probed_path->stage == PROBED_PATH_WATCHED)
		send_urgent_probe(probed_path, 0, false);
}

static void
handle_pulse_outcome(struct probed_path *probed_path, const struct watch_outcome *outcome) {
	enum fabric_gpu_seen before;

	if (probed_path->gpu == NULL || outcome->written)
		return;
	before = probed_path->gpu->seen;
	gpu_path_add_pulse_read(
		probed_path->gpu, loop_clock_ns(probed_path->probing->fabric->loop),
		outcome->result == WATCH_ANSWERED
	);
	if (probed_path->gpu->seen != before)
		log_gpu_path(probed_path);
	probed_path_plan_gpu_read(probed_path);
}

void probed_path_outcome(struct probed_path *probed_path, const struct watch_outcome *outcome) {
	struct probing *probing = probed_path->probing;
	struct fabric *fabric = probing->fabric;
	const struct path_probe probe = {
		.at_ns = outcome->at_ns,
		.size = outcome->tag,
		.answered = outcome->result == WATCH_ANSWERED,
		.is_read = !outcome->written,
		.latency_ns = outcome->latency_ns,
		.wait_ns = waits_sample_ns(
			&probing->waits, outcome->late_ns,
			waits_responder_ns(
				probed_path->responder_wait_ns, probed_path->responder_wait_at_ns,
				outcome->at_ns
			)
		),
		.incarnation = outcome->incarnation,
		.beats = outcome->beats,
	};

	probed_path->outcomes++;
	if (outcome->gpu) {
		handle_gpu_outcome(probed_path, outcome);
		return;
	}

	// Stop writes to a peer that refuses them although it offered them. Each refused write
	// would break the pair.
	if (outcome->written && outcome->refused) {
		probed_path->refused = true;
		probing->counters.writes_refused++;
		if (probed_path->scheduled)
			probe_schedule_set_writes(probing->schedule, probed_path->place, false);
	}

	if (outcome->result != WATCH_ANSWERED && outcome->result != WATCH_LOST)
		return;
	report_hung_workers(probed_path, outcome);
	probed_path_take_wait(probed_path, outcome);
	handle_pulse_outcome(probed_path, outcome);
	probed_path->probed = true;
	probed_path->lost_last = outcome->result == WATCH_LOST;
	if (probed_path->memory != NULL)
		probing->counters.excluded += path_memory_add(probed_path->memory, &probe);
	if (fabric->config.probed != NULL && !probed_path->visit && !probed_path->self)
		fabric->config.probed(
			fabric->config.probed_ctx, &probed_path->key,
			fabric->nics[probed_path->key.device].config.name, probe.answered,
			probe.answered && probe.is_read && probe.size == 0 ? probe.latency_ns : 0
		);
	if (probed_path->flows != NULL && outcome->generation == probed_path->generation)
		flows_record(
			probed_path->flows, probe.answered,
			probed_path->late_ns != 0 && probe.latency_ns >= probed_path->late_ns,
			probe.is_read && probe.size == 0, probe.latency_ns
		);
	if (probed_path->stats != NULL)
		compact_stats_add(probed_path->stats, &probe);
	if (outcome->result == WATCH_ANSWERED && outcome->generation == probed_path->generation)
		pairing_report_success(
			fabric->pairing, loop_clock_ns(fabric->loop), probed_path->generation
		);
}
