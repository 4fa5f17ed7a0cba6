// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes communicator rows. payload_comms_merge.c merges them.
//
//	row     u32 length of the rest, 3 × u64 id, u32 size, u32 config, string job,
//	        u8 count, signatures, recent, u32 ranks, u32 missing, the ranks, the missing ranks
//	signature  u8 kind, u8 datatype, varint root + 1, varint count
//	recent  u8 count; if not 0: varint first, an index of four bits each
//	rank    u8 length of the rest, varints of rank and pid (difference to the rank before,
//	        sign in bit 0), u16 TOLD_* mask, u8 flags, u8 knows, u8 process state,
//	        varints launched, launched - started, started - completed, idle_ms, then the
//	        optional fields in the order of their TOLD_* bits; then, if bytes are left:
//	call    u8 number; if not 0: u8 is_elsewhere, u32 peer, u32 tag; then, if bytes are left:
//	more    varint unwaited * 2 + oldest_is_unwaited, varint busy_s; if not 0: string busy_why
//
// A newer version may append fields to a rank, and to a row. The length of a row lets a reader
// refuse a bad row and go on with the next one.
#include "collect/payload_rows.h"

#include <lib/wire.h>
#include <ras/payload.h>

#define SIGNATURE_BYTES_MIN 4
#define RANK_BYTES_MIN 12
#define MISSING_BYTES_MIN (2 + 8 + 1 + 4)

// Optional fields of a rank.
#define TOLD_WORKED 0x0001u  // varint worked_ms
#define TOLD_ERRORS 0x0002u  // u8 init_state, u8 async_error
#define TOLD_DEVICES 0x0004u // varints of cuda_device + 1, nvml_device + 1
#define TOLD_EXIT 0x0008u    // u8 exit_cause, u32 exit_value, varint exited_ms
#define TOLD_PAIR 0x0010u    // varints pair_launched, pair_launched - pair_completed
#define TOLD_WAITS 0x0020u   // u8 count, bytes
#define TOLD_RECENT 0x0040u  // recent
#define TOLD_ONE_OP 0x0080u  // all launches had one kind: its TOLD_OPS bit has no varint
#define TOLD_OPS 0x0100u     // first of RAS_COMM_OPS bits, one for each kind: varint launched
// u8 activity, u8 unread, varints span_ms and amount, string name
#define TOLD_DOING (TOLD_OPS << RAS_COMM_OPS)
#define TOLD_SINCE (TOLD_DOING << 1) // varint since_ms
#define TOLD_LEFT (TOLD_SINCE << 1)  // u8 left, varint exited_ms
#define TOLD_ALL (TOLD_LEFT * 2 - 1)

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

static void put_recent(struct wire_writer *writer, const struct ras_comm_recent *recent) {
	must(recent->count <= RAS_COMM_RECENT);
	wire_put_u8(writer, recent->count);
	if (recent->count == 0)
		return;
	wire_put_varint(writer, recent->first);
	for (uint32_t n = 0; n < recent->count; n += 2)
		wire_put_u8(
			writer, (uint8_t
				)(recent->index[n] |
				  (n + 1 < recent->count ? recent->index[n + 1] << 4 : 0))
		);
}

// Return the mask for a rank whose launches all had one kind of operation, else 0.
static uint32_t single_op_mask(const struct ras_comm_rank *rank) {
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++) {
		if (rank->ops[n] != 0)
			return rank->ops[n] == rank->launched ? TOLD_ONE_OP | TOLD_OPS << n : 0;
	}
	return 0;
}

static uint32_t optional_fields_mask(const struct ras_comm_rank *rank) {
	uint32_t told = single_op_mask(rank);

	for (uint32_t n = 0; (told & TOLD_ONE_OP) == 0 && n < RAS_COMM_OPS; n++)
		told |= rank->ops[n] != 0 ? TOLD_OPS << n : 0;
	told |= rank->worked_ms != 0 ? TOLD_WORKED : 0;
	told |= rank->init_state != 0 || rank->async_error != 0 ? TOLD_ERRORS : 0;
	told |= rank->cuda_device != -1 || rank->nvml_device != -1 ? TOLD_DEVICES : 0;
	told |= (rank->flags & RAS_RANK_EXITED) != 0 ? TOLD_EXIT : 0;
	told |= rank->pair_launched != 0 ? TOLD_PAIR : 0;
	told |= rank->wait_count != 0 ? TOLD_WAITS : 0;
	told |= rank->recent.count != 0 ? TOLD_RECENT : 0;
	told |= rank->doing.activity != 0 ? TOLD_DOING : 0;
	told |= rank->since_ms != 0 ? TOLD_SINCE : 0;
	told |= rank->left != 0 ? TOLD_LEFT : 0;
	return told;
}

static void put_doing(struct wire_writer *writer, const struct ras_comm_doing *doing) {
	wire_put_u8(writer, doing->activity);
	wire_put_u8(writer, doing->unread);
	wire_put_varint(writer, doing->span_ms);
	wire_put_varint(writer, doing->amount);
	wire_put_string(writer, doing->name, strnlen(doing->name, sizeof(doing->name) - 1));
}

// The last fields of a rank, so that agents that do not know them skip them.
static void put_appended_fields(struct wire_writer *writer, const struct ras_comm_rank *rank) {
	const struct ras_comm_doing *doing = &rank->doing;
	bool has_more = rank->unwaited != 0 || rank->oldest_is_unwaited || doing->busy_s != 0;

	if (doing->call.number == 0 && !has_more)
		return;
	wire_put_u8(writer, doing->call.number);
	if (doing->call.number != 0) {
		wire_put_u8(writer, doing->call.is_elsewhere);
		wire_put_u32(writer, (uint32_t)doing->call.peer);
		wire_put_u32(writer, (uint32_t)doing->call.tag);
	}
	if (!has_more)
		return;
	wire_put_varint(writer, (uint64_t)rank->unwaited << 1 | rank->oldest_is_unwaited);
	wire_put_varint(writer, doing->busy_s);
	if (doing->busy_s != 0)
		wire_put_string(
			writer, doing->busy_why,
			strnlen(doing->busy_why, sizeof(doing->busy_why) - 1)
		);
}

static void
put_optional_fields(struct wire_writer *writer, uint32_t told, const struct ras_comm_rank *rank) {
	if ((told & TOLD_WORKED) != 0)
		wire_put_varint(writer, rank->worked_ms);
	if ((told & TOLD_ERRORS) != 0) {
		wire_put_u8(writer, rank->init_state);
		wire_put_u8(writer, rank->async_error);
	}
	if ((told & TOLD_DEVICES) != 0) {
		wire_put_varint(writer, (uint64_t)((int64_t)rank->cuda_device + 1));
		wire_put_varint(writer, (uint64_t)((int64_t)rank->nvml_device + 1));
	}
	if ((told & TOLD_EXIT) != 0) {
		wire_put_u8(writer, rank->exit_cause);
		wire_put_u32(writer, (uint32_t)rank->exit_value);
		wire_put_varint(writer, rank->exited_ms);
	}
	if ((told & TOLD_PAIR) != 0) {
		wire_put_varint(writer, rank->pair_launched);
		wire_put_varint(writer, rank->pair_launched - rank->pair_completed);
	}
	if ((told & TOLD_WAITS) != 0) {
		wire_put_u8(writer, rank->wait_count);
		wire_put_bytes(writer, rank->waits, rank->wait_count);
	}
	if ((told & TOLD_RECENT) != 0)
		put_recent(writer, &rank->recent);
	for (uint32_t n = 0; (told & TOLD_ONE_OP) == 0 && n < RAS_COMM_OPS; n++) {
		if ((told & TOLD_OPS << n) != 0)
			wire_put_varint(writer, rank->ops[n]);
	}
	if ((told & TOLD_DOING) != 0)
		put_doing(writer, &rank->doing);
	if ((told & TOLD_SINCE) != 0)
		wire_put_varint(writer, rank->since_ms);
	if ((told & TOLD_LEFT) != 0) {
		wire_put_u8(writer, rank->left);
		wire_put_varint(writer, rank->exited_ms);
	}
	put_appended_fields(writer, rank);
}

// Encode a difference with its sign in bit 0, so that small differences of either sign are short.
static uint64_t encode_difference(uint32_t value, uint32_t before) {
	return value >= before ? (uint64_t)(value - before) << 1
			       : (uint64_t)(before - value) << 1 | 1;
}

static void put_rank(
	struct wire_writer *writer,
	const struct ras_comm_rank *before,
	const struct ras_comm_rank *rank
) {
	uint32_t told = optional_fields_mask(rank);
	struct wire_writer rest;
	uint8_t row[UINT8_MAX];
	size_t used;

	must(rank->completed <= rank->started && rank->started <= rank->launched);
	must(rank->pair_completed <= rank->pair_launched);
	must(rank->wait_count <= RAS_COMM_WAITS);
	wire_writer_init(&rest, row, sizeof(row));
	wire_put_varint(&rest, encode_difference(rank->rank, before->rank));
	wire_put_varint(&rest, encode_difference(rank->pid, before->pid));
	wire_put_u16(&rest, (uint16_t)told);
	wire_put_u8(&rest, rank->flags);
	wire_put_u8(&rest, rank->knows);
	wire_put_u8(&rest, rank->process_state);
	wire_put_varint(&rest, rank->launched);
	wire_put_varint(&rest, rank->launched - rank->started);
	wire_put_varint(&rest, rank->started - rank->completed);
	wire_put_varint(&rest, rank->idle_ms);
	put_optional_fields(&rest, told, rank);
	must(wire_writer_finish(&rest, &used) == 0); // the longest possible rank fits
	wire_put_u8(writer, (uint8_t)used);
	wire_put_bytes(writer, row, used);
}

int ras_comm_put(struct wire_writer *writer, const struct ras_comm *comm) {
	static const struct ras_comm_rank none;
	struct wire_writer before = *writer;
	size_t used, length = wire_reserve_u32(writer);

	must(comm->signature_count <= RAS_COMM_SIGNATURES);
	wire_put_u64(writer, comm->id.hash);
	wire_put_u64(writer, comm->id.host_hash);
	wire_put_u64(writer, comm->id.pid_hash);
	wire_put_u32(writer, comm->size);
	wire_put_u32(writer, comm->config);
	wire_put_string(writer, comm->job, strnlen(comm->job, sizeof(comm->job)));
	wire_put_u8(writer, comm->signature_count);
	for (uint32_t n = 0; n < comm->signature_count; n++) {
		const struct ras_comm_signature *signature = &comm->signatures[n];

		wire_put_u8(writer, signature->kind);
		wire_put_u8(writer, signature->datatype);
		wire_put_varint(writer, (uint64_t)((int64_t)signature->root + 1));
		wire_put_varint(writer, signature->count);
	}
	put_recent(writer, &comm->recent);
	wire_put_u32(writer, comm->rank_count);
	wire_put_u32(writer, comm->missing_count);
	for (uint32_t n = 0; n < comm->rank_count; n++)
		put_rank(writer, n > 0 ? &comm->ranks[n - 1] : &none, &comm->ranks[n]);
	for (uint32_t n = 0; n < comm->missing_count; n++) {
		const struct ras_comm_missing *missing = &comm->missing[n];

		wire_put_varint(writer, missing->rank);
		wire_put_varint(writer, missing->pid);
		wire_put_u64(writer, missing->node);
		wire_put_u8(writer, missing->family);
		wire_put_bytes(writer, missing->address, address_bytes(missing->family));
		wire_put_u16(writer, (uint16_t)missing->cuda_device);
		wire_put_u16(writer, (uint16_t)missing->nvml_device);
	}
	if (wire_writer_finish(writer, &used) == 0) {
		wire_patch_u32(writer, length, (uint32_t)(used - length - sizeof(uint32_t)));
		return 0;
	}
	*writer = before;
	return -EMSGSIZE;
}

static uint64_t get_varint_below(struct wire_reader *reader, uint64_t limit) {
	uint64_t value = wire_get_varint(reader);

	if (value < limit)
		return value;
	wire_reader_fail(reader, -EBADMSG);
	return 0;
}

static uint32_t get_u32(struct wire_reader *reader) {
	return (uint32_t)get_varint_below(reader, UINT64_C(1) << 32);
}

static uint8_t get_count(struct wire_reader *reader, uint8_t limit) {
	uint8_t count = wire_get_u8(reader);

	if (count <= limit)
		return count;
	wire_reader_fail(reader, -EBADMSG);
	return 0;
}

static void get_recent_signatures(
	struct wire_reader *reader, uint32_t signature_count, struct ras_comm_recent *ret_recent
) {
	uint8_t byte = 0;

	ret_recent->count = get_count(reader, RAS_COMM_RECENT);
	if (ret_recent->count == 0)
		return;
	ret_recent->first = wire_get_varint(reader);
	if (ret_recent->first == 0 || ret_recent->first > UINT64_MAX - RAS_COMM_RECENT)
		wire_reader_fail(reader, -EBADMSG);
	for (uint32_t n = 0; n < ret_recent->count; n++) {
		byte = n % 2 == 0 ? wire_get_u8(reader) : byte >> 4;
		ret_recent->index[n] = byte & 0x0f;
		if (ret_recent->index[n] >= signature_count)
			wire_reader_fail(reader, -EBADMSG);
	}
}

int ras_comm_row_next(struct wire_reader *reader, struct wire_reader *ret_row) {
	struct wire_reader row;

	if (wire_reader_ok(reader) && wire_reader_left(reader) == 0)
		return -ENODATA;
	wire_reader_nested(reader, wire_get_u32(reader), &row);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_row = row;
	return 0;
}

int ras_comm_get(struct wire_reader *reader, struct ras_comm *ret_head) {
	struct ras_comm head = {0};

	head.id.hash = wire_get_u64(reader);
	head.id.host_hash = wire_get_u64(reader);
	head.id.pid_hash = wire_get_u64(reader);
	head.size = wire_get_u32(reader);
	if (head.size == 0 || head.size > RAS_COMM_SIZE_MAX)
		wire_reader_fail(reader, -EBADMSG);
	head.config = wire_get_u32(reader);
	(void)wire_get_string(reader, head.job, sizeof(head.job));
	head.signature_count = get_count(reader, RAS_COMM_SIGNATURES);
	for (uint32_t n = 0; n < head.signature_count; n++) {
		struct ras_comm_signature *signature = &head.signatures[n];

		signature->kind = wire_get_u8(reader);
		signature->datatype = wire_get_u8(reader);
		signature->root =
			(int32_t)((int64_t)get_varint_below(reader, UINT64_C(1) << 31) - 1);
		signature->count = wire_get_varint(reader);
	}
	get_recent_signatures(reader, head.signature_count, &head.recent);
	// Both counts precede the ranks, so each is checked against all remaining bytes.
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
	return (int16_t)(get_varint_below(reader, (1 << 15) + 1) - 1);
}

// The text is printed, so bytes that are not printable are replaced.
static void get_printable_string(struct wire_reader *reader, char *ret_text, size_t size) {
	(void)wire_get_string(reader, ret_text, size);
	for (char *at = ret_text; *at != '\0'; at++)
		*at = *at >= ' ' && *at <= '~' ? *at : '?';
}

static void get_doing(struct wire_reader *reader, struct ras_comm_doing *ret_doing) {
	struct ras_comm_doing doing = {0};

	doing.activity = wire_get_u8(reader);
	doing.unread = wire_get_u8(reader);
	doing.span_ms = get_u32(reader);
	doing.amount = get_u32(reader);
	get_printable_string(reader, doing.name, sizeof(doing.name));
	*ret_doing = doing;
}

static void get_call(struct wire_reader *reader, struct ras_comm_call *ret_call) {
	ret_call->number = wire_get_u8(reader);
	if (ret_call->number == 0)
		return;
	ret_call->is_elsewhere = wire_get_u8(reader) != 0;
	ret_call->peer = (int32_t)wire_get_u32(reader);
	ret_call->tag = (int32_t)wire_get_u32(reader);
}

static void get_optional_fields(
	struct wire_reader *reader,
	const struct ras_comm *head,
	uint32_t told,
	struct ras_comm_rank *rank
) {
	if ((told & TOLD_WORKED) != 0)
		rank->worked_ms = get_u32(reader);
	if ((told & TOLD_ERRORS) != 0) {
		rank->init_state = wire_get_u8(reader);
		rank->async_error = wire_get_u8(reader);
	}
	if ((told & TOLD_DEVICES) != 0) {
		rank->cuda_device = get_device(reader);
		rank->nvml_device = get_device(reader);
	}
	if ((told & TOLD_EXIT) != 0) {
		rank->exit_cause = wire_get_u8(reader);
		rank->exit_value = (int32_t)wire_get_u32(reader);
		rank->exited_ms = get_u32(reader);
	}
	if ((told & TOLD_PAIR) != 0) {
		rank->pair_launched = wire_get_varint(reader);
		rank->pair_completed = rank->pair_launched - wire_get_varint(reader);
	}
	if ((told & TOLD_WAITS) != 0) {
		rank->wait_count = get_count(reader, RAS_COMM_WAITS);
		wire_get_bytes(reader, rank->waits, rank->wait_count);
	}
	if ((told & TOLD_RECENT) != 0)
		get_recent_signatures(reader, head->signature_count, &rank->recent);
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++) {
		if ((told & TOLD_OPS << n) != 0)
			rank->ops[n] = (told & TOLD_ONE_OP) != 0 ? rank->launched
								 : wire_get_varint(reader);
	}
	if ((told & TOLD_DOING) != 0)
		get_doing(reader, &rank->doing);
	if ((told & TOLD_SINCE) != 0)
		rank->since_ms = get_u32(reader);
	if ((told & TOLD_LEFT) != 0) {
		rank->left = wire_get_u8(reader);
		rank->exited_ms = get_u32(reader);
	}
	if (wire_reader_left(reader) > 0)
		get_call(reader, &rank->doing.call);
	if (wire_reader_left(reader) > 0) {
		uint64_t posted = get_varint_below(reader, UINT64_C(1) << 33);

		rank->unwaited = (uint32_t)(posted >> 1);
		rank->oldest_is_unwaited = (posted & 1) != 0;
		rank->doing.busy_s = get_u32(reader);
		if (rank->doing.busy_s != 0)
			get_printable_string(
				reader, rank->doing.busy_why, sizeof(rank->doing.busy_why)
			);
	}
	// An invalid difference has wrapped around.
	if (rank->pair_completed > rank->pair_launched)
		wire_reader_fail(reader, -EBADMSG);
}

static uint32_t get_difference(struct wire_reader *reader, uint32_t before, uint64_t limit) {
	uint64_t code = wire_get_varint(reader);
	uint64_t value = (code & 1) != 0 ? before - (code >> 1) : before + (code >> 1);

	if (value < limit)
		return (uint32_t)value;
	wire_reader_fail(reader, -EBADMSG);
	return 0;
}

int ras_comm_get_rank(
	struct wire_reader *reader,
	const struct ras_comm *head,
	const struct ras_comm_rank *before,
	struct ras_comm_rank *ret_rank
) {
	struct ras_comm_rank rank = {.cuda_device = -1, .nvml_device = -1};
	struct wire_reader row;
	uint32_t told;

	wire_reader_nested(reader, wire_get_u8(reader), &row);
	rank.rank = get_difference(&row, before->rank, head->size);
	rank.pid = get_difference(&row, before->pid, UINT64_C(1) << 32);
	told = wire_get_u16(&row);
	rank.flags = wire_get_u8(&row);
	rank.knows = wire_get_u8(&row);
	rank.process_state = wire_get_u8(&row);
	rank.launched = wire_get_varint(&row);
	rank.started = rank.launched - wire_get_varint(&row);
	rank.completed = rank.started - wire_get_varint(&row);
	if (rank.started > rank.launched || rank.completed > rank.started)
		wire_reader_fail(&row, -EBADMSG);
	rank.idle_ms = get_u32(&row);
	get_optional_fields(&row, head, told & TOLD_ALL, &rank);
	// Fields appended by a newer version are left unread.
	if (!wire_reader_ok(&row))
		wire_reader_fail(reader, wire_reader_error(&row));
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_rank = rank;
	return 0;
}

int ras_comm_get_missing(
	struct wire_reader *reader, uint32_t comm_size, struct ras_comm_missing *ret_missing
) {
	struct ras_comm_missing missing = {0};

	missing.rank = (uint32_t)get_varint_below(reader, comm_size);
	missing.pid = get_u32(reader);
	missing.node = wire_get_u64(reader);
	missing.family = wire_get_u8(reader);
	if (missing.family != 0 && address_bytes(missing.family) == 0)
		wire_reader_fail(reader, -EBADMSG);
	wire_get_bytes(reader, missing.address, address_bytes(missing.family));
	missing.cuda_device = (int16_t)wire_get_u16(reader);
	missing.nvml_device = (int16_t)wire_get_u16(reader);
	if (missing.cuda_device < -1 || missing.nvml_device < -1)
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	*ret_missing = missing;
	return 0;
}
