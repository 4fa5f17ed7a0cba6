// SPDX-License-Identifier: BSD-3-Clause
// Table of known grants, and their exchange between members.
//
// Message: u8 format, u8 0, u16 count, count x (u64 node, u64 start, u32 seconds since it was
// granted, u32 seconds that it remains valid).
#include "grants_inside.h"

#include <lib/wire.h>
#include <ras/collective.h>

#include <errno.h>
#include <string.h>

#define FORMAT 1
#define HEADER_BYTES 4
#define ENTRY_BYTES 24
#define PERCENT_ONE_THIRD 33 // per cent, taken as exactly one third: of three nodes one, of six two
#define ENTRIES_PER_NOTICE ((RAS_NOTICE_BYTES_MAX - HEADER_BYTES) / ENTRY_BYTES)

void grants_wake(struct grants *grants, uint64_t at_ns) {
	if (at_ns >= grants->next_ns)
		return;
	if (grants->ops.wake(grants->ops_ctx, at_ns))
		grants->next_ns = at_ns;
}

// Return the index of the id, or the index where it belongs.
static uint32_t grant_index(const struct grants *grants, uint64_t id) {
	uint32_t low = 0, high = grants->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (grants->rows[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct granted *grants_find(const struct grants *grants, uint64_t id) {
	uint32_t place = grant_index(grants, id);

	return place < grants->count && grants->rows[place].id == id ? &grants->rows[place] : NULL;
}

int grants_add(struct grants *grants, uint64_t id, struct granted **ret_row) {
	uint32_t place = grant_index(grants, id);
	int err;

	if (grants->count == GRANTS_MAX)
		return -ENOSPC;
	err = array_grow(
		&grants->memory, (void **)&grants->rows, &grants->capacity, grants->count + 1,
		sizeof(*grants->rows)
	);
	if (err != 0)
		return err;
	memmove(&grants->rows[place + 1], &grants->rows[place],
		(grants->count - place) * sizeof(*grants->rows));
	grants->count++;
	grants->counters.kept = grants->count;
	grants->service->is_old = true;
	grants->rows[place] = (struct granted){.id = id};
	*ret_row = &grants->rows[place];
	return 0;
}

// Return whether the grant counts for the rate limit.
static bool grant_counts_for_rate(const struct granted *row, uint64_t now_ns) {
	return now_ns < row->first_ns + GRANTS_INTERVAL_NS;
}

// Return whether the node is healthy and not in maintenance, so that feeds undrain it. A node that
// is no member counts as healthy, and so does one whose address another agent has: it has nothing
// to undrain.
static bool node_is_undrained(const struct grants *grants, uint64_t id) {
	uint32_t row = members_find(&grants->engine->members, id);
	const struct subject *subject = subject_find(grants->engine, id);
	struct verdict_view view;

	if (row == MEMBERS_NONE || (subject != NULL && subject_is_address_conflict(subject)))
		return true;
	verdict_view_fill(grants->engine, row, &view);
	return view.verdict <= VERDICT_HEALTHY && !view.maint;
}

void grants_expire(struct grants *grants, uint64_t now_ns) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < grants->count; n++) {
		const struct granted *row = &grants->rows[n];

		if (now_ns < row->until_ns || grant_counts_for_rate(row, now_ns) ||
		    !node_is_undrained(grants, row->id))
			grants->rows[kept++] = *row;
	}
	grants->service->is_old |= kept != grants->count;
	grants->count = kept;
	grants->counters.kept = kept;
}

// Return whether the node is out of service without a drain. If only its agent is gone, it is not.
static bool node_is_out_undrained(const struct grants *grants, uint32_t row) {
	const struct member_row *member = &grants->engine->members.rows[row];

	return state_is_out_of_service(member->state) &&
	       (member->subject == NULL || (member->subject->held.verdict != VERDICT_AGENT_DOWN &&
					    !subject_is_address_conflict(member->subject)));
}

const struct service *grants_service(const struct grants *grants, uint64_t now_ns) {
	const struct verdict_engine *engine = grants->engine;
	const uint32_t *of = engine->members.of_state;
	struct service *service = grants->service;

	if (!service->is_old && service->now_ns == now_ns &&
	    service->changes == engine->counts.changes &&
	    memcmp(service->of_state, of, sizeof(service->of_state)) == 0)
		return service;
	*service = (struct service){
		.nodes = of[RAS_ALIVE] + of[RAS_SUSPECT] + of[RAS_UNREACHABLE] + of[RAS_DEAD],
		.alive = of[RAS_ALIVE],
		.now_ns = now_ns,
		.changes = engine->counts.changes,
	};
	memcpy(service->of_state, of, sizeof(service->of_state));
	for (uint32_t n = 0; n < engine->subject_count; n++) {
		const struct subject *subject = engine->subjects[n];

		service->out += node_is_out_undrained(grants, subject->peer);
		// Another node has its address, so it is no node of its own.
		service->nodes -= state_is_out_of_service(subject_peer(engine, subject)->state) &&
				  subject_is_address_conflict(subject);
	}
	if (service->nodes < grants->expected)
		service->nodes = grants->expected;
	for (uint32_t n = 0; n < grants->count; n++) {
		const struct granted *granted = &grants->rows[n];
		uint32_t row = members_find(&engine->members, granted->id);

		service->granted += grant_counts_for_rate(granted, now_ns);
		service->out += row != MEMBERS_NONE && !node_is_out_undrained(grants, row) &&
				!node_is_undrained(grants, granted->id);
	}
	return service;
}

uint32_t grants_share(uint32_t nodes, uint32_t percent) {
	uint64_t most = (uint64_t)nodes * percent /
			(percent == PERCENT_ONE_THIRD ? 3 * PERCENT_ONE_THIRD : 100);

	return most > 0 ? (uint32_t)most : 1;
}

static uint64_t member_start(const struct grants *grants, uint64_t id) {
	uint32_t row = members_find(&grants->engine->members, id);

	return row != MEMBERS_NONE
		       ? ras_incarnation_start(grants->engine->members.rows[row].incarnation)
		       : 0;
}

bool grant_is_in_force(const struct grants *grants, const struct granted *row, uint64_t now_ns) {
	return now_ns < row->until_ns && row->start == member_start(grants, row->id);
}

static uint32_t seconds_between(uint64_t from_ns, uint64_t to_ns) {
	return to_ns > from_ns ? (uint32_t)((to_ns - from_ns) / SEC) : 0;
}

static void grant_entries_send(struct grants *grants, const uint8_t *entries, uint32_t count) {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	struct wire_writer writer;

	if (count == 0)
		return;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, FORMAT);
	wire_put_u8(&writer, 0);
	wire_put_u16(&writer, (uint16_t)count);
	wire_put_bytes(&writer, entries, (size_t)count * ENTRY_BYTES);
	grants->counters.told++;
	grants->ops.tell(grants->ops_ctx, bytes, wire_writer_used(&writer));
}

void grants_publish(struct grants *grants, uint64_t now_ns, bool all) {
	uint8_t entries[ENTRIES_PER_NOTICE * ENTRY_BYTES];
	struct wire_writer writer;
	uint32_t count = 0;

	wire_writer_init(&writer, entries, sizeof(entries));
	for (uint32_t n = 0; n < grants->count; n++) {
		struct granted *row = &grants->rows[n];

		if (!all && row->told_ns != 0 && now_ns < row->told_ns + GRANTS_REPEAT_NS) {
			grants_wake(grants, row->told_ns + GRANTS_REPEAT_NS);
			continue;
		}
		row->told_ns = now_ns;
		grants_wake(grants, now_ns + GRANTS_REPEAT_NS);
		wire_put_u64(&writer, row->id);
		// If the agent restarted, the entry has its new start and no remaining time: the
		// grant only counts for the limits.
		wire_put_u64(&writer, member_start(grants, row->id));
		wire_put_u32(&writer, seconds_between(row->first_ns, now_ns));
		wire_put_u32(
			&writer, grant_is_in_force(grants, row, now_ns)
					 ? seconds_between(now_ns, row->until_ns)
					 : 0
		);
		if (++count == ENTRIES_PER_NOTICE) {
			grant_entries_send(grants, entries, count);
			wire_writer_init(&writer, entries, sizeof(entries));
			count = 0;
		}
	}
	grant_entries_send(grants, entries, count);
}

// Return whether others granted so much beyond the limits that a member must be lying: in the last
// interval, or in total.
static bool grants_exceed_limits(const struct grants *grants, uint64_t now_ns) {
	const struct service *service = grants_service(grants, now_ns);
	uint32_t most = 2 * grants_share(service->nodes, grants->config.rate_percent);

	return service->granted >= most ||
	       grants->count >= most + grants_share(service->nodes, grants->config.out_percent);
}

static void grant_entry_apply(
	struct grants *grants, uint64_t now_ns, uint64_t id, uint32_t ago_s, uint32_t left_s
) {
	struct granted *row = grants_find(grants, id);
	uint64_t ago_ns = ago_s * SEC, left_ns = left_s * SEC;
	uint64_t first_ns = now_ns > ago_ns ? now_ns - ago_ns : 0;
	bool is_new;

	if (left_ns > GRANTS_LIFETIME_NS)
		left_ns = GRANTS_LIFETIME_NS;
	if (row == NULL &&
	    (grants_exceed_limits(grants, now_ns) || grants_add(grants, id, &row) != 0))
		return;
	if (row->first_ns == 0 || first_ns < row->first_ns)
		row->first_ns = first_ns;
	grants->service->is_old = true;
	row->told_ns = now_ns;
	is_new = !grant_is_in_force(grants, row, now_ns);
	row->start = member_start(grants, id);
	if (now_ns + left_ns > row->until_ns)
		row->until_ns = now_ns + left_ns;
	if (is_new && grant_is_in_force(grants, row, now_ns))
		grants->ops.given(grants->ops_ctx, id);
}

int grants_receive(struct grants *grants, uint64_t now_ns, const void *bytes, size_t size) {
	struct wire_reader reader;
	uint32_t count;
	uint8_t format;

	wire_reader_init(&reader, bytes, size);
	format = wire_get_u8(&reader);
	wire_get_u8(&reader);
	count = wire_get_u16(&reader);
	if (format > FORMAT) {
		grants->counters.heard_newer++;
		return 0;
	}
	if (format != FORMAT || !wire_reader_ok(&reader) ||
	    wire_reader_left(&reader) != (size_t)count * ENTRY_BYTES) {
		grants->counters.heard_bad++;
		return -EBADMSG;
	}
	grants->counters.heard++;
	grants_expire(grants, now_ns);
	for (uint32_t n = 0; n < count; n++) {
		uint64_t id = wire_get_u64(&reader), start = wire_get_u64(&reader);
		uint32_t ago_s = wire_get_u32(&reader), left_s = wire_get_u32(&reader);

		// Skip unknown nodes: made-up ids would fill the table. Skip other starts than the
		// known one: the grant is repeated later.
		if (members_find(&grants->engine->members, id) != MEMBERS_NONE &&
		    start == member_start(grants, id))
			grant_entry_apply(grants, now_ns, id, ago_s, left_s);
	}
	return 0;
}
