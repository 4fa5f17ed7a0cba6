// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the wire writer and reader by operations from the input.
//
// First a random message is written into a buffer of random capacity and read back. Every value
// must return, and overflow must occur exactly where a model predicts. Then the input itself is
// read as a message by the same operations. No read may leave the input, and failure must be
// sticky.
#include <lib/must.h>
#include <lib/wire.h>
#include <support/fuzz.h>

#include <string.h>

#define ITEMS_MAX 64

enum kind {
	KIND_U8,
	KIND_U16,
	KIND_U32,
	KIND_U64,
	KIND_I64,
	KIND_VARINT,
	KIND_BYTES,
	KIND_STRING,
	KIND_SLOT_U16,
	KIND_SLOT_U32,
	KIND_COUNT,
};

struct input {
	const uint8_t *data;
	size_t size, at;
};

struct item {
	enum kind kind;
	uint64_t value; // a number, or the offset of the bytes in the input
	size_t size;	// size of the bytes
	size_t slot;	// offset of a reserved slot
};

static uint8_t input_byte(struct input *input) {
	return input->at < input->size ? input->data[input->at++] : 0;
}

static uint64_t input_number(struct input *input) {
	uint64_t value = 0;

	// The low bits of the first byte choose the size, so that small numbers are likely.
	for (uint8_t n = input_byte(input) & 7; n > 0; n--)
		value = value << 8 | input_byte(input);
	return value;
}

static bool item_next(struct input *input, struct item *item) {
	if (input->at >= input->size)
		return false;
	item->kind = input_byte(input) % KIND_COUNT;
	if (item->kind == KIND_BYTES || item->kind == KIND_STRING) {
		item->size = input_byte(input);
		if (item->size > input->size - input->at)
			item->size = input->size - input->at;
		item->value = input->at;
		input->at += item->size;
	} else {
		item->value = input_number(input);
	}
	return true;
}

static size_t item_coded_size(const struct item *item) {
	size_t size = 1;

	switch (item->kind) {
	case KIND_U8:
		return 1;
	case KIND_U16:
	case KIND_SLOT_U16:
		return 2;
	case KIND_U32:
	case KIND_SLOT_U32:
		return 4;
	case KIND_U64:
	case KIND_I64:
		return 8;
	case KIND_VARINT:
		for (uint64_t rest = item->value >> 7; rest > 0; rest >>= 7)
			size++;
		return size;
	case KIND_BYTES:
		return item->size;
	default:
		return 2 + item->size;
	}
}

static void item_put(struct wire_writer *writer, const struct input *input, struct item *item) {
	switch (item->kind) {
	case KIND_U8:
		wire_put_u8(writer, (uint8_t)item->value);
		break;
	case KIND_U16:
		wire_put_u16(writer, (uint16_t)item->value);
		break;
	case KIND_U32:
		wire_put_u32(writer, (uint32_t)item->value);
		break;
	case KIND_U64:
		wire_put_u64(writer, item->value);
		break;
	case KIND_I64:
		wire_put_i64(writer, (int64_t)item->value);
		break;
	case KIND_VARINT:
		wire_put_varint(writer, item->value);
		break;
	case KIND_BYTES:
		wire_put_bytes(writer, input->data + item->value, item->size);
		break;
	case KIND_STRING:
		wire_put_string(writer, (const char *)input->data + item->value, item->size);
		break;
	case KIND_SLOT_U16:
		item->slot = wire_reserve_u16(writer);
		break;
	default:
		item->slot = wire_reserve_u32(writer);
		break;
	}
}

static void item_patch(struct wire_writer *writer, const struct item *item) {
	if (item->kind == KIND_SLOT_U16)
		wire_patch_u16(writer, item->slot, (uint16_t)item->value);
	if (item->kind == KIND_SLOT_U32)
		wire_patch_u32(writer, item->slot, (uint32_t)item->value);
}

static uint64_t number_get(struct wire_reader *reader, enum kind kind) {
	switch (kind) {
	case KIND_U8:
		return wire_get_u8(reader);
	case KIND_U16:
	case KIND_SLOT_U16:
		return wire_get_u16(reader);
	case KIND_U32:
	case KIND_SLOT_U32:
		return wire_get_u32(reader);
	case KIND_U64:
		return wire_get_u64(reader);
	case KIND_I64:
		return (uint64_t)wire_get_i64(reader);
	default:
		return wire_get_varint(reader);
	}
}

static uint64_t number_cut(enum kind kind, uint64_t value) {
	switch (kind) {
	case KIND_U8:
		return (uint8_t)value;
	case KIND_U16:
	case KIND_SLOT_U16:
		return (uint16_t)value;
	case KIND_U32:
	case KIND_SLOT_U32:
		return (uint32_t)value;
	default:
		return value;
	}
}

// Check a string. Returns true if the reader may continue; invalid text must end the message.
static bool string_check(struct wire_reader *reader, const uint8_t *expected, size_t size) {
	bool text_ok = memchr(expected, '\0', size) == NULL && wire_utf8_valid(expected, size);
	char text[UINT8_MAX + 1];

	if (!text_ok) {
		must(wire_get_string(reader, text, sizeof(text)) == 0);
		must(wire_reader_error(reader) == -EILSEQ);
		return false;
	}
	must(wire_get_string(reader, text, sizeof(text)) == size);
	must(memcmp(text, expected, size) == 0 && text[size] == '\0');
	return true;
}

static bool
item_check(struct wire_reader *reader, const struct input *input, const struct item *item) {
	const uint8_t *expected = input->data + item->value;
	uint8_t bytes[UINT8_MAX];

	if (item->kind == KIND_STRING)
		return string_check(reader, expected, item->size);
	if (item->kind == KIND_BYTES) {
		wire_get_bytes(reader, bytes, item->size);
		must(wire_reader_ok(reader) && memcmp(bytes, expected, item->size) == 0);
		return true;
	}
	must(number_get(reader, item->kind) == number_cut(item->kind, item->value));
	must(wire_reader_ok(reader));
	return true;
}

static void round_trip(const uint8_t *data, size_t size) {
	struct input input = {.data = data, .size = size};
	struct item items[ITEMS_MAX];
	uint8_t buffer[UINT8_MAX];
	struct wire_writer writer;
	struct wire_reader reader;
	size_t capacity = input_byte(&input);
	size_t expected = 0, used = 0, count = 0;

	wire_writer_init(&writer, buffer, capacity);
	while (count < ITEMS_MAX && item_next(&input, &items[count])) {
		item_put(&writer, &input, &items[count]);
		if (item_coded_size(&items[count]) > capacity - expected)
			break;
		expected += item_coded_size(&items[count++]);
		must(wire_writer_used(&writer) == expected);
	}
	for (size_t n = 0; n < count; n++)
		item_patch(&writer, &items[n]);
	must(wire_writer_used(&writer) == expected);
	// An overflow also disables patching, so only a complete message is read back.
	if (wire_writer_finish(&writer, &used) != 0)
		return;
	must(used == expected);
	wire_reader_init(&reader, buffer, used);
	for (size_t n = 0; n < count; n++) {
		if (!item_check(&reader, &input, &items[n]))
			return;
	}
	must(wire_reader_finish(&reader) == 0);
}

static void foreign_step(struct wire_reader *reader, uint8_t op) {
	uint8_t bytes[UINT8_MAX];
	size_t length = 0;
	size_t left = wire_reader_left(reader);
	uint32_t count;
	char text[16];
	struct wire_reader sub;

	switch (op % (KIND_COUNT + 1)) {
	case KIND_BYTES:
		wire_get_bytes(reader, bytes, op);
		break;
	case KIND_STRING:
		if ((op & 0x80) != 0)
			must(wire_get_string(reader, text, sizeof(text)) < sizeof(text));
		else if (wire_get_string_view(reader, op, &length) != NULL)
			must(length <= op);
		break;
	case KIND_SLOT_U16:
		count = wire_get_count_u16(reader, 1000, 3);
		must(count <= 1000 && (size_t)count * 3 <= wire_reader_left(reader));
		break;
	case KIND_SLOT_U32:
		count = wire_get_count_u32(reader, UINT32_MAX, op);
		must((uint64_t)count * op <= wire_reader_left(reader) || op == 0);
		break;
	case KIND_COUNT:
		wire_reader_nested(reader, op / 2, &sub);
		must(wire_reader_left(&sub) <= left);
		wire_get_u64(&sub);
		wire_reader_fail(reader, wire_reader_error(&sub));
		break;
	default:
		number_get(reader, op % KIND_COUNT);
		break;
	}
	must(wire_reader_left(reader) <= left);
}

static void read_foreign(const uint8_t *data, size_t size) {
	struct wire_reader reader;
	int error;

	// The input supplies the operations too, so each byte has both roles.
	wire_reader_init(&reader, data, size);
	for (size_t n = 0; n < size && wire_reader_ok(&reader); n++)
		foreign_step(&reader, data[n]);
	error = wire_reader_error(&reader);
	if (error == 0)
		return;
	must(error == -EBADMSG || error == -EMSGSIZE || error == -EILSEQ);
	for (unsigned op = 0; op <= KIND_COUNT; op++)
		foreign_step(&reader, (uint8_t)op);
	must(wire_reader_finish(&reader) == error && wire_reader_left(&reader) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	round_trip(data, size);
	read_foreign(data, size);
	return 0;
}
