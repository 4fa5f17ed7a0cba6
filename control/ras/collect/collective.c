// SPDX-License-Identifier: BSD-3-Clause
// Starts, serves and ends collectives.
#include "collect/collective.h"

#include "collect/gather.h"
#include "core/core.h"

#define CATCHING_UP_NS RAS_NS_PER_SEC // after a silence, delayed frames arrive within this time
#define CENSUS_BUDGET_MAX_NS (2 * RAS_NS_PER_SEC) // longer than any honest census runs

// Return true if one more collective of this kind may run. Censuses have a limit of their own, so
// that they never wait for collectives of users.
static bool kind_can_start(const struct ras *ras, uint32_t kind) {
	const struct gather *gather;
	bool census = kind == COLLECT_KIND_CENSUS;
	uint32_t running = 0;

	for (gather = ras->collective->running; gather != NULL; gather = gather->next)
		running += gather_is_census(gather) == census;
	return running < (census ? CENSUSES_MAX : COLLECTIVES_MAX);
}

static bool kind_is_known(uint32_t kind) {
	return kind == RAS_COLLECT_CONNS || kind == RAS_COLLECT_COMMS || kind == RAS_COLLECT_PATHS;
}

const struct ras_collect_counters *ras_collect_counters(const struct ras *ras) {
	return &ras->collective->counters;
}

int collective_create(struct ras *ras) {
	ras->collective = memory_allocate(&ras->memory, sizeof(*ras->collective));
	return ras->collective != NULL ? 0 : -ENOMEM;
}

static void gather_remove(struct ras *ras, struct gather *gather) {
	struct gather **at = &ras->collective->running;

	while (*at != gather)
		at = &(*at)->next;
	*at = gather->next;
	ras->collective->counters.running--;
}

void collective_destroy(struct ras *ras) {
	struct gather *gather;

	if (ras->collective == NULL)
		return;
	while ((gather = ras->collective->running) != NULL) {
		gather_remove(ras, gather);
		gather_destroy(ras, gather);
	}
	memory_release(&ras->memory, ras->collective, sizeof(*ras->collective));
	ras->collective = NULL;
}

static void gather_finish(struct ras *ras, struct gather *gather) {
	struct ras_collect_counters *counters = &ras->collective->counters;
	bool root = gather->collected != NULL;
	struct ras_collective_result *result;
	struct census_result census = {
		.reached = gather->count,
		.voters = gather->voters,
		.subject_count = gather->subject_count,
		.subjects = gather->subjects,
		.heard = gather->heard,
	};

	if (gather->abandoned) {
		counters->cancelled += root;
		counters->abandoned += !root;
	} else if (!root) {
		counters->served++;
		gather_flush(ras, gather, COLLECTED_FINAL);
	} else if (gather_is_census(gather)) {
		brake_own_census_done(ras, gather->started_observed_ns, &census);
	} else {
		result = collected_finish(ras, gather->collected);
		result->by_deadline = gather->by_deadline;
		result->elapsed_ns = ras->now_ns - gather->started_ns;
		counters->finished++;
		counters->by_deadline += gather->by_deadline;
		ras->ops.collected(ras->ops_ctx, result);
	}
}

// Finish and free all gathers that wait for no leg. No other function frees one. Sending may call
// this function again through the link, so the walk restarts after each.
static void gathers_finish_done(struct ras *ras) {
	struct gather *gather = ras->collective->running;

	while (gather != NULL) {
		if (gather->holds > 0 || (gather->open_count > 0 && !gather->abandoned)) {
			gather = gather->next;
			continue;
		}
		gather_remove(ras, gather);
		gather_finish(ras, gather);
		gather_destroy(ras, gather);
		gather = ras->collective->running;
	}
}

// Give up a gather and cancel its legs, since no node waits for the answer.
static void gather_abandon(struct ras *ras, struct gather *gather) {
	gather->abandoned = true;
	gather->holds++;
	gather_cancel_legs(ras, gather);
	gather->holds--;
}

// Start a collective as its root. Returns NULL without memory.
static struct gather *gather_begin_root(
	struct ras *ras, struct collect_request *request, uint64_t budget_ns, uint64_t grace_ns
) {
	struct gather *gather;

	request->origin = ras->self_id;
	request->id = flood_next_id(ras);
	request->budget_ns = budget_ns;
	gather = gather_create(ras, request, NULL);
	if (gather == NULL)
		return NULL;
	gather->deadline_ns += grace_ns;
	gather_serve(ras, gather, request);
	// Without any leg the result is reported by the next tick, not inside this call.
	gather->holds--;
	return gather;
}

int ras_collect(
	struct ras *ras, uint64_t now_ns, uint32_t kind, uint64_t timeout_ns, uint64_t *ret_id
) {
	struct collect_request request = {.kind = kind};
	struct gather *gather;

	if (!kind_is_known(kind))
		return -EINVAL;
	if (!ras->started || ras->leaving)
		return -EAGAIN;
	if (!kind_can_start(ras, kind))
		return -EBUSY;
	ras_enter(ras, now_ns);
	if (timeout_ns == 0)
		timeout_ns = ras->profile->leg_ns;
	if (timeout_ns > RAS_COLLECT_TIMEOUT_MAX_NS)
		timeout_ns = RAS_COLLECT_TIMEOUT_MAX_NS;
	gather = gather_begin_root(ras, &request, timeout_ns, ras->profile->leg_grace_ns);
	if (gather != NULL) {
		ras->collective->counters.started++;
		*ret_id = gather->id;
	}
	ras_exit(ras);
	return gather != NULL ? 0 : -ENOMEM;
}

void collective_census_start(
	struct ras *ras, uint64_t timeout_ns, const struct ras_comm_id *entries, uint32_t count
) {
	uint8_t skip[COLLECT_CENSUS_MAX * COLLECT_SKIP_BYTES];
	struct collect_request request = {
		.kind = COLLECT_KIND_CENSUS,
		.skip = skip,
		.skip_count = count,
	};
	struct wire_writer writer;

	must(count <= COLLECT_CENSUS_MAX);
	wire_writer_init(&writer, skip, sizeof(skip));
	for (uint32_t n = 0; n < count; n++) {
		wire_put_u64(&writer, entries[n].hash);
		wire_put_u64(&writer, entries[n].host_hash);
		wire_put_u64(&writer, entries[n].pid_hash);
	}
	if (kind_can_start(ras, COLLECT_KIND_CENSUS))
		gather_begin_root(ras, &request, timeout_ns, 0);
}

int ras_collect_cancel(struct ras *ras, uint64_t now_ns, uint64_t id) {
	struct gather *gather = gather_find(ras, ras->self_id, id);

	if (gather == NULL)
		return -ENOENT;
	ras_enter(ras, now_ns);
	gather_abandon(ras, gather);
	gathers_finish_done(ras);
	ras_exit(ras);
	return 0;
}

// Send a final answer at once: empty for a repeated request, or with a LOST item for ourselves.
static void final_answer_send(
	struct ras *ras, struct link *link, const struct collect_request *request, bool refused
) {
	uint8_t frame[COLLECTED_HEADER_BYTES + COLLECT_ITEM_HEADER_BYTES + COLLECT_LOST_BYTES];
	struct wire_writer writer;
	size_t size;

	wire_writer_init(&writer, frame, sizeof(frame));
	collected_encode(request->origin, request->id, COLLECTED_FINAL, &writer);
	if (refused)
		collect_lost_encode(ras->self_id, COLLECT_LOST_REFUSED, &writer);
	must(wire_writer_finish(&writer, &size) == 0);
	link_send(ras, link, frame, size);
}

static void
request_serve(struct ras *ras, struct link *link, const struct collect_request *request) {
	struct gather *gather = NULL;

	if ((kind_is_known(request->kind) || request->kind == COLLECT_KIND_CENSUS) &&
	    kind_can_start(ras, request->kind))
		gather = gather_create(ras, request, link);
	if (request->kind == COLLECT_KIND_CENSUS)
		brake_census_started(ras, request->origin, census_list_is_usable(ras, request));
	if (gather == NULL) {
		ras->collective->counters.requests_refused++;
		final_answer_send(ras, link, request, true);
		return;
	}
	gather_serve(ras, gather, request);
	gather->holds--;
	gathers_finish_done(ras);
}

int collective_request_received(struct ras *ras, struct link *link, struct wire_reader *reader) {
	struct ras_collect_counters *counters = &ras->collective->counters;
	struct flood_seen *seen = &ras->flood.collectives;
	struct collect_request request;
	bool is_old;
	int err;

	err = collect_request_decode(reader, &request);
	if (err != 0)
		return err;
	if (request.budget_ns > RAS_COLLECT_TIMEOUT_MAX_NS)
		request.budget_ns = RAS_COLLECT_TIMEOUT_MAX_NS;
	// A malicious member could block all CENSUSES_MAX places with long censuses.
	if (request.kind == COLLECT_KIND_CENSUS && request.budget_ns > CENSUS_BUDGET_MAX_NS)
		request.budget_ns = CENSUS_BUDGET_MAX_NS;
	// Frames on this link may have been held up by a silence that has just ended. A census
	// among them is old, but would be taken and forwarded as a new one. So it is ignored. A new
	// census arrives over another link, or is repeated.
	is_old = request.kind == COLLECT_KIND_CENSUS && link->resumed_ns != 0 &&
		 ras->observed_ns - link->resumed_ns < CATCHING_UP_NS;
	if (!flood_id_is_plausible(ras, request.origin, request.id)) {
		counters->requests_forged++;
		final_answer_send(ras, link, &request, true);
	} else if (is_old || !flood_record_first(ras, seen, request.origin, request.id)) {
		counters->requests_repeated++;
		final_answer_send(ras, link, &request, false);
	} else {
		request_serve(ras, link, &request);
	}
	return 0;
}

int collective_answer_received(struct ras *ras, struct link *link, struct wire_reader *reader) {
	struct ras_collect_counters *counters = &ras->collective->counters;
	struct gather_leg *leg;
	struct gather *gather;
	uint64_t origin;
	uint64_t id;
	uint8_t flags;
	int err;

	err = collected_decode(reader, &origin, &id, &flags);
	if (err != 0)
		return err;
	gather = gather_find(ras, origin, id);
	if (gather == NULL) {
		counters->answers_late++;
		return 0;
	}
	leg = gather_leg_find(gather, link->peer);
	if (leg == NULL) {
		counters->answers_foreign++;
		return 0;
	}
	if (!leg->open) {
		counters->answers_late++;
		return 0;
	}
	if ((flags & COLLECTED_FINAL) != 0) {
		leg->open = false;
		gather->open_count--;
	}
	gather->holds++;
	gather_add_items(ras, gather, reader);
	gather->holds--;
	gathers_finish_done(ras);
	return 0;
}

int collective_cancel_received(struct ras *ras, struct link *link, struct wire_reader *reader) {
	struct gather *gather;
	uint64_t origin;
	uint64_t id;
	int err;

	err = collect_cancel_decode(reader, &origin, &id);
	if (err != 0)
		return err;
	gather = gather_find(ras, origin, id);
	// The answer may have crossed the cancel message.
	if (gather == NULL)
		return 0;
	if (gather->collected != NULL || gather->parent != link->peer) {
		ras->collective->counters.cancels_foreign++;
		return 0;
	}
	gather_abandon(ras, gather);
	gathers_finish_done(ras);
	return 0;
}

static void gathers_purge_peer(struct ras *ras, uint64_t peer, bool lost) {
	struct gather *gather;

	for (gather = ras->collective->running; gather != NULL; gather = gather->next) {
		struct gather_leg *leg = gather_leg_find(gather, peer);

		gather->holds++;
		if (lost && gather->collected == NULL && gather->parent == peer)
			gather_abandon(ras, gather);
		else if (leg != NULL && leg->open)
			gather_leg_give_up(ras, gather, leg, COLLECT_LOST_LINK);
		gather->holds--;
	}
	gathers_finish_done(ras);
}

void collective_link_lost(struct ras *ras, struct link *link) {
	gathers_purge_peer(ras, link->peer, !link_is_ready(link));
}

void collective_peer_gone(struct ras *ras, uint32_t slot) {
	gathers_purge_peer(ras, ras_entry(ras, slot)->record->id, true);
}

void collective_tick(struct ras *ras) {
	struct gather *gather;

	for (gather = ras->collective->running; gather != NULL; gather = gather->next) {
		// A timeout is evidence against a peer, unless this agent was paused meanwhile.
		bool evidence = ras->observed_ns - gather->started_observed_ns >= gather->budget_ns;
		uint8_t cancel[COLLECT_CANCEL_BYTES];
		struct wire_writer writer;

		if (gather->open_count == 0 || ras->now_ns < gather->deadline_ns)
			continue;
		wire_writer_init(&writer, cancel, sizeof(cancel));
		collect_cancel_encode(gather->origin, gather->id, &writer);
		gather->holds++;
		gather->by_deadline = true;
		for (uint32_t n = 0; n < gather->leg_count; n++) {
			struct gather_leg *leg = &gather->legs[n];
			struct link *link = gather_ready_link(ras, leg->slot, leg->peer);

			if (!leg->open)
				continue;
			gather_leg_give_up(ras, gather, leg, COLLECT_LOST_TIMEOUT);
			if (link != NULL)
				link_send(ras, link, cancel, sizeof(cancel));
			if (evidence)
				liveness_weak_evidence(ras, leg->slot);
		}
		gather->holds--;
	}
	gathers_finish_done(ras);
}

uint64_t collective_next_ns(const struct ras *ras) {
	const struct gather *gather;
	uint64_t next_ns = RAS_NEVER;

	for (gather = ras->collective->running; gather != NULL; gather = gather->next) {
		uint64_t due_ns = gather->open_count > 0 ? gather->deadline_ns : ras->now_ns;

		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}
