// SPDX-License-Identifier: BSD-3-Clause
// Refuses a record with another key than its living member has, and checks which key is right.
#include "member/key.h"

#include "core/core.h"

#define CHECK_NS (10 * RAS_NS_PER_SEC) // for each peer: one question, and one event at the end
// All members may hear of a change at once. They ask at random times: about 500 a second.
#define ASK_SPREAD_PER_MEMBER_NS (2 * RAS_NS_PER_MS)
#define ASK_SPREAD_MAX_NS (8 * RAS_NS_PER_SEC)

// How long a record is believed after a question without an answer. A comparison of tables brings
// the record again in this time.
#define UNANSWERED_NS (30 * RAS_NS_PER_SEC)

static struct key_check *check_find(struct ras *ras, uint64_t peer) {
	for (uint32_t n = 0; n < ras->key_checks.count; n++) {
		if (ras->key_checks.list[n].peer == peer)
			return &ras->key_checks.list[n];
	}
	return NULL;
}

bool key_change_needs_proof(struct ras *ras, uint32_t slot, const struct peer_news *news) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	const struct link *link = link_find(ras, slot);
	const struct key_check *check;

	// The merge ignores the record of an earlier start, and rejects that of another peer.
	if (news->record == NULL || news->at_own_address || !peer_is_member(entry) ||
	    news->record->start < entry->record->start || peers_news_check(news) != 0 ||
	    memcmp(news->record->key, entry->record->key, RAS_KEY_BYTES) == 0)
		return false;
	check = check_find(ras, news->id);
	return check == NULL || !check->is_unanswered || (link != NULL && link_is_good(link)) ||
	       ras_key_fingerprint(news->record->key) != check->fingerprint;
}

// Return whether a check can begin: there is a free place, and the teller has its share left.
static bool checks_have_room(const struct key_checks *checks, uint64_t teller) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < checks->count; n++)
		count += checks->list[n].teller == teller;
	return checks->count < KEY_CHECKS_MAX && count < KEY_CHECKS_PER_TELLER;
}

void key_change_refuse(
	struct ras *ras, uint32_t slot, const struct peer_news *news, uint64_t teller
) {
	struct key_checks *checks = &ras->key_checks;
	uint64_t spread_ns = peers_member_count(&ras->peers) * ASK_SPREAD_PER_MEMBER_NS;
	uint64_t peer = ras_entry(ras, slot)->record->id;
	struct key_check *check;

	ras->counters.keys_refused++;
	// Without a free place a later record of this peer begins the check.
	if (check_find(ras, peer) != NULL || !checks_have_room(checks, teller))
		return;
	if (spread_ns > ASK_SPREAD_MAX_NS)
		spread_ns = ASK_SPREAD_MAX_NS;
	check = &checks->list[checks->count++];
	*check = (struct key_check){
		.peer = peer,
		.fingerprint = ras_key_fingerprint(news->record->key),
		.teller = teller,
		.ask_ns = ras->observed_ns + ras_random(ras) % spread_ns,
		.end_ns = ras->observed_ns + CHECK_NS,
	};
	ras_wake_at(ras, check->ask_ns);
}

void key_check_unanswered(struct ras *ras, uint64_t peer) {
	struct key_check *check = check_find(ras, peer);

	if (check == NULL || check->is_unanswered)
		return;
	check->is_unanswered = true;
	check->end_ns = ras->observed_ns + UNANSWERED_NS;
	ras_wake_at(ras, check->end_ns);
}

// Ask if it is time. Returns true if the check is over.
static bool check_advance(struct ras *ras, struct key_check *check) {
	uint32_t slot = peers_find(&ras->peers, check->peer);

	if (slot == RAS_NO_SLOT || !peer_is_member(ras_entry(ras, slot)))
		return true;
	if (ras_key_fingerprint(ras_entry(ras, slot)->record->key) == check->fingerprint)
		return true; // the new key was proven
	if (check->ask_ns <= ras->observed_ns) {
		check->ask_ns = RAS_NEVER;
		(void)conn_open_identity_query(
			ras, ras_entry(ras, slot)->record
		); // without a free connection: next time
	}
	if (check->end_ns > ras->observed_ns)
		return false;
	if (!check->is_unanswered)
		ras_emit(ras, RAS_EVENT_KEY_REFUSED, slot, RAS_CAUSE_CONFLICT, check->fingerprint);
	return true;
}

void key_checks_tick(struct ras *ras) {
	struct key_checks *checks = &ras->key_checks;

	for (uint32_t n = 0; n < checks->count;) {
		struct key_check *check = &checks->list[n];

		if (check_advance(ras, check)) {
			*check = checks->list[--checks->count];
			continue;
		}
		ras_wake_at(ras, check->ask_ns);
		ras_wake_at(ras, check->end_ns);
		n++;
	}
}
