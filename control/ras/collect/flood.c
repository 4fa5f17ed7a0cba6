// SPDX-License-Identifier: BSD-3-Clause
// Originates, forwards and delivers notices, and detects duplicates by origin and id.
#include "collect/flood.h"

#include "collect/collect_message.h"
#include "collect/gather.h"
#include "core/core.h"

#define FLOOD_FRAME_MAX (1 + 8 + 8 + 4 + 2 + 2 + RAS_NOTICE_BYTES_MAX)
#define FLOOD_FORGET_BYTES 16
#define FLOOD_CENSUS_BYTES 17
#define FLOOD_CENSUS_BYTES_MAX (FLOOD_CENSUS_BYTES + COLLECT_SUBJECTS_MAX * 8)
// The start number is the upper half of an id.
#define FLOOD_START_SHIFT 32
// An origin may have restarted so many times before we hear of it.
#define FLOOD_STARTS_AHEAD 16

void flood_fini(struct ras *ras) {
	struct flood *flood = &ras->flood;

	memory_release(&ras->memory, flood->origins, flood->capacity * sizeof(*flood->origins));
	*flood = (struct flood){0};
}

uint64_t flood_next_id(struct ras *ras) {
	uint64_t first = ras_incarnation_start(ras_self(ras)->incarnation) << FLOOD_START_SHIFT;

	// An agent may learn its start number at its join. The ids must grow even then.
	if (ras->flood.last_id < first)
		ras->flood.last_id = first;
	return ++ras->flood.last_id;
}

bool flood_id_is_plausible(const struct ras *ras, uint64_t origin, uint64_t id) {
	uint32_t slot;
	uint64_t start;

	if (origin == ras->self_id)
		return id <= ras->flood.last_id;
	slot = peers_find(&ras->peers, origin);
	// The first notice of a new member may arrive before the update about it.
	if (slot == RAS_NO_SLOT)
		return true;
	start = ras_incarnation_start(ras_entry(ras, slot)->incarnation);
	return id >> FLOOD_START_SHIFT <= start + FLOOD_STARTS_AHEAD;
}

// Return the index of the origin, or the index at which it would be inserted.
static uint32_t origin_index(const struct flood *flood, uint64_t origin) {
	uint32_t low = 0;
	uint32_t high = flood->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (flood->origins[middle].origin < origin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool origin_add(struct ras *ras, uint64_t origin, uint64_t id) {
	struct flood *flood = &ras->flood;
	uint32_t oldest = 0;
	uint32_t place;

	if (flood->count == FLOOD_ORIGINS_MAX) {
		for (uint32_t n = 1; n < flood->count; n++) {
			if (flood->origins[n].used < flood->origins[oldest].used)
				oldest = n;
		}
		flood->count--;
		memmove(&flood->origins[oldest], &flood->origins[oldest + 1],
			(flood->count - oldest) * sizeof(*flood->origins));
	}
	if (memory_grow_within(
		    &ras->memory, (void **)&flood->origins, &flood->capacity, flood->count + 1,
		    FLOOD_ORIGINS_MAX, sizeof(*flood->origins)
	    ) != 0)
		return false;
	place = origin_index(flood, origin);
	memmove(&flood->origins[place + 1], &flood->origins[place],
		(flood->count - place) * sizeof(*flood->origins));
	flood->origins[place] = (struct flood_origin
	){.origin = origin, .highest = id, .window = 1, .used = flood->clock};
	flood->count++;
	return true;
}

static bool window_record(struct flood_origin *known, uint64_t id) {
	uint64_t behind;

	if (id > known->highest) {
		uint64_t ahead = id - known->highest;

		known->window = ahead < FLOOD_WINDOW ? known->window << ahead | 1 : 1;
		known->highest = id;
		return true;
	}
	behind = known->highest - id;
	if (behind >= FLOOD_WINDOW || (known->window >> behind & 1) != 0)
		return false;
	known->window |= UINT64_C(1) << behind;
	return true;
}

bool flood_record_first(struct ras *ras, uint64_t origin, uint64_t id) {
	struct flood *flood = &ras->flood;
	uint32_t place = origin_index(flood, origin);

	if (origin == ras->self_id)
		return false;
	flood->clock++;
	if (place == flood->count || flood->origins[place].origin != origin)
		return origin_add(ras, origin, id);
	flood->origins[place].used = flood->clock;
	return window_record(&flood->origins[place], id);
}

// Send the notice over every good link except `from`.
static void
notice_send(struct ras *ras, const struct link *from, const struct collect_notice *notice) {
	uint8_t frame[FLOOD_FRAME_MAX];
	struct wire_writer writer;
	size_t size;

	wire_writer_init(&writer, frame, sizeof(frame));
	collect_notice_encode(notice, &writer);
	must(wire_writer_finish(&writer, &size) == 0);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (link != from && link_is_good(link))
			link_send(ras, link, frame, size);
	}
}

static void notice_deliver(struct ras *ras, const struct collect_notice *notice) {
	uint64_t subjects[COLLECT_SUBJECTS_MAX];
	struct census_result result = {.subjects = subjects};
	struct wire_reader reader;
	uint64_t incarnation;
	uint64_t id;

	wire_reader_init(&reader, notice->payload, notice->size);
	if (notice->kind >= RAS_NOTICE_OWN_MIN) {
		ras->flood.delivered = notice->id;
		ras->ops.notice(
			ras->ops_ctx, notice->origin, notice->kind, notice->payload, notice->size
		);
	} else if (notice->kind == FLOOD_NOTICE_FORGET) {
		id = wire_get_u64(&reader);
		incarnation = wire_get_u64(&reader);
		ras_forget_apply(ras, id, incarnation);
	} else if (notice->kind == FLOOD_NOTICE_CENSUS) {
		result.reached = wire_get_u32(&reader);
		result.members = wire_get_u32(&reader);
		result.voters = wire_get_u32(&reader);
		result.electorate = wire_get_u32(&reader);
		result.heard = wire_get_u8(&reader);
		while (result.subject_count < COLLECT_SUBJECTS_MAX &&
		       wire_reader_left(&reader) >= sizeof(uint64_t))
			subjects[result.subject_count++] = wire_get_u64(&reader);
		brake_peer_census_done(ras, notice->origin, &result);
	} else if (notice->kind == FLOOD_NOTICE_FORGET_UNREACHABLE) {
		ras_forget_order_received(ras);
	}
	// Unknown kinds below RAS_NOTICE_OWN_MIN come from newer versions: only forwarded.
}

int flood_notice(struct ras *ras, struct link *link, const void *frame, size_t size) {
	struct ras_collect_counters *counters = &ras->collective->counters;
	struct collect_notice notice;
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, frame, size);
	wire_get_u8(&reader);
	err = collect_notice_decode(&reader, &notice);
	if (err != 0)
		return err;
	// A notice of the core must have all its fields. Bytes that a newer version appended are
	// not read.
	if ((notice.kind == FLOOD_NOTICE_FORGET && notice.size < FLOOD_FORGET_BYTES) ||
	    (notice.kind == FLOOD_NOTICE_CENSUS && notice.size < FLOOD_CENSUS_BYTES))
		return -EBADMSG;
	if (!flood_id_is_plausible(ras, notice.origin, notice.id)) {
		counters->requests_forged++;
		return 0;
	}
	if (!flood_record_first(ras, notice.origin, notice.id)) {
		counters->notices_repeated++;
		return 0;
	}
	counters->notices_delivered++;
	// Forward first: the delivery may change the links.
	if (notice.hops < UINT16_MAX && flood_limit_allows(ras, &notice)) {
		notice.hops++;
		notice_send(ras, link, &notice);
	}
	notice_deliver(ras, &notice);
	return 0;
}

static void notice_originate(struct ras *ras, uint32_t kind, const void *payload, size_t size) {
	struct collect_notice notice = {
		.origin = ras->self_id,
		.id = flood_next_id(ras),
		.kind = kind,
		.hops = 1,
		.payload = payload,
		.size = size,
	};

	ras->collective->counters.notices_sent++;
	notice_send(ras, NULL, &notice);
}

void flood_send_forget(struct ras *ras, uint64_t id, uint64_t incarnation) {
	uint8_t payload[FLOOD_FORGET_BYTES];
	struct wire_writer writer;

	wire_writer_init(&writer, payload, sizeof(payload));
	wire_put_u64(&writer, id);
	wire_put_u64(&writer, incarnation);
	notice_originate(ras, FLOOD_NOTICE_FORGET, payload, sizeof(payload));
}

void flood_send_forget_unreachable(struct ras *ras) {
	notice_originate(ras, FLOOD_NOTICE_FORGET_UNREACHABLE, NULL, 0);
}

void flood_send_census(struct ras *ras, const struct census_result *result) {
	uint8_t payload[FLOOD_CENSUS_BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, payload, sizeof(payload));
	wire_put_u32(&writer, result->reached);
	wire_put_u32(&writer, result->members);
	wire_put_u32(&writer, result->voters);
	wire_put_u32(&writer, result->electorate);
	wire_put_u8(&writer, result->heard);
	for (uint32_t n = 0; n < result->subject_count; n++)
		wire_put_u64(&writer, result->subjects[n]);
	notice_originate(ras, FLOOD_NOTICE_CENSUS, payload, wire_writer_used(&writer));
}

uint64_t ras_notice_number(const struct ras *ras) {
	return ras->flood.delivered;
}

int ras_notice(struct ras *ras, uint64_t now_ns, uint32_t kind, const void *payload, size_t size) {
	if (kind < RAS_NOTICE_OWN_MIN)
		return -EINVAL;
	if (size > RAS_NOTICE_BYTES_MAX)
		return -EMSGSIZE;
	if (!ras->started || ras->leaving)
		return -EAGAIN;
	ras_enter(ras, now_ns);
	notice_originate(ras, kind, payload, size);
	ras_exit(ras);
	return 0;
}
