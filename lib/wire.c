// SPDX-License-Identifier: BSD-3-Clause
// Bounded readers and writers of wire formats: strings, varints, nested readers.
#include <lib/utf8.h>
#include <lib/wire.h>

bool wire_utf8_valid(const void *text, size_t length) {
	const uint8_t *bytes = text;
	size_t at = 0;

	while (at < length) {
		// ASCII bytes, which are most of a name, need no call.
		size_t size = bytes[at] < 0x80 ? 1 : utf8_character_size(bytes + at, length - at);

		if (size == 0)
			return false;
		at += size;
	}
	return true;
}

void wire_put_string(struct wire_writer *writer, const char *text, size_t length) {
	uint8_t *to;
	uint16_t coded;

	// A length that exceeds the prefix becomes one that fits in no buffer.
	to = wire_writer_reserve(
		writer, length > WIRE_STRING_LENGTH_MAX ? SIZE_MAX : sizeof(coded) + length
	);
	if (to == NULL)
		return;
	coded = htole16((uint16_t)length);
	memcpy(to, &coded, sizeof(coded));
	if (length > 0)
		memcpy(to + sizeof(coded), text, length);
}

void wire_put_varint(struct wire_writer *writer, uint64_t value) {
	uint8_t coded[WIRE_VARINT_BYTES_MAX];
	size_t size = 0;

	while (value >= 0x80) {
		coded[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	coded[size++] = (uint8_t)value;
	wire_put_bytes(writer, coded, size);
}

void wire_reader_fail(struct wire_reader *reader, int error) {
	must(error <= 0);
	if (error == 0)
		return;
	if (reader->error == 0)
		reader->error = error;
	reader->left = 0;
}

uint64_t wire_get_varint(struct wire_reader *reader) {
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		byte = wire_get_u8(reader);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) != 0)
			continue;
		// Reject a last byte of 0, which makes the form longer than needed, and bits past
		// the 64th.
		if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1))
			break;
		return value;
	}
	wire_reader_fail(reader, -EBADMSG);
	return 0;
}

const char *
wire_get_string_view(struct wire_reader *reader, size_t length_max, size_t *ret_length) {
	size_t length = wire_get_u16(reader);
	const char *text;

	if (length > length_max) {
		wire_reader_fail(reader, -EMSGSIZE);
		return NULL;
	}
	text = wire_get_view(reader, length);
	if (text == NULL)
		return NULL;
	if (memchr(text, '\0', length) != NULL || !wire_utf8_valid(text, length)) {
		wire_reader_fail(reader, -EILSEQ);
		return NULL;
	}
	*ret_length = length;
	return text;
}

size_t wire_get_string(struct wire_reader *reader, char *ret_text, size_t text_size) {
	const char *text;
	size_t length;

	must(text_size > 0);
	text = wire_get_string_view(reader, text_size - 1, &length);
	if (text == NULL)
		return 0;
	memcpy(ret_text, text, length);
	ret_text[length] = '\0';
	return length;
}

void wire_get_name(struct wire_reader *reader, char *ret_name, size_t name_size) {
	size_t length = wire_get_string(reader, ret_name, name_size);

	for (size_t n = 0; n < length; n++) {
		if (ret_name[n] <= ' ' || ret_name[n] > '~')
			wire_reader_fail(reader, -EBADMSG);
	}
	if (length == 0)
		wire_reader_fail(reader, -EBADMSG);
}

static uint32_t count_check(
	struct wire_reader *reader, uint32_t count, uint32_t count_max, size_t element_bytes_min
) {
	size_t bytes_min;

	if (count > count_max) {
		wire_reader_fail(reader, -EMSGSIZE);
		return 0;
	}
	if (__builtin_mul_overflow(count, element_bytes_min, &bytes_min) ||
	    bytes_min > reader->left) {
		wire_reader_fail(reader, -EBADMSG);
		return 0;
	}
	return count;
}

uint32_t
wire_get_count_u16(struct wire_reader *reader, uint32_t count_max, size_t element_bytes_min) {
	return count_check(reader, wire_get_u16(reader), count_max, element_bytes_min);
}

uint32_t
wire_get_count_u32(struct wire_reader *reader, uint32_t count_max, size_t element_bytes_min) {
	return count_check(reader, wire_get_u32(reader), count_max, element_bytes_min);
}

void wire_reader_nested(struct wire_reader *reader, size_t size, struct wire_reader *ret_sub) {
	const void *data = wire_get_view(reader, size);

	wire_reader_init(ret_sub, data, data != NULL ? size : 0);
	wire_reader_fail(ret_sub, reader->error);
}
