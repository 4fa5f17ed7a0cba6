// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the protocol core: its time, its own record and its events.
#include "core/core.h"

#include <lib/splitmix.h>

#include <xxhash.h>

#include <errno.h>
#include <string.h>

#define PAUSE_MIN_NS (500 * RAS_NS_PER_MS)   // longer past the wake-up: this agent was stopped
#define RESTART_GAP_NS (10 * RAS_NS_PER_SEC) // between two new starts that pass an earlier run

// Time.

// Remember a pause. If there are too many, the two oldest ones become one.
static void pause_remember(struct ras *ras, uint64_t paused_ns) {
	if (ras->pause_count == OWN_PAUSES_MAX) {
		ras->pauses[1].length_ns += ras->pauses[0].length_ns;
		ras->pause_count--;
		memmove(ras->pauses, ras->pauses + 1, ras->pause_count * sizeof(ras->pauses[0]));
	}
	ras->pauses[ras->pause_count++] =
		(struct own_pause){.observed_ns = ras->observed_ns, .length_ns = paused_ns};
}

void ras_enter(struct ras *ras, uint64_t now_ns) {
	uint64_t paused_ns = 0;
	uint64_t since_ns;

	must(now_ns >= ras->now_ns);
	since_ns = now_ns - ras->now_ns;
	if (ras->started && now_ns > ras->wake_ns)
		paused_ns = now_ns - ras->wake_ns;
	// The requested wake-up may lie before the last input. Time before that input is no pause.
	if (paused_ns > since_ns)
		paused_ns = since_ns;
	if (paused_ns > PAUSE_MIN_NS) {
		// Silence while this agent did not run is no evidence against a peer.
		since_ns -= paused_ns;
		ras->counters.own_pauses++;
		ras->counters.own_paused_ns += paused_ns;
		ras->wake_ns = now_ns;
		ras->now_ns = now_ns;
		ras->observed_ns += since_ns;
		pause_remember(ras, paused_ns);
		// Pending frames were stamped during the pause, so their clocks would seem late. No
		// wall clock is compared until the caller sets the own one again.
		ras->wall = (struct wall_clock){0};
		ras->resumed_ns = ras->observed_ns;
		if (paused_ns >= ras->profile->suspect_ns)
			ras->long_pause_end_ns = ras->observed_ns;
		ras_emit(ras, RAS_EVENT_PAUSED, RAS_NO_SLOT, RAS_CAUSE_NONE, paused_ns);
		links_beat_after_pause(ras);
		liveness_resume(ras);
		return;
	}
	ras->now_ns = now_ns;
	ras->observed_ns += since_ns;
}

void ras_wake_at(struct ras *ras, uint64_t at_ns) {
	uint64_t now_based;

	if (at_ns == RAS_NEVER)
		return;
	now_based =
		at_ns > ras->observed_ns ? ras->now_ns + (at_ns - ras->observed_ns) : ras->now_ns;
	if (now_based < ras->wake_ns)
		ras->wake_ns = now_based;
}

void ras_exit(struct ras *ras) {
	uint64_t next_ns = parts_next_ns(ras);

	if (next_ns < ras->wake_ns)
		ras->wake_ns = next_ns;
	if (ras->links.dropped > 0)
		links_reap(ras);
	if (ras->conns.freed > 0)
		conns_reap(ras);
	if (ras->wake_ns != ras->wake_requested_ns) {
		ras->wake_requested_ns = ras->wake_ns;
		ras->ops.wake(ras->ops_ctx, ras->wake_ns);
	}
}

uint64_t ras_random(struct ras *ras) {
	return splitmix_next(&ras->random);
}

uint64_t ras_jitter(struct ras *ras, uint64_t base_ns) {
	return base_ns < 4 ? base_ns : base_ns - ras_random(ras) % (base_ns / 4);
}

// Life.

// Create the buffer, the table and the history, which all parts use, and then the parts.
static int instance_init(struct ras *ras, const struct ras_config *config) {
	struct peer_news news = {
		.incarnation = ras_incarnation(config->self.start, 0),
		.state = RAS_ALIVE,
	};
	enum peers_change change;
	int err;

	ras->scratch = memory_allocate(&ras->memory, RAS_FRAME_MAX);
	if (ras->scratch == NULL)
		return -ENOMEM;
	peers_init(&ras->peers, &ras->memory, ras->interner);
	err = ras_record_from_info(ras->interner, &config->self, &news.record);
	if (err != 0)
		return err;
	news.id = news.record->id;
	ras->self_id = news.id;
	err = peers_merge(&ras->peers, &news, 0, &change, &ras->self_slot);
	ras_record_put(ras->interner, news.record);
	if (err == 0)
		err = history_init(&ras->history, &ras->memory, config->history_events);
	if (err == 0)
		err = join_init(ras, config->seeds, config->seed_count);
	if (err == 0)
		err = parts_init(ras);
	return err;
}

int ras_create(
	const struct ras_config *config,
	const struct ras_memory *memory,
	struct ras_interner *interner,
	const struct ras_ops *ops,
	void *ops_ctx,
	struct ras **ret_ras
) {
	struct memory first = {.source = *memory};
	struct ras *ras;
	int err;

	if (config->profile == NULL || config->cluster == NULL || config->conns_max == 0 ||
	    config->conns_max > CONNS_MAX || config->seed_count > RAS_SEEDS_MAX)
		return -EINVAL;
	ras = memory_allocate(&first, sizeof(*ras));
	if (ras == NULL)
		return -ENOMEM;
	ras->memory = first;
	ras->profile = config->profile;
	ras->ops = *ops;
	ras->ops_ctx = ops_ctx;
	ras->interner = interner;
	ras->random = config->random_seed;
	ras->cluster = XXH3_64bits(config->cluster, strlen(config->cluster));
	ras->versions = ras_versions_built;
	if (config->version_min != 0)
		ras->versions.min = config->version_min;
	if (config->version_max != 0)
		ras->versions.max = config->version_max;
	ras->conns_max = config->conns_max;
	ras->wake_ns = RAS_NEVER;
	ras->wake_requested_ns = RAS_NEVER;
	ras->news.flush_ns = RAS_NEVER;
	err = instance_init(ras, config);
	if (err != 0) {
		ras_destroy(ras);
		return err;
	}
	*ret_ras = ras;
	return 0;
}

struct ras *ras_destroy(struct ras *ras) {
	struct memory last;

	if (ras == NULL)
		return NULL;
	parts_fini(ras);
	history_fini(&ras->history, &ras->memory);
	peers_fini(&ras->peers);
	memory_release(&ras->memory, ras->scratch, ras->scratch != NULL ? RAS_FRAME_MAX : 0);
	last = ras->memory;
	must(last.used_bytes == sizeof(*ras));
	memory_release(&last, ras, sizeof(*ras));
	return NULL;
}

void ras_start(struct ras *ras, uint64_t now_ns) {
	must(!ras->started);
	ras->now_ns = now_ns;
	// Observed time begins at one hour, so that no earlier time is negative.
	ras->observed_ns = 3600 * RAS_NS_PER_SEC;
	ras->started = true;
	ras->links.beat_due_ns = ras->observed_ns + ras_random(ras) % ras->profile->beat_ns;
	ras->expire_ns = ras->observed_ns + EXPIRE_GAP_NS;
	ras_self(ras)->flags |= PEER_SEEN;
	ras_self(ras)->since_ns = ras->observed_ns;
	if (ras->preloaded) {
		join_fill_seed_slots(ras);
		ras_become_member(ras, 0);
	} else
		join_begin(ras);
	ras_wake_at(ras, ras->links.beat_due_ns);
	ras_exit(ras);
}

static int self_replace(struct ras *ras, const struct ras_peer_info *info) {
	struct peer_news news = {
		.state = RAS_ALIVE,
		.id = ras->self_id,
		.incarnation = ras_incarnation(info->start, 0),
	};
	enum peers_change change;
	int err;

	err = ras_record_from_info(ras->interner, info, &news.record);
	if (err != 0)
		return err;
	err = peers_merge(&ras->peers, &news, ras->observed_ns, &change, &ras->self_slot);
	ras_record_put(ras->interner, news.record);
	must(err != -EBADMSG);
	ras_self(ras)->flags |= PEER_SEEN;
	if (err == 0)
		relay_self_restarted(ras);
	return err;
}

// Take over a start number into the own record.
static void self_restart(struct ras *ras, uint64_t start) {
	struct ras_peer_info info;

	// A start above the maximum comes from a faulty or lying agent: keep the own one.
	if (start <= ras_incarnation_start(ras_self(ras)->incarnation) || start > RAS_START_MAX)
		return;
	ras_record_info(ras_self(ras)->record, &info);
	info.start = start;
	// An allocation failure is harmless here: others report the old start number, and this
	// agent refutes.
	(void)self_replace(ras, &info);
}

int ras_restart_at_address(struct ras *ras, const struct sock_addr *address) {
	uint64_t own = ras_incarnation_start(ras_self(ras)->incarnation);
	struct ras_peer_info info;
	int err;

	if (own == RAS_START_MAX)
		return -ENOSPC;
	ras_record_info(ras_self(ras)->record, &info);
	info.start = own + 1;
	info.addresses[0] = *address;
	err = self_replace(ras, &info);
	if (err == 0 && own == 0)
		ras->start_guessed = true;
	return err;
}

void ras_become_member(struct ras *ras, uint64_t start) {
	uint64_t own = ras_incarnation_start(ras_self(ras)->incarnation);

	ras->start_from_seed = own == 0;
	if (start == 0 || start > RAS_START_MAX) {
		ras->start_guessed = ras->start_guessed || own == 0;
		start = own > 0 ? own : 1;
	}
	self_restart(ras, start);
	ras->joined = true;
	ras->joined_ns = ras->observed_ns;
	ring_rebuild(ras);
	ras_wake_at(ras, ras->observed_ns);
}

void ras_leave(struct ras *ras, uint64_t now_ns) {
	ras_enter(ras, now_ns);
	if (!ras->leaving) {
		ras->leaving = true;
		ras->left = true;
		transfer_leave(ras);
		links_say_leave(ras);
		conns_close_without_link(ras);
	}
	ras_exit(ras);
}

bool ras_supersede_earlier_run(struct ras *ras, uint64_t start) {
	uint64_t before = ras_self(ras)->incarnation;

	if (!ras->joined || ras->leaving || start >= RAS_START_MAX ||
	    start < ras_incarnation_start(before))
		return false;
	// An agent that follows every new start is no earlier run but a live clone. Each new start
	// is news for all members, so their rate is limited.
	if (ras->observed_ns < ras->next_restart_ns) {
		if (!ras->restart_deferred)
			ras_emit_conflict(ras, ras->self_slot, ras_incarnation(start, 0), NULL);
		ras->restart_deferred = true;
		return false;
	}
	self_restart(ras, start + 1);
	if (ras_self(ras)->incarnation == before)
		return false;
	ras->next_restart_ns = ras->observed_ns + RESTART_GAP_NS;
	ras->restart_deferred = false;
	ras->start_guessed = false;
	ras->start_from_seed = false;
	ras_emit(
		ras, RAS_EVENT_DECLARED_DEAD, ras->self_slot, RAS_CAUSE_RESTART,
		ras_self(ras)->incarnation
	);
	news_send_self(ras);
	return true;
}

bool ras_is_shut_down(const struct ras *ras) {
	return ras->leaving && ras->conns.open == 0;
}

void ras_tick(struct ras *ras, uint64_t now_ns) {
	ras_enter(ras, now_ns);
	ras->wake_ns = RAS_NEVER;
	ras->wake_requested_ns = RAS_NEVER; // the wake-up may be this tick, which is used up
	parts_tick(ras);
	ras_exit(ras);
}

// Events.

static void event_emit(struct ras *ras, struct ras_event *event) {
	event->quiet = turns_event_is_quiet(ras, event);
	if (!event->quiet)
		history_add(&ras->history, event);
	ras->ops.event(ras->ops_ctx, event);
}

static void event_set_peer(const struct ras *ras, uint32_t slot, struct ras_event *event) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	event->peer = entry->record->id;
	event->incarnation = entry->incarnation;
	event->hops = entry->hops;
	memcpy(event->name, entry->record->name, entry->record->name_length);
}

void ras_emit(
	struct ras *ras,
	enum ras_event_kind kind,
	uint32_t slot,
	enum ras_cause cause,
	uint64_t value
) {
	struct ras_event event = {
		.at_ns = ras->now_ns,
		.kind = kind,
		.cause = cause,
		.value = value,
	};

	if (slot != RAS_NO_SLOT) {
		event_set_peer(ras, slot, &event);
		if (kind == RAS_EVENT_DEAD) // observers belong to deaths only
			event.observer_count =
				peers_known_observers(&ras->peers, slot, event.observers);
	}
	event_emit(ras, &event);
}

void ras_emit_for_address(
	struct ras *ras,
	enum ras_event_kind kind,
	const struct sock_addr *address,
	enum ras_cause cause,
	uint64_t value
) {
	struct ras_event event = {
		.at_ns = ras->now_ns,
		.kind = kind,
		.cause = cause,
		.value = value,
		.other = *address,
	};

	event_emit(ras, &event);
}

void ras_emit_conflict(
	struct ras *ras, uint32_t slot, uint64_t value, const struct sock_addr *other
) {
	struct ras_event event = {
		.at_ns = ras->now_ns,
		.kind = RAS_EVENT_CONFLICT,
		.cause = RAS_CAUSE_CONFLICT,
		.value = value,
	};

	if (other != NULL)
		event.other = *other;
	event_set_peer(ras, slot, &event);
	event_emit(ras, &event);
}

void ras_emit_stranger(struct ras *ras, const struct ras_stranger *stranger) {
	struct ras_event event = {
		.at_ns = ras->now_ns,
		.kind = RAS_EVENT_ADDRESS_OTHER,
		.cause = RAS_CAUSE_CONFLICT,
		.value = stranger->found,
		.other = stranger->address,
	};

	event_set_peer(ras, peers_find(&ras->peers, stranger->peer), &event);
	event_emit(ras, &event);
}

void ras_emit_own_address(struct ras *ras) {
	struct ras_event event = {
		.at_ns = ras->now_ns,
		.kind = RAS_EVENT_ADDRESS_CHANGED,
		.other = ras_self(ras)->record->address,
	};

	event_set_peer(ras, ras->self_slot, &event);
	event_emit(ras, &event);
}

void ras_emit_for_record(
	struct ras *ras,
	enum ras_event_kind kind,
	const struct ras_record *record,
	enum ras_cause cause,
	uint64_t value
) {
	struct ras_event event = {
		.at_ns = ras->now_ns,
		.kind = kind,
		.cause = cause,
		.value = value,
	};

	if (record != NULL) {
		event.peer = record->id;
		event.incarnation = ras_incarnation(record->start, 0);
		memcpy(event.name, record->name, record->name_length);
	}
	event_emit(ras, &event);
}

int ras_add_event(struct ras *ras, uint64_t now_ns, const struct ras_event *note) {
	struct ras_event event = {
		.kind = note->kind,
		.cause = note->cause,
		.observer_count = note->observer_count,
		.value = note->value,
	};
	uint32_t slot;

	must(note->kind >= RAS_EVENT_REPORTED && note->kind < RAS_EVENT_KIND_COUNT);
	must(note->observer_count <= RAS_OBSERVERS_MAX);
	ras_enter(ras, now_ns);
	slot = peers_find(&ras->peers, note->peer);
	if (slot != RAS_NO_SLOT) {
		event.at_ns = ras->now_ns;
		memcpy(event.observers, note->observers, sizeof(event.observers));
		event_set_peer(ras, slot, &event);
		event_emit(ras, &event);
	}
	ras_exit(ras);
	return slot != RAS_NO_SLOT ? 0 : -ENOENT;
}

void ras_refute_suspicion(struct ras *ras, uint64_t incarnation) {
	struct peer_entry *self = ras_self(ras);

	if (incarnation < self->incarnation || ras->leaving || !ras->joined)
		return;
	if (ras_incarnation_start(incarnation) > ras_incarnation_start(self->incarnation)) {
		// Another agent carries this name, or an unknown start of this agent exists.
		ras_emit_conflict(ras, ras->self_slot, incarnation, NULL);
		return;
	}
	// The refutations are used up, so the next incarnation is a new start.
	if ((incarnation & RAS_REFUTATIONS_MAX) == RAS_REFUTATIONS_MAX)
		self_restart(ras, ras_incarnation_start(incarnation) + 1);
	else
		self->incarnation = incarnation + 1;
	news_send_self(ras);
}

int ras_relay_deliver(struct ras *ras, const struct ras_relay_delivery *delivery) {
	if (delivery->port == RELAY_PORT_TRANSFER)
		return transfer_message_received(ras, delivery);
	if (delivery->port < RAS_RELAY_PORT_MIN)
		return -EBADMSG;
	return ras->ops.deliver != NULL ? ras->ops.deliver(ras->ops_ctx, delivery) : -ENOENT;
}

void ras_relay_report(struct ras *ras, uint32_t port, const struct ras_relay_report *report) {
	if (port >= RAS_RELAY_PORT_MIN)
		ras->ops.report(ras->ops_ctx, report);
	else
		transfer_report_received(ras, report);
}

void ras_relay_deliver_once(
	struct ras *ras, uint64_t source, uint32_t port, struct wire_reader *reader
) {
	if (port == RELAY_PORT_CONFIRM)
		liveness_message(ras, source, reader);
	else
		wire_reader_fail(reader, -ENOENT);
}
