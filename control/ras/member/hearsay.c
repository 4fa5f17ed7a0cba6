// SPDX-License-Identifier: BSD-3-Clause
// Keeps the names that are not proven yet, and proves them.
#include "member/hearsay.h"

#include "core/core.h"

#include <string.h>

#define MINUTE_NS (60 * RAS_NS_PER_SEC)
#define NAME_KEEP_NS MINUTE_NS		   // reports of a real name come much earlier
#define ASK_AFTER_NS RAS_NS_PER_SEC	   // a second report usually comes earlier
#define ASK_GAP_NS (250 * RAS_NS_PER_MS)   // between two questions
#define PULL_AFTER_NS (20 * RAS_NS_PER_MS) // the flood is usually faster
#define PULL_GAP_NS (50 * RAS_NS_PER_MS)   // between two requests, each to another neighbour
#define PULL_UNTIL_NS (5 * RAS_NS_PER_SEC) // later, the neighbours do not know the name
#define PULLS_MAX 1024

int hearsay_init(struct ras *ras) {
	peers_init(&ras->hearsay.names, &ras->memory, ras->interner);
	ras->hearsay.ask_ns = RAS_NEVER;
	ras->hearsay.pull_ns = RAS_NEVER;
	return 0;
}

void hearsay_fini(struct ras *ras) {
	peers_fini(&ras->hearsay.names);
}

uint64_t hearsay_source_of(const struct conn *conn) {
	const struct sock_addr host = sock_addr_ip_only(&conn->address);

	return sock_addr_digest(&host);
}

static uint64_t record_source(const struct ras_record *record) {
	const struct sock_addr host = sock_addr_ip_only(&record->address);

	return sock_addr_digest(&host);
}

// Return the counters of a source, for the current minute.
static struct hearsay_source *source_get(struct ras *ras, uint64_t source) {
	struct hearsay *hearsay = &ras->hearsay;
	struct hearsay_source *found = &hearsay->sources[0];

	for (uint32_t n = 0; n < HEARSAY_SOURCES_MAX; n++) {
		struct hearsay_source *known = &hearsay->sources[n];

		if (known->source == source) {
			found = known;
			break;
		}
		if (known->since_ns < found->since_ns)
			found = known;
	}
	if (found->source != source)
		*found = (struct hearsay_source){.source = source, .since_ns = ras->observed_ns};
	if (ras->observed_ns - found->since_ns >= MINUTE_NS) {
		found->since_ns = ras->observed_ns;
		found->report_count = 0;
		found->handshake_count = 0;
	}
	return found;
}

bool hearsay_name_is_new(const struct ras *ras, uint64_t id, uint8_t state, uint64_t incarnation) {
	uint32_t slot = peers_find(&ras->peers, id);
	const struct peer_entry *entry;

	if (!ras->joined || state != RAS_ALIVE || id == ras->self_id ||
	    peers_member_count(&ras->peers) < HEARSAY_VIEW_MIN)
		return false;
	if (slot == RAS_NO_SLOT)
		return true;
	entry = ras_entry(ras, slot);
	return !peer_is_member(entry) && incarnation > entry->incarnation &&
	       ((entry->flags & PEER_NEVER_MEMBER) != 0 ||
		ras_incarnation_start(incarnation) > ras_incarnation_start(entry->incarnation));
}

bool hearsay_item_is_excess(struct ras *ras, const struct message_news *item, uint64_t source) {
	const struct peer_news *news = &item->news;

	return source != 0 && item->record != NULL &&
	       hearsay_name_is_new(ras, news->id, news->state, news->incarnation) &&
	       peers_find(&ras->hearsay.names, news->id) == RAS_NO_SLOT &&
	       source_get(ras, source)->report_count >= HEARSAY_REPORTS_MAX;
}

static void name_remove(struct ras *ras, uint32_t slot) {
	struct peers *names = &ras->hearsay.names;

	peers_remove(names, slot);
	if (peers_tombstone_count(names) > 0)
		return;
	peers_fini(names);
	hearsay_init(ras);
}

void hearsay_forget(struct ras *ras, uint64_t id) {
	uint32_t slot = peers_find(&ras->hearsay.names, id);

	if (slot != RAS_NO_SLOT)
		name_remove(ras, slot);
}

// Make room by removing a random name. A real name waits only briefly, so it is rarely removed.
static void name_evict(struct ras *ras) {
	struct peers *names = &ras->hearsay.names;
	uint32_t slot = (uint32_t)(ras_random(ras) % names->entry_count);

	while (peers_entry(names, slot)->record == NULL)
		slot = slot + 1 < names->entry_count ? slot + 1 : 0;
	name_remove(ras, slot);
}

static void name_store(struct ras *ras, const struct peer_news *news, uint64_t source) {
	struct peers *names = &ras->hearsay.names;
	struct hearsay_source *from = source_get(ras, source);
	struct peer_news stored = {
		.id = news->id,
		.incarnation = news->incarnation,
		.record = news->record,
		.state = RAS_DEAD,
		.observer_count = 1,
		.observers = {source},
	};
	enum peers_change change;
	uint32_t slot = peers_find(names, news->id);

	if (from->report_count >= HEARSAY_REPORTS_MAX)
		return;
	from->report_count++;
	if (slot != RAS_NO_SLOT)
		name_remove(ras, slot); // an earlier start, or a record of another key
	else if (peers_tombstone_count(names) >= HEARSAY_NAMES_MAX)
		name_evict(ras);
	// Without memory the next report stores the name.
	if (peers_merge(names, &stored, ras->observed_ns, &change, &slot) != 0)
		return;
	ras->counters.names_held++;
	if (ras->hearsay.pull_ns == RAS_NEVER)
		ras->hearsay.pull_ns = ras->observed_ns + PULL_AFTER_NS;
	ras_wake_at(ras, ras->hearsay.pull_ns);
	if (ras->hearsay.ask_ns != RAS_NEVER)
		return;
	ras->hearsay.ask_ns = ras->observed_ns + ras_jitter(ras, ASK_AFTER_NS);
	ras_wake_at(ras, ras->hearsay.ask_ns);
}

bool hearsay_update_waits(struct ras *ras, const struct peer_news *news, uint64_t source) {
	struct peer_news named = *news;
	const struct peer_entry *entry;
	uint32_t slot = peers_find(&ras->peers, news->id);

	// A refutation has no record. It is about the start that the table holds.
	if (named.record == NULL && slot != RAS_NO_SLOT)
		named.record = ras_entry(ras, slot)->record;
	if (source == 0 || named.record == NULL || peers_news_check(&named) != 0 ||
	    !hearsay_name_is_new(ras, news->id, news->state, news->incarnation))
		return false;
	slot = peers_find(&ras->hearsay.names, news->id);
	if (slot != RAS_NO_SLOT) {
		entry = peers_entry(&ras->hearsay.names, slot);
		if (entry->record == named.record)
			return entry->observers[0] == source;
		if (entry->record->start > named.record->start)
			return true;
	}
	name_store(ras, &named, source);
	return true;
}

// Return true if a handshake may prove a name although its record has another address than the
// source. The node may be behind a translation of addresses, or its configuration has a wrong
// address.
static bool
name_may_be_translated(const struct ras *ras, const struct hearsay_source *from, uint64_t id) {
	uint32_t moved = from->translated_id != 0 ? peers_find(&ras->peers, from->translated_id)
						  : RAS_NO_SLOT;

	if (from->translated_id == id)
		return true;
	if (moved != RAS_NO_SLOT && peer_is_member(ras_entry(ras, moved)))
		return false;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record != NULL && peer_is_member(entry) &&
		    record_source(entry->record) == from->source)
			return false;
	}
	return true;
}

bool hearsay_handshake_waits(
	struct ras *ras, const struct conn *conn, const struct peer_news *news
) {
	uint64_t source = hearsay_source_of(conn);
	struct hearsay_source *from;

	if (!hearsay_name_is_new(ras, news->id, news->state, news->incarnation))
		return false;
	from = source_get(ras, source);
	if (record_source(news->record) != source) {
		if (!name_may_be_translated(ras, from, news->id)) {
			name_store(ras, news, source);
			return true;
		}
		from->translated_id = news->id;
	}
	return from->handshake_count++ >= HEARSAY_HANDSHAKES_MAX;
}

void hearsay_answer_received(
	struct ras *ras, const struct conn *conn, const struct message_init_ack *ack
) {
	struct peer_news news = {.incarnation = ack->incarnation, .state = RAS_ALIVE};
	uint32_t slot;

	if ((ack->flags & MESSAGE_ACK_MEMBER) == 0 ||
	    peers_tombstone_count(&ras->hearsay.names) == 0 ||
	    ras_record_intern(ras->interner, ack->record, ack->record_size, &news.record) != 0)
		return;
	news.id = news.record->id;
	slot = peers_find(&ras->hearsay.names, news.id);
	// The answer may have a later start than the report.
	if (slot != RAS_NO_SLOT && sock_addr_equal(&news.record->address, &conn->address) &&
	    !hearsay_handshake_waits(ras, conn, &news))
		membership_apply(ras, &news, NULL);
	ras_record_put(ras->interner, news.record);
}

// Ask at the address of the next name that has waited for long enough, and remove names that have
// waited for too long. Returns false if no name is left to ask.
static bool name_ask_next(struct ras *ras) {
	struct hearsay *hearsay = &ras->hearsay;

	for (uint32_t n = hearsay->names.entry_count; n > 0; n--) {
		const struct peer_entry *entry;
		uint64_t age_ns;

		if (hearsay->next_slot >= hearsay->names.entry_count)
			hearsay->next_slot = 0;
		entry = peers_entry(&hearsay->names, hearsay->next_slot);
		age_ns = ras->observed_ns - entry->since_ns;
		if (entry->record != NULL && age_ns >= NAME_KEEP_NS) {
			name_remove(ras, hearsay->next_slot++);
			if (hearsay->names.entry_count == 0)
				return false;
			continue;
		}
		hearsay->next_slot++;
		if (entry->record == NULL || age_ns < ASK_AFTER_NS)
			continue;
		(void)conn_open_identity_query(ras, entry->record); // else at the next turn
		return true;
	}
	return peers_tombstone_count(&hearsay->names) > 0;
}

// Return the next good link in turn, or NULL.
static struct link *pull_link_next(struct ras *ras) {
	struct hearsay *hearsay = &ras->hearsay;

	for (uint32_t n = ras->links.count; n > 0; n--) {
		struct link *link = ras->links.table[hearsay->next_link++ % ras->links.count];

		if (link_is_good(link))
			return link;
	}
	return NULL;
}

// Pull the young names from one neighbour, except those that the neighbour reported. Returns false
// if no name is young.
static bool names_pull(struct ras *ras) {
	const struct peers *names = &ras->hearsay.names;
	struct link *link = pull_link_next(ras);
	uint64_t source = link != NULL ? hearsay_source_of(link->current) : 0;
	uint64_t ids[PULLS_MAX];
	uint32_t count = 0;
	bool is_any_young = false;

	for (uint32_t slot = 0; slot < names->entry_count && count < PULLS_MAX; slot++) {
		const struct peer_entry *entry = peers_entry(names, slot);

		if (entry->record == NULL || ras->observed_ns - entry->since_ns >= PULL_UNTIL_NS)
			continue;
		is_any_young = true;
		if (entry->observers[0] != source)
			ids[count++] = entry->record->id;
	}
	if (count > 0 && link != NULL)
		sync_pull_send(ras, link, ids, count);
	return is_any_young;
}

void hearsay_tick(struct ras *ras) {
	struct hearsay *hearsay = &ras->hearsay;

	if (hearsay->pull_ns <= ras->observed_ns)
		hearsay->pull_ns = names_pull(ras) ? ras->observed_ns + PULL_GAP_NS : RAS_NEVER;
	ras_wake_at(ras, hearsay->pull_ns);
	if (hearsay->ask_ns <= ras->observed_ns)
		hearsay->ask_ns = name_ask_next(ras) ? ras->observed_ns + ASK_GAP_NS : RAS_NEVER;
	ras_wake_at(ras, hearsay->ask_ns);
}
