// SPDX-License-Identifier: BSD-3-Clause
// Queues, batches and floods updates about peers, and processes received ones.
#include "member/news.h"

#include "core/core.h"

#include <errno.h>
#include <string.h>

#define PULLS_MAX 1024	   // records pulled at once; the comparison of tables finds the rest
#define NEWS_ITEMS_KEPT 64 // a larger array, left by a storm of joins, is freed

static void items_release(struct ras *ras) {
	struct news *news = &ras->news;

	memory_release(&ras->memory, news->items, news->capacity * sizeof(*news->items));
	news->items = NULL;
	news->capacity = 0;
}

void news_fini(struct ras *ras) {
	items_release(ras);
	ras->news = (struct news){0};
}

void news_schedule_flush(struct ras *ras) {
	struct news *news = &ras->news;
	uint64_t earliest = news->flushed_ns + ras->profile->news_ns;

	if (news->flush_ns == RAS_NEVER)
		news->flush_ns = earliest > ras->observed_ns ? earliest : ras->observed_ns;
	ras_wake_at(ras, news->flush_ns);
}

void news_add(struct ras *ras, uint32_t slot, const struct link *from, bool record) {
	struct news *news = &ras->news;

	if (!ras->joined)
		return;
	if (memory_grow(
		    &ras->memory, (void **)&news->items, &news->capacity, news->count + 1,
		    sizeof(*news->items)
	    ) != 0)
		return; // the comparison of tables delivers the update later
	news->items[news->count++] = (struct news_item){
		.slot = slot,
		.record = record,
		.told = from != NULL ? link_bit(from) : 0,
	};
	ras_entry(ras, slot)->pending = news->count;
	news_schedule_flush(ras);
}

void news_frame_begin(struct ras *ras, struct wire_writer *writer) {
	wire_writer_init(writer, ras->scratch, RAS_FRAME_MAX);
	wire_put_u8(writer, MESSAGE_UPDATE);
}

static void news_flush(struct ras *ras) {
	ras->news.flush_ns = RAS_NEVER;
	ras->news.flushed_ns = ras->observed_ns;
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];
		struct wire_writer writer;

		if (!link_is_good(link))
			continue;
		news_frame_begin(ras, &writer);
		for (uint32_t m = 0; m < ras->news.count; m++) {
			const struct news_item *item = &ras->news.items[m];
			struct peer_news news;

			if ((item->told & link_bit(link)) != 0 ||
			    ras_entry(ras, item->slot)->record == NULL)
				continue;
			// A peer knows its own record. It still has to hear what others decided
			// about it.
			if (item->slot == link->slot && item->record)
				continue;
			peers_news_fill(&ras->peers, item->slot, &news);
			if (!item->record)
				news.record = NULL;
			if (news.hops < UINT8_MAX)
				news.hops++;
			if (wire_writer_used(&writer) + message_news_bytes(&news) > RAS_FRAME_MAX) {
				link_send(ras, link, ras->scratch, wire_writer_used(&writer));
				news_frame_begin(ras, &writer);
			}
			message_news_encode(&news, &writer);
			ras->counters.news_sent++;
		}
		if (wire_writer_used(&writer) > 1)
			link_send(ras, link, ras->scratch, wire_writer_used(&writer));
	}
	for (uint32_t n = 0; n < ras->news.count; n++)
		ras_entry(ras, ras->news.items[n].slot)->pending = 0;
	ras->news.count = 0;
	foreign_flush(ras); // after the known parts of the same items
	if (ras->news.capacity > NEWS_ITEMS_KEPT)
		items_release(ras);
}

void news_tick(struct ras *ras) {
	if (ras->news.flush_ns <= ras->observed_ns)
		news_flush(ras);
	ras_wake_at(ras, ras->news.flush_ns);
}

void news_send_self_to(struct ras *ras, struct link *link) {
	uint8_t signature[RAS_SIGNATURE_BYTES];
	struct peer_news news;
	struct wire_writer writer;

	peers_news_fill(&ras->peers, ras->self_slot, &news);
	if (ras->left) {
		// Refutations are not signed. In the last incarnation of the start none is newer,
		// so nobody can undo the departure, or be ahead of it.
		news.incarnation |= RAS_REFUTATIONS_MAX;
		departure_sign(ras, news.incarnation, signature);
		news.signature = signature;
		news.state = RAS_LEFT;
	}
	news.hops = 1;
	news_frame_begin(ras, &writer);
	message_news_encode(&news, &writer);
	ras->counters.news_sent++;
	link_send(ras, link, ras->scratch, wire_writer_used(&writer));
}

void news_send_self(struct ras *ras) {
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (link->used && link_is_ready(link))
			news_send_self_to(ras, link);
	}
}

// Return true if the table has this update already. Most updates of a flood have arrived on another
// link before, so this is checked before the record is decoded.
static bool
item_is_known(struct ras *ras, const struct message_news *item, const struct link *link) {
	const struct peer_news *news = &item->news;
	const struct ras_record *held;
	uint32_t slot = peers_find(&ras->peers, news->id);
	const struct peer_entry *entry;

	if (slot == RAS_NO_SLOT || slot == ras->self_slot)
		return false; // an update about us may be about an earlier run: check its record
	entry = ras_entry(ras, slot);
	if (news->maint > entry->maint || news->incarnation > entry->incarnation)
		return false;
	if (news->incarnation == entry->incarnation &&
	    (news->state != (peer_is_member(entry) ? RAS_ALIVE : entry->state) ||
	     (news->state == RAS_DEAD && peers_death_weight(news->cause, news->observer_count) >
						 peers_death_weight(entry->cause, entry->weight))))
		return false;
	// The sender knows the update, so a queued copy need not be sent to it.
	if (entry->pending != 0 && link != NULL && news->incarnation == entry->incarnation)
		ras->news.items[entry->pending - 1].told |= link_bit(link);
	// Two runs with the same start number differ in their records only. A comparison of tables
	// delivers just such a record.
	held = entry->record;
	return item->record == NULL || ras_incarnation_start(news->incarnation) != held->start ||
	       (item->record_size == held->size &&
		memcmp(item->record, held->encoding, held->size) == 0);
}

// Tell the sender that the death it reported was refuted since. Refutations go to the neighbours of
// the peer only, so the sender might not hear of it soon.
static void refutation_send(struct ras *ras, const struct peer_news *told, struct link *link) {
	uint32_t slot = peers_find(&ras->peers, told->id);
	const struct peer_entry *entry = ras_entry(ras, slot);
	uint8_t frame[64];
	struct wire_writer writer;
	struct peer_news news;

	if (told->state != RAS_DEAD || link == NULL || !link->used || !peer_is_member(entry) ||
	    told->incarnation >= entry->incarnation ||
	    ras_incarnation_start(told->incarnation) != ras_incarnation_start(entry->incarnation))
		return;
	peers_news_fill(&ras->peers, slot, &news);
	news.record = NULL;
	wire_writer_init(&writer, frame, sizeof(frame));
	wire_put_u8(&writer, MESSAGE_UPDATE);
	message_news_encode(&news, &writer);
	ras->counters.news_sent++;
	link_send(ras, link, frame, wire_writer_used(&writer));
}

struct pulls {
	uint32_t count;
	uint64_t ids[PULLS_MAX];
};

// Apply one item of an UPDATE. Returns 0, or a negative error if the item is malformed.
static int update_item_apply(
	struct ras *ras,
	struct link *link,
	uint64_t source,
	struct message_news *item,
	struct pulls *pulls
) {
	struct ras_record *record = NULL;
	int err;

	ras->counters.news_received++;
	if (item->state_foreign)
		return 0; // an unknown state judges no peer
	if (item_is_known(ras, item, link)) {
		refutation_send(ras, &item->news, link);
		return 0;
	}
	if (hearsay_item_is_excess(ras, item, source))
		return 0;
	if (item->record != NULL) {
		err = ras_record_intern(ras->interner, item->record, item->record_size, &record);
		if (err == -ENOMEM)
			return 0; // the comparison of tables delivers the update later
		if (err != 0)
			return err;
	}
	item->news.record = record;
	if (departure_is_forged(ras, &item->news)) {
		ras->counters.departures_forged++;
		ras_record_put(ras->interner, record);
		// The sender may hold another key of a third peer for a moment, so the link stays.
		// A neighbour that announces its own departure has its own key, so a wrong
		// signature ends the link.
		return link != NULL && link->peer == item->news.id ? -EBADMSG : 0;
	}
	if (link != NULL && link->peer == item->news.id)
		source = 0; // the neighbour reports itself: its link proves the name
	if (!hearsay_update_waits(ras, &item->news, source) &&
	    !membership_apply_reported(ras, &item->news, link) && pulls->count < PULLS_MAX)
		pulls->ids[pulls->count++] = item->news.id;
	ras_record_put(ras->interner, record);
	return 0;
}

int news_update_received(
	struct ras *ras, struct link *link, uint64_t source, struct wire_reader *reader
) {
	struct pulls pulls;
	struct message_news decoded;
	int err;

	pulls.count = 0; // the ids are left uninitialised: the array is large
	while ((err = message_news_decode(reader, &decoded)) == 0) {
		err = update_item_apply(ras, link, source, &decoded, &pulls);
		if (err != 0)
			return err;
		if (decoded.foreign)
			foreign_item_received(ras, link, &decoded);
		if (link != NULL && !link->used)
			return 0; // an item ended the sender's membership and dropped the link
	}
	if (pulls.count > 0 && link != NULL)
		sync_pull_send(ras, link, pulls.ids, pulls.count);
	return err == -ENODATA ? 0 : err;
}
