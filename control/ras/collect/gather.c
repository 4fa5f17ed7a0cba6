// SPDX-License-Identifier: BSD-3-Clause
// The steps of a collective at one node: asks neighbours and forwards answers to the parent.
#include "collect/gather.h"

#include "core/core.h"

#define PENDING_BYTES_MIN 512u

static size_t gather_bytes(uint32_t leg_max) {
	return sizeof(struct gather) + leg_max * sizeof(struct gather_leg);
}

struct gather *
gather_create(struct ras *ras, const struct collect_request *request, struct link *from) {
	struct ras_collect_counters *counters = &ras->collective->counters;
	uint32_t leg_max = 0;
	struct gather *gather;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		leg_max += link != from && link_is_good(link);
	}
	gather = memory_allocate(&ras->memory, gather_bytes(leg_max));
	if (gather == NULL)
		return NULL;
	gather->leg_max = leg_max;
	gather->origin = request->origin;
	gather->id = request->id;
	gather->kind = request->kind;
	gather->count = 1;
	gather->voters = votes_self_has_none(ras) ? 0 : 1;
	gather->hops = request->hops;
	gather->started_ns = ras->now_ns;
	gather->started_observed_ns = ras->observed_ns;
	gather->budget_ns = request->budget_ns;
	gather->deadline_ns = ras->now_ns + request->budget_ns;
	gather->holds = 1;
	if (from != NULL) {
		gather->parent = from->peer;
		gather->parent_slot = from->slot;
	} else {
		gather->collected = collected_create(ras, request->kind, request->id);
		if (gather->collected == NULL) {
			gather_destroy(ras, gather);
			return NULL;
		}
	}
	gather->next = ras->collective->running;
	ras->collective->running = gather;
	counters->running++;
	if (counters->running > counters->running_max)
		counters->running_max = counters->running;
	return gather;
}

void gather_destroy(struct ras *ras, struct gather *gather) {
	collected_destroy(ras, gather->collected);
	memory_release(&ras->memory, gather->pending, gather->pending_capacity);
	memory_release(&ras->memory, gather, gather_bytes(gather->leg_max));
}

struct gather *gather_find(const struct ras *ras, uint64_t origin, uint64_t id) {
	struct gather *gather = ras->collective->running;

	while (gather != NULL && (gather->origin != origin || gather->id != id))
		gather = gather->next;
	return gather;
}

struct link *gather_ready_link(const struct ras *ras, uint32_t slot, uint64_t peer) {
	struct link *link = link_find(ras, slot);

	if (link == NULL || !link->used || link->peer != peer || !link_is_ready(link))
		return NULL;
	return link;
}

void gather_flush(struct ras *ras, struct gather *gather, uint8_t flags) {
	struct link *link = gather_ready_link(ras, gather->parent_slot, gather->parent);
	uint8_t bare[COLLECTED_HEADER_BYTES];
	uint8_t *frame = gather->pending_used > 0 ? gather->pending : bare;
	uint8_t census[COLLECTED_HEADER_BYTES + COLLECT_ITEM_HEADER_BYTES + COLLECT_COUNT_BYTES];
	struct wire_writer header;
	uint32_t size = gather->pending_used;

	// A census sends nothing but its final answer.
	if (gather_is_census(gather)) {
		wire_writer_init(&header, census, sizeof(census));
		collected_encode(gather->origin, gather->id, COLLECTED_FINAL, &header);
		collect_count_encode(gather->count, gather->voters, gather->heard, &header);
		if (link != NULL && !gather->abandoned)
			link_send(ras, link, census, sizeof(census));
		return;
	}
	wire_writer_init(&header, frame, COLLECTED_HEADER_BYTES);
	collected_encode(gather->origin, gather->id, flags, &header);
	if (size == 0)
		size = COLLECTED_HEADER_BYTES;
	if (link != NULL && !gather->abandoned)
		link_send(ras, link, frame, size);
	gather->pending_used = 0;
}

// Reserve room for an item. Sends the pending frame first if it is full. False without memory.
static bool pending_reserve(struct ras *ras, struct gather *gather, size_t size) {
	uint32_t capacity = gather->pending_capacity;
	uint32_t used;
	uint8_t *grown;

	must(size <= RAS_FRAME_MAX - COLLECTED_HEADER_BYTES);
	if (gather->pending_used + size > RAS_FRAME_MAX)
		gather_flush(ras, gather, 0);
	used = gather->pending_used > 0 ? gather->pending_used : COLLECTED_HEADER_BYTES;
	if (capacity == 0)
		capacity = PENDING_BYTES_MIN;
	while (capacity < used + size)
		capacity *= 2;
	if (capacity > gather->pending_capacity) {
		grown = memory_allocate(&ras->memory, capacity);
		if (grown == NULL)
			return false;
		if (gather->pending_used > 0)
			memcpy(grown, gather->pending, gather->pending_used);
		memory_release(&ras->memory, gather->pending, gather->pending_capacity);
		gather->pending = grown;
		gather->pending_capacity = capacity;
	}
	gather->pending_used = used;
	return true;
}

void gather_add_answer(
	struct ras *ras, struct gather *gather, const struct collect_answer *answer
) {
	size_t size = COLLECT_ITEM_HEADER_BYTES + COLLECT_ANSWER_HEADER_BYTES + answer->size;
	struct wire_writer writer;

	if (gather->collected != NULL) {
		collected_add_answer(ras, gather->collected, answer);
		return;
	}
	if (!pending_reserve(ras, gather, size))
		return;
	wire_writer_init(&writer, gather->pending + gather->pending_used, size);
	collect_answer_encode(answer, &writer);
	gather->pending_used += (uint32_t)size;
}

static void gather_add_lost(
	struct ras *ras, struct gather *gather, uint64_t peer, enum collect_lost_reason why
) {
	size_t size = COLLECT_ITEM_HEADER_BYTES + COLLECT_LOST_BYTES;
	struct wire_writer writer;

	if (gather_is_census(gather))
		return; // a census reports no reasons: a missing member is simply not counted
	if (gather->collected != NULL) {
		collected_add_lost(ras, gather->collected, peer, why);
		return;
	}
	if (!pending_reserve(ras, gather, size))
		return;
	wire_writer_init(&writer, gather->pending + gather->pending_used, size);
	collect_lost_encode(peer, why, &writer);
	gather->pending_used += (uint32_t)size;
}

void gather_add_items(struct ras *ras, struct gather *gather, struct wire_reader *items) {
	size_t size = wire_reader_left(items);
	struct collect_item item;

	if (gather_is_census(gather)) {
		while (collect_item_decode(items, &item) == 0) {
			if (item.type != COLLECT_ITEM_COUNT || item.voters > item.count)
				continue;
			if (item.count <= RAS_PEERS_MAX - gather->count)
				gather->count += item.count;
			if (item.voters <= RAS_PEERS_MAX - gather->voters)
				gather->voters += item.voters;
			gather->heard |= item.heard;
		}
		return;
	}
	if (gather->collected != NULL) {
		while (collect_item_decode(items, &item) == 0) {
			if (item.type == COLLECT_ITEM_ANSWER)
				collected_add_answer(ras, gather->collected, &item.answer);
			else if (item.type == COLLECT_ITEM_LOST)
				collected_add_lost(
					ras, gather->collected, item.lost_peer, item.lost_reason
				);
		}
		return;
	}
	if (size == 0 || !pending_reserve(ras, gather, size))
		return;
	wire_get_bytes(items, gather->pending + gather->pending_used, size);
	gather->pending_used += (uint32_t)size;
}

struct gather_leg *gather_leg_find(struct gather *gather, uint64_t peer) {
	for (uint32_t n = 0; n < gather->leg_count; n++) {
		if (gather->legs[n].peer == peer)
			return &gather->legs[n];
	}
	return NULL;
}

void gather_leg_give_up(
	struct ras *ras, struct gather *gather, struct gather_leg *leg, enum collect_lost_reason why
) {
	struct ras_collect_counters *counters = &ras->collective->counters;

	must(leg->open);
	leg->open = false;
	gather->open_count--;
	if (why == COLLECT_LOST_TIMEOUT)
		counters->legs_timed_out++;
	else
		counters->legs_lost++;
	gather_add_lost(ras, gather, leg->peer, why);
}

void gather_cancel_legs(struct ras *ras, struct gather *gather) {
	uint8_t frame[COLLECT_CANCEL_BYTES];
	struct wire_writer writer;

	wire_writer_init(&writer, frame, sizeof(frame));
	collect_cancel_encode(gather->origin, gather->id, &writer);
	for (uint32_t n = 0; n < gather->leg_count; n++) {
		struct gather_leg *leg = &gather->legs[n];
		struct link *link = gather_ready_link(ras, leg->slot, leg->peer);

		if (!leg->open)
			continue;
		leg->open = false;
		gather->open_count--;
		if (link != NULL)
			link_send(ras, link, frame, sizeof(frame));
	}
}

// Return the budget of a leg. It is smaller than ours, so that its answer has time to travel. On
// the longest way about six tenths of the root's budget are left.
static uint64_t leg_budget_ns(const struct ras *ras, uint64_t budget_ns) {
	uint32_t members = peers_member_count(&ras->peers);
	uint32_t depth = 2; // hops that a flood may need
	uint64_t margin_ns;

	if (ras->profile->long_rings) {
		for (; members > 1; members /= 2)
			depth++;
	} else {
		depth = members / 2 + 1;
	}
	margin_ns = budget_ns / (UINT64_C(2) * depth) + 1;
	return budget_ns > margin_ns ? budget_ns - margin_ns : 0;
}

static void gather_forward(
	struct ras *ras,
	struct gather *gather,
	const struct collect_request *request,
	const struct gather_skip *skip
) {
	struct collect_request onward = *request;
	struct wire_writer writer;
	uint8_t *frame;
	size_t size;

	if (gather->leg_max == 0 || request->hops >= UINT16_MAX)
		return;
	size = COLLECT_REQUEST_BYTES_MAX -
	       (RAS_COLLECT_SKIP_MAX - skip->count) * sizeof(struct ras_comm_id);
	// Not the scratch buffer: sending on a link may use it.
	frame = memory_allocate(&ras->memory, size);
	if (frame == NULL)
		return;
	onward.hops++;
	onward.budget_ns = leg_budget_ns(ras, request->budget_ns);
	wire_writer_init(&writer, frame, size);
	collect_request_encode(&onward, skip->ids, skip->count, &writer);
	for (uint32_t n = 0; n < ras->links.count && gather->leg_count < gather->leg_max; n++) {
		struct link *link = ras->links.table[n];
		bool back = gather->collected == NULL && link->peer == gather->parent;

		if (back || !link_is_good(link))
			continue;
		gather->legs[gather->leg_count++] =
			(struct gather_leg){.peer = link->peer, .slot = link->slot, .open = true};
		gather->open_count++;
		link_send(ras, link, frame, size);
	}
	memory_release(&ras->memory, frame, size);
}

// Return true if the subject of a census is ourselves or speaks on a link of ours.
static bool census_subject_is_heard(const struct ras *ras, uint64_t subject) {
	uint32_t slot = peers_find(&ras->peers, subject);
	const struct link *link = slot != RAS_NO_SLOT ? link_find(ras, slot) : NULL;

	return subject == ras->self_id || (link != NULL && link_has_live_peer(ras, link));
}

// Process the entries of a census: set `heard` for its subjects, and withdraw our own count or vote
// if an entry says so. Entries of newer versions are ignored. If the origin has no vote, subjects
// that this agent does not hear are passed to liveness_suspicion_delegated(): such an origin can
// declare no deaths itself.
static void census_process_entries(
	struct ras *ras, struct gather *gather, const struct collect_request *request
) {
	bool is_ours = gather->origin == ras->self_id;
	bool has_vote = true; // the origin has one

	votes_end_late_report(ras, gather->origin, request);
	for (uint32_t n = 0; n < request->skip_count; n++) {
		struct ras_comm_id entry = collect_skip_at(request, n);

		enum collect_census_kind word = collect_census_kind(&entry);

		if (entry.hash == gather->origin && word == COLLECT_CENSUS_NO_VOTE)
			has_vote = false;
		if (entry.hash == ras->self_id &&
		    (word == COLLECT_CENSUS_NO_VOTE || word == COLLECT_CENSUS_NO_MEMBER))
			gather->voters = 0;
		if (entry.hash == ras->self_id && word == COLLECT_CENSUS_NO_VOTE && !is_ours)
			votes_reported_voteless(ras, gather->origin);
		if (entry.hash == ras->self_id && word == COLLECT_CENSUS_LATE_JOINER &&
		    !votes_reported_late(ras, gather->origin, entry.pid_hash))
			gather->voters = 0;
		if (entry.hash == ras->self_id && word == COLLECT_CENSUS_NO_MEMBER)
			gather->count = 0;
		if (word != COLLECT_CENSUS_SUBJECT || gather->subject_count == COLLECT_SUBJECTS_MAX)
			continue;
		if (census_subject_is_heard(ras, entry.hash))
			gather->heard |= (uint8_t)(1u << gather->subject_count);
		gather->subjects[gather->subject_count++] = entry.hash;
	}
	for (uint32_t n = 0; n < gather->subject_count && !has_vote && !is_ours; n++) {
		if ((gather->heard >> n & 1) == 0)
			liveness_suspicion_delegated(ras, gather->subjects[n]);
	}
}

void gather_serve(struct ras *ras, struct gather *gather, const struct collect_request *request) {
	struct gather_skip skip = {0};

	if (gather_skip_init(ras, &skip, request) == 0) {
		if (gather_is_census(gather))
			census_process_entries(ras, gather, request);
		else
			gather_add_own_share(ras, gather, &skip);
		gather_forward(ras, gather, request, &skip);
	} else {
		gather_add_lost(ras, gather, ras->self_id, COLLECT_LOST_REFUSED);
	}
	gather_skip_fini(ras, &skip);
}
