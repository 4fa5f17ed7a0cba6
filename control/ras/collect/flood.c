// SPDX-License-Identifier: BSD-3-Clause
// Originates, forwards and delivers notices, and detects duplicates by origin and id.
#include "collect/flood.h"

#include "collect/collect_message.h"
#include "collect/gather.h"
#include "core/core.h"

#define FLOOD_FRAME_MAX (1 + 8 + 8 + 4 + 2 + 2 + RAS_NOTICE_BYTES_MAX + RAS_SIGNATURE_BYTES)
#define FLOOD_FORGET_BYTES 16
#define FLOOD_CENSUS_BYTES 17
#define FLOOD_CENSUS_BYTES_MAX (FLOOD_CENSUS_BYTES + COLLECT_SUBJECTS_MAX * 8)
// The start number is the upper half of an id.
#define FLOOD_START_SHIFT 32
// An origin may have restarted so many times before we hear of it.
#define FLOOD_STARTS_AHEAD 16
#define FORGED_GAP_NS (10 * RAS_NS_PER_SEC) // between two events about forged notices

static void seen_release(struct ras *ras, struct flood_seen *seen) {
	memory_release(&ras->memory, seen->origins, seen->capacity * sizeof(*seen->origins));
}

void flood_fini(struct ras *ras) {
	seen_release(ras, &ras->flood.notices);
	seen_release(ras, &ras->flood.collectives);
	ras->flood = (struct flood){0};
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
static uint32_t origin_index(const struct flood_seen *seen, uint64_t origin) {
	uint32_t low = 0;
	uint32_t high = seen->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (seen->origins[middle].origin < origin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool origin_add(struct ras *ras, struct flood_seen *seen, uint64_t origin, uint64_t id) {
	uint32_t oldest = 0;
	uint32_t place;

	if (seen->count == FLOOD_ORIGINS_MAX) {
		for (uint32_t n = 1; n < seen->count; n++) {
			if (seen->origins[n].used < seen->origins[oldest].used)
				oldest = n;
		}
		seen->count--;
		memmove(&seen->origins[oldest], &seen->origins[oldest + 1],
			(seen->count - oldest) * sizeof(*seen->origins));
	}
	if (memory_grow_within(
		    &ras->memory, (void **)&seen->origins, &seen->capacity, seen->count + 1,
		    FLOOD_ORIGINS_MAX, sizeof(*seen->origins)
	    ) != 0)
		return false;
	place = origin_index(seen, origin);
	memmove(&seen->origins[place + 1], &seen->origins[place],
		(seen->count - place) * sizeof(*seen->origins));
	seen->origins[place] = (struct flood_origin
	){.origin = origin, .highest = id, .window = 1, .used = seen->clock};
	seen->count++;
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

bool flood_record_first(struct ras *ras, struct flood_seen *seen, uint64_t origin, uint64_t id) {
	uint32_t place = origin_index(seen, origin);

	if (origin == ras->self_id)
		return false;
	seen->clock++;
	if (place == seen->count || seen->origins[place].origin != origin)
		return origin_add(ras, seen, origin, id);
	seen->origins[place].used = seen->clock;
	return window_record(&seen->origins[place], id);
}

// Return true if the window holds the id, or has passed it.
static bool window_has_id(const struct flood_seen *seen, uint64_t origin, uint64_t id) {
	uint32_t place = origin_index(seen, origin);
	uint64_t behind;

	if (place == seen->count || seen->origins[place].origin != origin ||
	    id > seen->origins[place].highest)
		return false;
	behind = seen->origins[place].highest - id;
	return behind >= FLOOD_WINDOW || (seen->origins[place].window >> behind & 1) != 0;
}

size_t flood_signed_bytes(
	uint64_t cluster,
	const struct collect_notice *notice,
	uint8_t ret_bytes[static FLOOD_SIGNED_BYTES_MAX]
) {
	// Keeps a signature of a notice from being valid for anything else that is signed.
	static const char domain[16] = "tocsin notice 1";
	struct wire_writer writer;

	wire_writer_init(&writer, ret_bytes, FLOOD_SIGNED_BYTES_MAX);
	wire_put_bytes(&writer, domain, sizeof(domain));
	wire_put_u64(&writer, cluster);
	wire_put_u64(&writer, notice->origin);
	wire_put_u64(&writer, notice->id);
	wire_put_u32(&writer, notice->kind);
	wire_put_bytes(&writer, notice->payload, notice->size);
	return wire_writer_used(&writer);
}

static bool notice_is_signed_by(
	const struct ras *ras, const struct ras_record *record, const struct collect_notice *notice
) {
	uint8_t bytes[FLOOD_SIGNED_BYTES_MAX];
	size_t size = flood_signed_bytes(ras->cluster, notice, bytes);

	return ras->ops.verify(ras->ops_ctx, record->key, bytes, size, notice->signature);
}

static uint64_t signature_start(const uint8_t signature[static RAS_SIGNATURE_BYTES]) {
	uint64_t start;

	memcpy(&start, signature, sizeof(start));
	return start;
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

// Count a notice that its origin did not sign, and report the neighbour that made it.
static void notice_report_forged(struct ras *ras, const struct link *link, uint64_t origin) {
	struct flood *flood = &ras->flood;

	ras->collective->counters.notices_forged++;
	if (ras->observed_ns < flood->next_forged_ns)
		return;
	flood->next_forged_ns = ras->observed_ns + FORGED_GAP_NS;
	ras_emit(ras, RAS_EVENT_FORGED, link->slot, RAS_CAUSE_PROTOCOL, origin);
}

// Handle a notice in our own name: an echo of one that we sent, or a forged one. No member that
// checks signatures forwards a forged notice, so the neighbour made it.
static void
own_notice_received(struct ras *ras, const struct link *link, const struct collect_notice *notice) {
	const struct flood *flood = &ras->flood;
	uint64_t first = ras_incarnation_start(ras_self(ras)->incarnation) << FLOOD_START_SHIFT;
	bool sent = notice->id <= flood->last_id;

	if (sent && flood->last_id - notice->id < FLOOD_WINDOW)
		sent = flood->own_signatures[notice->id % FLOOD_WINDOW] ==
		       signature_start(notice->signature);
	else if (sent)
		sent = notice_is_signed_by(ras, ras_self(ras)->record, notice);
	// A notice of an earlier start may have another key.
	if (sent || notice->id < first)
		ras->collective->counters.notices_repeated++;
	else
		notice_report_forged(ras, link, notice->origin);
}

// Return true if the origin sent this notice in its current start, and it is new here. The
// signature is checked last, because it costs most.
static bool
notice_check(struct ras *ras, const struct link *link, const struct collect_notice *notice) {
	struct ras_collect_counters *counters = &ras->collective->counters;
	uint32_t slot = peers_find(&ras->peers, notice->origin);

	// The first notice of a new member may come before its record. Members beside it that know
	// the record have forwarded the notice, and what matters is sent again.
	if (slot == RAS_NO_SLOT) {
		counters->notices_unproven++;
		return false;
	}
	if (notice->id >> FLOOD_START_SHIFT <
		    ras_incarnation_start(ras_entry(ras, slot)->incarnation) ||
	    window_has_id(&ras->flood.notices, notice->origin, notice->id)) {
		counters->notices_repeated++;
		return false;
	}
	if (!notice_is_signed_by(ras, ras_entry(ras, slot)->record, notice)) {
		// A neighbour may know another key of the origin for a moment. Only the origin
		// itself is to blame for sure.
		if (link->peer == notice->origin)
			notice_report_forged(ras, link, notice->origin);
		else
			counters->notices_forged++;
		return false;
	}
	return flood_record_first(ras, &ras->flood.notices, notice->origin, notice->id);
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
	if (notice.origin == ras->self_id) {
		own_notice_received(ras, link, &notice);
		return 0;
	}
	if (!notice_check(ras, link, &notice))
		return 0;
	counters->notices_delivered++;
	// Forward first: the delivery may change the links.
	if (notice.hops < UINT16_MAX && flood_limit_admit(ras, &notice)) {
		notice.hops++;
		notice_send(ras, link, &notice);
	}
	notice_deliver(ras, &notice);
	return 0;
}

static void notice_originate(struct ras *ras, uint32_t kind, const void *payload, size_t size) {
	uint8_t signature[RAS_SIGNATURE_BYTES];
	uint8_t bytes[FLOOD_SIGNED_BYTES_MAX];
	struct collect_notice notice = {
		.origin = ras->self_id,
		.id = flood_next_id(ras),
		.kind = kind,
		.hops = 1,
		.payload = payload,
		.size = size,
		.signature = signature,
	};
	size_t signed_size = flood_signed_bytes(ras->cluster, &notice, bytes);

	ras->ops.sign(ras->ops_ctx, bytes, signed_size, signature);
	ras->flood.own_signatures[notice.id % FLOOD_WINDOW] = signature_start(signature);
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
