// SPDX-License-Identifier: BSD-3-Clause
// Passes the overlay's members to the engine: after each event, and once a second while a member is
// not alive. The latter is needed since the state of a host's connections has no event.
#include "verdict/store/health_inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/wire.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REFRESH_INTERVAL_NS RAS_NS_PER_SEC
#define HOST_BYTES (RAS_NAME_MAX + 16)
#define PAUSE_GRACE_NS (2 * RAS_NS_PER_SEC) // after an own pause, until peers are heard again

static bool peer_state_is_in_doubt(enum ras_state state) {
	return state == RAS_SUSPECT || state == RAS_DEAD || state == RAS_UNREACHABLE;
}

// Publish what this node's own connections to the peer show.
static void publish_tcp_reach(
	struct health *health,
	const struct ras_peer *peer,
	const struct overlay_tcp_reach *tcp_reach
) {
	struct observation observation = {
		.observer = ras_self_id(overlay_ras(health->overlay)),
		.subject = peer->record->id,
		.incarnation = peer->incarnation,
		.kind = OBSERVATION_NO_PAIR,
		.reach = tcp_reach->reach,
		.age_ms =
			(uint32_t)((loop_now_ns(health->loop) - tcp_reach->at_ns) / RAS_NS_PER_MS),
	};

	if (tcp_reach->reach != VERDICT_REACH_UNKNOWN)
		health_add_observation(health, &observation);
}

// Return whether this node reported the peer's connections unanswered and has not withdrawn that.
static bool unanswered_was_published(const struct health *health, uint64_t peer) {
	uint64_t self = ras_self_id(overlay_ras(health->overlay));
	struct observation observation;
	uint32_t cursor = 0;
	uint64_t seen_ns;

	while (verdict_observation_next(health->engine, peer, &cursor, &observation, &seen_ns)) {
		if (observation.observer == self && observation.device[0] == '\0')
			return verdict_reach_is_unanswered(observation.reach) ||
			       observation.reach == VERDICT_REACH_OTHER;
	}
	return false;
}

// Withdraw the report that the peer's connections are unanswered, since the peer is alive. This
// node may have no connection of its own that shows it. The loss of packets stays reported.
static void publish_peer_answers(struct health *health, const struct ras_peer *peer) {
	const struct observation observation = {
		.observer = ras_self_id(overlay_ras(health->overlay)),
		.subject = peer->record->id,
		.incarnation = peer->incarnation,
		.kind = OBSERVATION_NO_PAIR,
		.reach = VERDICT_REACH_ANSWERS,
	};

	if (!health_losses_publish(health, peer))
		health_add_observation(health, &observation);
}

// Name the host. Machines that share one identity are distinguished by their boot.
static void host_name(
	const struct health *health, const struct ras_record *record, char host[static HOST_BYTES]
) {
	bool is_shared = record->host_id != record->host_name_id &&
			 overlay_host_has_several_boots(health->overlay, record->host_name_id);
	int used = snprintf(host, HOST_BYTES, "%.*s", (int)record->host_length, record->host);

	if (is_shared)
		snprintf(
			host + used, HOST_BYTES - (size_t)used, "/%08" PRIx32,
			(uint32_t)record->host_id
		);
}

static void engine_update_peer(struct health *health, const struct ras_peer *peer) {
	char name[RAS_NAME_MAX + 1] = "", host[HOST_BYTES];
	const struct ras_record *record = peer->record;
	struct overlay_tcp_reach tcp_reach = {0};
	bool must_take_back;
	struct verdict_peer_update told = {
		.id = record->id,
		.incarnation = peer->incarnation,
		.state = peer->state,
		.cause = peer->cause,
		.sole = peer->sole,
		.maint = peer->maint,
		.observer_count = peer->observer_count,
		.host = host,
		.leaf = "",
	};

	host_name(health, record, host);
	memcpy(name, record->name, record->name_length);
	memcpy(told.observers, peer->observers, sizeof(told.observers));
	if (health->leaves != NULL)
		told.leaf = leaf_map_leaf(health->leaves, name, record->name_length);
	if (peer_state_is_in_doubt(peer->state)) {
		overlay_tcp_reach(health->overlay, record->id, &tcp_reach);
		told.reach = tcp_reach.reach;
	}
	// Ask before the input: it ends the engine's record of that report.
	must_take_back = peer->state == RAS_ALIVE && unanswered_was_published(health, record->id);
	if (verdict_peer_update(health->engine, loop_now_ns(health->loop), &told) != 0)
		log_event(LOG_LEVEL_ERROR, "verdict_lost", log_errno("error", ENOMEM));
	if (peer_state_is_in_doubt(peer->state))
		publish_tcp_reach(health, peer, &tcp_reach);
	else if (must_take_back)
		publish_peer_answers(health, peer);
}

// Refresh periodically if that is needed. The connections of a peer in doubt change without an
// event. While the brake is on, so does the number of missed members.
static void schedule_refresh(struct health *health) {
	uint64_t at_ns = loop_now_ns(health->loop) + REFRESH_INTERVAL_NS;
	struct ras_view view;

	ras_view(overlay_ras(health->overlay), &view);
	if (!view.brake && view.suspect + view.unreachable + view.dead == 0 &&
	    !health->addresses_pending)
		loop_timer_cancel(health->loop, &health->look);
	else if (health->look.place == 0 && loop_timer_set(health->loop, &health->look, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

static void engine_update_all_peers(struct health *health, bool in_doubt_only) {
	const struct ras *ras = overlay_ras(health->overlay);
	struct ras_view view;
	struct ras_peer peer;

	ras_view(ras, &view);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) == 0 &&
		    (!in_doubt_only || peer_state_is_in_doubt(peer.state)))
			engine_update_peer(health, &peer);
	}
}

static void engine_update_self(struct health *health, bool brake) {
	struct verdict_self_update self = {
		.paused_until_ns = health->paused_until_ns,
		.paused_ns = health->paused_ns,
		.brake = brake,
		.loses = health->losses != NULL && health->losses->ourselves,
	};
	struct ras_view view;

	ras_view(overlay_ras(health->overlay), &view);
	self.joined = view.joined;
	self.silent = brake ? view.silent : 0;
	health->brake_told = brake;
	verdict_self_update(health->engine, loop_now_ns(health->loop), &self);
	grants_expect(
		health->grants, overlay_roster_count(health->overlay),
		overlay_is_alone(health->overlay)
	);
}

void health_self_changed(struct health *health) {
	engine_update_self(health, health->brake_told);
}

// A brake that starts is passed after the peers: the members that it holds back are then
// unreachable already. A brake that ends is passed before them. Otherwise verdicts would be
// withdrawn and repeated in between.
static void peers_refresh(struct loop_job *job) {
	struct health *health = container_of(job, struct health, refresh);
	const struct ras *ras = overlay_ras(health->overlay);
	struct ras_view view;
	struct ras_peer peer;

	ras_view(ras, &view);
	engine_update_self(health, view.brake && health->brake_told);
	if (health->all_dirty)
		engine_update_all_peers(health, false);
	for (uint32_t n = 0; n < health->dirty_count && !health->all_dirty; n++) {
		if (ras_peer_find(ras, health->dirty[n], &peer) == 0)
			engine_update_peer(health, &peer);
	}
	health->all_dirty = false;
	health->dirty_count = 0;
	engine_update_self(health, view.brake);
	health_grants_check_soon(health);
	schedule_refresh(health);
}

static void peer_mark_changed(struct health *health, uint64_t peer) {
	for (uint32_t n = 0; n < health->dirty_count; n++) {
		if (health->dirty[n] == peer)
			return;
	}
	if (health->dirty_count == HEALTH_DIRTY)
		health->all_dirty = true;
	else
		health->dirty[health->dirty_count++] = peer;
}

// Return whether the event concerns a peer. Link events change nothing here, and there are many.
static bool event_is_of_peer(enum ras_event_kind kind) {
	switch (kind) {
	case RAS_EVENT_JOINED:
	case RAS_EVENT_ALIVE:
	case RAS_EVENT_SUSPECT:
	case RAS_EVENT_REFUTED:
	case RAS_EVENT_UNREACHABLE:
	case RAS_EVENT_DEAD:
	case RAS_EVENT_LEFT:
	case RAS_EVENT_REJOINED:
	case RAS_EVENT_FORGOTTEN:
	case RAS_EVENT_MAINT:
	case RAS_EVENT_ADDRESS_CHANGED:
	case RAS_EVENT_DECLARED_DEAD:
		return true;
	default:
		return false;
	}
}

static void on_event(struct overlay_listener *listener, const struct ras_event *event) {
	struct health *health = container_of(listener, struct health, listener);
	uint64_t now_ns = loop_now_ns(health->loop);
	enum ras_event_kind kind = event->kind;
	bool is_of_self = kind == RAS_EVENT_HOST_SHARED || kind == RAS_EVENT_KEY_SHARED ||
			  kind == RAS_EVENT_BRAKE_ON || kind == RAS_EVENT_BRAKE_OFF ||
			  kind == RAS_EVENT_PAUSED || kind == RAS_EVENT_JOIN_DONE;

	if (kind == RAS_EVENT_PAUSED) {
		// Reports that waited during a long pause may be read after a short one.
		if (event->at_ns >= health->paused_until_ns || event->value > health->paused_ns)
			health->paused_ns = event->value;
		health->paused_until_ns = event->at_ns + PAUSE_GRACE_NS;
	}
	if (kind == RAS_EVENT_HOST_SHARED)
		health->all_dirty = true; // all peers with this host name
	if (kind == RAS_EVENT_JOIN_DONE)
		// The whole table arrived at once, without an event per member.
		health->all_dirty = true;
	// A member that just started may not know the grants.
	if (kind == RAS_EVENT_JOINED || kind == RAS_EVENT_REJOINED)
		grants_member_alive(health->grants, now_ns, event->peer);
	if (kind == RAS_EVENT_KEY_CHANGED)
		verdict_peer_key_changed(health->engine, now_ns, event->peer);
	if (kind == RAS_EVENT_JOIN_DONE)
		grants_member_alive(
			health->grants, now_ns, ras_self_id(overlay_ras(health->overlay))
		);

	// This agent took a new start number.
	if ((kind == RAS_EVENT_ADDRESS_CHANGED ||
	     (kind == RAS_EVENT_DECLARED_DEAD && event->cause == RAS_CAUSE_RESTART)) &&
	    health->exchange != NULL)
		observation_exchange_repeat_statements(health->exchange, now_ns);
	// Forget a peer at once: if too many peers changed, it could not be found later. The
	// exchange would repeat this node's observations of it, and nothing would withdraw them.
	if (kind == RAS_EVENT_FORGOTTEN) {
		verdict_peer_forget(health->engine, now_ns, event->peer);
		if (health->exchange != NULL)
			observation_exchange_forget(health->exchange, event->peer);
	} else if (event_is_of_peer(kind)) {
		peer_mark_changed(health, event->peer);
	}
	if (event_is_of_peer(kind) || is_of_self)
		loop_defer(health->loop, &health->refresh);
}

// State that this machine shares an address. An operator may ask any node, but only this machine
// knows its addresses.
static void on_addresses_changed(struct overlay_listener *listener) {
	struct health *health = container_of(listener, struct health, listener);
	struct statement statement = {
		.subject = ras_self_id(overlay_ras(health->overlay)),
		.verdict = VERDICT_CHECK_WARNING,
		.reason = "AddressShared",
	};
	char words[STATE_TEXT_BYTES];
	bool shared = overlay_shared_address_at(health->overlay, 0, words);

	if (shared)
		snprintf(
			statement.evidence, sizeof(statement.evidence), "%.*s",
			VERDICT_EVIDENCE_MAX, words
		);
	else
		statement.verdict = VERDICT_HEALTHY;
	// Long names may have been cut within a character.
	for (size_t length = strlen(statement.evidence);
	     !wire_utf8_valid(statement.evidence, length);)
		statement.evidence[--length] = '\0';
	// A statement that was lost is made again at the next periodic refresh.
	health->addresses_pending = (shared || health->address_is_shared) &&
				    health_add_statement(health, &statement) != 0;
	if (health->addresses_pending)
		schedule_refresh(health);
	else
		health->address_is_shared = shared;
}

static void peers_refresh_periodic(struct loop_timer *timer, uint64_t now_ns) {
	struct health *health = container_of(timer, struct health, look);

	(void)now_ns;
	health_self_changed(health);
	if (health->addresses_pending)
		on_addresses_changed(&health->listener);
	engine_update_all_peers(health, true);
	schedule_refresh(health);
}

void health_peers_start(struct health *health) {
	health->refresh.run = peers_refresh;
	health->look.expired = peers_refresh_periodic;
	health->listener.event = on_event;
	health->listener.addresses = on_addresses_changed;
	overlay_listen(health->overlay, &health->listener);
	// Refresh at once: statements of this node need its own entry in the engine.
	health->all_dirty = true;
	peers_refresh(&health->refresh);
}

void health_peers_stop(struct health *health) {
	if (health->listener.event == NULL)
		return;
	overlay_unlisten(health->overlay, &health->listener);
	loop_undefer(health->loop, &health->refresh);
	loop_timer_cancel(health->loop, &health->look);
}
