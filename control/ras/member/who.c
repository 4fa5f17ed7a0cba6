// SPDX-License-Identifier: BSD-3-Clause
// Identifies the agent that answers at a member's address.
#include "member/who.h"

#include "core/core.h"

#include <errno.h>

// Lifetime of a finding. A member that is searched for is tried at least once in this time.
#define STRANGER_KEEP_NS (600 * RAS_NS_PER_SEC)

static struct ras_stranger *
stranger_find(struct ras *ras, uint64_t peer, const struct sock_addr *address) {
	for (uint32_t n = 0; n < ras->strangers.count; n++) {
		struct ras_stranger *stranger = &ras->strangers.list[n];

		if (stranger->peer == peer && sock_addr_equal(&stranger->address, address))
			return stranger;
	}
	return NULL;
}

void stranger_add(struct ras *ras, uint64_t peer, const struct sock_addr *address, uint64_t found) {
	struct strangers *strangers = &ras->strangers;
	struct ras_stranger *stranger = stranger_find(ras, peer, address);
	uint32_t slot = peers_find(&ras->peers, peer);
	uint64_t start;
	bool is_new;

	if (found == 0 || found == peer || slot == RAS_NO_SLOT)
		return;
	start = ras_incarnation_start(ras_entry(ras, slot)->incarnation);
	is_new = stranger == NULL || stranger->found != found || stranger->start != start ||
		 ras->observed_ns - stranger->seen_ns > STRANGER_KEEP_NS;
	if (stranger == NULL && strangers->count < STRANGERS_MAX) {
		stranger = &strangers->list[strangers->count++];
	} else if (stranger == NULL) {
		stranger = &strangers->list[0]; // the oldest one is replaced
		for (uint32_t n = 1; n < strangers->count; n++) {
			if (strangers->list[n].seen_ns < stranger->seen_ns)
				stranger = &strangers->list[n];
		}
	}
	*stranger = (struct ras_stranger){
		.peer = peer,
		.found = found,
		.address = *address,
		.start = start,
		.seen_ns = ras->observed_ns,
	};
	if (is_new)
		ras_emit_stranger(ras, stranger);
}

void stranger_remove(struct ras *ras, uint64_t peer, const struct sock_addr *address) {
	struct ras_stranger *stranger = stranger_find(ras, peer, address);

	if (stranger != NULL)
		*stranger = ras->strangers.list[--ras->strangers.count];
}

uint64_t stranger_id_from_ack(struct ras *ras, const struct message_init_ack *ack) {
	struct ras_record *record;
	uint64_t id;

	if (ras_record_intern(ras->interner, ack->record, ack->record_size, &record) != 0)
		return 0;
	id = record->id;
	ras_record_put(ras->interner, record);
	return id;
}

// Return the entry of the peer of a finding, or NULL if the finding is outdated: it expired, or the
// peer has a new start or another address.
static const struct peer_entry *
stranger_current_entry(const struct ras *ras, const struct ras_stranger *stranger) {
	uint32_t slot = peers_find(&ras->peers, stranger->peer);
	const struct peer_entry *entry = slot != RAS_NO_SLOT ? ras_entry(ras, slot) : NULL;

	if (entry == NULL || entry->record == NULL ||
	    ras_incarnation_start(entry->incarnation) != stranger->start ||
	    !sock_addr_equal(&entry->record->address, &stranger->address) ||
	    ras->observed_ns - stranger->seen_ns > STRANGER_KEEP_NS)
		return NULL;
	return entry;
}

int ras_stranger_at(const struct ras *ras, uint32_t n, struct ras_stranger *ret_stranger) {
	const struct peer_entry *entry;

	if (n >= ras->strangers.count)
		return -ENOENT;
	entry = stranger_current_entry(ras, &ras->strangers.list[n]);
	// The address of a peer that is no member is of no interest.
	if (entry == NULL || !peer_is_member(entry))
		return -ESTALE;
	*ret_stranger = ras->strangers.list[n];
	return 0;
}

uint64_t ras_peer_stranger_age_ns(const struct ras *ras, uint64_t peer) {
	for (uint32_t n = 0; n < ras->strangers.count; n++) {
		const struct ras_stranger *stranger = &ras->strangers.list[n];

		if (stranger->peer == peer && stranger_current_entry(ras, stranger) != NULL)
			return ras->observed_ns - stranger->seen_ns;
	}
	return RAS_NEVER;
}

// Questions.

int ras_who(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t *ret_conn) {
	struct conn *conn = NULL;
	uint32_t slot;
	int err = 0;

	ras_enter(ras, now_ns);
	slot = peers_find(&ras->peers, peer);
	if (slot == RAS_NO_SLOT)
		err = -ENOENT;
	else if (ras->leaving)
		err = -EAGAIN;
	else
		conn = conn_open_identity_query(ras, ras_entry(ras, slot)->record);
	if (err == 0 && conn == NULL)
		err = -EMFILE;
	if (err == 0)
		*ret_conn = conn->handle;
	ras_exit(ras);
	return err;
}

void who_query_answer(struct ras *ras, struct conn *conn) {
	struct message_init_ack ack;

	conn_ack_fill(ras, &ack);
	ack.refusal = RAS_CAUSE_IDLE; // the caller wants no link
	conn_ack_send(ras, conn, &ack);
	conn_close(ras, conn, RAS_CLOSE_SOFT);
}

// Take over a record with another key than the member has: the agent at its address sent it.
static void
key_answer_apply(struct ras *ras, const struct conn *conn, const struct message_init_ack *ack) {
	struct peer_news news = {.incarnation = ack->incarnation, .state = RAS_ALIVE};
	uint32_t slot;

	if ((ack->flags & MESSAGE_ACK_MEMBER) == 0 ||
	    ras_record_intern(ras->interner, ack->record, ack->record_size, &news.record) != 0)
		return;
	news.id = news.record->id;
	slot = peers_find(&ras->peers, news.id);
	if (slot != RAS_NO_SLOT && key_change_needs_proof(ras, slot, &news) &&
	    sock_addr_equal(&conn->address, &ras_entry(ras, slot)->record->address)) {
		news.at_own_address = true;
		membership_apply(ras, &news, NULL);
	}
	ras_record_put(ras->interner, news.record);
}

static void
who_result_report(struct ras *ras, const struct conn *conn, enum ras_cause cause, uint64_t found) {
	if (ras->ops.who != NULL)
		ras->ops.who(ras->ops_ctx, conn->handle, cause, found);
}

void who_answer_received(struct ras *ras, struct conn *conn, const struct message_init_ack *ack) {
	uint64_t found = stranger_id_from_ack(ras, ack);
	uint64_t sought = conn->who;

	conn->who = 0;
	hearsay_answer_received(ras, conn, ack);
	if (found == 0) {
		who_result_report(ras, conn, RAS_CAUSE_PROTOCOL, 0);
	} else if (found == sought) {
		stranger_remove(ras, sought, &conn->address);
		key_answer_apply(ras, conn, ack);
		who_result_report(ras, conn, RAS_CAUSE_NONE, found);
	} else {
		stranger_add(ras, sought, &conn->address, found);
		key_check_unanswered(ras, sought); // another agent has the address now
		who_result_report(ras, conn, RAS_CAUSE_CONFLICT, found);
	}
	conn_close(ras, conn, RAS_CLOSE_SOFT);
}

void who_conn_ended(struct ras *ras, struct conn *conn, enum ras_cause cause) {
	// Other causes do not prove that nobody listens: an agent without a free place, or our own
	// lack of descriptors, ends a connection as well.
	if (cause == RAS_CAUSE_REFUSED || cause == RAS_CAUSE_UNREACHABLE ||
	    cause == RAS_CAUSE_TIMEOUT)
		key_check_unanswered(ras, conn->who);
	conn->who = 0;
	who_result_report(ras, conn, cause, 0);
}
