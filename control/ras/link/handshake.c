// SPDX-License-Identifier: BSD-3-Clause
// Admission: an INIT is judged and answered, and the answer to our own INIT is handled. Two agents
// may connect to each other at once; both keep the connection that the agent lower in ring order
// opened. One exception: an INIT may arrive while a connection is ready and not brand new. Then the
// peer has lost that connection, and the new one is kept.
#include "core/core.h"
#include "link/conn.h"

#include <errno.h>

#define CROSSING_NS RAS_NS_PER_SEC // younger connects may have crossed
#define OTHER_VERSION_GAP_NS (10 * RAS_NS_PER_SEC)

// Emit OTHER_VERSION, at most every 10 s. Agents of another version retry for ever, and there may
// be many.
static void version_mismatch_emit(
	struct ras *ras, const void *encoding, size_t size, struct ras_versions theirs
) {
	struct ras_record *record = NULL;

	if (ras->other_version_ns > ras->observed_ns)
		return;
	ras->other_version_ns = ras->observed_ns + OTHER_VERSION_GAP_NS;
	// Bytes that a newer version appended to a record are ignored. An unreadable record
	// identifies no agent.
	if (ras_record_intern(ras->interner, encoding, size, &record) != 0)
		record = NULL;
	ras_emit_for_record(
		ras, RAS_EVENT_OTHER_VERSION, record, RAS_CAUSE_VERSION, ras_versions_pack(theirs)
	);
	if (record != NULL)
		ras_record_put(ras->interner, record);
}

struct ras_versions conn_ack_versions(const struct message_init_ack *ack) {
	return (struct ras_versions){.min = ack->version_min, .max = ack->version};
}

void conn_report_version_mismatch(struct ras *ras, const struct message_init_ack *ack) {
	version_mismatch_emit(ras, ack->record, ack->record_size, conn_ack_versions(ack));
}

void conn_ack_send(struct ras *ras, struct conn *conn, const struct message_init_ack *ack) {
	struct wire_writer writer;

	wire_writer_init(&writer, ras->scratch, RAS_FRAME_MAX);
	must(message_init_ack_encode(ack, &writer) == 0);
	conn_send(ras, conn, ras->scratch, wire_writer_used(&writer));
}

void conn_refuse(struct ras *ras, struct conn *conn, struct message_init_ack *ack) {
	ras->counters.inits_refused++;
	conn_ack_send(ras, conn, ack);
	conn_close(ras, conn, RAS_CLOSE_SOFT);
}

// Result for a peer that sent INIT: its slot, or RAS_NO_SLOT with the cause of the refusal.
struct admission {
	uint32_t slot;
	enum ras_cause cause;
	// State of the peer before this INIT. The peer may have refuted its death before it heard
	// of it.
	uint8_t held_state;
	uint64_t held_incarnation;
};

static void init_refuse(struct ras *ras, struct conn *conn, enum ras_cause cause) {
	struct message_init_ack ack;

	conn_ack_fill(ras, &ack);
	ack.refusal = (uint8_t)cause;
	conn_refuse(ras, conn, &ack);
}

// Refuse a peer whose INIT has already changed the table. The refusal carries the state held
// before, which no other agent can report any more.
static void init_refuse_admitted(
	struct ras *ras, struct conn *conn, enum ras_cause cause, const struct admission *admission
) {
	struct message_init_ack ack;

	conn_ack_fill(ras, &ack);
	ack.refusal = (uint8_t)cause;
	ack.your_state = admission->held_state;
	ack.your_incarnation = admission->held_incarnation;
	conn_refuse(ras, conn, &ack);
}

// Refuse a second holder of a name. The refusal carries the address of the known holder, and a
// start number above the holder's. If the caller lives at that address itself, the holder is an
// earlier run of the caller. The caller then takes the higher start number. If the known holder is
// no member or unreachable, the caller's own address is sent for the same effect.
static void init_refuse_rival(struct ras *ras, struct conn *conn, const struct message_init *init) {
	struct message_init_ack ack;
	struct ras_record *record;
	struct sock_addr address;
	uint32_t slot = RAS_NO_SLOT;

	conn_ack_fill(ras, &ack);
	ack.refusal = RAS_CAUSE_CONFLICT;
	if (ras_record_intern(ras->interner, init->record, init->record_size, &record) == 0) {
		slot = peers_find(&ras->peers, record->id);
		address = record->address;
		ras_record_put(ras->interner, record);
	}
	if (slot != RAS_NO_SLOT) {
		const struct peer_entry *holder = ras_entry(ras, slot);
		bool lost = !peer_is_member(holder) || holder->state == RAS_UNREACHABLE;

		ack.redirects[ack.redirect_count++] = lost ? address : holder->record->address;
		ack.your_start = ras_incarnation_start(holder->incarnation) + 1;
	}
	conn_refuse(ras, conn, &ack);
}

// Decide which of two connections with one peer is kept. Returns true for the one that just sent
// INIT.
static bool init_conn_is_kept(struct ras *ras, const struct link *link) {
	const struct ras_record *self = ras_self(ras)->record;
	bool we_are_lower = ras_record_compare(self, ras_entry(ras, link->slot)->record) < 0;

	if (link->current != NULL && link->current->outgoing && we_are_lower)
		return ras->observed_ns - link->current->opened_ns > CROSSING_NS;
	if (link->current != NULL)
		return true;
	return link->pending == NULL || !link->pending->outgoing || !we_are_lower;
}

// Admit the sender of a handshake message: it may be new, a newer start, dead here, or not who it
// claims to be.
static struct admission peer_admit(
	struct ras *ras,
	const struct conn *conn,
	const void *encoding,
	size_t size,
	uint64_t incarnation
) {
	struct admission admission = {
		.slot = RAS_NO_SLOT,
		.cause = RAS_CAUSE_PROTOCOL,
		.held_state = RAS_ALIVE,
		.held_incarnation = incarnation,
	};
	struct peer_news news = {.incarnation = incarnation, .state = RAS_ALIVE};
	struct ras_record *record;
	uint32_t slot;

	if (ras_record_intern(ras->interner, encoding, size, &record) != 0)
		return admission;
	news.id = record->id;
	news.record = record;
	slot = peers_find(&ras->peers, record->id);
	news.at_own_address =
		slot != RAS_NO_SLOT && conn->outgoing &&
		sock_addr_equal(&conn->address, &ras_entry(ras, slot)->record->address);
	if (record->id == ras->self_id || record->start != ras_incarnation_start(incarnation)) {
		admission.cause = RAS_CAUSE_CONFLICT;
	} else if (slot != RAS_NO_SLOT && ras_entry(ras, slot)->record != record &&
		   record->start <= ras_entry(ras, slot)->record->start) {
		// An old start that woke up late, or two runs with the same start number.
		ras_emit_conflict(ras, slot, record->start, &record->address);
		admission.cause = RAS_CAUSE_CONFLICT;
	} else if (slot != RAS_NO_SLOT && key_change_needs_proof(ras, slot, &news)) {
		const struct sock_addr host = sock_addr_ip_only(&conn->address);

		key_change_refuse(ras, slot, &news, sock_addr_digest(&host));
		admission.cause = RAS_CAUSE_CONFLICT;
	} else if (hearsay_handshake_waits(ras, conn, &news)) {
		admission.cause = RAS_CAUSE_OWN_FAULT;
	} else {
		if (slot != RAS_NO_SLOT) {
			admission.held_state = (uint8_t
			)peer_state_to_report(ras_entry(ras, slot), &admission.held_incarnation);
		}
		membership_apply(ras, &news, NULL);
		admission.slot = peers_find(&ras->peers, news.id);
		admission.cause = RAS_CAUSE_OWN_FAULT;
	}
	ras_record_put(ras->interner, record);
	return admission;
}

// Return true if the peer ever spoke to this agent, in the current runs of both.
static bool peer_was_met_before(const struct ras *ras, const struct link *link) {
	return (ras_entry(ras, link->slot)->flags & PEER_SEEN) != 0;
}

// Handle the state in which the other side holds, or held, this agent. A peer never met before may
// mean an earlier run of this agent. That run may have the same start number if the seeds at the
// join did not know it.
static void own_held_state_check(struct ras *ras, bool met, uint8_t state, uint64_t incarnation) {
	if (state != RAS_DEAD && state != RAS_LEFT)
		return;
	if (met || !ras->start_from_seed || incarnation < ras_self(ras)->incarnation ||
	    !ras_supersede_earlier_run(ras, ras_incarnation_start(incarnation)))
		ras_handle_own_death(ras, incarnation, RAS_CAUSE_DEATH);
}

static void init_accept(
	struct ras *ras,
	struct conn *conn,
	struct link *link,
	const struct message_init *init,
	const struct admission *admission
) {
	bool met = peer_was_met_before(ras, link);
	struct message_init_ack ack;

	conn->link = link;
	if (link->pending != NULL)
		conn_close(ras, link->pending, RAS_CLOSE_HARD);
	link->pending = NULL;
	conn_stage(ras, conn, CONN_READY, RAS_NEVER);

	conn_ack_fill(ras, &ack);
	ack.version = conn->version;
	ack.uses = link->mine;
	ack.your_state = admission->held_state;
	ack.your_incarnation = admission->held_incarnation;
	conn_ack_send(ras, conn, &ack);

	link_ready(ras, link, conn, init->uses);
	sync_digest_received(ras, link, init->digest);
	own_held_state_check(ras, met, init->your_state, init->your_incarnation);
}

static void
init_message_admit(struct ras *ras, struct conn *conn, const struct message_init *init) {
	struct admission admission;
	struct link *link;

	if (!ras->joined) {
		struct ras_record *record;

		init_refuse(ras, conn, RAS_CAUSE_BUSY);
		// Join through the caller. Only members ask for a link, while all agents known here
		// may be gone.
		if (ras_record_intern(ras->interner, init->record, init->record_size, &record) != 0)
			return;
		if (record->id != ras->self_id)
			join_accept_invitation(ras, &record->address);
		ras_record_put(ras->interner, record);
		return;
	}
	admission = peer_admit(ras, conn, init->record, init->record_size, init->incarnation);
	if (admission.slot == RAS_NO_SLOT && admission.cause == RAS_CAUSE_CONFLICT) {
		init_refuse_rival(ras, conn, init);
		return;
	}
	if (admission.slot == RAS_NO_SLOT) {
		init_refuse(ras, conn, admission.cause);
		return;
	}
	// The caller looks for another peer at our address. It did not ask for a link with this
	// agent, and an existing link between the two stays.
	if (init->sought != 0 && init->sought != ras->self_id) {
		init_refuse_admitted(ras, conn, RAS_CAUSE_IDLE, &admission);
		return;
	}
	link = link_find(ras, admission.slot);
	if (link != NULL && !init_conn_is_kept(ras, link)) {
		init_refuse_admitted(ras, conn, RAS_CAUSE_DUPLICATE, &admission);
		return;
	}
	if (!ring_can_accept_uses(ras, link, init->uses)) {
		init_refuse_admitted(ras, conn, RAS_CAUSE_DEGREE, &admission);
		return;
	}
	if (link == NULL)
		link = link_want(ras, admission.slot, 0);
	if (link == NULL)
		init_refuse_admitted(ras, conn, RAS_CAUSE_OWN_FAULT, &admission);
	else
		init_accept(ras, conn, link, init, &admission);
}

int conn_init_received(struct ras *ras, struct conn *conn, struct wire_reader *reader) {
	uint16_t lowest = ras->versions.min, highest = ras->versions.max;
	struct message_init init;
	int err = message_init_decode(reader, &init);

	if (err != 0)
		return err;
	if (highest > init.version_max)
		highest = init.version_max;
	if (lowest < init.version_min)
		lowest = init.version_min;
	conn->version = highest >= lowest ? highest : 0; // 0: no common version
	if (init.cluster != ras->cluster) {
		init_refuse(ras, conn, RAS_CAUSE_CLUSTER);
	} else if (conn->version == 0) {
		ras->counters.versions_refused++;
		version_mismatch_emit(
			ras, init.record, init.record_size,
			(struct ras_versions){.min = init.version_min, .max = init.version_max}
		);
		init_refuse(ras, conn, RAS_CAUSE_VERSION);
	} else if ((init.flags & MESSAGE_INIT_IDENTIFY) != 0) {
		who_query_answer(ras, conn);
	} else if ((init.flags & MESSAGE_INIT_JOIN) != 0) {
		conn->join = true;
		conn_stage(ras, conn, CONN_JOIN_READY, RAS_NEVER);
		join_serve(ras, conn, &init);
	} else {
		init_message_admit(ras, conn, &init);
	}
	return 0;
}

// Handle a refusal because the name has another holder, or an earlier run of this agent as holder.
static void name_conflict_handle(struct ras *ras, const struct message_init_ack *ack) {
	struct ras_record *record;

	if (ack->redirect_count == 0)
		return;
	if (ras_record_intern(ras->interner, ack->record, ack->record_size, &record) == 0) {
		bool own = record == ras_self(ras)->record;

		ras_record_put(ras->interner, record);
		if (own)
			return; // the address of a peer belongs to this agent by now
	}
	if (!sock_addr_equal(&ack->redirects[0], &ras_self(ras)->record->address))
		rival_call(ras, &ack->redirects[0], ack->your_start);
	else if (ack->your_start > 0)
		ras_supersede_earlier_run(ras, ack->your_start - 1);
}

// Return true if another agent answered than the peer of the link. This is no evidence of a death:
// one of the two may advertise a wrong address and be alive. It is treated like no answer.
static bool init_ack_is_from_wrong_peer(
	struct ras *ras, const struct conn *conn, const struct message_init_ack *ack
) {
	uint64_t sought = conn->link->peer;
	uint64_t found = stranger_id_from_ack(ras, ack);

	if (found == 0 || found == sought) {
		stranger_remove(ras, sought, &conn->address);
		return false; // an unreadable record is no evidence
	}
	stranger_add(ras, sought, &conn->address, found);
	return true;
}

// Handle an INIT_ACK with refusal NONE or IDLE. Its sender is a member, or takes this agent for
// one, so its record is merged.
static void
init_ack_accept(struct ras *ras, struct conn *conn, const struct message_init_ack *ack, bool met) {
	struct link *link = conn->link;
	uint32_t slot = peer_admit(ras, conn, ack->record, ack->record_size, ack->incarnation).slot;

	// The answer came from a newer start than the one called. Merging it dropped the old
	// start's link and this connection. The peer's own call may fail at a firewall that only
	// lets connects out. Call again at once, since this direction is open.
	if (conn->link != link) {
		if (slot != RAS_NO_SLOT && slot != ras->self_slot)
			link_want(ras, slot, RAS_USE_CHECK);
		return;
	}
	if (init_ack_is_from_wrong_peer(ras, conn, ack) || slot != link->slot ||
	    ack->refusal != RAS_CAUSE_NONE) {
		conn_abort(ras, conn, RAS_CLOSE_SOFT, RAS_CAUSE_CONFLICT);
		return;
	}
	conn->version = ack->version;
	conn_stage(ras, conn, CONN_READY, RAS_NEVER);
	link_ready(ras, link, conn, ack->uses);
	sync_digest_received(ras, link, ack->digest);
	own_held_state_check(ras, met, ack->your_state, ack->your_incarnation);
}

int conn_ack_received(struct ras *ras, struct conn *conn, struct wire_reader *reader) {
	struct message_init_ack ack;
	bool met;
	int err = message_init_ack_decode(reader, &ack);

	if (err != 0)
		return err;
	ras->counters.versions_refused += ack.refusal == RAS_CAUSE_VERSION;
	if (conn->who != 0) {
		who_answer_received(ras, conn, &ack);
		return 0;
	}
	if (ack.refusal == RAS_CAUSE_NONE &&
	    (ack.version < ras->versions.min || ack.version > ras->versions.max))
		return -EPROTO; // it accepts a version that was not offered
	if (conn->join) {
		conn_stage(ras, conn, CONN_JOIN_READY, ras->profile->init_ns);
		join_ack_received(ras, conn, &ack);
		return 0;
	}
	met = peer_was_met_before(ras, conn->link);
	if (ack.refusal != RAS_CAUSE_NONE && ack.refusal != RAS_CAUSE_IDLE) {
		bool same = !init_ack_is_from_wrong_peer(ras, conn, &ack);

		conn_abort(ras, conn, RAS_CLOSE_SOFT, same ? ack.refusal : RAS_CAUSE_CONFLICT);
		if (ack.refusal == RAS_CAUSE_CONFLICT)
			name_conflict_handle(ras, &ack);
		else if (ack.refusal == RAS_CAUSE_VERSION)
			conn_report_version_mismatch(ras, &ack);
		else if (same)
			own_held_state_check(ras, met, ack.your_state, ack.your_incarnation);
		return 0;
	}
	init_ack_accept(ras, conn, &ack, met);
	return 0;
}
