// SPDX-License-Identifier: BSD-3-Clause
// Joins through seeds and remembered addresses, founds rings, and serves joiners.
#include "member/join.h"

#include "core/core.h"

#include <errno.h>
#include <string.h>

#define ASK_GAP_NS (250 * RAS_NS_PER_MS) // between two asks; none waits for an answer
#define ROUND_GAP_NS RAS_NS_PER_SEC	 // between rounds through all addresses, with jitter
#define ROUNDS_PER_EVENT 15		 // rounds between two JOIN_WAITING events

bool join_is_own_address(const struct ras *ras, const struct sock_addr *seed) {
	return sock_addr_equal(seed, &ras_self(ras)->record->address);
}

static int seeds_copy(
	struct ras *ras, const struct sock_addr *seeds, uint32_t count, struct join_seed **ret_copy
) {
	struct join_seed *copy = NULL;

	if (count > 0) {
		copy = memory_allocate(&ras->memory, count * sizeof(*copy));
		if (copy == NULL)
			return -ENOMEM;
	}
	for (uint32_t n = 0; n < count; n++)
		copy[n] = (struct join_seed){.address = seeds[n]};
	*ret_copy = copy;
	return 0;
}

int join_init(struct ras *ras, const struct sock_addr *seeds, uint32_t count) {
	struct join *join = &ras->join;
	int err;

	*join = (struct join){.ask_ns = RAS_NEVER};
	err = seeds_copy(ras, seeds, count, &join->seeds);
	if (err == 0)
		join->seed_count = count;
	return err;
}

void join_fini(struct ras *ras) {
	struct join *join = &ras->join;

	memory_release(&ras->memory, join->seeds, join->seed_count * sizeof(*join->seeds));
	join->seeds = NULL;
}

int ras_set_seeds(struct ras *ras, const struct sock_addr *seeds, uint32_t count) {
	struct join *join = &ras->join;
	struct join_seed *copy;
	int err;

	if (count > RAS_SEEDS_MAX)
		return -EINVAL;
	err = seeds_copy(ras, seeds, count, &copy);
	if (err != 0)
		return err;
	join_fini(ras);
	join->seeds = copy;
	join->seed_count = count;
	// The current round continues with the new seeds.
	join->seed_next = 0;
	join->is_seed = false;
	if (join->seeds_unknown)
		join->rounds = 0; // earlier rounds could not ask the seeds
	join->seeds_unknown = false;
	for (uint32_t n = 0; n < count; n++)
		join->is_seed = join->is_seed || join_is_own_address(ras, &copy[n].address);
	join_fill_seed_slots(ras);
	return 0;
}

void ras_set_seeds_unresolved(struct ras *ras) {
	ras->join.seeds_unknown = true;
}

bool join_is_seed_address(const struct ras *ras, const struct sock_addr *address) {
	const struct join *join = &ras->join;

	for (uint32_t n = 0; n < join->seed_count; n++) {
		if (sock_addr_equal(&join->seeds[n].address, address))
			return true;
	}
	return false;
}

// Return true if a seed other than ourselves is configured.
static bool join_has_other_seeds(const struct ras *ras) {
	const struct join *join = &ras->join;

	for (uint32_t n = 0; n < join->seed_count; n++) {
		if (!join_is_own_address(ras, &join->seeds[n].address))
			return true;
	}
	return join->seeds_unknown;
}

static void join_round_begin(struct ras *ras) {
	struct join *join = &ras->join;

	for (uint32_t n = 0; n < join->seed_count; n++)
		join->is_seed = join->is_seed || join_is_own_address(ras, &join->seeds[n].address);
	join->seed_next = 0;
	ras->remembered.next = 0;
	join->met = false;
	join->lower = false;
	join->lower_seed = false;
	join->ask_ns = ras->observed_ns;
	ras_wake_at(ras, join->ask_ns);
}

// End the join, after founding a ring or receiving a table: this agent is a member from now on.
static void join_finish(struct ras *ras) {
	struct join *join = &ras->join;

	join->ask_ns = RAS_NEVER;
	for (uint32_t n = 0; n < JOIN_ASKS_MAX; n++) {
		if (join->asks[n] != NULL)
			conn_close(ras, join->asks[n], RAS_CLOSE_SOFT);
		join->asks[n] = NULL;
	}
	join->source = NULL;
	ras_become_member(ras, join->start);
	if (join->uncounted)
		votes_withdraw(ras, ras->self_slot);
	ras_emit(
		ras, RAS_EVENT_JOIN_DONE, RAS_NO_SLOT, RAS_CAUSE_NONE,
		ras->observed_ns - join->started_ns
	);
}

void join_begin(struct ras *ras) {
	struct join *join = &ras->join;

	join->started_ns = ras->observed_ns;
	remembered_drop(ras, &ras_self(ras)->record->address);
	if (join_has_other_seeds(ras) || ras->remembered.count > 0)
		join_round_begin(ras);
	else
		join_finish(ras);
}

// Asking seeds and remembered addresses.

static void join_conn_forget(struct join *join, const struct conn *conn) {
	for (uint32_t n = 0; n < JOIN_ASKS_MAX; n++) {
		if (join->asks[n] == conn)
			join->asks[n] = NULL;
	}
	if (join->source == conn)
		join->source = NULL;
}

static bool seed_next(struct ras *ras, struct sock_addr *ret_address) {
	struct join *join = &ras->join;

	while (join->seed_next < join->seed_count) {
		*ret_address = join->seeds[join->seed_next++].address;
		if (!join_is_own_address(ras, ret_address))
			return true;
	}
	return false;
}

// Return the next address of the round. Seeds and remembered addresses take turns, so that neither
// list waits behind the dead addresses of the other one.
static bool address_next(struct ras *ras, struct sock_addr *ret_address) {
	struct join *join = &ras->join;

	if (join->redirect_count > 0) {
		*ret_address = join->redirects[--join->redirect_count];
		return true;
	}
	join->remembered_is_next = !join->remembered_is_next;
	if (join->remembered_is_next)
		return seed_next(ras, ret_address) || remembered_next_address(ras, ret_address);
	return remembered_next_address(ras, ret_address) || seed_next(ras, ret_address);
}

// Return true if this agent founds the ring now. All addresses were asked and no member answered.
//
// The seed with the lowest address founds the ring: no seed with a lower address answered it. After
// JOIN_ALONE_NS without a founding seed, the lowest address of the agents that met founds it. An
// agent without seeds first looks for the members that it remembers. It founds no ring if a
// remembered member refused it because another agent holds its name.
static bool join_can_found_ring(const struct ras *ras) {
	const struct join *join = &ras->join;

	bool has_none = !join_has_other_seeds(ras) && !ras->remembered.name_taken;

	if (has_none && ras->remembered.count == 0)
		return true;
	if (join->rounds <= 1)
		return false;
	if (join->is_seed && !join->lower_seed)
		return true;
	if (ras->observed_ns - join->started_ns < JOIN_ALONE_NS)
		return false;
	return join->met ? !join->lower : has_none;
}

// Ask the next address, or end the round after the last answer.
static void join_ask_next_address(struct ras *ras) {
	struct join *join = &ras->join;
	struct sock_addr address;
	uint32_t place = 0;

	while (place < JOIN_ASKS_MAX && join->asks[place] != NULL)
		place++;
	join->ask_ns = ras->observed_ns + ASK_GAP_NS;
	if (place == JOIN_ASKS_MAX)
		return;
	if (address_next(ras, &address)) {
		join->asks[place] = conn_open(ras, &address, NULL);
		return;
	}
	for (uint32_t n = 0; n < JOIN_ASKS_MAX; n++) {
		if (join->asks[n] != NULL)
			return; // the round ends with the last answer
	}
	join->rounds++;
	if (join_can_found_ring(ras)) {
		join_finish(ras);
		return;
	}
	if (join->rounds == 1 || join->rounds % ROUNDS_PER_EVENT == 0)
		ras_emit(
			ras, RAS_EVENT_JOIN_WAITING, RAS_NO_SLOT, RAS_CAUSE_NONE,
			join->seed_count + ras->remembered.count
		);
	join_round_begin(ras);
	join->ask_ns = ras->observed_ns + ras_jitter(ras, ROUND_GAP_NS);
	ras_wake_at(ras, join->ask_ns);
}

// Return true if the peer in this slot is a member reached at the seed's address. Either it
// advertises this address, or it answered here before and is alive.
//
// A dead or left peer does not count: it may be back at this address without a ring. Neither does a
// silent member that advertises another address: its corrected configuration may have moved it to
// the seed's address.
static bool
slot_is_member_at_seed(const struct ras *ras, uint32_t slot, const struct join_seed *seed) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	if (entry->record == NULL || !peer_is_member(entry))
		return false;
	return sock_addr_equal(&entry->record->address, &seed->address) ||
	       (entry->record->id == seed->peer && entry->state == RAS_ALIVE);
}

void join_note_seed_slot(struct ras *ras, uint32_t slot) {
	struct join *join = &ras->join;
	const struct ras_record *record = ras_entry(ras, slot)->record;

	for (uint32_t n = 0; record != NULL && n < join->seed_count; n++) {
		if (sock_addr_equal(&join->seeds[n].address, &record->address))
			join->seeds[n].slot = slot;
	}
}

// Fill the slot hints for a new list of seeds or a preloaded table. join_note_seed_slot() updates
// them later.
void join_fill_seed_slots(struct ras *ras) {
	if (ras->join.seed_count == 0)
		return;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++)
		join_note_seed_slot(ras, slot);
}

static void join_conn_open(struct ras *ras, const struct sock_addr *address) {
	struct join *join = &ras->join;

	for (uint32_t n = 0; n < JOIN_ASKS_MAX; n++) {
		if (join->asks[n] != NULL)
			continue;
		join->asks[n] = conn_open(ras, address, NULL);
		return;
	}
}

static bool address_is_being_asked(const struct ras *ras, const struct sock_addr *address) {
	const struct join *join = &ras->join;

	for (uint32_t n = 0; n < JOIN_ASKS_MAX; n++) {
		if (join->asks[n] != NULL && sock_addr_equal(&join->asks[n]->address, address))
			return true;
	}
	return false;
}

void join_connect(struct ras *ras, const struct sock_addr *address) {
	if (!address_is_being_asked(ras, address))
		join_conn_open(ras, address);
}

void join_try_seed(struct ras *ras, uint32_t seed) {
	struct join_seed *sought = &ras->join.seeds[seed];
	uint32_t answered = sought->peer != 0 ? peers_find(&ras->peers, sought->peer) : RAS_NO_SLOT;

	if (!slot_is_member_at_seed(ras, sought->slot, sought) &&
	    !slot_is_member_at_seed(ras, ras->self_slot, sought) &&
	    (answered == RAS_NO_SLOT || !slot_is_member_at_seed(ras, answered, sought)))
		join_connect(ras, &sought->address);
}

void join_accept_invitation(struct ras *ras, const struct sock_addr *address) {
	struct join *join = &ras->join;

	if (ras->joined || ras->leaving || join->ask_ns == RAS_NEVER || join->source != NULL ||
	    address_is_being_asked(ras, address))
		return;
	join_conn_open(ras, address);
}

void join_tick(struct ras *ras) {
	struct join *join = &ras->join;

	if (ras->joined || join->ask_ns == RAS_NEVER || ras->leaving || join->source != NULL)
		return; // while a table arrives, no other address is asked
	if (join->ask_ns <= ras->observed_ns)
		join_ask_next_address(ras);
	if (!ras->joined)
		ras_wake_at(ras, join->ask_ns);
}

// Answers of seeds.

static void join_conn_close(struct ras *ras, struct conn *conn) {
	join_conn_forget(&ras->join, conn);
	conn_close(ras, conn, RAS_CLOSE_SOFT);
	if (!ras->joined) {
		ras->join.ask_ns = ras->observed_ns;
		ras_wake_at(ras, ras->observed_ns);
	}
}

// Note the agent that answered at a seed's address. Returns true if it is a member of our ring, so
// that its table is not needed.
static bool
ring_member_note(struct ras *ras, struct conn *conn, const struct message_init_ack *ack) {
	struct join *join = &ras->join;
	struct ras_record *record;
	uint32_t slot;
	bool ours;

	if (ras_record_intern(ras->interner, ack->record, ack->record_size, &record) != 0)
		return false;
	slot = peers_find(&ras->peers, record->id);
	ours = slot != RAS_NO_SLOT && ras_entry(ras, slot)->record == record &&
	       peer_is_member(ras_entry(ras, slot));
	for (uint32_t n = 0; ours && n < join->seed_count; n++) {
		if (sock_addr_equal(&join->seeds[n].address, &conn->address))
			join->seeds[n].peer = record->id;
	}
	if (ours)
		remembered_drop(ras, &conn->address); // even if it advertises another address
	ras_record_put(ras->interner, record);
	return ours;
}

// Handle a refusal that no retry can change: another cluster, no common version, or a taken name.
static void
join_refused_finally(struct ras *ras, const struct conn *conn, const struct message_init_ack *ack) {
	struct join *join = &ras->join;
	uint64_t value =
		ack->refusal == RAS_CAUSE_VERSION ? ras_versions_pack(conn_ack_versions(ack)) : 0;

	if (remembered_drop_refused(ras, &conn->address, ack->refusal, value))
		return;
	if (ras->joined && ack->refusal == RAS_CAUSE_VERSION)
		conn_report_version_mismatch(ras, ack);
	if (ras->joined)
		return;
	join->refused_by = conn->address;
	if (ack->refusal == RAS_CAUSE_CONFLICT && ack->redirect_count > 0)
		join->refused_by = ack->redirects[0]; // the holder
	ras_emit(ras, RAS_EVENT_JOIN_REFUSED, RAS_NO_SLOT, ack->refusal, value);
}

static void join_refused(struct ras *ras, struct conn *conn, const struct message_init_ack *ack) {
	struct join *join = &ras->join;
	bool lower = sock_addr_compare(&conn->address, &ras_self(ras)->record->address) < 0;

	switch (ack->refusal) {
	case RAS_CAUSE_CONFLICT:
	case RAS_CAUSE_VERSION:
	case RAS_CAUSE_CLUSTER:
		join_refused_finally(ras, conn, ack);
		break;
	case RAS_CAUSE_BUSY:
		// An agent without a ring. If its address is lower than ours, it may found the ring
		// instead of us.
		if ((ack->flags & MESSAGE_ACK_MEMBER) == 0) {
			join->met = true;
			join->lower = join->lower || lower;
			if (lower && join_is_seed_address(ras, &conn->address))
				join->lower_seed = true;
		}
		memcpy(join->redirects, ack->redirects, sizeof(join->redirects));
		join->redirect_count = ack->redirect_count;
		break;
	case RAS_CAUSE_DUPLICATE:
		// We answered ourselves: the seed's address is another address of our machine.
		for (uint32_t n = 0; n < join->seed_count; n++) {
			if (!sock_addr_equal(&join->seeds[n].address, &conn->address))
				continue;
			join->seeds[n].peer = ras->self_id;
			join->is_seed = true;
		}
		remembered_drop(ras, &conn->address);
		break;
	default:
		break;
	}
	join_conn_close(ras, conn);
}

void join_ack_received(struct ras *ras, struct conn *conn, const struct message_init_ack *ack) {
	struct join *join = &ras->join;
	bool another_was_faster = join->source != NULL && join->source != conn;
	struct sock_addr address = conn->address; // the connection may be closed below

	if (ack->refusal != RAS_CAUSE_NONE) {
		join_refused(ras, conn, ack);
	} else if (another_was_faster || (ras->joined && ring_member_note(ras, conn, ack))) {
		join_conn_close(ras, conn);
	} else {
		join->source = conn;
		join->is_believed = peers_member_count(&ras->peers) < HEARSAY_VIEW_MIN;
		join->start = ack->your_start;
		join->uncounted = (ack->flags & MESSAGE_ACK_NO_VOTE) != 0;
	}
	rival_answer_received(ras, &address, ack);
}

int join_frame_received(struct ras *ras, struct conn *conn, const void *frame, size_t size) {
	struct wire_reader reader;
	uint8_t type;

	if (conn != ras->join.source)
		return -EPROTO;
	wire_reader_init(&reader, frame, size);
	type = wire_get_u8(&reader);
	conn_set_deadline(ras, conn, ras->profile->init_ns);
	if (type == MESSAGE_UPDATE)
		return news_update_received(
			ras, NULL, ras->join.is_believed ? 0 : hearsay_source_of(conn), &reader
		);
	if (type != MESSAGE_BEAT)
		return -EPROTO;
	// A BEAT marks the end of the table.
	if (ras->joined)
		join_conn_close(ras, conn);
	else
		join_finish(ras);
	return 0;
}

void join_conn_ended(struct ras *ras, struct conn *conn, enum ras_cause cause) {
	struct join *join = &ras->join;

	if (conn->serving)
		join->serving--;
	if (!conn->outgoing)
		return;
	join_conn_forget(join, conn);
	// A wrong key drops a remembered address. After any cause the next address is asked.
	if (cause == RAS_CAUSE_PROOF)
		remembered_drop_refused(ras, &conn->address, cause, 0);
	if (!ras->joined) {
		join->ask_ns = ras->observed_ns;
		ras_wake_at(ras, ras->observed_ns);
	}
}

// Serving joiners.

static void joiner_redirect(struct ras *ras, struct conn *conn) {
	struct message_init_ack ack;
	uint32_t count = peers_ring_count(&ras->peers);

	conn_ack_fill(ras, &ack);
	ack.refusal = RAS_CAUSE_BUSY;
	for (uint32_t n = 0; n < MESSAGE_REDIRECTS_MAX && ras->joined && count > 1; n++) {
		uint32_t position = (uint32_t)(ras_random(ras) % count);
		uint32_t slot = peers_ring_at(&ras->peers, position);

		if (slot != ras->self_slot)
			ack.redirects[ack.redirect_count++] = ras_entry(ras, slot)->record->address;
	}
	ras->counters.joins_redirected++;
	conn_refuse(ras, conn, &ack);
}

static void joiner_accept(struct ras *ras, struct conn *conn, const struct ras_record *record) {
	uint32_t slot = peers_find(&ras->peers, record->id);
	struct message_init_ack ack;
	uint64_t known = 0;

	if (slot != RAS_NO_SLOT)
		known = ras_incarnation_start(ras_entry(ras, slot)->incarnation);
	conn_ack_fill(ras, &ack);
	ack.version = conn->version;
	ack.your_start = record->start > known ? record->start : known + 1;
	if (!votes_joiner_has_vote(ras, slot))
		ack.flags |= MESSAGE_ACK_NO_VOTE;
	conn_ack_send(ras, conn, &ack);
	conn->next_slot = 0;
	conn->foreign_told = 0;
	conn->serving = true;
	ras->join.serving++;
	ras->counters.joins_served++;
	join_send_table(ras, conn);
}

// If another address holds the joiner's name, its holder is checked first: see
// liveness_check_name_claim().
void join_serve(struct ras *ras, struct conn *conn, const struct message_init *init) {
	struct message_init_ack ack;
	struct ras_record *record;
	uint32_t slot;

	conn_set_deadline(ras, conn, ras->profile->connect_ns + ras->profile->init_ns);
	conn->next_slot = RAS_NO_SLOT;
	if (ras_record_intern(ras->interner, init->record, init->record_size, &record) != 0) {
		conn_close(ras, conn, RAS_CLOSE_HARD);
		return;
	}
	if (record == ras_self(ras)->record) {
		conn_ack_fill(ras, &ack);
		ack.refusal = RAS_CAUSE_DUPLICATE;
		conn_refuse(ras, conn, &ack);
		ras_record_put(ras->interner, record);
		return;
	}
	// We are no member, or as many joins as allowed are being served. A member that calls us
	// while we have no ring invites us.
	if (!ras->joined || ras->join.serving >= ras->profile->joins_max) {
		joiner_redirect(ras, conn);
		if ((init->flags & MESSAGE_INIT_MEMBER) != 0)
			join_accept_invitation(ras, &record->address);
		else
			ras->join.met = true;
		ras_record_put(ras->interner, record);
		return;
	}
	slot = peers_find(&ras->peers, record->id);
	// A joiner at the address of the holder is the holder restarted: two agents cannot listen
	// at one address.
	if (slot == ras->self_slot)
		join_name_claim_decided(ras, conn, slot, RAS_CAUSE_CONFLICT);
	else if (slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, slot)) &&
	    !sock_addr_equal(&ras_entry(ras, slot)->record->address, &record->address))
		liveness_check_name_claim(ras, slot, conn);
	else
		joiner_accept(ras, conn, record);
	ras_record_put(ras->interner, record);
}

void join_name_claim_decided(
	struct ras *ras, struct conn *conn, uint32_t slot, enum ras_cause refusal
) {
	struct sock_addr other = conn->address;
	struct message_init_ack ack;

	if (refusal != RAS_CAUSE_CONFLICT) {
		// The joiner gets the name only if the holder was checked and joins_max allows it.
		if (refusal == RAS_CAUSE_BUSY || ras->join.serving >= ras->profile->joins_max)
			joiner_redirect(ras, conn);
		else
			joiner_accept(ras, conn, ras_entry(ras, slot)->record);
		return;
	}
	other.port = 0; // the port of the connection, on which no agent listens
	ras_emit_conflict(ras, slot, 0, &other);
	conn_ack_fill(ras, &ack);
	ack.refusal = RAS_CAUSE_CONFLICT;
	ack.redirects[ack.redirect_count++] = ras_entry(ras, slot)->record->address;
	conn_refuse(ras, conn, &ack);
}

// Send the table in UPDATE frames, then the foreign items, then a BEAT that marks the end. Stop
// when the connection is blocked, and continue when it is writable again.
void join_send_table(struct ras *ras, struct conn *conn) {
	struct message_beat end = {.digest = peers_digest(&ras->peers), .period = 1};
	struct wire_writer writer;

	if (conn->outgoing || conn->next_slot == RAS_NO_SLOT)
		return;
	while (conn->next_slot < ras->peers.entry_count) {
		uint32_t slot = conn->next_slot;

		news_frame_begin(ras, &writer);
		for (; slot < ras->peers.entry_count; slot++) {
			struct peer_news news;

			if (ras_entry(ras, slot)->record == NULL)
				continue;
			peers_news_fill(&ras->peers, slot, &news);
			if (wire_writer_used(&writer) + message_news_bytes(&news) > RAS_FRAME_MAX)
				break;
			message_news_encode(&news, &writer);
		}
		if (conn_send(ras, conn, ras->scratch, wire_writer_used(&writer)) != 0)
			return;
		conn->next_slot = slot;
		conn_set_deadline(ras, conn, ras->profile->init_ns);
	}
	for (uint64_t told = conn->foreign_told; foreign_frame_write(ras, &told, &writer);) {
		if (conn_send(ras, conn, ras->scratch, wire_writer_used(&writer)) != 0)
			return;
		conn->foreign_told = told;
	}
	wire_writer_init(&writer, ras->scratch, RAS_FRAME_MAX);
	message_beat_encode(&end, &writer);
	if (conn_send(ras, conn, ras->scratch, wire_writer_used(&writer)) == 0)
		conn->next_slot = RAS_NO_SLOT; // the joiner closes the connection
}
