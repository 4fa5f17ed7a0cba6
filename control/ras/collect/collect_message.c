// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the messages of collectives.
#include "collect/collect_message.h"

#include "core/message.h"

#include <ras/payload.h>

void collect_request_encode(
	const struct collect_request *request,
	const struct ras_comm_id *skip,
	uint32_t skip_count,
	struct wire_writer *writer
) {
	wire_put_u8(writer, MESSAGE_COLLECT);
	wire_put_u64(writer, request->origin);
	wire_put_u64(writer, request->id);
	wire_put_u16(writer, (uint16_t)request->kind);
	wire_put_u64(writer, request->budget_ns);
	wire_put_u16(writer, (uint16_t)request->hops);
	wire_put_u16(writer, (uint16_t)skip_count);
	for (uint32_t n = 0; n < skip_count; n++) {
		wire_put_u64(writer, skip[n].hash);
		wire_put_u64(writer, skip[n].host_hash);
		wire_put_u64(writer, skip[n].pid_hash);
	}
}

struct ras_comm_id collect_skip_at(const struct collect_request *request, uint32_t n) {
	struct wire_reader reader;
	struct ras_comm_id id;

	must(n < request->skip_count);
	wire_reader_init(
		&reader, request->skip + (size_t)n * COLLECT_SKIP_BYTES, COLLECT_SKIP_BYTES
	);
	id.hash = wire_get_u64(&reader);
	id.host_hash = wire_get_u64(&reader);
	id.pid_hash = wire_get_u64(&reader);
	return id;
}

int collect_request_decode(struct wire_reader *reader, struct collect_request *ret_request) {
	struct collect_request request;

	request.origin = wire_get_u64(reader);
	request.id = wire_get_u64(reader);
	request.kind = wire_get_u16(reader);
	request.budget_ns = wire_get_u64(reader);
	request.hops = wire_get_u16(reader);
	request.skip_count = wire_get_count_u16(reader, RAS_COLLECT_SKIP_MAX, COLLECT_SKIP_BYTES);
	request.skip = wire_get_view(reader, (size_t)request.skip_count * COLLECT_SKIP_BYTES);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	for (uint32_t n = 1; n < request.skip_count; n++) {
		struct ras_comm_id before = collect_skip_at(&request, n - 1);
		struct ras_comm_id id = collect_skip_at(&request, n);

		if (ras_comm_id_compare(&before, &id) >= 0)
			return -EBADMSG; // not ascending
	}
	*ret_request = request;
	return 0;
}

void collected_encode(uint64_t origin, uint64_t id, uint8_t flags, struct wire_writer *writer) {
	wire_put_u8(writer, MESSAGE_COLLECTED);
	wire_put_u64(writer, origin);
	wire_put_u64(writer, id);
	wire_put_u8(writer, flags);
}

int collected_decode(
	struct wire_reader *reader, uint64_t *ret_origin, uint64_t *ret_id, uint8_t *ret_flags
) {
	uint64_t origin = wire_get_u64(reader);
	uint64_t id = wire_get_u64(reader);
	uint8_t flags = wire_get_u8(reader);
	struct wire_reader items = *reader;
	struct collect_item item;
	int err;

	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	do {
		err = collect_item_decode(&items, &item);
	} while (err == 0);
	if (err != -ENODATA)
		return err;
	*ret_origin = origin;
	*ret_id = id;
	*ret_flags = flags;
	return 0;
}

void collect_answer_encode(const struct collect_answer *answer, struct wire_writer *writer) {
	wire_put_u8(writer, COLLECT_ITEM_ANSWER);
	wire_put_u32(writer, (uint32_t)(COLLECT_ANSWER_HEADER_BYTES + answer->size));
	wire_put_u64(writer, answer->node);
	wire_put_u64(writer, answer->incarnation);
	wire_put_u64(writer, answer->view_digest);
	wire_put_u16(writer, (uint16_t)answer->hops);
	wire_put_u16(writer, (uint16_t)answer->part);
	wire_put_u8(writer, answer->last ? COLLECT_ANSWER_LAST : 0);
	wire_put_bytes(writer, answer->payload, answer->size);
}

void collect_lost_encode(uint64_t peer, enum collect_lost_reason why, struct wire_writer *writer) {
	wire_put_u8(writer, COLLECT_ITEM_LOST);
	wire_put_u32(writer, COLLECT_LOST_BYTES);
	wire_put_u64(writer, peer);
	wire_put_u8(writer, (uint8_t)why);
}

void collect_count_encode(
	uint32_t count, uint32_t voters, uint8_t heard, struct wire_writer *writer
) {
	wire_put_u8(writer, COLLECT_ITEM_COUNT);
	wire_put_u32(writer, COLLECT_COUNT_BYTES);
	wire_put_u32(writer, count);
	wire_put_u32(writer, voters);
	wire_put_u8(writer, heard);
}

int collect_item_decode(struct wire_reader *reader, struct collect_item *ret_item) {
	struct collect_item item = {0};
	struct collect_answer *answer = &item.answer;
	struct wire_reader body;
	uint8_t why;

	if (wire_reader_ok(reader) && wire_reader_left(reader) == 0)
		return -ENODATA;
	item.type = wire_get_u8(reader);
	wire_reader_nested(reader, wire_get_u32(reader), &body);
	if (item.type == COLLECT_ITEM_ANSWER) {
		answer->node = wire_get_u64(&body);
		answer->incarnation = wire_get_u64(&body);
		answer->view_digest = wire_get_u64(&body);
		answer->hops = wire_get_u16(&body);
		answer->part = wire_get_u16(&body);
		answer->last = (wire_get_u8(&body) & COLLECT_ANSWER_LAST) != 0;
		answer->size = wire_reader_left(&body);
		answer->payload = wire_get_view(&body, answer->size);
	} else if (item.type == COLLECT_ITEM_LOST) {
		item.lost_peer = wire_get_u64(&body);
		why = wire_get_u8(&body);
		item.lost_reason = why <= COLLECT_LOST_REFUSED ? (enum collect_lost_reason)why
							       : COLLECT_LOST_LINK;
	} else if (item.type == COLLECT_ITEM_COUNT) {
		item.count = wire_get_u32(&body);
		item.voters = wire_get_u32(&body);
		item.heard = wire_get_u8(&body);
	}
	wire_reader_fail(reader, wire_reader_error(&body));
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_item = item;
	return 0;
}

void collect_cancel_encode(uint64_t origin, uint64_t id, struct wire_writer *writer) {
	wire_put_u8(writer, MESSAGE_COLLECT_CANCEL);
	wire_put_u64(writer, origin);
	wire_put_u64(writer, id);
}

int collect_cancel_decode(struct wire_reader *reader, uint64_t *ret_origin, uint64_t *ret_id) {
	uint64_t origin = wire_get_u64(reader);
	uint64_t id = wire_get_u64(reader);

	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_origin = origin;
	*ret_id = id;
	return 0;
}

void collect_notice_encode(const struct collect_notice *notice, struct wire_writer *writer) {
	wire_put_u8(writer, MESSAGE_NOTICE);
	wire_put_u64(writer, notice->origin);
	wire_put_u64(writer, notice->id);
	wire_put_u32(writer, notice->kind);
	wire_put_u16(writer, (uint16_t)notice->hops);
	wire_put_u16(writer, (uint16_t)notice->size);
	wire_put_bytes(writer, notice->payload, notice->size);
	wire_put_bytes(writer, notice->signature, RAS_SIGNATURE_BYTES);
}

int collect_notice_decode(struct wire_reader *reader, struct collect_notice *ret_notice) {
	struct collect_notice notice;

	notice.origin = wire_get_u64(reader);
	notice.id = wire_get_u64(reader);
	notice.kind = wire_get_u32(reader);
	notice.hops = wire_get_u16(reader);
	notice.size = wire_get_count_u16(reader, RAS_NOTICE_BYTES_MAX, 1);
	notice.payload = wire_get_view(reader, notice.size);
	notice.signature = wire_get_view(reader, RAS_SIGNATURE_BYTES);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_notice = notice;
	return 0;
}
