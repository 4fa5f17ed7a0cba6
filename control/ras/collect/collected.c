// SPDX-License-Identifier: BSD-3-Clause
// The result of a collective: stores answers in chunks and lists the missing members.
#include "collect/collected.h"

#include "core/core.h"

#include <lib/sort.h>

// Chunks grow with the result: most are a few kilobytes, some are RAS_COLLECT_BYTES_MAX.
#define CHUNK_BYTES_MIN 4096u
#define CHUNK_BYTES_MAX 262144u

struct kept_part {
	uint64_t node;
	uint64_t incarnation;
	uint64_t size;
};

static size_t kept_part_bytes(size_t size) {
	// Rounded up, so that each struct kept_part is aligned.
	return sizeof(struct kept_part) + (size + 7) / 8 * 8;
}

struct ras_collected *collected_create(struct ras *ras, uint32_t kind, uint64_t id) {
	// A census stores numbers only.
	uint32_t slot_count = kind == COLLECT_KIND_CENSUS ? 0 : ras->peers.entry_count;
	struct ras_collected *collected;

	collected = memory_allocate(&ras->memory, sizeof(*collected));
	if (collected == NULL)
		return NULL;
	collected->slot_count = slot_count;
	if (slot_count == 0)
		return collected;
	collected->answers =
		memory_allocate(&ras->memory, slot_count * sizeof(*collected->answers));
	collected->missing =
		memory_allocate(&ras->memory, slot_count * sizeof(*collected->missing));
	if (collected->answers == NULL || collected->missing == NULL) {
		collected_destroy(ras, collected);
		return NULL;
	}
	collected->result.id = id;
	collected->result.kind = kind;
	collected->result.view_number = ras->peers.view_number;
	collected->result.view_digest = peers_digest(&ras->peers);
	collected->result.collected = collected;
	for (uint32_t slot = 0; slot < slot_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);
		struct collected_answer *answer = &collected->answers[slot];

		if (entry->record == NULL)
			continue;
		answer->id = entry->record->id;
		answer->member = peer_is_member(entry);
		if (answer->member)
			collected->result.member_count++;
		else if (entry->state != RAS_DEAD)
			answer->id = 0; // a peer that left is not reported as missing
	}
	return collected;
}

void collected_destroy(struct ras *ras, struct ras_collected *collected) {
	struct collected_chunk *chunk;

	if (collected == NULL)
		return;
	while ((chunk = collected->first) != NULL) {
		collected->first = chunk->next;
		memory_release(&ras->memory, chunk, sizeof(*chunk) + chunk->capacity);
	}
	memory_release(
		&ras->memory, collected->answers,
		collected->slot_count * sizeof(*collected->answers)
	);
	memory_release(
		&ras->memory, collected->missing,
		collected->slot_count * sizeof(*collected->missing)
	);
	memory_release(&ras->memory, collected, sizeof(*collected));
}

static struct collected_answer *
answer_find(const struct ras *ras, const struct ras_collected *collected, uint64_t id) {
	uint32_t slot = peers_find(&ras->peers, id);

	if (slot == RAS_NO_SLOT || slot >= collected->slot_count ||
	    collected->answers[slot].id != id)
		return NULL;
	return &collected->answers[slot];
}

static void *chunk_allocate(struct ras *ras, struct ras_collected *collected, size_t size) {
	struct collected_chunk *chunk = collected->last;
	size_t capacity;

	if (chunk == NULL || chunk->capacity - chunk->used < size) {
		capacity = chunk == NULL ? CHUNK_BYTES_MIN : chunk->capacity * 2;
		if (capacity > CHUNK_BYTES_MAX)
			capacity = CHUNK_BYTES_MAX;
		if (capacity < size)
			capacity = size;
		chunk = memory_allocate(&ras->memory, sizeof(*chunk) + capacity);
		if (chunk == NULL)
			return NULL;
		chunk->capacity = capacity;
		if (collected->last != NULL)
			collected->last->next = chunk;
		else
			collected->first = chunk;
		collected->last = chunk;
	}
	chunk->used += size;
	return chunk->bytes + chunk->used - size;
}

void collected_add_answer(
	struct ras *ras, struct ras_collected *collected, const struct collect_answer *answer
) {
	struct ras_collective_result *result = &collected->result;
	struct collected_answer *known = answer_find(ras, collected, answer->node);
	size_t size = kept_part_bytes(answer->size);
	struct kept_part part = {
		.node = answer->node, .incarnation = answer->incarnation, .size = answer->size};
	uint8_t *taken = NULL;

	if (known == NULL || !known->member || known->complete || answer->part != known->parts ||
	    answer->part >= RAS_COLLECT_PARTS_MAX ||
	    (known->parts > 0 && answer->incarnation != known->incarnation)) {
		result->surplus++;
		return;
	}
	known->incarnation = answer->incarnation;
	known->parts++;
	if (answer->size > 0 && size <= RAS_COLLECT_BYTES_MAX - collected->kept_bytes)
		taken = chunk_allocate(ras, collected, size);
	if (taken != NULL) {
		collected->kept_bytes += size;
		memcpy(taken, &part, sizeof(part));
		memcpy(taken + sizeof(part), answer->payload, answer->size);
	} else if (answer->size > 0) {
		result->truncated++;
	}
	if (answer->hops > result->hops_max)
		result->hops_max = answer->hops;
	if (!answer->last)
		return;
	known->complete = true;
	result->answered++;
	if (answer->view_digest == result->view_digest)
		result->agreeing++;
}

void collected_add_lost(
	struct ras *ras,
	struct ras_collected *collected,
	uint64_t peer,
	enum collect_lost_reason why
) {
	struct collected_answer *known = answer_find(ras, collected, peer);

	switch (why) {
	case COLLECT_LOST_TIMEOUT:
		collected->result.legs_timed_out++;
		break;
	case COLLECT_LOST_REFUSED:
		collected->result.legs_refused++;
		break;
	case COLLECT_LOST_LINK:
		collected->result.legs_lost++;
		break;
	}
	// Several nodes may have asked this peer. The highest reason wins, so that the order of
	// arrival does not matter.
	if (known != NULL && (!known->lost || why > known->why)) {
		known->lost = true;
		known->why = (uint8_t)why;
	}
}

static enum ras_missing missing_reason(
	const struct ras *ras,
	const struct ras_collective_result *result,
	const struct collected_answer *answer
) {
	uint32_t slot = peers_find(&ras->peers, answer->id);

	// The peer was removed meanwhile: as a tombstone, or by an operator as unreachable.
	if (slot == RAS_NO_SLOT)
		return answer->member ? RAS_MISSING_LEFT : RAS_MISSING_DEAD;
	switch ((enum ras_state)ras_entry(ras, slot)->state) {
	case RAS_DEAD:
		return RAS_MISSING_DEAD;
	case RAS_LEFT:
		return RAS_MISSING_LEFT;
	case RAS_UNREACHABLE:
		return RAS_MISSING_UNREACHABLE;
	case RAS_SUSPECT:
		return RAS_MISSING_SUSPECT;
	case RAS_UNKNOWN:
	case RAS_ALIVE:
		break;
	}
	if (answer->lost) {
		switch ((enum collect_lost_reason)answer->why) {
		case COLLECT_LOST_REFUSED:
			return RAS_MISSING_REFUSED;
		case COLLECT_LOST_TIMEOUT:
			return RAS_MISSING_TIMED_OUT;
		case COLLECT_LOST_LINK:
			return RAS_MISSING_LEG_LOST;
		}
	}
	if (answer->parts > 0)
		return RAS_MISSING_CUT_SHORT;
	if (result->legs_timed_out + result->legs_lost + result->legs_refused > 0)
		return RAS_MISSING_BEHIND;
	return RAS_MISSING_NOT_ASKED;
}

static int missing_compare(const void *a, const void *b) {
	uint64_t left = ((const struct ras_missing_peer *)a)->id;
	uint64_t right = ((const struct ras_missing_peer *)b)->id;

	return (left > right) - (left < right);
}

struct ras_collective_result *collected_finish(struct ras *ras, struct ras_collected *collected) {
	struct ras_collective_result *result = &collected->result;

	for (uint32_t slot = 0; slot < collected->slot_count; slot++) {
		const struct collected_answer *answer = &collected->answers[slot];
		struct ras_missing_peer *missing = &collected->missing[result->missing_count];

		if (answer->id == 0 || answer->complete)
			continue;
		missing->id = answer->id;
		missing->reason = missing_reason(ras, result, answer);
		result->missing_count++;
	}
	sort_rows(
		collected->missing, result->missing_count, sizeof(*collected->missing),
		missing_compare
	);
	result->missing = collected->missing;
	return result;
}

bool ras_collected_next(
	const struct ras_collected *collected,
	struct ras_collected_cursor *cursor,
	struct ras_collected_part *ret_part
) {
	const struct collected_chunk *chunk =
		cursor->chunk != NULL ? cursor->chunk : collected->first;
	struct kept_part part;

	while (chunk != NULL && cursor->at == chunk->used) {
		chunk = chunk->next;
		cursor->at = 0;
	}
	if (chunk == NULL) {
		// Keep the cursor at the end for further calls.
		cursor->chunk = collected->last;
		cursor->at = collected->last != NULL ? collected->last->used : 0;
		return false;
	}
	memcpy(&part, chunk->bytes + cursor->at, sizeof(part));
	ret_part->node = part.node;
	ret_part->incarnation = part.incarnation;
	ret_part->payload = chunk->bytes + cursor->at + sizeof(part);
	ret_part->size = part.size;
	cursor->chunk = chunk;
	cursor->at += kept_part_bytes(part.size);
	return true;
}

static const char *const missing_names[] = {
	[RAS_MISSING_DEAD] = "dead",
	[RAS_MISSING_LEFT] = "left",
	[RAS_MISSING_UNREACHABLE] = "unreachable",
	[RAS_MISSING_SUSPECT] = "suspect",
	[RAS_MISSING_REFUSED] = "refused",
	[RAS_MISSING_TIMED_OUT] = "timed-out",
	[RAS_MISSING_LEG_LOST] = "leg-lost",
	[RAS_MISSING_CUT_SHORT] = "cut-short",
	[RAS_MISSING_BEHIND] = "behind",
	[RAS_MISSING_NOT_ASKED] = "not-asked",
};

const char *ras_missing_name(enum ras_missing reason) {
	return (unsigned int)reason < RAS_MISSING_COUNT ? missing_names[reason] : NULL;
}
