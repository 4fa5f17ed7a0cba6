// SPDX-License-Identifier: BSD-3-Clause
// Looks of other observers at a suspect: choice of the observers, and their answers.
#include "live/liveness_look.h"

#include "core/core.h"

#include <errno.h>

// Messages on RELAY_PORT_CONFIRM: u8 kind, u64 subject, u64 incarnation and u64 run of the subject,
// u32 round. LOOK_ANSWER adds u8 observation and u32 ms since the subject spoke to the observer.
// Older agents do not send that time.
enum look_message {
	LOOK_ASK = 1, // request to look at the subject
	LOOK_ANSWER,  // result of the look
	LOOK_NOTIFY,  // notifies the subject that it is suspected
};

#define LOOK_BYTES_MAX 64
// The answer has to arrive before the round of the asker ends.
#define LOOK_NS(profile) ((profile)->confirm_ns / 4 * 3)

static void look_message_begin(
	const struct ras *ras,
	struct wire_writer *writer,
	enum look_message kind,
	uint32_t slot,
	uint32_t round
) {
	wire_put_u8(writer, (uint8_t)kind);
	wire_put_u64(writer, ras_entry(ras, slot)->record->id);
	wire_put_u64(writer, ras_entry(ras, slot)->incarnation);
	wire_put_u64(writer, ras_entry(ras, slot)->record->run);
	wire_put_u32(writer, round);
}

static void look_message_send(struct ras *ras, uint32_t to, const struct wire_writer *writer) {
	relay_send_once(
		ras, to, RELAY_PORT_CONFIRM, RAS_RELAY_CONTROL, writer->data,
		wire_writer_used(writer)
	);
}

void look_notify_suspect(struct ras *ras, uint32_t slot) {
	uint8_t bytes[LOOK_BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	look_message_begin(ras, &writer, LOOK_NOTIFY, slot, 0);
	look_message_send(ras, slot, &writer);
}

// Return the cause to refuse a newcomer that claims a name, by what the look at the holder found.
// NONE grants the name. One silent look is less than a death, so a slow holder keeps its name. The
// newcomer asks other members until the holder answered one of them, or is held for dead or
// unreachable.
static enum ras_cause
claim_refusal(const struct ras *ras, uint32_t slot, enum observation observation) {
	switch (observation) {
	case OBSERVATION_ALIVE:
		return RAS_CAUSE_CONFLICT;
	case OBSERVATION_GONE:
		return RAS_CAUSE_NONE;
	case OBSERVATION_SILENT:
		if (ras_entry(ras, slot)->state == RAS_UNREACHABLE)
			return RAS_CAUSE_NONE;
		return RAS_CAUSE_BUSY;
	default:
		return RAS_CAUSE_BUSY;
	}
}

// Return the observation to send. Without a former connection no connection was lost: a firewall
// may refuse new connections and keep existing ones, whose peer is only stopped. So *gone* is
// reported as silence.
static enum observation
observation_to_report(const struct ras *ras, uint32_t slot, enum observation observation) {
	const struct link *link = link_find(ras, slot);

	return observation == OBSERVATION_GONE && link != NULL && link->connects == 0
		       ? OBSERVATION_SILENT
		       : observation;
}

static void look_answer(struct ras *ras, const struct look *look, enum observation observation) {
	const struct link *link = link_find(ras, look->slot);
	uint64_t heard_ago_ms = LOOK_NEVER_MS;
	uint8_t bytes[LOOK_BYTES_MAX];
	struct wire_writer writer;

	if (look->asker == RAS_NO_SLOT) {
		struct conn *conn = conn_find(ras, look->claim);

		if (conn != NULL)
			join_name_claim_decided(
				ras, conn, look->slot, claim_refusal(ras, look->slot, observation)
			);
		return;
	}
	if (link != NULL && link->connects > 0 && !link->unheard)
		heard_ago_ms = (ras->observed_ns - link->heard_ns) / RAS_NS_PER_MS;
	if (heard_ago_ms > LOOK_NEVER_MS)
		heard_ago_ms = LOOK_NEVER_MS;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	look_message_begin(ras, &writer, LOOK_ANSWER, look->slot, look->round);
	wire_put_u8(&writer, (uint8_t)observation_to_report(ras, look->slot, observation));
	wire_put_u32(&writer, (uint32_t)heard_ago_ms);
	look_message_send(ras, look->asker, &writer);
}

// End all looks at a peer with one observation.
static void looks_answer(struct ras *ras, uint32_t slot, enum observation observation) {
	struct liveness *liveness = &ras->liveness;

	for (uint32_t n = 0; n < liveness->look_count;) {
		struct look look = liveness->looks[n];

		if (look.slot != slot) {
			n++;
			continue;
		}
		liveness->looks[n] = liveness->looks[--liveness->look_count];
		look_answer(ras, &look, observation);
	}
}

void looks_answer_alive(struct ras *ras, uint32_t slot) {
	if (ras->liveness.look_count > 0)
		looks_answer(ras, slot, OBSERVATION_ALIVE);
}

void looks_answer_gone(struct ras *ras, uint32_t slot) {
	looks_answer(ras, slot, OBSERVATION_GONE);
}

void looks_forget_peer(struct ras *ras, uint32_t slot) {
	struct liveness *liveness = &ras->liveness;

	for (uint32_t n = 0; n < liveness->look_count;) {
		if (liveness->looks[n].slot == slot || liveness->looks[n].asker == slot)
			liveness->looks[n] = liveness->looks[--liveness->look_count];
		else
			n++;
	}
}

static void peer_check_begin(struct ras *ras, struct look look) {
	struct liveness *liveness = &ras->liveness;
	struct link *link = link_want(ras, look.slot, RAS_USE_CHECK);
	uint64_t limit_ns = LOOK_NS(ras->profile);

	// Profiles without observers have no time for looks, but a name claim always needs one.
	if (look.asker == RAS_NO_SLOT && limit_ns < LOOK_PING_NS)
		limit_ns = LOOK_PING_NS;
	look.deadline_ns = ras->observed_ns + limit_ns;
	// The process may have been started since an older look found it gone.
	if (link != NULL && link->gone && ras->observed_ns - link->gone_ns > LOOK_PING_NS) {
		link->gone = false;
		link->refused_ns = RAS_NEVER;
	}
	if (link != NULL && link->gone) {
		look_answer(ras, &look, OBSERVATION_GONE);
		return;
	}
	if (link == NULL || liveness->look_count == LIVENESS_LOOKS_MAX ||
	    memory_grow(
		    &ras->memory, (void **)&liveness->looks, &liveness->look_capacity,
		    liveness->look_count + 1, sizeof(*liveness->looks)
	    ) != 0) {
		look_answer(ras, &look, OBSERVATION_UNABLE);
		return;
	}
	liveness->looks[liveness->look_count++] = look;
	ras_wake_at(ras, look.deadline_ns);
	link->watched = true; // only later messages prove life
	link_probe(ras, link);
}

void liveness_check_name_claim(struct ras *ras, uint32_t slot, struct conn *conn) {
	peer_check_begin(
		ras, (struct look){.slot = slot, .asker = RAS_NO_SLOT, .claim = conn->handle}
	);
}

void looks_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;

	for (uint32_t n = 0; n < liveness->look_count;) {
		struct look look = liveness->looks[n];
		const struct link *link;

		if (look.deadline_ns > ras->observed_ns) {
			ras_wake_at(ras, look.deadline_ns);
			n++;
			continue;
		}
		liveness->looks[n] = liveness->looks[--liveness->look_count];
		link = link_find(ras, look.slot);
		// Without any connection attempt nothing was observed.
		if (link == NULL ||
		    (link->current == NULL && link->pending == NULL && link->retries == 0))
			look_answer(ras, &look, OBSERVATION_UNABLE);
		else
			look_answer(ras, &look, OBSERVATION_SILENT);
	}
}

// Choice of observers: members that have links to the suspect by their position, the closest of
// each ring first.

static bool
host_has_observer(const struct ras *ras, const struct suspicion *suspicion, uint32_t slot) {
	uint64_t host = ras_entry(ras, slot)->record->host_id;

	if (host == ras_self(ras)->record->host_id ||
	    host == ras_entry(ras, suspicion->slot)->record->host_id)
		return true;
	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		if (ras_entry(ras, suspicion->asked[n])->record->host_id == host)
			return true;
	}
	return false;
}

static bool can_be_asked(
	const struct ras *ras, const struct suspicion *suspicion, uint32_t slot, bool any_host
) {
	if (slot == ras->self_slot || slot == suspicion->slot ||
	    ras_entry(ras, slot)->state != RAS_ALIVE)
		return false;
	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		if (suspicion->asked[n] == slot)
			return false;
	}
	return any_host ||
	       (!host_has_observer(ras, suspicion, slot) &&
		turns_barred_until(
			ras, suspicion->slot, suspicion->cause, ras_entry(ras, slot)->record->id
		) == 0);
}

static void
observers_choose(struct ras *ras, struct suspicion *suspicion, uint32_t place, bool any_host) {
	struct peers *peers = &ras->peers;
	uint32_t count = peers_ring_count(peers);
	const struct ras_record *suspect = ras_entry(ras, suspicion->slot)->record;
	uint32_t position = peers_ring_position(peers, suspect);
	uint32_t steps = 2 * (ring_level_count(count) + 1);

	// Distances ±1, ±2, ±4 …; later rounds begin further away. Then members in ring order.
	for (uint32_t n = 0; n < steps + count && suspicion->asked_count < place; n++) {
		uint32_t turn = (n + suspicion->rounds) % (n < steps ? steps : count + steps);
		uint32_t distance = n < steps ? 1u << (turn / 2) : (n - steps) + 1;
		bool ahead = n >= steps || turn % 2 == 0;
		uint32_t at = ahead ? (position + distance) % count
				    : (position + count - distance % count) % count;
		uint32_t slot = peers_ring_at(peers, at);

		if (can_be_asked(ras, suspicion, slot, any_host)) {
			suspicion->observations[suspicion->asked_count] = OBSERVATION_NONE;
			suspicion->asked[suspicion->asked_count++] = slot;
		}
	}
}

void look_ask_observers(struct ras *ras, struct suspicion *suspicion) {
	observers_choose(ras, suspicion, LIVENESS_ASKED_MAX, false);
	observers_choose(ras, suspicion, LIVENESS_ASKED_MAX, true);
	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		uint8_t bytes[LOOK_BYTES_MAX];
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		look_message_begin(ras, &writer, LOOK_ASK, suspicion->slot, suspicion->round);
		look_message_send(ras, suspicion->asked[n], &writer);
	}
}

// Answers of other observers.

// Return true if the asker means another run with the same start number, of an agent that lost its
// state. A proof of life of the current run says nothing about the earlier one.
static bool
subject_is_other_run(const struct peer_entry *entry, uint64_t incarnation, uint64_t run) {
	return ras_incarnation_start(incarnation) == ras_incarnation_start(entry->incarnation) &&
	       run != entry->record->run;
}

static void look_request_received(
	struct ras *ras, uint32_t asker, uint32_t slot, uint32_t round, bool other_run
) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	struct look look = {.slot = slot, .asker = asker, .round = round};
	bool seen = (entry->flags & PEER_DEATH_SEEN) != 0;

	if (other_run) {
		look_answer(ras, &look, OBSERVATION_UNABLE);
		return;
	}
	if (slot == ras->self_slot) {
		look_answer(ras, &look, OBSERVATION_ALIVE);
		return;
	}
	if (peer_is_member(entry)) {
		peer_check_begin(ras, look);
		return;
	}
	// The peer is dead here already, and that news is on its way to the asker. A death seen by
	// one observer, or by two on one host, is too weak for a larger ring. Yet each observer of
	// it is a witness, and answers what it saw. Only two observers are named with a death;
	// PEER_DEATH_SEEN marks that this agent saw it too.
	for (uint32_t n = 0; n < entry->weight; n++)
		seen = seen || entry->observers[n] == ras->self_id;
	if (entry->state == RAS_DEAD && seen)
		look_answer(
			ras, &look,
			ras_cause_is_gone(entry->cause) ? OBSERVATION_GONE : OBSERVATION_SILENT
		);
}

void liveness_message(struct ras *ras, uint64_t source, struct wire_reader *reader) {
	uint8_t kind = wire_get_u8(reader);
	uint64_t subject = wire_get_u64(reader);
	uint64_t incarnation = wire_get_u64(reader);
	uint64_t run = wire_get_u64(reader);
	uint32_t round = wire_get_u32(reader);
	uint8_t observation = kind == LOOK_ANSWER ? wire_get_u8(reader) : OBSERVATION_NONE;
	uint32_t heard_ms = kind == LOOK_ANSWER && wire_reader_left(reader) >= sizeof(heard_ms)
				    ? wire_get_u32(reader)
				    : LOOK_NEVER_MS;
	uint32_t from = peers_find(&ras->peers, source);
	uint32_t slot = peers_find(&ras->peers, subject);

	if (observation >= OBSERVATION_COUNT)
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader) || from == RAS_NO_SLOT || slot == RAS_NO_SLOT)
		return;
	switch (kind) {
	case LOOK_ASK:
		look_request_received(
			ras, from, slot, round,
			subject_is_other_run(ras_entry(ras, slot), incarnation, run)
		);
		break;
	case LOOK_ANSWER:
		// An answer about an older start says nothing about this one.
		if (ras_incarnation_start(incarnation) ==
			    ras_incarnation_start(ras_entry(ras, slot)->incarnation) &&
		    run == ras_entry(ras, slot)->record->run)
			liveness_observation(ras, slot, round, from, observation, heard_ms);
		break;
	case LOOK_NOTIFY:
		if (slot == ras->self_slot) {
			ras_refute_suspicion(ras, incarnation);
			look_request_received(ras, from, slot, round, false);
		}
		break;
	default:
		wire_reader_fail(reader, -EBADMSG);
	}
}
