// SPDX-License-Identifier: BSD-3-Clause
// Wire format of evidence. Each item has a kind, a size and a body. Input is untrusted, so only
// items that this build would send are accepted.
#include <lib/escape.h>
#include <lib/wire.h>
#include <verdict/observation.h>

#define FLAG_OWN_GOOD 0x01
#define FLAG_SHARES 0x02
#define FLAGS_ALL (FLAG_OWN_GOOD | FLAG_SHARES)
#define PERMILLE_MAX 1000

static const char *const kind_names[OBSERVATION_KIND_COUNT] = {
	[OBSERVATION_GOOD] = "good",	     [OBSERVATION_STANDING] = "standing",
	[OBSERVATION_DEGRADED] = "degraded", [OBSERVATION_LOSSY] = "lossy",
	[OBSERVATION_SILENT] = "silent",     [OBSERVATION_NO_PAIR] = "no-pair",
};

static const char *const responder_names[OBSERVATION_RESPONDER_COUNT] = {
	[OBSERVATION_RESPONDER_UNKNOWN] = "unknown",
	[OBSERVATION_RESPONDER_HARDWARE] = "hardware",
	[OBSERVATION_RESPONDER_KERNEL] = "kernel",
	[OBSERVATION_RESPONDER_IN_PROCESS] = "in-process",
};

static const char *const reach_names[VERDICT_REACH_COUNT] = {
	[VERDICT_REACH_UNKNOWN] = "unknown", [VERDICT_REACH_ANSWERS] = "answers",
	[VERDICT_REACH_ACCEPTS] = "accepts", [VERDICT_REACH_REFUSES] = "refuses",
	[VERDICT_REACH_NONE] = "none",	     [VERDICT_REACH_LOSES] = "loses",
	[VERDICT_REACH_OTHER] = "other",
};

const char *observation_kind_name(enum observation_kind kind) {
	return (unsigned)kind < OBSERVATION_KIND_COUNT ? kind_names[kind] : "?";
}

const char *observation_responder_name(enum observation_responder responder) {
	return (unsigned)responder < OBSERVATION_RESPONDER_COUNT ? responder_names[responder] : "?";
}

const char *verdict_reach_name(enum verdict_reach reach) {
	return (unsigned)reach < VERDICT_REACH_COUNT ? reach_names[reach] : "?";
}

// Verdicts that a node may report about itself: healthy, node-busy, check-warning, unknown,
// check-failed, device-stuck, fabric-down.
static bool statement_verdict_is_allowed(enum verdict verdict) {
	switch (verdict) {
	case VERDICT_HEALTHY:
	case VERDICT_NODE_BUSY:
	case VERDICT_CHECK_WARNING:
	case VERDICT_UNKNOWN:
	case VERDICT_CHECK_FAILED:
	case VERDICT_DEVICE_STUCK:
	case VERDICT_FABRIC_DOWN:
		return true;
	default:
		return false;
	}
}

// Numbers of verdicts on the wire. They do not know node-busy: it travels as a check-warning whose
// reason is ProcessorShort, so that earlier versions show a warning.
#define WIRE_CHECK_WARNING 2

static uint8_t verdict_to_wire(enum verdict verdict) {
	if (verdict == VERDICT_NODE_BUSY)
		return WIRE_CHECK_WARNING;
	return (uint8_t)(verdict > VERDICT_NODE_BUSY ? verdict - 1 : verdict);
}

static enum verdict verdict_from_wire(uint8_t number, const char *reason) {
	if (number == WIRE_CHECK_WARNING && strcmp(reason, PROCESSOR_SHORT) == 0)
		return VERDICT_NODE_BUSY;
	return number < WIRE_CHECK_WARNING ? (enum verdict)number : (enum verdict)(number + 1);
}

// Return whether the text is terminated, and one line that a terminal shows as it is.
static bool text_is_plain(const char *text, size_t size_max) {
	size_t length = strnlen(text, size_max);

	return length < size_max && escape_text_is_plain(text, length);
}

// Return whether the reason is plain CamelCase, since schedulers quote it.
static bool reason_is_plain(const char *reason) {
	size_t length = strnlen(reason, VERDICT_REASON_MAX + 1);

	for (size_t n = 0; n < length; n++) {
		char c = reason[n];

		if (!(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
			return false;
	}
	return length > 0 && length <= VERDICT_REASON_MAX;
}

static bool observation_is_valid(const struct observation *observation) {
	return observation->observer != 0 && observation->subject != 0 &&
	       observation->observer != observation->subject &&
	       (unsigned)observation->kind < OBSERVATION_KIND_COUNT &&
	       (unsigned)observation->responder < OBSERVATION_RESPONDER_COUNT &&
	       (unsigned)observation->reach < VERDICT_REACH_COUNT &&
	       observation->lost_permille <= PERMILLE_MAX;
}

static bool observation_text_is_valid(const struct observation *observation) {
	return text_is_plain(observation->device, sizeof(observation->device)) &&
	       text_is_plain(observation->peer_device, sizeof(observation->peer_device));
}

static bool statement_text_is_valid(const struct statement *statement) {
	return reason_is_plain(statement->reason) &&
	       text_is_plain(statement->evidence, sizeof(statement->evidence));
}

// Finish an item: write its size, or restore the writer if the item does not fit.
static int
notice_item_end(struct wire_writer *writer, const struct wire_writer *before, size_t mark) {
	size_t used;

	if (wire_writer_finish(writer, &used) != 0) {
		*writer = *before;
		return -EMSGSIZE;
	}
	wire_patch_u16(writer, mark, (uint16_t)(used - mark - sizeof(uint16_t)));
	return 0;
}

int observation_put(struct wire_writer *writer, const struct observation *observation) {
	struct wire_writer before = *writer;
	size_t mark;

	if (!observation_is_valid(observation) || !observation_text_is_valid(observation))
		return -EINVAL;
	wire_put_u8(writer, TOLD_OBSERVATION);
	mark = wire_reserve_u16(writer);
	wire_put_u64(writer, observation->observer);
	wire_put_u64(writer, observation->subject);
	wire_put_u64(writer, observation->incarnation);
	wire_put_u8(writer, (uint8_t)observation->kind);
	wire_put_u8(writer, (uint8_t)observation->responder);
	wire_put_u8(writer, (uint8_t)observation->reach);
	wire_put_u8(
		writer, (observation->own_good ? FLAG_OWN_GOOD : 0) |
				(observation->shares ? FLAG_SHARES : 0)
	);
	wire_put_string(writer, observation->device, strlen(observation->device));
	wire_put_string(writer, observation->peer_device, strlen(observation->peer_device));
	wire_put_varint(writer, observation->median_ns);
	wire_put_varint(writer, observation->baseline_ns);
	wire_put_varint(writer, observation->lost_permille);
	wire_put_varint(writer, observation->lost_bytes);
	wire_put_varint(writer, observation->age_ms);
	return notice_item_end(writer, &before, mark);
}

int statement_put(struct wire_writer *writer, const struct statement *statement) {
	struct wire_writer before = *writer;
	size_t mark;

	if (statement->subject == 0 || !statement_verdict_is_allowed(statement->verdict) ||
	    !statement_text_is_valid(statement))
		return -EINVAL;
	wire_put_u8(writer, TOLD_STATEMENT);
	mark = wire_reserve_u16(writer);
	wire_put_u64(writer, statement->subject);
	wire_put_u8(writer, verdict_to_wire(statement->verdict));
	wire_put_string(writer, statement->reason, strlen(statement->reason));
	wire_put_string(writer, statement->evidence, strlen(statement->evidence));
	wire_put_varint(writer, statement->age_s);
	return notice_item_end(writer, &before, mark);
}

static uint32_t read_varint_u32(struct wire_reader *reader) {
	uint64_t value = wire_get_varint(reader);

	if (value > UINT32_MAX)
		wire_reader_fail(reader, -EBADMSG);
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

static void observation_get(struct wire_reader *reader, struct observation *ret_observation) {
	uint8_t flags;

	ret_observation->observer = wire_get_u64(reader);
	ret_observation->subject = wire_get_u64(reader);
	ret_observation->incarnation = wire_get_u64(reader);
	ret_observation->kind = wire_get_u8(reader);
	ret_observation->responder = wire_get_u8(reader);
	ret_observation->reach = wire_get_u8(reader);
	flags = wire_get_u8(reader);
	ret_observation->own_good = (flags & FLAG_OWN_GOOD) != 0;
	ret_observation->shares = (flags & FLAG_SHARES) != 0;
	wire_get_string(reader, ret_observation->device, sizeof(ret_observation->device));
	wire_get_string(reader, ret_observation->peer_device, sizeof(ret_observation->peer_device));
	ret_observation->median_ns = read_varint_u32(reader);
	ret_observation->baseline_ns = read_varint_u32(reader);
	ret_observation->lost_permille = read_varint_u32(reader);
	ret_observation->lost_bytes = read_varint_u32(reader);
	ret_observation->age_ms = read_varint_u32(reader);
	if (!wire_reader_ok(reader))
		return;
	if ((flags & ~FLAGS_ALL) != 0 || !observation_is_valid(ret_observation))
		wire_reader_fail(reader, -EBADMSG);
	else if (!observation_text_is_valid(ret_observation))
		wire_reader_fail(reader, -EILSEQ);
}

static void statement_get(struct wire_reader *reader, struct statement *ret_statement) {
	uint8_t number;

	ret_statement->subject = wire_get_u64(reader);
	number = wire_get_u8(reader);
	wire_get_string(reader, ret_statement->reason, sizeof(ret_statement->reason));
	wire_get_string(reader, ret_statement->evidence, sizeof(ret_statement->evidence));
	ret_statement->age_s = read_varint_u32(reader);
	ret_statement->verdict = verdict_from_wire(number, ret_statement->reason);
	if (!wire_reader_ok(reader))
		return;
	if (ret_statement->subject == 0 || !statement_verdict_is_allowed(ret_statement->verdict))
		wire_reader_fail(reader, -EBADMSG);
	else if (!statement_text_is_valid(ret_statement))
		wire_reader_fail(reader, -EILSEQ);
}

int notice_item_get(struct wire_reader *reader, struct told *ret_told) {
	while (wire_reader_ok(reader) && wire_reader_left(reader) > 0) {
		struct told told = {.kind = wire_get_u8(reader)};
		struct wire_reader body;

		wire_reader_nested(reader, wire_get_u16(reader), &body);
		if (told.kind == TOLD_OBSERVATION)
			observation_get(&body, &told.observation);
		else if (told.kind == TOLD_STATEMENT)
			statement_get(&body, &told.statement);
		else
			continue;
		wire_reader_fail(reader, wire_reader_finish(&body));
		if (!wire_reader_ok(reader))
			break;
		*ret_told = told;
		return 0;
	}
	return wire_reader_ok(reader) ? -ENODATA : wire_reader_error(reader);
}
