// SPDX-License-Identifier: BSD-3-Clause
// Rows of connections: encoding, decoding, and sums over all members.
#include "collect/payload_rows.h"

#include <lib/wire.h>
#include <ras/payload.h>

__extension__ typedef unsigned __int128 uint128;

static const char *const transport_names[] = {
	[RAS_TRANSPORT_TCP] = "tcp",
	[RAS_TRANSPORT_INFINIBAND] = "infiniband",
	[RAS_TRANSPORT_ROCE] = "roce",
	[RAS_TRANSPORT_SOFT] = "soft",
};

const char *ras_transport_name(enum ras_transport transport) {
	return (unsigned int)transport < RAS_TRANSPORT_COUNT ? transport_names[transport] : NULL;
}

int ras_conn_put(struct wire_writer *writer, const struct ras_conn_row *row) {
	struct wire_writer before = *writer;
	size_t used;

	wire_put_u64(writer, row->peer);
	wire_put_u8(writer, (uint8_t)row->transport);
	wire_put_varint(writer, row->samples);
	wire_put_varint(writer, row->min_ns);
	wire_put_varint(writer, row->mean_ns);
	wire_put_varint(writer, row->max_ns);
	wire_put_varint(writer, row->sent_bytes);
	wire_put_varint(writer, row->received_bytes);
	wire_put_varint(writer, row->errors);
	// RAS_RETRANSMITS_UNKNOWN is encoded as 0, a count n as n + 1.
	wire_put_varint(writer, row->retransmits + 1);
	if (wire_writer_finish(writer, &used) == 0)
		return 0;
	*writer = before;
	return -EMSGSIZE;
}

static bool row_is_sound(const struct ras_conn_row *row) {
	if (row->samples == 0)
		return row->min_ns == 0 && row->mean_ns == 0 && row->max_ns == 0;
	return row->min_ns <= row->mean_ns && row->mean_ns <= row->max_ns;
}

int ras_conn_get(struct wire_reader *reader, struct ras_conn_row *ret_row) {
	struct ras_conn_row row;
	uint64_t samples;
	uint8_t transport;

	if (wire_reader_ok(reader) && wire_reader_left(reader) == 0)
		return -ENODATA;
	row.peer = wire_get_u64(reader);
	transport = wire_get_u8(reader);
	samples = wire_get_varint(reader);
	row.min_ns = wire_get_varint(reader);
	row.mean_ns = wire_get_varint(reader);
	row.max_ns = wire_get_varint(reader);
	row.sent_bytes = wire_get_varint(reader);
	row.received_bytes = wire_get_varint(reader);
	row.errors = wire_get_varint(reader);
	row.retransmits = wire_get_varint(reader) - 1;
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	row.transport = (enum ras_transport)transport;
	row.samples = (uint32_t)samples;
	if (transport >= RAS_TRANSPORT_COUNT || samples > UINT32_MAX || !row_is_sound(&row)) {
		wire_reader_fail(reader, -EBADMSG);
		return -EBADMSG;
	}
	*ret_row = row;
	return 0;
}

// Add without overflow: the values come from outside, so a sum stops at UINT64_MAX.
static void add_saturating(uint64_t *sum, uint64_t value) {
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

// Compare two rows; the worse one is larger. All fields take part, so different rows are never
// equal.
static int worst_compare(const struct ras_conn_worst *a, const struct ras_conn_worst *b) {
	const struct ras_conn_row *left = &a->row;
	const struct ras_conn_row *right = &b->row;
	const uint64_t fields[][2] = {
		{left->mean_ns, right->mean_ns},
		{left->max_ns, right->max_ns},
		{left->min_ns, right->min_ns},
		{left->samples, right->samples},
		{left->errors, right->errors},
		{left->retransmits, right->retransmits},
		{right->transport, left->transport}, // lower numbers count as worse
		{b->node, a->node},
		{right->peer, left->peer},
		{left->sent_bytes, right->sent_bytes},
		{left->received_bytes, right->received_bytes},
	};

	for (size_t n = 0; n < sizeof(fields) / sizeof(fields[0]); n++) {
		int order = payload_compare_u64(fields[n][0], fields[n][1]);

		if (order != 0)
			return order;
	}
	return 0;
}

static void worst_insert(struct ras_conns *conns, const struct ras_conn_worst *fresh) {
	uint32_t at = conns->worst_count;

	if (at == RAS_CONNS_WORST_MAX) {
		if (worst_compare(fresh, &conns->worst[at - 1]) <= 0)
			return;
		at--;
	} else {
		conns->worst_count++;
	}
	for (; at > 0 && worst_compare(fresh, &conns->worst[at - 1]) > 0; at--)
		conns->worst[at] = conns->worst[at - 1];
	conns->worst[at] = *fresh;
}

static void sums_add(struct ras_conn_sums *sums, const struct ras_conn_row *row) {
	uint128 sum = (uint128)sums->sum_high << 64 | sums->sum_low;

	sums->rows++;
	if (row->samples > 0) {
		if (sums->samples == 0 || row->min_ns < sums->min_ns)
			sums->min_ns = row->min_ns;
		if (row->max_ns > sums->max_ns)
			sums->max_ns = row->max_ns;
		sums->samples += row->samples;
		// The sum cannot overflow: a row adds less than 2^96, and a root holds less than
		// 2^24 rows.
		sum += (uint128)row->mean_ns * row->samples;
		sums->sum_high = (uint64_t)(sum >> 64);
		sums->sum_low = (uint64_t)sum;
		sums->mean_ns = (uint64_t)(sum / sums->samples);
	}
	add_saturating(&sums->sent_bytes, row->sent_bytes);
	add_saturating(&sums->received_bytes, row->received_bytes);
	add_saturating(&sums->errors, row->errors);
	if (row->retransmits == RAS_RETRANSMITS_UNKNOWN)
		sums->retransmits_unknown++;
	else
		add_saturating(&sums->retransmits, row->retransmits);
}

int ras_conns_add(struct ras_conns *conns, const struct ras_collected_part *part) {
	struct ras_conns merged = *conns;
	struct wire_reader reader;
	struct ras_conn_row row;
	int err;

	wire_reader_init(&reader, part->payload, part->size);
	while ((err = ras_conn_get(&reader, &row)) == 0) {
		struct ras_conn_worst fresh = {.node = part->node, .row = row};

		sums_add(&merged.all, &row);
		sums_add(&merged.transports[row.transport], &row);
		if (row.samples > 0)
			worst_insert(&merged, &fresh);
	}
	if (err != -ENODATA)
		return err;
	*conns = merged;
	return 0;
}
