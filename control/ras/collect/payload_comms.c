// SPDX-License-Identifier: BSD-3-Clause
// The rows of communicators on the wire. payload_comms_merge.c puts them together.
#include "collect/payload_rows.h"

#include <lib/wire.h>
#include <ras/payload.h>

#define RANK_BYTES_MIN (2 + RAS_COMM_OPS + 3 + 4)
#define MISSING_BYTES_MIN (2 + 8 + 1 + 4)

int ras_comm_id_compare(const struct ras_comm_id *a, const struct ras_comm_id *b) {
	int order = payload_compare_u64(a->hash, b->hash);

	if (order == 0)
		order = payload_compare_u64(a->host_hash, b->host_hash);
	if (order == 0)
		order = payload_compare_u64(a->pid_hash, b->pid_hash);
	return order;
}

static size_t address_bytes(uint8_t family) {
	switch (family) {
	case 4:
		return 4;
	case 6:
		return 16;
	default:
		return 0;
	}
}

static void put_rank(struct wire_writer *writer, const struct ras_comm_rank *rank) {
	wire_put_varint(writer, rank->rank);
	wire_put_varint(writer, rank->pid);
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++)
		wire_put_varint(writer, rank->ops[n]);
	wire_put_u8(writer, rank->init_state);
	wire_put_u8(writer, rank->async_error);
	wire_put_u8(writer, rank->flags);
	wire_put_u16(writer, (uint16_t)rank->cuda_device);
	wire_put_u16(writer, (uint16_t)rank->nvml_device);
}

static void put_missing(struct wire_writer *writer, const struct ras_comm_missing *missing) {
	wire_put_varint(writer, missing->rank);
	wire_put_varint(writer, missing->pid);
	wire_put_u64(writer, missing->node);
	wire_put_u8(writer, missing->family);
	wire_put_bytes(writer, missing->address, address_bytes(missing->family));
	wire_put_u16(writer, (uint16_t)missing->cuda_device);
	wire_put_u16(writer, (uint16_t)missing->nvml_device);
}

int ras_comm_put(struct wire_writer *writer, const struct ras_comm *comm) {
	struct wire_writer before = *writer;
	size_t used;

	wire_put_u64(writer, comm->id.hash);
	wire_put_u64(writer, comm->id.host_hash);
	wire_put_u64(writer, comm->id.pid_hash);
	wire_put_u32(writer, comm->size);
	wire_put_u32(writer, comm->rank_count);
	wire_put_u32(writer, comm->missing_count);
	for (uint32_t n = 0; n < comm->rank_count; n++)
		put_rank(writer, &comm->ranks[n]);
	for (uint32_t n = 0; n < comm->missing_count; n++)
		put_missing(writer, &comm->missing[n]);
	if (wire_writer_finish(writer, &used) == 0)
		return 0;
	*writer = before;
	return -EMSGSIZE;
}

int ras_comm_get(struct wire_reader *reader, struct ras_comm *ret_head) {
	struct ras_comm head = {0};

	if (wire_reader_ok(reader) && wire_reader_left(reader) == 0)
		return -ENODATA;
	head.id.hash = wire_get_u64(reader);
	head.id.host_hash = wire_get_u64(reader);
	head.id.pid_hash = wire_get_u64(reader);
	head.size = wire_get_u32(reader);
	if (head.size == 0 || head.size > RAS_COMM_SIZE_MAX)
		wire_reader_fail(reader, -EBADMSG);
	// The missing count stands before the ranks, so only the larger of the two bounds it.
	head.rank_count = wire_get_count_u32(reader, head.size, RANK_BYTES_MIN);
	head.missing_count =
		wire_get_count_u32(reader, head.size - head.rank_count, MISSING_BYTES_MIN);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_head = head;
	return 0;
}

// A device number, or -1 for unknown.
static int16_t get_device(struct wire_reader *reader) {
	int16_t device = (int16_t)wire_get_u16(reader);

	if (device < -1)
		wire_reader_fail(reader, -EBADMSG);
	return device;
}

static uint32_t get_u32_below(struct wire_reader *reader, uint64_t limit) {
	uint64_t value = wire_get_varint(reader);

	if (value >= limit)
		wire_reader_fail(reader, -EBADMSG);
	return (uint32_t)value;
}

int ras_comm_get_rank(
	struct wire_reader *reader, uint32_t comm_size, struct ras_comm_rank *ret_rank
) {
	struct ras_comm_rank rank = {0};

	rank.rank = get_u32_below(reader, comm_size);
	rank.pid = get_u32_below(reader, UINT64_C(1) << 32);
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++)
		rank.ops[n] = wire_get_varint(reader);
	rank.init_state = wire_get_u8(reader);
	rank.async_error = wire_get_u8(reader);
	rank.flags = wire_get_u8(reader);
	rank.cuda_device = get_device(reader);
	rank.nvml_device = get_device(reader);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_rank = rank;
	return 0;
}

int ras_comm_get_missing(
	struct wire_reader *reader, uint32_t comm_size, struct ras_comm_missing *ret_missing
) {
	struct ras_comm_missing missing = {0};

	missing.rank = get_u32_below(reader, comm_size);
	missing.pid = get_u32_below(reader, UINT64_C(1) << 32);
	missing.node = wire_get_u64(reader);
	missing.family = wire_get_u8(reader);
	if (missing.family != 0 && address_bytes(missing.family) == 0)
		wire_reader_fail(reader, -EBADMSG);
	wire_get_bytes(reader, missing.address, address_bytes(missing.family));
	missing.cuda_device = get_device(reader);
	missing.nvml_device = get_device(reader);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_missing = missing;
	return 0;
}
