// SPDX-License-Identifier: BSD-3-Clause
// Bounded writer and reader for explicit little-endian messages.
//
// Every access is checked and failure is sticky. After the first failure a writer writes nothing
// more and a reader returns zeros. So the code for a message is a straight sequence of calls with
// one check at the end. The caller owns the buffer and never moves a pointer in it. Plain values:
// one thread at a time, no allocation, no cleanup.
//
//	wire_writer_init(&writer, buffer, sizeof(buffer));
//	wire_put_u16(&writer, version);
//	wire_put_string(&writer, name, strlen(name));
//	err = wire_writer_finish(&writer, &used);
//
//	wire_reader_init(&reader, buffer, used);
//	version = wire_get_u16(&reader);
//	wire_get_string(&reader, name, sizeof(name));
//	err = wire_reader_finish(&reader); // the values are valid only if this returns 0
#pragma once

#include <lib/must.h>

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Longest string: its length prefix has 16 bits.
#define WIRE_STRING_LENGTH_MAX UINT16_MAX
// Longest varint: each byte holds 7 bits of the value.
#define WIRE_VARINT_BYTES_MAX 10

struct wire_writer {
	uint8_t *data; // private, like all fields
	size_t used;
	size_t capacity; // lowered to `used` by the first failure, so that nothing more fits
	bool overflowed;
};

struct wire_reader {
	const uint8_t *next; // private, like all fields
	size_t left;	     // 0 after a failure, so that nothing more can be read
	int error;	     // first failure, or 0
};

// Return true if the bytes are well-formed UTF-8 by RFC 3629: no overlong form, no surrogate, no
// code point past U+10FFFF. NUL is a normal character.
bool wire_utf8_valid(const void *text, size_t length);

// Start a message in the caller's buffer, which must outlive the writer.
static inline void wire_writer_init(struct wire_writer *writer, void *buffer, size_t capacity) {
	must(buffer != NULL);
	writer->data = buffer;
	writer->used = 0;
	writer->capacity = capacity;
	writer->overflowed = false;
}

// Return the number of bytes written so far, without those that overflowed.
static inline size_t wire_writer_used(const struct wire_writer *writer) {
	return writer->used;
}

// Set *ret_used to the size of the message. Returns 0, or -EMSGSIZE if a value did not fit; the
// buffer then holds the part before that value.
static inline int wire_writer_finish(const struct wire_writer *writer, size_t *ret_used) {
	if (writer->overflowed)
		return -EMSGSIZE;
	*ret_used = writer->used;
	return 0;
}

// Private: reserve `size` bytes. Returns their place, or NULL with the writer failed.
static inline uint8_t *wire_writer_reserve(struct wire_writer *writer, size_t size) {
	uint8_t *taken;

	if (__builtin_expect(size > writer->capacity - writer->used, 0)) {
		writer->capacity = writer->used;
		writer->overflowed = true;
		return NULL;
	}
	taken = writer->data + writer->used;
	writer->used += size;
	return taken;
}

static inline void wire_put_u8(struct wire_writer *writer, uint8_t value) {
	uint8_t *to = wire_writer_reserve(writer, sizeof(value));

	if (to != NULL)
		*to = value;
}

static inline void wire_put_u16(struct wire_writer *writer, uint16_t value) {
	uint8_t *to = wire_writer_reserve(writer, sizeof(value));
	uint16_t coded = htole16(value);

	if (to != NULL)
		memcpy(to, &coded, sizeof(coded));
}

static inline void wire_put_u32(struct wire_writer *writer, uint32_t value) {
	uint8_t *to = wire_writer_reserve(writer, sizeof(value));
	uint32_t coded = htole32(value);

	if (to != NULL)
		memcpy(to, &coded, sizeof(coded));
}

static inline void wire_put_u64(struct wire_writer *writer, uint64_t value) {
	uint8_t *to = wire_writer_reserve(writer, sizeof(value));
	uint64_t coded = htole64(value);

	if (to != NULL)
		memcpy(to, &coded, sizeof(coded));
}

// Put a signed number in two's complement.
static inline void wire_put_i64(struct wire_writer *writer, int64_t value) {
	wire_put_u64(writer, (uint64_t)value);
}

// Put bytes without a length.
static inline void wire_put_bytes(struct wire_writer *writer, const void *bytes, size_t size) {
	uint8_t *to = wire_writer_reserve(writer, size);

	if (to != NULL && size > 0)
		memcpy(to, bytes, size);
}

// Put a u16 length and the text without a terminator, completely or not at all. A text longer than
// WIRE_STRING_LENGTH_MAX overflows the writer. NUL bytes and invalid UTF-8, which a reader rejects,
// are not checked here.
void wire_put_string(struct wire_writer *writer, const char *text, size_t length);

// Put a varint: little-endian groups of 7 bits, 1 to WIRE_VARINT_BYTES_MAX bytes, shortest form.
void wire_put_varint(struct wire_writer *writer, uint64_t value);

// Reserve a slot of zeros for a value that is known later. Returns its offset for wire_patch_*().
// On an overflowed writer, the offset is meaningless and patching does nothing.
static inline size_t wire_reserve_u16(struct wire_writer *writer) {
	size_t offset = writer->used;

	wire_put_u16(writer, 0);
	return offset;
}

static inline size_t wire_reserve_u32(struct wire_writer *writer) {
	size_t offset = writer->used;

	wire_put_u32(writer, 0);
	return offset;
}

// Fill a slot that wire_reserve_*() of the same width made on the same writer.
static inline void wire_patch_u16(struct wire_writer *writer, size_t offset, uint16_t value) {
	uint16_t coded = htole16(value);

	if (writer->overflowed)
		return;
	must(writer->used >= sizeof(coded) && offset <= writer->used - sizeof(coded));
	memcpy(writer->data + offset, &coded, sizeof(coded));
}

static inline void wire_patch_u32(struct wire_writer *writer, size_t offset, uint32_t value) {
	uint32_t coded = htole32(value);

	if (writer->overflowed)
		return;
	must(writer->used >= sizeof(coded) && offset <= writer->used - sizeof(coded));
	memcpy(writer->data + offset, &coded, sizeof(coded));
}

// Start reading the caller's bytes. They must stay unchanged and outlive the reader and every view
// of it.
static inline void wire_reader_init(struct wire_reader *reader, const void *data, size_t size) {
	must(data != NULL || size == 0);
	// Never NULL, so that an empty view differs from a failure.
	reader->next = data != NULL ? data : "";
	reader->left = size;
	reader->error = 0;
}

static inline size_t wire_reader_left(const struct wire_reader *reader) {
	return reader->left;
}

static inline bool wire_reader_ok(const struct wire_reader *reader) {
	return reader->error == 0;
}

// Return 0 or the first failure: -EBADMSG (truncated or malformed), -EMSGSIZE (a limit exceeded),
// -EILSEQ (invalid text), or the error of wire_reader_fail().
static inline int wire_reader_error(const struct wire_reader *reader) {
	return reader->error;
}

// Fail the reader on a check of the caller. `error` is negative, or 0 for no effect, so that the
// result of a nested message can be passed as it is. The first failure stays.
void wire_reader_fail(struct wire_reader *reader, int error);

// Finish reading. The caller must check this before it uses any value. Returns 0, the first failure
// as in wire_reader_error(), or -EBADMSG if bytes are left.
static inline int wire_reader_finish(const struct wire_reader *reader) {
	if (reader->error != 0)
		return reader->error;
	return reader->left == 0 ? 0 : -EBADMSG;
}

// Private: consume the next `size` bytes. Returns NULL with the reader failed if there are fewer.
static inline const uint8_t *wire_reader_consume(struct wire_reader *reader, size_t size) {
	const uint8_t *taken = reader->next;

	if (__builtin_expect(size > reader->left, 0)) {
		wire_reader_fail(reader, -EBADMSG);
		return NULL;
	}
	reader->next += size;
	reader->left -= size;
	return taken;
}

static inline uint8_t wire_get_u8(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_consume(reader, sizeof(uint8_t));

	return from != NULL ? *from : 0;
}

static inline uint16_t wire_get_u16(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_consume(reader, sizeof(uint16_t));
	uint16_t coded = 0;

	if (from != NULL)
		memcpy(&coded, from, sizeof(coded));
	return le16toh(coded);
}

static inline uint32_t wire_get_u32(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_consume(reader, sizeof(uint32_t));
	uint32_t coded = 0;

	if (from != NULL)
		memcpy(&coded, from, sizeof(coded));
	return le32toh(coded);
}

static inline uint64_t wire_get_u64(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_consume(reader, sizeof(uint64_t));
	uint64_t coded = 0;

	if (from != NULL)
		memcpy(&coded, from, sizeof(coded));
	return le64toh(coded);
}

static inline int64_t wire_get_i64(struct wire_reader *reader) {
	return (int64_t)wire_get_u64(reader);
}

// Get a varint. Returns 0 after a failure; a form that is longer than needed or exceeds 64 bits is
// -EBADMSG.
uint64_t wire_get_varint(struct wire_reader *reader);

// Return a view of the next `size` bytes, or NULL after a failure. An empty view is not NULL.
static inline const void *wire_get_view(struct wire_reader *reader, size_t size) {
	const uint8_t *view = wire_reader_consume(reader, size);

	return reader->error == 0 ? view : NULL;
}

// Copy the next `size` bytes. *ret_bytes is unchanged on failure.
static inline void wire_get_bytes(struct wire_reader *reader, void *ret_bytes, size_t size) {
	const uint8_t *from = wire_reader_consume(reader, size);

	if (from != NULL && size > 0)
		memcpy(ret_bytes, from, size);
}

// Copy a string of wire_put_string(), NUL-terminated. Returns its length, or 0 after a failure,
// which leaves the text unchanged: -EMSGSIZE if string and terminator exceed `text_size`, -EILSEQ
// if it contains a NUL or is not UTF-8.
size_t wire_get_string(struct wire_reader *reader, char *ret_text, size_t text_size);

// Copy a string like wire_get_string(). It must be a name as the kernel gives to devices: printable
// ASCII without spaces, and not empty. Shells and tables show such names unchanged. Otherwise the
// failure is -EBADMSG.
void wire_get_name(struct wire_reader *reader, char *ret_name, size_t name_size);

// Return a view of a string of at most `length_max` bytes, not terminated. Returns NULL after a
// failure, with *ret_length unchanged.
const char *wire_get_string_view(struct wire_reader *reader, size_t length_max, size_t *ret_length);

// Get the number of elements that follow, each of at least `element_bytes_min` bytes. A count above
// `count_max` is -EMSGSIZE. A count that exceeds the remaining bytes is -EBADMSG. So a loop or an
// allocation of this count is bounded by the message size. Returns 0 after a failure.
uint32_t
wire_get_count_u16(struct wire_reader *reader, uint32_t count_max, size_t element_bytes_min);
uint32_t
wire_get_count_u32(struct wire_reader *reader, uint32_t count_max, size_t element_bytes_min);

// Consume the next `size` bytes as a nested message. After a failure the nested reader has failed
// with the same error, so it may be read without a check. Pass the nested reader's failures on by
// wire_reader_fail(outer, wire_reader_finish(nested)).
void wire_reader_nested(struct wire_reader *reader, size_t size, struct wire_reader *ret_sub);
