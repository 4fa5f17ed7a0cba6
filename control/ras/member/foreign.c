// SPDX-License-Identifier: BSD-3-Clause
// Stores and forwards items of newer versions, byte for byte.
#include "member/foreign.h"

#include "core/core.h"

#include <string.h>

#define UNKNOWN_ITEM_KEEP_NS (3600 * RAS_NS_PER_SEC)

void foreign_fini(struct ras *ras) {
	struct foreign *foreign = &ras->foreign;
	struct memory *memory = &ras->memory;

	for (uint32_t n = 0; n < foreign->count; n++)
		memory_release(memory, foreign->items[n].bytes, foreign->items[n].size);
	memory_release(memory, foreign->items, foreign->capacity * sizeof(*foreign->items));
	*foreign = (struct foreign){0};
}

// Return the index of the item with this id, or the index at which it would be inserted.
static uint32_t item_index(const struct foreign *foreign, uint64_t id) {
	uint32_t low = 0;
	uint32_t high = foreign->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (foreign->items[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct foreign_item *item_find(const struct foreign *foreign, uint64_t id) {
	uint32_t place = item_index(foreign, id);

	return place < foreign->count && foreign->items[place].id == id ? &foreign->items[place]
									: NULL;
}

static void item_bytes_release(struct ras *ras, struct foreign_item *item) {
	memory_release(&ras->memory, item->bytes, item->size);
	ras->foreign.bytes -= item->size;
	ras->foreign.pending -= item->pending;
}

static void item_remove(struct ras *ras, struct foreign_item *item) {
	struct foreign *foreign = &ras->foreign;
	size_t behind = (size_t)(&foreign->items[foreign->count] - item) - 1;

	item_bytes_release(ras, item);
	memmove(item, item + 1, behind * sizeof(*item));
	foreign->count--;
}

static bool item_state_is_known(const struct foreign_item *item) {
	return !message_state_is_foreign(item->state);
}

static bool item_peer_is_known(const struct ras *ras, const struct foreign_item *item) {
	return peers_find(&ras->peers, item->id) != RAS_NO_SLOT;
}

// Return true if the table agrees with the known part of the item, or knows something newer.
static bool item_agrees_with_table(const struct ras *ras, const struct foreign_item *item) {
	uint32_t slot = peers_find(&ras->peers, item->id);
	const struct peer_entry *entry;

	if (!item_state_is_known(item))
		return true;
	if (slot == RAS_NO_SLOT)
		return false;
	entry = ras_entry(ras, slot);
	if (entry->incarnation != item->incarnation)
		return entry->incarnation > item->incarnation;
	return (peer_is_member(entry) ? RAS_ALIVE : entry->state) >= item->state;
}

// Return true if the item is about an older start, or about a death or leaving that was refuted.
static bool item_is_outdated(const struct ras *ras, const struct foreign_item *item) {
	uint32_t slot = peers_find(&ras->peers, item->id);
	const struct peer_entry *entry;

	if (slot == RAS_NO_SLOT)
		return false;
	entry = ras_entry(ras, slot);
	if (ras_incarnation_start(item->incarnation) < ras_incarnation_start(entry->incarnation))
		return true;
	return item_state_is_known(item) && item->state != RAS_ALIVE &&
	       item->incarnation < entry->incarnation;
}

// Compare a stored item with a received one. Returns <0 if the received item replaces it, 0 if
// both are the same.
static int item_order(const struct foreign_item *item, const struct message_news *heard) {
	uint64_t incarnation = heard->news.incarnation;

	if (item->incarnation != incarnation)
		return item->incarnation < incarnation ? -1 : 1;
	return message_item_compare(item->bytes, item->size, heard->item, heard->item_size);
}

// Make room by removing items of peers that the table does not know, oldest first. Only an item of
// a known peer may do so. If two unknown peers evicted each other, both items could arrive again
// on other links and circulate for ever.
static bool item_make_room(struct ras *ras, const struct foreign_item *fresh) {
	struct foreign *foreign = &ras->foreign;
	bool may_evict = item_peer_is_known(ras, fresh);

	if (fresh->size > FOREIGN_ITEM_BYTES_MAX)
		return false;
	for (;;) {
		const struct foreign_item *held = item_find(foreign, fresh->id);
		size_t held_bytes = held != NULL ? held->size : 0;
		struct foreign_item *oldest = NULL;

		if (foreign->bytes - held_bytes + fresh->size <= FOREIGN_BYTES_MAX &&
		    (held != NULL || foreign->count < FOREIGN_ITEMS_MAX))
			return true;
		for (uint32_t n = 0; may_evict && n < foreign->count; n++) {
			struct foreign_item *item = &foreign->items[n];

			if ((oldest == NULL || item->since_ns < oldest->since_ns) &&
			    !item_peer_is_known(ras, item))
				oldest = item;
		}
		if (oldest == NULL)
			return false;
		item_remove(ras, oldest);
		ras->counters.news_foreign_dropped++;
	}
}

// Store an item in place of an older one of the same peer. Returns false if there is no room.
static bool item_store(struct ras *ras, const struct foreign_item *fresh, const void *bytes) {
	struct foreign *foreign = &ras->foreign;
	struct foreign_item *item;
	uint8_t *copy;

	if (!item_make_room(ras, fresh))
		return false;
	copy = memory_allocate(&ras->memory, fresh->size);
	if (copy == NULL)
		return false;
	item = item_find(foreign, fresh->id);
	if (item != NULL) {
		item_bytes_release(ras, item);
	} else {
		if (foreign->count == FOREIGN_ITEMS_MAX ||
		    memory_grow_within(
			    &ras->memory, (void **)&foreign->items, &foreign->capacity,
			    foreign->count + 1, FOREIGN_ITEMS_MAX, sizeof(*foreign->items)
		    ) != 0) {
			memory_release(&ras->memory, copy, fresh->size);
			return false;
		}
		item = &foreign->items[item_index(foreign, fresh->id)];
		memmove(item + 1, item,
			(size_t)(&foreign->items[foreign->count] - item) * sizeof(*foreign->items));
		foreign->count++;
	}
	memcpy(copy, bytes, fresh->size);
	*item = *fresh;
	item->bytes = copy;
	foreign->bytes += fresh->size;
	foreign->pending += fresh->pending;
	return true;
}

void foreign_item_received(
	struct ras *ras, const struct link *from, const struct message_news *heard
) {
	struct foreign_item fresh = {
		.id = heard->news.id,
		.incarnation = heard->news.incarnation,
		.since_ns = ras->observed_ns,
		.told = from != NULL ? link_bit(from) : 0,
		.size = (uint16_t)heard->item_size,
		.state = heard->news.state,
		.pending =
			ras->joined, // a joiner has no sessions yet: foreign_send_all() sends later
	};
	struct foreign_item *item = item_find(&ras->foreign, fresh.id);

	if (item != NULL && item_is_outdated(ras, item)) {
		item_remove(ras, item);
		item = NULL;
	}
	// Id 0 means "no peer". The death of an unknown peer needs no item. An item about a living
	// unknown peer is stored, and forwarded once its record was pulled.
	if (fresh.id == 0 || item_is_outdated(ras, &fresh) ||
	    (item_state_is_known(&fresh) && fresh.state != RAS_ALIVE &&
	     peers_find(&ras->peers, fresh.id) == RAS_NO_SLOT))
		return;
	if (item != NULL && item_order(item, heard) >= 0) {
		if (item_order(item, heard) == 0)
			item->told |= fresh.told;
		return;
	}
	if (!item_store(ras, &fresh, heard->item)) {
		ras->counters.news_foreign_dropped++;
		return;
	}
	ras->counters.news_foreign++;
	if (fresh.pending)
		news_schedule_flush(ras);
}

// Sending.

static bool item_write(const struct foreign_item *item, struct wire_writer *writer) {
	if (wire_writer_used(writer) + MESSAGE_ITEM_LENGTH_BYTES + item->size > RAS_FRAME_MAX)
		return false;
	wire_put_u16(writer, item->size);
	wire_put_bytes(writer, item->bytes, item->size);
	return true;
}

// Delayed links receive the items, too: no comparison of tables would deliver them later.
void foreign_flush(struct ras *ras) {
	struct foreign *foreign = &ras->foreign;

	for (uint32_t n = 0; n < ras->links.count && foreign->pending > 0; n++) {
		struct link *link = ras->links.table[n];
		struct wire_writer writer;

		if (!link->used || !link_is_ready(link))
			continue;
		news_frame_begin(ras, &writer);
		for (uint32_t m = 0; m < foreign->count; m++) {
			const struct foreign_item *item = &foreign->items[m];

			if (!item->pending || (item->told & link_bit(link)) != 0 ||
			    !item_agrees_with_table(ras, item))
				continue;
			if (!item_write(item, &writer)) {
				link_send(ras, link, ras->scratch, wire_writer_used(&writer));
				news_frame_begin(ras, &writer);
				item_write(item, &writer);
			}
			ras->counters.news_sent++;
		}
		if (wire_writer_used(&writer) > 1)
			link_send(ras, link, ras->scratch, wire_writer_used(&writer));
	}
	for (uint32_t n = 0; n < foreign->count && foreign->pending > 0; n++) {
		struct foreign_item *item = &foreign->items[n];

		if (!item->pending)
			continue;
		if (!item_agrees_with_table(ras, item)) {
			item->told = 0; // link bits may be reassigned until the item is sent
			continue;
		}
		item->pending = false;
		foreign->pending--;
	}
}

bool foreign_frame_write(struct ras *ras, uint64_t *last, struct wire_writer *writer) {
	const struct foreign *foreign = &ras->foreign;
	uint32_t place = item_index(foreign, *last);

	if (place < foreign->count && foreign->items[place].id == *last)
		place++;
	news_frame_begin(ras, writer);
	for (; place < foreign->count; place++) {
		const struct foreign_item *item = &foreign->items[place];

		// Items of unknown peers are sent once only. Otherwise agents that dropped such an
		// item would receive it again for ever.
		if (item_is_outdated(ras, item) || !item_agrees_with_table(ras, item) ||
		    !item_peer_is_known(ras, item))
			continue;
		if (!item_write(item, writer))
			break;
		*last = item->id;
	}
	return wire_writer_used(writer) > 1;
}

void foreign_send_all(struct ras *ras, struct link *link) {
	struct wire_writer writer;
	uint64_t last = 0;

	while (ras->foreign.count > 0 && foreign_frame_write(ras, &last, &writer))
		link_send(ras, link, ras->scratch, wire_writer_used(&writer));
}

// Removal and expiry.

void foreign_drop_peer(struct ras *ras, uint64_t id) {
	struct foreign_item *item = item_find(&ras->foreign, id);

	if (item != NULL)
		item_remove(ras, item);
}

void foreign_expire(struct ras *ras) {
	struct foreign *foreign = &ras->foreign;

	for (uint32_t n = 0; n < foreign->count;) {
		struct foreign_item *item = &foreign->items[n];
		bool old = ras->observed_ns - item->since_ns >= UNKNOWN_ITEM_KEEP_NS;
		bool confirmed = item_peer_is_known(ras, item) && item_agrees_with_table(ras, item);

		if (item_is_outdated(ras, item) || (old && !confirmed))
			item_remove(ras, item);
		else
			n++;
	}
}
