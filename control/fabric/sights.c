// SPDX-License-Identifier: BSD-3-Clause
// From what is remembered of paths to what is told of them: sights, and evidence for the overlay.
#include "fabric/probing.h"

#include <lib/log.h>

#include <stdio.h>
#include <string.h>

// A peer that was heard within this answers, whatever was tried beside it.
#define QUIET_NS (3 * RAS_NS_PER_SEC)
// After a read that broke its pair was begun, without another pair.
#define CUT_NS (1200 * RAS_NS_PER_MS)
// A read of a device that lives in its agent waits for a processor as the agent does: one that was
// stopped after a beat may not have come to the read that was begun before the beat.
#define UNDER_WAY_NS (400 * RAS_NS_PER_MS)

enum sight_responder sights_responder(enum device_responder responder) {
	static const enum sight_responder responders[] = {
		[DEVICE_RESPONDER_HARDWARE] = SIGHT_RESPONDER_HARDWARE,
		[DEVICE_RESPONDER_KERNEL] = SIGHT_RESPONDER_KERNEL,
		[DEVICE_RESPONDER_IN_PROCESS] = SIGHT_RESPONDER_IN_PROCESS,
	};

	return responders[responder];
}

static uint32_t clamp_u32(uint64_t value) {
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

// A name may be longer than evidence carries it.
static void put_name(char ret_name[static VERDICT_DEVICE_MAX + 1], const char *name) {
	snprintf(ret_name, VERDICT_DEVICE_MAX + 1, "%.*s", VERDICT_DEVICE_MAX, name);
}

static bool is_read(enum sight_kind kind) {
	return kind != SIGHT_SILENT && kind != SIGHT_NO_PAIR;
}

// Whether it was looked at as a neighbour, and the overlay says that it lives on another host.
static bool should_be_read(const struct trail *trail) {
	const struct ras *ras = overlay_ras(trail->probing->fabric->overlay);
	struct ras_peer self, peer;

	return !trail->visit && trail->told.kind != SIGHT_NO_PAIR &&
	       ras_peer_find(ras, trail->key.peer, &peer) == 0 && peer.state == RAS_ALIVE &&
	       ras_peer_find(ras, ras_self_id(ras), &self) == 0 &&
	       peer.record->host_id != self.record->host_id;
}

// Whether our own port is known to work: else what it does not read says nothing. It reads itself,
// and one on another host: what it sends to itself a NIC loops inside, whatever its cable does. If
// there is but one other, that one says nothing of us.
static bool sights_port_is_good(const struct probing *probing, uint32_t device) {
	uint32_t others = 0, others_read = 0;
	bool self_read = false;

	for (uint32_t n = 0; n < probing->trails_used; n++) {
		const struct trail *trail = &probing->trails[n];
		struct path_summary summary;

		if (trail->stage == TRAIL_FREE || trail->key.device != device)
			continue;
		if (trail->self) {
			path_memory_summary(trail->memory, &summary);
			self_read = is_read(summary.kind);
		} else if (should_be_read(trail)) {
			others++;
			others_read += is_read(trail->told.kind);
		}
	}
	return self_read && (others < 2 || others_read > 0);
}

// A path that is new, or is visited, has perhaps not been read largely: a good look says so.
static uint32_t lost_bytes(const struct trail *trail, const struct path_summary *summary) {
	bool lossy = summary->kind == SIGHT_LOSSY;
	uint32_t place = lossy ? summary->lost_bytes_place : summary->unproven_place;

	if (place >= PATH_SIZES || (lossy ? place == 0 : summary->kind != SIGHT_GOOD))
		return 0;
	return probe_bytes[place] != 0 ? probe_bytes[place] : trail->mtu;
}

// When the counter of one that is read last went on.
static uint64_t went_on_ns(const struct path_summary *summary, uint64_t now_ns) {
	bool advances = summary->kind == SIGHT_GOOD || summary->kind == SIGHT_DEGRADED ||
			summary->kind == SIGHT_LOSSY;

	return advances && summary->advanced_ns < now_ns ? summary->advanced_ns : now_ns;
}

// What was found at its door, if that was after the reads turned bad.
static enum verdict_reach reach_since(
	const struct trail *trail,
	const struct path_summary *summary,
	const struct overlay_knock *knock
) {
	uint64_t from_ns = summary->turned_ns;

	if (knock->reach == VERDICT_REACH_ANSWERS && trail->known &&
	    trail->responder == DEVICE_RESPONDER_IN_PROCESS)
		from_ns += UNDER_WAY_NS;
	return knock->at_ns >= from_ns ? knock->reach : VERDICT_REACH_UNKNOWN;
}

// How its host takes the overlay's connections, not older than the read beside it: beats from
// before the reads turned bad say nothing of now, and a refusal from before a good read neither.
static enum verdict_reach
reach_of(const struct trail *trail, const struct path_summary *summary, uint64_t now_ns) {
	struct overlay_knock knock;
	bool fresh;

	overlay_knock(trail->probing->fabric->overlay, trail->key.peer, &knock);
	if (summary->kind == SIGHT_SILENT || summary->kind == SIGHT_STANDING)
		return reach_since(trail, summary, &knock);
	if (knock.quiet_ns < QUIET_NS)
		return VERDICT_REACH_ANSWERS;
	// The counter went on after it was found: one that was killed was read well a moment ago.
	fresh = now_ns < knock.at_ns + QUIET_NS && knock.since_ns <= went_on_ns(summary, now_ns);
	return fresh ? knock.reach : VERDICT_REACH_UNKNOWN;
}

static struct sight make_sight(
	const struct trail *trail,
	const struct path_summary *summary,
	uint64_t incarnation,
	uint64_t now_ns
) {
	const struct fabric *fabric = trail->probing->fabric;
	struct sight sight = {
		.observer = ras_self_id(overlay_ras(fabric->overlay)),
		.subject = trail->key.peer,
		.incarnation = incarnation,
		.kind = summary->kind,
		.responder =
			trail->known ? sights_responder(trail->responder) : SIGHT_RESPONDER_UNKNOWN,
		.reach = reach_of(trail, summary, now_ns),
		.own_good = sights_port_is_good(trail->probing, trail->key.device),
		.shares = trail->shares,
		.median_ns = clamp_u32(summary->median_ns),
		.baseline_ns = clamp_u32(summary->baseline_ns),
		.lost_permille = summary->kind == SIGHT_LOSSY ? summary->lost_permille : 0,
		.lost_bytes = lost_bytes(trail, summary),
		.age_ms =
			clamp_u32((now_ns - path_summary_seen_ns(summary, now_ns)) / RAS_NS_PER_MS),
	};

	put_name(sight.device, fabric->nics[trail->key.device].config.name);
	put_name(sight.peer_device, trail->key.peer_device);
	return sight;
}

static void hand_out(struct probing *probing, const struct sight *sight) {
	const struct fabric *fabric = probing->fabric;

	if (fabric->sight == NULL)
		return;
	probing->counters.sights++;
	fabric->sight(fabric->sight_ctx, sight);
}

// The overlay hears what it cannot see by itself: of one whose NIC answers and whose pulse stands.
// That a pulse goes on is no proof of life to it: of a node that its own network does not reach the
// verdict tells that it lives, and suspicions that come and go would leave none to stand on.
static void
give_evidence(struct probing *probing, const struct sight *sight, const struct ras_peer *peer) {
	struct overlay *overlay = probing->fabric->overlay;
	uint64_t age_ns = sight->age_ms * RAS_NS_PER_MS;
	bool outside = sight->responder == SIGHT_RESPONDER_HARDWARE ||
		       sight->responder == SIGHT_RESPONDER_KERNEL;

	if (sight->kind == SIGHT_STANDING && outside && peer->state == RAS_ALIVE)
		probing->counters.doubts +=
			overlay_evidence(overlay, sight->subject, false, age_ns) == 0;
}

static void log_sight(const struct sight *sight, const struct ras_peer *peer) {
	bool bad = sight->kind != SIGHT_GOOD && sight->kind != SIGHT_NO_PAIR;

	log_event(
		bad ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "rdma_path",
		log_bytes("peer", peer->record->name, peer->record->name_length),
		log_str("device", sight->device), log_str("peer_device", sight->peer_device),
		log_str("seen", sight_kind_name(sight->kind)),
		log_bool("own_port_good", sight->own_good), log_u64("median_ns", sight->median_ns),
		log_u64("baseline_ns", sight->baseline_ns),
		log_u64("lost_permille", sight->lost_permille)
	);
}

static void summary_tell(struct trail *trail, const struct path_summary *summary, uint64_t now_ns) {
	struct probing *probing = trail->probing;
	struct ras_peer peer;
	struct sight sight;

	if (ras_peer_find(overlay_ras(probing->fabric->overlay), trail->key.peer, &peer) != 0 ||
	    peer.state == RAS_LEFT)
		return;
	if (peer.incarnation != trail->incarnation) {
		trail->incarnation = peer.incarnation;
		trail->incarnation_ns = now_ns;
	}
	if (path_summary_seen_ns(summary, now_ns) < trail->incarnation_ns)
		return;
	sight = make_sight(trail, summary, peer.incarnation, now_ns);
	give_evidence(probing, &sight, &peer);
	if (sight.kind != trail->told.kind)
		log_sight(&sight, &peer);
	if (sight.kind == trail->told.kind && sight.own_good == trail->told.own_good &&
	    now_ns < trail->told_ns + FABRIC_SIGHT_NS)
		return;
	trail->told = sight;
	trail->told_ns = now_ns;
	hand_out(probing, &sight);
}

// Paths of one device are alike, that to itself among them: what slows our own reads of ourselves
// as much is nobody else's.
static bool is_of(const struct trail *trail, uint32_t device) {
	return trail->stage != TRAIL_FREE && !trail->visit && trail->key.device == device;
}

// A pair breaks with the first read that its device gave up, and with an agent that does not answer
// no other is made: what has to be known within three seconds does not wait for a second read.
uint64_t sights_cut_at(const struct trail *trail) {
	struct path_summary summary;

	if (trail->memory == NULL || !trail->lost_last)
		return RAS_NEVER;
	path_memory_summary(trail->memory, &summary);
	return summary.kind != SIGHT_SILENT ? summary.last_probe_ns + CUT_NS : RAS_NEVER;
}

static void notice_cut(const struct trail *trail, uint64_t now_ns) {
	if (trail->stage == TRAIL_BARE && now_ns >= sights_cut_at(trail))
		path_memory_cut_off(trail->memory);
}

static uint64_t resent_of(const struct probing *probing, uint32_t device) {
	const struct fabric_config *config = &probing->fabric->config;

	return config->resent != NULL
		       ? config->resent(config->resent_ctx, config->devices[device].name)
		       : PATH_RESENT_UNKNOWN;
}

// What reads of the device itself show, our own machine makes.
static uint32_t own_late(const struct probing *probing, uint32_t device, uint64_t now_ns) {
	for (uint32_t n = 0; n < probing->trails_used; n++) {
		if (is_of(&probing->trails[n], device) && probing->trails[n].self)
			return path_memory_late(probing->trails[n].memory, now_ns);
	}
	return 0;
}

static void judge_device(struct probing *probing, uint32_t device, uint64_t now_ns) {
	uint64_t resent = resent_of(probing, device);
	uint32_t late = own_late(probing, device, now_ns);
	uint32_t count = 0, place = 0;

	for (uint32_t n = 0; n < probing->trails_used; n++) {
		if (is_of(&probing->trails[n], device))
			path_memory_summary(
				probing->trails[n].memory, &probing->summaries[count++]
			);
	}
	for (uint32_t n = 0; n < probing->trails_used; n++) {
		struct trail *trail = &probing->trails[n];
		struct path_summary summary;

		if (!is_of(trail, device))
			continue;
		place++;
		if (trail->self)
			continue; // it was judged before the others
		notice_cut(trail, now_ns);
		path_memory_beside(trail->memory, now_ns, late, resent);
		(void)path_memory_judge(
			trail->memory, now_ns, path_like_ns(probing->summaries, count, place - 1)
		);
		path_memory_summary(trail->memory, &summary);
		summary_tell(trail, &summary, now_ns);
		trail_retry(trail, now_ns);
	}
}

void sights_judge(struct probing *probing, uint64_t now_ns) {
	for (uint32_t n = 0; n < probing->trails_used; n++) {
		const struct trail *trail = &probing->trails[n];

		if (trail->stage == TRAIL_FREE || !trail->self)
			continue;
		notice_cut(trail, now_ns);
		(void)path_memory_judge(trail->memory, now_ns, 0);
	}
	for (uint32_t n = 0; n < probing->fabric->nic_count; n++)
		judge_device(probing, n, now_ns);
}

void sights_visited(struct trail *trail, uint64_t now_ns) {
	struct probing *probing = trail->probing;
	struct path_summary summary;
	struct ras_peer peer;
	struct sight sight;

	if (ras_peer_find(overlay_ras(probing->fabric->overlay), trail->key.peer, &peer) != 0)
		return;
	path_brief_summary(trail->brief, &summary);
	briefs_visited(&probing->briefs, &trail->key, summary.kind, now_ns);
	sight = make_sight(trail, &summary, peer.incarnation, now_ns);
	give_evidence(probing, &sight, &peer);
	hand_out(probing, &sight);
}

void fabric_sights(struct fabric *fabric, fabric_sight_fn *fn, fabric_hung_fn *hung, void *ctx) {
	fabric->sight = fn;
	fabric->hung = hung;
	fabric->sight_ctx = ctx;
}
