// SPDX-License-Identifier: BSD-3-Clause
// The grants that are known, and how members tell each other.
//
// Message: u8 format, u8 0, u16 count, count x (u64 node, u64 start, u32 s since it was granted,
// u32 s that it lasts).
#include "grants_inside.h"

#include <lib/wire.h>
#include <ras/collective.h>

#include <errno.h>
#include <string.h>

#define FORMAT 1
#define HEADER_BYTES 4
#define ENTRY_BYTES 24
#define ENTRIES_PER_NOTICE ((RAS_NOTICE_BYTES_MAX - HEADER_BYTES) / ENTRY_BYTES)
#define OLD_TELL_NS (3 * GRANTS_TELL_NS)

void grants_wake(struct grants *grants, uint64_t at_ns) {
	if (at_ns >= grants->next_ns)
		return;
	grants->next_ns = at_ns;
	grants->ops.wake(grants->ops_ctx, at_ns);
}

// Where the id is, or would be.
static uint32_t place_of(const struct grants *grants, uint64_t id) {
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
	uint32_t place = place_of(grants, id);

	return place < grants->count && grants->rows[place].id == id ? &grants->rows[place] : NULL;
}

int grants_add(struct grants *grants, uint64_t id, struct granted **ret_row) {
	uint32_t place = place_of(grants, id);
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
	grants->rows[place] = (struct granted){.id = id};
	*ret_row = &grants->rows[place];
	return 0;
}

bool grants_counts(const struct granted *row, uint64_t now_ns) {
	return now_ns < row->first_ns + GRANTS_INTERVAL_NS;
}

void grants_expire(struct grants *grants, uint64_t now_ns) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < grants->count; n++) {
		if (now_ns < grants->rows[n].until_ns || grants_counts(&grants->rows[n], now_ns))
			grants->rows[kept++] = grants->rows[n];
	}
	grants->count = kept;
	grants->counters.kept = kept;
}

static uint64_t start_of(const struct grants *grants, uint64_t id) {
	uint32_t row = members_find(&grants->engine->members, id);

	return row != MEMBERS_NONE
		       ? ras_incarnation_start(grants->engine->members.rows[row].incarnation)
		       : 0;
}

bool grants_hold(const struct grants *grants, const struct granted *row, uint64_t now_ns) {
	return now_ns < row->until_ns && row->start == start_of(grants, row->id);
}

static uint32_t seconds_between(uint64_t from_ns, uint64_t to_ns) {
	return to_ns > from_ns ? (uint32_t)((to_ns - from_ns) / SEC) : 0;
}

static void send(struct grants *grants, const uint8_t *entries, uint32_t count) {
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

void grants_tell(struct grants *grants, uint64_t now_ns, bool all) {
	uint8_t entries[ENTRIES_PER_NOTICE * ENTRY_BYTES];
	struct wire_writer writer;
	uint32_t count = 0;

	wire_writer_init(&writer, entries, sizeof(entries));
	for (uint32_t n = 0; n < grants->count; n++) {
		struct granted *row = &grants->rows[n];
		uint64_t each_ns = grants_counts(row, now_ns) ? GRANTS_TELL_NS : OLD_TELL_NS;

		if (!all && row->told_ns != 0 && now_ns < row->told_ns + each_ns) {
			grants_wake(grants, row->told_ns + each_ns);
			continue;
		}
		row->told_ns = now_ns;
		grants_wake(grants, now_ns + each_ns);
		wire_put_u64(&writer, row->id);
		wire_put_u64(&writer, row->start);
		wire_put_u32(&writer, seconds_between(row->first_ns, now_ns));
		wire_put_u32(&writer, seconds_between(now_ns, row->until_ns));
		if (++count == ENTRIES_PER_NOTICE) {
			send(grants, entries, count);
			wire_writer_init(&writer, entries, sizeof(entries));
			count = 0;
		}
	}
	send(grants, entries, count);
}

static void
take(struct grants *grants,
     uint64_t now_ns,
     uint64_t id,
     uint64_t start,
     uint32_t ago_s,
     uint32_t left_s) {
	struct granted *row = grants_find(grants, id);
	uint64_t ago_ns = ago_s * SEC, left_ns = left_s * SEC;
	uint64_t first_ns = now_ns > ago_ns ? now_ns - ago_ns : 0;
	bool is_new;

	if (left_ns > GRANTS_LAST_NS)
		left_ns = GRANTS_LAST_NS;
	if (row != NULL && start < row->start)
		return;
	if (row == NULL && grants_add(grants, id, &row) != 0)
		return;
	// Of another start it is another grant, though it takes the place of the one before.
	if (row->start != start)
		*row = (struct granted){.id = id, .start = start, .first_ns = first_ns};
	if (first_ns < row->first_ns)
		row->first_ns = first_ns;
	row->told_ns = now_ns;
	if (now_ns + left_ns <= row->until_ns)
		return;
	is_new = !grants_hold(grants, row, now_ns);
	row->until_ns = now_ns + left_ns;
	if (is_new && grants_hold(grants, row, now_ns))
		grants->ops.given(grants->ops_ctx, id);
}

int grants_heard(struct grants *grants, uint64_t now_ns, const void *bytes, size_t size) {
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

		// Of a stranger nothing is kept: made-up names would fill the table.
		if (members_find(&grants->engine->members, id) != MEMBERS_NONE)
			take(grants, now_ns, id, start, ago_s, left_s);
	}
	return 0;
}
