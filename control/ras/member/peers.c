// SPDX-License-Identifier: BSD-3-Clause
// The peer table: merge of updates, digests, ring order and slots.
#include "member/peers.h"

#include <lib/must.h>
#include <lib/splitmix.h>

#include <errno.h>
#include <string.h>

#define INDEX_MIN 16
#define FRESH_PLACES_KEPT 64 // places; a larger array, left by a whole table, is freed

void peers_init(struct peers *peers, struct memory *memory, struct ras_interner *interner) {
	*peers = (struct peers){
		.memory = memory,
		.interner = interner,
		.free_slot = RAS_NO_SLOT,
	};
}

// Release the signature of a departure. The caller changes the state of the entry next.
static void signature_release(struct peers *peers, struct peer_entry *entry) {
	if (entry->state == RAS_LEFT)
		memory_release(peers->memory, entry->signature, RAS_SIGNATURE_BYTES);
}

void peers_fini(struct peers *peers) {
	struct memory *memory = peers->memory;

	if (memory == NULL)
		return;
	for (uint32_t slot = 0; slot < peers->entry_count; slot++) {
		signature_release(peers, &peers->entries[slot]);
		ras_record_put(peers->interner, peers->entries[slot].record);
	}
	memory_release(memory, peers->entries, peers->entry_capacity * sizeof(*peers->entries));
	memory_release(memory, peers->index, peers->index_capacity * sizeof(*peers->index));
	memory_release(memory, peers->ring, peers->ring_capacity * sizeof(*peers->ring));
	memory_release(memory, peers->fresh, peers->fresh_capacity * sizeof(*peers->fresh));
	*peers = (struct peers){0};
}

int peers_copy(struct peers *to, const struct peers *from, struct memory *memory) {
	must(from->fresh_count == 0);
	must(from->state_counts[RAS_LEFT] == 0); // an entry owns the signature of a departure
	*to = *from;
	to->memory = memory;
	to->fresh = NULL;
	to->fresh_capacity = 0;
	to->entries =
		memory_copy(memory, from->entries, from->entry_capacity * sizeof(*to->entries));
	to->index = memory_copy(memory, from->index, from->index_capacity * sizeof(*to->index));
	to->ring = memory_copy(memory, from->ring, from->ring_capacity * sizeof(*to->ring));
	to->entry_count = to->entries != NULL ? from->entry_count : 0;
	for (uint32_t slot = 0; slot < to->entry_count; slot++) {
		if (from->entries[slot].record != NULL)
			ras_record_get(from->entries[slot].record);
	}
	if (to->entries != NULL && to->index != NULL && to->ring != NULL)
		return 0;
	peers_fini(to);
	return -ENOMEM;
}

// The index. Ids are hashes, so their low bits can be used unchanged.

static uint32_t index_home(const struct peers *peers, uint64_t id) {
	return (uint32_t)id & (peers->index_capacity - 1);
}

static uint64_t index_id(const struct peers *peers, uint32_t place) {
	return peers->entries[peers->index[place].slot - 1].record->id;
}

uint32_t peers_find(const struct peers *peers, uint64_t id) {
	uint32_t tag = (uint32_t)(id >> 32);
	uint32_t place;

	if (peers->index_capacity == 0)
		return RAS_NO_SLOT;
	place = index_home(peers, id);
	while (peers->index[place].slot != 0) {
		if (peers->index[place].tag == tag && index_id(peers, place) == id)
			return peers->index[place].slot - 1;
		place = (place + 1) & (peers->index_capacity - 1);
	}
	return RAS_NO_SLOT;
}

static void index_put(struct peers *peers, uint64_t id, uint32_t slot) {
	uint32_t place = index_home(peers, id);

	while (peers->index[place].slot != 0)
		place = (place + 1) & (peers->index_capacity - 1);
	peers->index[place] = (struct index_place){.tag = (uint32_t)(id >> 32), .slot = slot + 1};
}

// Remove an id and close the hole: later places of the run move up as far as their home allows.
static void index_remove(struct peers *peers, uint64_t id, uint32_t slot) {
	uint32_t mask = peers->index_capacity - 1;
	uint32_t hole = index_home(peers, id);
	uint32_t place;

	while (peers->index[hole].slot != slot + 1)
		hole = (hole + 1) & mask;
	for (place = (hole + 1) & mask; peers->index[place].slot != 0; place = (place + 1) & mask) {
		uint32_t home = index_home(peers, index_id(peers, place));

		if (((place - home) & mask) >= ((place - hole) & mask)) {
			peers->index[hole] = peers->index[place];
			hole = place;
		}
	}
	peers->index[hole] = (struct index_place){0};
}

static int index_reserve(struct peers *peers, uint32_t count) {
	uint32_t old_capacity = peers->index_capacity;
	uint32_t capacity = old_capacity > 0 ? old_capacity : INDEX_MIN;
	struct index_place *old = peers->index;
	struct index_place *fresh;

	while (count > capacity / 4 * 3)
		capacity *= 2;
	if (capacity == old_capacity)
		return 0;
	fresh = memory_allocate(peers->memory, capacity * sizeof(*fresh));
	if (fresh == NULL)
		return -ENOMEM;
	peers->index = fresh;
	peers->index_capacity = capacity;
	for (uint32_t place = 0; place < old_capacity; place++) {
		if (old[place].slot != 0)
			index_put(
				peers, peers->entries[old[place].slot - 1].record->id,
				old[place].slot - 1
			);
	}
	memory_release(peers->memory, old, old_capacity * sizeof(*old));
	return 0;
}

// The digest.

static uint64_t digest_contribution(const struct peer_entry *entry) {
	uint64_t value = splitmix_mix(entry->record->id);

	value = splitmix_mix(value + ras_incarnation_start(entry->incarnation));
	value = splitmix_mix(value + entry->record->digest);
	return splitmix_mix(value + entry->maint);
}

static void digest_add(struct peers *peers, const struct peer_entry *entry) {
	uint64_t value = digest_contribution(entry);

	peers->ranges[peers_digest_range(entry->record->id)] += value;
	peers->digest += value;
}

static void digest_remove(struct peers *peers, const struct peer_entry *entry) {
	uint64_t value = digest_contribution(entry);

	peers->ranges[peers_digest_range(entry->record->id)] -= value;
	peers->digest -= value;
}

// The ring.

static int ring_place_compare(
	const struct peers *peers, const struct ring_place *place, const struct ras_record *record
) {
	if (place->order != record->order)
		return place->order < record->order ? -1 : 1;
	return ras_record_compare(peers->entries[place->slot].record, record);
}

static bool
ring_place_less(const struct peers *peers, const struct ring_place *a, const struct ring_place *b) {
	return ring_place_compare(peers, a, peers->entries[b->slot].record) < 0;
}

static void fresh_sift(struct peers *peers, uint32_t root, uint32_t count) {
	struct ring_place *fresh = peers->fresh;

	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		struct ring_place swap;

		if (child + 1 < count && ring_place_less(peers, &fresh[child], &fresh[child + 1]))
			child++;
		if (!ring_place_less(peers, &fresh[root], &fresh[child]))
			return;
		swap = fresh[root];
		fresh[root] = fresh[child];
		fresh[child] = swap;
		root = child;
	}
}

// Heap sort works in place and has no worst case that a peer could provoke.
static void fresh_sort(struct peers *peers) {
	uint32_t count = peers->fresh_count;

	for (uint32_t root = count / 2; root-- > 0;)
		fresh_sift(peers, root, count);
	while (count > 1) {
		struct ring_place swap = peers->fresh[0];

		peers->fresh[0] = peers->fresh[--count];
		peers->fresh[count] = swap;
		fresh_sift(peers, 0, count);
	}
}

// Merge the fresh members into the ring. Adding them has reserved the room.
static void ring_merge_fresh(struct peers *peers) {
	uint32_t old = peers->ring_count;
	uint32_t fresh = peers->fresh_count;
	uint32_t to = old + fresh;
	bool sorted = true;

	if (fresh == 0)
		return;
	for (uint32_t n = 1; sorted && n < fresh; n++)
		sorted = !ring_place_less(peers, &peers->fresh[n], &peers->fresh[n - 1]);
	if (!sorted)
		fresh_sort(peers);
	while (fresh > 0) {
		if (old > 0 &&
		    ring_place_less(peers, &peers->fresh[fresh - 1], &peers->ring[old - 1]))
			peers->ring[--to] = peers->ring[--old];
		else
			peers->ring[--to] = peers->fresh[--fresh];
	}
	peers->ring_count += peers->fresh_count;
	peers->fresh_count = 0;
}

uint32_t peers_ring_count(struct peers *peers) {
	ring_merge_fresh(peers);
	if (peers->fresh_capacity > FRESH_PLACES_KEPT) {
		memory_release(
			peers->memory, peers->fresh, peers->fresh_capacity * sizeof(*peers->fresh)
		);
		peers->fresh = NULL;
		peers->fresh_capacity = 0;
	}
	return peers->ring_count;
}

uint32_t peers_ring_position(struct peers *peers, const struct ras_record *record) {
	uint32_t low = 0;
	uint32_t high;

	ring_merge_fresh(peers);
	high = peers->ring_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ring_place_compare(peers, &peers->ring[middle], record) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int ring_reserve(struct peers *peers, uint32_t count) {
	uint32_t needed = peers->ring_count + peers->fresh_count + count;
	int err;

	err = memory_grow(
		peers->memory, (void **)&peers->ring, &peers->ring_capacity, needed,
		sizeof(*peers->ring)
	);
	if (err != 0)
		return err;
	return memory_grow(
		peers->memory, (void **)&peers->fresh, &peers->fresh_capacity,
		peers->fresh_count + count, sizeof(*peers->fresh)
	);
}

int peers_reserve(struct peers *peers, uint32_t count) {
	int err;

	if (count <= peers->entry_count)
		return 0;
	err = ring_reserve(peers, count - peers->entry_count);
	if (err == 0)
		err = index_reserve(peers, count);
	if (err == 0)
		err = memory_grow(
			peers->memory, (void **)&peers->entries, &peers->entry_capacity, count,
			sizeof(*peers->entries)
		);
	return err;
}

static void member_add(struct peers *peers, uint32_t slot) {
	peers->ring_number++;
	peers->fresh[peers->fresh_count++] = (struct ring_place){
		.order = peers->entries[slot].record->order,
		.slot = slot,
	};
	digest_add(peers, &peers->entries[slot]);
}

static void member_remove(struct peers *peers, uint32_t slot) {
	struct peer_entry *entry = &peers->entries[slot];
	uint32_t position = peers_ring_position(peers, entry->record);

	must(position < peers->ring_count && peers->ring[position].slot == slot);
	memmove(&peers->ring[position], &peers->ring[position + 1],
		(peers->ring_count - position - 1) * sizeof(*peers->ring));
	peers->ring_count--;
	peers->ring_number++;
	digest_remove(peers, entry);
}

// Entries.

static void state_set(struct peers *peers, struct peer_entry *entry, uint8_t state, uint64_t now) {
	if (entry->state == state)
		return;
	peers->state_counts[entry->state]--;
	peers->state_counts[state]++;
	entry->state = state;
	entry->since_ns = now;
}

// Copy the signature of a departure. *ret_copy is NULL if there is none. Returns 0 or -ENOMEM.
static int signature_copy(struct peers *peers, const struct peer_news *news, uint8_t **ret_copy) {
	uint8_t *copy = NULL;

	if (news->state == RAS_LEFT && news->signature != NULL) {
		copy = memory_copy(peers->memory, news->signature, RAS_SIGNATURE_BYTES);
		if (copy == NULL)
			return -ENOMEM;
	}
	*ret_copy = copy;
	return 0;
}

// Store the end that the update reports. The entry takes over the signature of a departure.
static void
entry_store_end(struct peer_entry *entry, const struct peer_news *news, uint8_t *signature) {
	entry->cause = news->cause;
	entry->weight = news->state == RAS_DEAD ? news->observer_count : 0;
	entry->reached = news->reached;
	entry->of = news->of;
	for (uint32_t n = 0; n < RAS_OBSERVERS_MAX; n++)
		entry->observers[n] = n < entry->weight ? news->observers[n] : 0;
	if (news->state == RAS_LEFT)
		entry->signature = signature;
}

static int entry_insert(
	struct peers *peers, const struct peer_news *news, uint64_t now_ns, uint32_t *ret_slot
) {
	uint32_t slot = peers->free_slot;
	struct peer_entry *entry;
	uint8_t *signature = NULL;
	int err;

	err = ring_reserve(peers, 1);
	if (err == 0)
		err = index_reserve(peers, peers->entry_count + 1);
	if (err == 0 && slot == RAS_NO_SLOT && peers->entry_count >= RAS_PEERS_MAX)
		err = -ENOSPC;
	if (err == 0 && slot == RAS_NO_SLOT)
		err = memory_grow(
			peers->memory, (void **)&peers->entries, &peers->entry_capacity,
			peers->entry_count + 1, sizeof(*peers->entries)
		);
	if (err == 0)
		err = signature_copy(peers, news, &signature);
	if (err != 0)
		return err;
	if (slot == RAS_NO_SLOT)
		slot = peers->entry_count++;
	else
		peers->free_slot = peers->entries[slot].maint; // the list of free slots
	entry = &peers->entries[slot];
	*entry = (struct peer_entry){
		.record = ras_record_get(news->record),
		.incarnation = news->incarnation,
		.since_ns = now_ns,
		.maint = news->maint,
		.state = news->state,
		.flags = news->state == RAS_ALIVE ? 0 : PEER_NEVER_MEMBER,
		.hops = news->hops,
	};
	entry_store_end(entry, news, signature);
	peers->state_counts[news->state]++;
	index_put(peers, news->id, slot);
	if (peer_is_member(entry))
		member_add(peers, slot);
	*ret_slot = slot;
	return 0;
}

static uint8_t entry_merge_state(const struct peer_entry *entry) {
	return peer_is_member(entry) ? RAS_ALIVE : entry->state;
}

static int order_compare(uint64_t held, uint64_t told) {
	return (told > held) - (told < held);
}

// Compare two deaths of one incarnation. Returns >0 if the death in the update is the higher one.
static int death_order(const struct peer_entry *entry, const struct peer_news *news) {
	int order = order_compare(
		peers_death_weight(entry->cause, entry->weight),
		peers_death_weight(news->cause, news->observer_count)
	);

	if (order == 0)
		order = order_compare(entry->reached, news->reached);
	if (order == 0)
		order = order_compare(entry->of, news->of);
	if (order == 0)
		order = order_compare(entry->cause, news->cause);
	if (order == 0)
		order = order_compare(entry->weight, news->observer_count);
	for (uint32_t n = 0; order == 0 && n < news->observer_count; n++)
		order = order_compare(entry->observers[n], news->observers[n]);
	return order;
}

// Order of lives in the lattice. Records have an order of their own, because an update may come
// without a record.
static bool news_is_newer(const struct peer_entry *entry, const struct peer_news *news) {
	if (news->incarnation != entry->incarnation)
		return news->incarnation > entry->incarnation;
	if (news->state != entry_merge_state(entry))
		return news->state > entry_merge_state(entry);
	return news->state == RAS_DEAD && death_order(entry, news) > 0;
}

// Reduce an update to the parts that are newer than the entry (same start). Returns false if
// nothing is left.
static bool news_keep_newer_parts(const struct peer_entry *entry, struct peer_news *news) {
	bool newer = news_is_newer(entry, news);
	bool better = news->record != NULL && news->record->digest > entry->record->digest;

	// The key in the record of a left peer must be the one that signed its departure.
	if (better && !newer && entry->state == RAS_LEFT &&
	    memcmp(news->record->key, entry->record->key, RAS_KEY_BYTES) != 0)
		better = false;
	if (!better)
		news->record = NULL;
	if (!newer) {
		news->incarnation = entry->incarnation;
		news->state = entry_merge_state(entry);
		news->cause = entry->cause;
		news->observer_count = entry->weight;
		news->reached = entry->reached;
		news->of = entry->of;
		memcpy(news->observers, entry->observers, sizeof(news->observers));
	}
	return newer || better;
}

static enum peers_change
merge_change_of(const struct peer_entry *entry, const struct peer_news *news) {
	if (news->state == RAS_DEAD && entry->state == RAS_DEAD &&
	    news->incarnation == entry->incarnation)
		return peers_death_weight(news->cause, news->observer_count) >
				       peers_death_weight(entry->cause, entry->weight)
			       ? PEERS_MORE_WITNESSES
			       : PEERS_SAME;
	if (news->state == RAS_DEAD)
		return PEERS_DEAD;
	if (news->state == RAS_LEFT)
		return PEERS_LEFT;
	if (ras_incarnation_start(news->incarnation) != ras_incarnation_start(entry->incarnation))
		return PEERS_JOINED;
	if (!peer_is_member(entry))
		return PEERS_REJOINED;
	return news->incarnation > entry->incarnation ? PEERS_REFUTED : PEERS_RECORD;
}

static void
record_replace(struct peers *peers, struct peer_entry *entry, struct ras_record *record) {
	struct ras_record *old = entry->record;

	entry->record = ras_record_get(record);
	ras_record_put(peers->interner, old);
}

// Remove the entry from ring and digest, change it, and insert it at its new place.
static void entry_update(
	struct peers *peers,
	uint32_t slot,
	const struct peer_news *news,
	uint8_t *signature,
	uint64_t now_ns
) {
	struct peer_entry *entry = &peers->entries[slot];
	bool same_start = ras_incarnation_start(news->incarnation) ==
			  ras_incarnation_start(entry->incarnation);
	bool keep_place = peer_is_member(entry) && news->state == RAS_ALIVE &&
			  (news->record == NULL || news->record == entry->record);

	// A refutation alone changes neither ring nor digest: the digest covers the start only.
	if (keep_place && same_start) {
		entry->incarnation = news->incarnation;
		return;
	}
	if (peer_is_member(entry))
		member_remove(peers, slot);
	if (news->record != NULL && news->record != entry->record)
		record_replace(peers, entry, news->record);
	if (!same_start) {
		entry->flags = news->state == RAS_ALIVE ? 0 : PEER_NEVER_MEMBER;
		entry->revived = 0;
		if (news->state == RAS_ALIVE)
			entry->since_ns = now_ns; // a new start, even if the old one was alive
	} else if (!peer_is_member(entry) && news->state == RAS_ALIVE) {
		entry->revived = (uint32_t)(entry->incarnation & RAS_REFUTATIONS_MAX) + 1;
		entry->flags &= (uint8_t)~PEER_NEVER_MEMBER;
	}
	signature_release(peers, entry);
	entry->incarnation = news->incarnation;
	entry->hops = news->hops;
	if (!(news->state == RAS_ALIVE && same_start && peer_is_member(entry)))
		state_set(peers, entry, news->state, now_ns);
	entry_store_end(entry, news, signature);
	if (peer_is_member(entry))
		member_add(peers, slot);
}

int peers_news_check(const struct peer_news *news) {
	static const uint8_t no_key[RAS_KEY_BYTES];

	if (news->record == NULL)
		return 0;
	// A record without a key needs no signature, so anybody could write one.
	if (news->record->id != news->id ||
	    news->record->start != ras_incarnation_start(news->incarnation) ||
	    memcmp(news->record->key, no_key, sizeof(no_key)) == 0)
		return -EBADMSG;
	return 0;
}

bool peers_has_name_conflict(
	const struct peers *peers, uint32_t slot, const struct peer_news *news
) {
	const struct ras_record *held = peers->entries[slot].record;
	const struct ras_record *told = news->record;

	return told != NULL && (told->name_length != held->name_length ||
				memcmp(told->name, held->name, held->name_length) != 0);
}

static int entry_merge(
	struct peers *peers,
	uint32_t slot,
	const struct peer_news *news,
	uint64_t now_ns,
	enum peers_change *ret_change
) {
	struct peer_entry *entry = &peers->entries[slot];
	bool same_start = ras_incarnation_start(news->incarnation) ==
			  ras_incarnation_start(entry->incarnation);
	bool newer = news_is_newer(entry, news);
	struct peer_news taken = *news;
	uint8_t *signature = NULL;
	int err;

	if (peers_has_name_conflict(peers, slot, news)) {
		*ret_change = PEERS_CONFLICT;
		return 0;
	}
	if (newer && news->record == NULL && !same_start) {
		*ret_change = PEERS_RECORD_NEEDED;
		return 0;
	}
	*ret_change = PEERS_SAME;
	if (same_start ? news_keep_newer_parts(entry, &taken) : newer) {
		err = ring_reserve(peers, 1);
		if (err == 0 && newer)
			err = signature_copy(peers, news, &signature);
		if (err != 0)
			return err;
		if (newer)
			*ret_change = merge_change_of(entry, news);
		else if (peer_is_member(entry))
			*ret_change = PEERS_RECORD;
		if (newer || peer_is_member(entry))
			entry_update(peers, slot, &taken, signature, now_ns);
		else
			record_replace(peers, entry, taken.record); // record of a tombstone
	}
	if (news->maint > entry->maint) {
		bool switched = ((news->maint ^ entry->maint) & 1) != 0;

		if (peer_is_member(entry))
			digest_remove(peers, entry);
		entry->maint = news->maint;
		if (peer_is_member(entry))
			digest_add(peers, entry);
		if (*ret_change == PEERS_SAME)
			*ret_change = switched ? PEERS_MAINT : PEERS_MAINT_VERSION;
	}
	if (*ret_change != PEERS_SAME)
		peers->view_number++;
	return 0;
}

int peers_merge(
	struct peers *peers,
	const struct peer_news *news,
	uint64_t now_ns,
	enum peers_change *ret_change,
	uint32_t *ret_slot
) {
	uint32_t slot = peers_find(peers, news->id);
	int err = peers_news_check(news);

	must(news->state == RAS_ALIVE || news->state == RAS_DEAD || news->state == RAS_LEFT);
	if (err != 0)
		return err;
	if (slot != RAS_NO_SLOT) {
		err = entry_merge(peers, slot, news, now_ns, ret_change);
	} else if (news->record == NULL) {
		// The death of an unknown peer needs no entry.
		*ret_change = news->state == RAS_ALIVE ? PEERS_RECORD_NEEDED : PEERS_SAME;
	} else {
		err = entry_insert(peers, news, now_ns, &slot);
		if (err == 0) {
			*ret_change = news->state == RAS_ALIVE	? PEERS_JOINED
				      : news->state == RAS_DEAD ? PEERS_DEAD
								: PEERS_LEFT;
			peers->view_number++;
		}
	}
	if (err == 0)
		*ret_slot = slot;
	return err;
}

void peers_set_local(
	struct peers *peers,
	uint32_t slot,
	enum ras_state state,
	enum ras_cause cause,
	uint64_t now_ns
) {
	struct peer_entry *entry = &peers->entries[slot];

	must(peer_is_member(entry) && state >= RAS_ALIVE && state <= RAS_UNREACHABLE);
	state_set(peers, entry, (uint8_t)state, now_ns);
	entry->cause = (uint8_t)cause;
}

void peers_set_left(struct peers *peers, uint32_t slot, uint64_t now_ns) {
	struct peer_news news;

	must(peer_is_member(&peers->entries[slot]));
	peers_news_fill(peers, slot, &news);
	news.state = RAS_LEFT;
	entry_update(peers, slot, &news, NULL, now_ns);
	peers->view_number++;
}

void peers_remove(struct peers *peers, uint32_t slot) {
	struct peer_entry *entry = &peers->entries[slot];
	struct ras_record *record = entry->record;

	must(record != NULL && !peer_is_member(entry));
	index_remove(peers, record->id, slot);
	signature_release(peers, entry);
	peers->state_counts[entry->state]--;
	*entry = (struct peer_entry){.maint = peers->free_slot}; // the list of free slots
	peers->free_slot = slot;
	ras_record_put(peers->interner, record);
	peers->view_number++;
}

uint8_t peers_known_observers(
	const struct peers *peers, uint32_t slot, uint64_t ret_ids[static RAS_OBSERVERS_MAX]
) {
	const struct peer_entry *entry = &peers->entries[slot];
	uint8_t count = 0;

	for (uint32_t n = 0; n < entry->weight; n++) {
		if (peers_find(peers, entry->observers[n]) != RAS_NO_SLOT)
			ret_ids[count++] = entry->observers[n];
	}
	return count;
}

void peers_news_fill(const struct peers *peers, uint32_t slot, struct peer_news *ret_news) {
	const struct peer_entry *entry = &peers->entries[slot];
	struct peer_news news = {
		.id = entry->record->id,
		.incarnation = entry->incarnation,
		.record = entry->record,
		.maint = entry->maint,
		.state = entry_merge_state(entry),
		.hops = entry->hops,
	};

	if (news.state == RAS_DEAD) {
		news.cause = entry->cause;
		news.observer_count = entry->weight;
		memcpy(news.observers, entry->observers, sizeof(news.observers));
		news.reached = entry->reached;
		news.of = entry->of;
	} else if (news.state == RAS_LEFT) {
		news.signature = entry->signature;
	}
	*ret_news = news;
}
