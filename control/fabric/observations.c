// SPDX-License-Identifier: BSD-3-Clause
// Turns the statistics of paths into observations for the verdict, and into evidence for the
// overlay.
#include "fabric/probing.h"

#include <lib/log.h>

#include <stdio.h>

// A peer that was heard on its overlay link within this time answers, whatever else was tried.
#define HEARD_WITHIN_NS (3 * RAS_NS_PER_SEC)
// Delay from the start of a read that broke its pair. Without a new pair by then, the path is
// silent.
#define CUT_OFF_DELAY_NS (1200 * RAS_NS_PER_MS)
// A software device answers reads only while its agent's process runs. An agent that was stopped
// just after a heartbeat may not have served a read that began before the heartbeat.
#define READ_UNDER_WAY_NS (400 * RAS_NS_PER_MS)

enum observation_responder observations_responder(enum device_responder responder) {
	static const enum observation_responder responders[] = {
		[DEVICE_RESPONDER_HARDWARE] = OBSERVATION_RESPONDER_HARDWARE,
		[DEVICE_RESPONDER_KERNEL] = OBSERVATION_RESPONDER_KERNEL,
		[DEVICE_RESPONDER_IN_PROCESS] = OBSERVATION_RESPONDER_IN_PROCESS,
	};

	return responders[responder];
}

static uint32_t clamp_u32(uint64_t value) {
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

// Copy a device name. Evidence carries a limited length.
static void copy_device_name(char ret_name[static VERDICT_DEVICE_MAX + 1], const char *name) {
	snprintf(ret_name, VERDICT_DEVICE_MAX + 1, "%.*s", VERDICT_DEVICE_MAX, name);
}

static bool kind_is_read(enum observation_kind kind) {
	return kind != OBSERVATION_SILENT && kind != OBSERVATION_NO_PAIR;
}

// Return whether reads of this neighbour test our own port: an earlier observation had a pair, and
// the overlay says that the peer is alive on another host.
static bool path_tests_own_port(const struct probed_path *probed_path) {
	const struct ras *ras = overlay_ras(probed_path->probing->fabric->overlay);
	struct ras_peer self, peer;

	return !probed_path->visit && probed_path->told.kind != OBSERVATION_NO_PAIR &&
	       ras_peer_find(ras, probed_path->key.peer, &peer) == 0 && peer.state == RAS_ALIVE &&
	       ras_peer_find(ras, ras_self_id(ras), &self) == 0 &&
	       peer.record->host_id != self.record->host_id;
}

// Return whether our own port is known to work; otherwise unanswered reads say nothing about a
// peer. The device must read itself, and one peer on another host. A NIC may loop reads of itself
// inside, whatever the state of its cable. A single peer says nothing about us, so with fewer than
// two peers reading itself is enough.
static bool own_port_is_good(const struct probing *probing, uint32_t device) {
	uint32_t others = 0, others_read = 0;
	bool self_read = false;

	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[n];
		struct path_summary summary;

		if (probed_path->stage == PROBED_PATH_FREE || probed_path->key.device != device)
			continue;
		if (probed_path->self) {
			path_memory_summary(probed_path->memory, &summary);
			self_read = kind_is_read(summary.kind);
		} else if (path_tests_own_port(probed_path)) {
			others++;
			others_read += kind_is_read(probed_path->told.kind);
		}
	}
	return self_read && (others < 2 || others_read > 0);
}

// Return the smallest size in bytes that a lossy path loses, or that a good path has not carried
// yet. A new or visited path may not have been read with large sizes. Returns 0 if there is none,
// or if all sizes are lost.
static uint32_t
lost_bytes(const struct probed_path *probed_path, const struct path_summary *summary) {
	bool lossy = summary->kind == OBSERVATION_LOSSY;
	uint32_t place = lossy ? summary->lost_size_index : summary->unproven_size_index;

	if (place >= PATH_SIZES || (lossy ? place == 0 : summary->kind != OBSERVATION_GOOD))
		return 0;
	return probe_bytes[place] != 0 ? probe_bytes[place] : probed_path->mtu;
}

// Return how the peer's host accepts overlay connections, but not if that is older than the read
// beside it. Heartbeats from before the reads turned bad say nothing about now. Neither does a
// refusal from before a good read.
static enum verdict_reach path_tcp_reach(
	const struct probed_path *probed_path, const struct path_summary *summary, uint64_t now_ns
) {
	uint64_t from_ns = summary->turned_ns, advanced_ns = now_ns;
	struct overlay_tcp_reach found;
	bool fresh;

	overlay_tcp_reach(probed_path->probing->fabric->overlay, probed_path->key.peer, &found);
	if (summary->kind == OBSERVATION_SILENT || summary->kind == OBSERVATION_STANDING) {
		if (found.reach == VERDICT_REACH_ANSWERS && probed_path->known &&
		    probed_path->responder == DEVICE_RESPONDER_IN_PROCESS)
			from_ns += READ_UNDER_WAY_NS;
		return found.at_ns >= from_ns ? found.reach : VERDICT_REACH_UNKNOWN;
	}
	if (found.quiet_ns < HEARD_WITHIN_NS)
		return VERDICT_REACH_ANSWERS;
	// Use the result only if the counter advanced after it. An agent that was killed now was
	// read well a moment ago.
	if ((summary->kind == OBSERVATION_GOOD || summary->kind == OBSERVATION_DEGRADED ||
	     summary->kind == OBSERVATION_LOSSY) &&
	    summary->advanced_ns < now_ns)
		advanced_ns = summary->advanced_ns;
	fresh = now_ns < found.at_ns + HEARD_WITHIN_NS && found.since_ns <= advanced_ns;
	return fresh ? found.reach : VERDICT_REACH_UNKNOWN;
}

static struct observation make_observation(
	const struct probed_path *probed_path,
	const struct path_summary *summary,
	uint64_t incarnation,
	uint64_t now_ns
) {
	const struct fabric *fabric = probed_path->probing->fabric;
	struct observation observation = {
		.observer = ras_self_id(overlay_ras(fabric->overlay)),
		.subject = probed_path->key.peer,
		.incarnation = incarnation,
		.kind = summary->kind,
		.responder = probed_path->known ? observations_responder(probed_path->responder)
						: OBSERVATION_RESPONDER_UNKNOWN,
		.reach = path_tcp_reach(probed_path, summary, now_ns),
		.own_good = own_port_is_good(probed_path->probing, probed_path->key.device),
		.shares = probed_path->shares,
		// Without a baseline the report does not contradict those who find the path slow.
		.median_ns =
			clamp_u32(summary->unjudged ? summary->excluded_ns : summary->median_ns),
		.baseline_ns = summary->unjudged ? 0 : clamp_u32(summary->baseline_ns),
		.lost_permille = summary->kind == OBSERVATION_LOSSY ? summary->lost_permille : 0,
		.lost_bytes = lost_bytes(probed_path, summary),
		.age_ms =
			clamp_u32((now_ns - path_summary_seen_ns(summary, now_ns)) / RAS_NS_PER_MS),
	};

	copy_device_name(observation.device, fabric->nics[probed_path->key.device].config.name);
	copy_device_name(observation.peer_device, probed_path->key.peer_device);
	return observation;
}

static void observation_deliver(struct probing *probing, const struct observation *observation) {
	const struct fabric *fabric = probing->fabric;

	if (fabric->observation == NULL)
		return;
	probing->counters.observations++;
	fabric->observation(fabric->observation_ctx, observation);
}

// Give the overlay evidence that it cannot find itself: the peer's NIC answers, but its pulse is
// stalled. An advancing pulse is not given as proof of life. For a node whose own network is cut
// off, the verdict reports that it lives; proof of life would only clear each suspicion again.
static void give_evidence(
	struct probing *probing, const struct observation *observation, const struct ras_peer *peer
) {
	struct overlay *overlay = probing->fabric->overlay;
	uint64_t age_ns = observation->age_ms * RAS_NS_PER_MS;
	bool outside = observation->responder == OBSERVATION_RESPONDER_HARDWARE ||
		       observation->responder == OBSERVATION_RESPONDER_KERNEL;

	if (observation->kind == OBSERVATION_STANDING && outside && peer->state == RAS_ALIVE)
		probing->counters.doubts +=
			overlay_add_evidence(overlay, observation->subject, false, age_ns) == 0;
}

// Leave out unknown times, because 0 would be read as a measured time.
static void log_observation(const struct observation *observation, const struct ras_peer *peer) {
	bool bad =
		observation->kind != OBSERVATION_GOOD && observation->kind != OBSERVATION_NO_PAIR;
	enum log_level level = bad ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
	static struct log_site site;
	struct log_field fields[9] = {
		log_bytes("peer", peer->record->name, peer->record->name_length),
		log_str("device", observation->device),
		log_str("peer_device", observation->peer_device),
		log_str("seen", observation_kind_name(observation->kind)),
		log_bool("own_port_good", observation->own_good),
		log_u64("lost_permille", observation->lost_permille),
	};
	size_t used = 6;

	if (!log_enabled(level))
		return;
	if (observation->median_ns != 0)
		fields[used++] = log_u64("median_ns", observation->median_ns);
	if (observation->baseline_ns != 0)
		fields[used++] = log_u64("baseline_ns", observation->baseline_ns);
	fields[used] = (struct log_field){.type = LOG_FIELD_END};
	log_write(&site, level, "rdma_path", fields);
}

static void summary_report(
	struct probed_path *probed_path, const struct path_summary *summary, uint64_t now_ns
) {
	struct probing *probing = probed_path->probing;
	struct ras_peer peer;
	struct observation observation;

	if (ras_peer_find(overlay_ras(probing->fabric->overlay), probed_path->key.peer, &peer) !=
		    0 ||
	    peer.state == RAS_LEFT)
		return;
	if (peer.incarnation != probed_path->incarnation) {
		probed_path->incarnation = peer.incarnation;
		probed_path->incarnation_ns = now_ns;
	}
	if (path_summary_seen_ns(summary, now_ns) < probed_path->incarnation_ns)
		return;
	observation = make_observation(probed_path, summary, peer.incarnation, now_ns);
	give_evidence(probing, &observation, &peer);
	if (observation.kind != probed_path->told.kind)
		log_observation(&observation, &peer);
	if (observation.kind == probed_path->told.kind &&
	    observation.own_good == probed_path->told.own_good &&
	    now_ns < probed_path->told_ns + FABRIC_OBSERVATION_NS)
		return;
	probed_path->told = observation;
	probed_path->told_ns = now_ns;
	observation_deliver(probing, &observation);
}

// Return whether this is a steadily probed path of the device. The path of the device to itself is
// compared with the others: slowness that reads of ourselves show, too, is no peer's fault.
static bool path_is_of_device(const struct probed_path *probed_path, uint32_t device) {
	return probed_path->stage != PROBED_PATH_FREE && !probed_path->visit &&
	       probed_path->key.device == device;
}

// A pair breaks with the first read that its device gives up. An agent that does not answer makes
// no new pair. Its silence must be known within three seconds, so a second read is not awaited.
uint64_t observations_cut_deadline_ns(const struct probed_path *probed_path) {
	struct path_summary summary;

	if (probed_path->memory == NULL || !probed_path->lost_last)
		return RAS_NEVER;
	path_memory_summary(probed_path->memory, &summary);
	return summary.kind != OBSERVATION_SILENT ? summary.last_probe_ns + CUT_OFF_DELAY_NS
						  : RAS_NEVER;
}

static void path_notice_cut_off(const struct probed_path *probed_path, uint64_t now_ns) {
	if (probed_path->stage == PROBED_PATH_BARE &&
	    now_ns >= observations_cut_deadline_ns(probed_path))
		path_memory_cut_off(probed_path->memory);
}

// Return the share of late reads of the device itself, per mille. Our own machine causes these.
static uint32_t
self_late_permille(const struct probing *probing, uint32_t device, uint64_t now_ns) {
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		if (path_is_of_device(&probing->probed_paths[n], device) &&
		    probing->probed_paths[n].self)
			return path_memory_late_permille(probing->probed_paths[n].memory, now_ns);
	}
	return 0;
}

static void judge_device(struct probing *probing, uint32_t device, uint64_t now_ns) {
	const struct fabric *fabric = probing->fabric;
	uint64_t resent = PATH_RESENT_UNKNOWN;
	uint32_t late = self_late_permille(probing, device, now_ns);
	uint32_t count = 0, place = 0;

	// config.devices holds only the devices of the start.
	if (fabric->config.resent != NULL)
		resent = fabric->config.resent(
			fabric->config.resent_ctx, fabric->nics[device].config.name
		);
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		if (path_is_of_device(&probing->probed_paths[n], device))
			path_memory_summary(
				probing->probed_paths[n].memory, &probing->summaries[count++]
			);
	}
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		struct probed_path *probed_path = &probing->probed_paths[n];
		struct path_summary summary;

		if (!path_is_of_device(probed_path, device))
			continue;
		place++;
		if (probed_path->self)
			continue; // already judged, before all others
		path_notice_cut_off(probed_path, now_ns);
		path_memory_set_context(probed_path->memory, now_ns, late, resent);
		(void)path_memory_judge(
			probed_path->memory, now_ns,
			path_expected_ns(probing->summaries, count, place - 1)
		);
		path_memory_summary(probed_path->memory, &summary);
		summary_report(probed_path, &summary, now_ns);
		probed_path_retry(probed_path, now_ns);
	}
}

void observations_judge(struct probing *probing, uint64_t now_ns) {
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[n];

		if (probed_path->stage == PROBED_PATH_FREE || !probed_path->self)
			continue;
		path_notice_cut_off(probed_path, now_ns);
		(void)path_memory_judge(probed_path->memory, now_ns, 0);
	}
	for (uint32_t n = 0; n < probing->fabric->nic_count; n++)
		judge_device(probing, n, now_ns);
}

void observations_report_visit(struct probed_path *probed_path, uint64_t now_ns) {
	struct probing *probing = probed_path->probing;
	struct path_summary summary;
	struct ras_peer peer;
	struct observation observation;

	if (ras_peer_find(overlay_ras(probing->fabric->overlay), probed_path->key.peer, &peer) != 0)
		return;
	compact_stats_summary(probed_path->stats, &summary);
	compact_table_set_visit(&probing->compact_table, &probed_path->key, summary.kind, now_ns);
	observation = make_observation(probed_path, &summary, peer.incarnation, now_ns);
	give_evidence(probing, &observation, &peer);
	observation_deliver(probing, &observation);
}

void fabric_observations(
	struct fabric *fabric, fabric_observation_fn *fn, fabric_hung_workers_fn *hung, void *ctx
) {
	fabric->observation = fn;
	fabric->hung = hung;
	fabric->observation_ctx = ctx;
}
