// SPDX-License-Identifier: BSD-3-Clause
// Bounded writer and reader for explicit little-endian messages.
//
// Every access is checked and failure is sticky: after the first one a writer writes nothing
// more and a reader hands out zeros, so a message is coded as a straight run of calls and
// asked once, at the end, whether it went well. The caller owns the buffer and never moves a
// pointer in it. Plain values: one thread at a time, no allocation, no clean-up.
//
//	wire_writer_init(&writer, buffer, sizeof(buffer));
//	wire_put_u16(&writer, version);
//	wire_put_string(&writer, name, strlen(name));
//	err = wire_writer_finish(&writer, &used);
//
//	wire_reader_init(&reader, buffer, used);
//	version = wire_get_u16(&reader);
//	wire_get_string(&reader, name, sizeof(name));
//	err = wire_reader_finish(&reader); // nothing read counts before this says 0
#pragma once

#include <lib/must.h>

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The length prefix of a string has 16 bits.
#define WIRE_STRING_LENGTH_MAX UINT16_MAX
// A varint takes 7 bits of the value per byte.
#define WIRE_VARINT_BYTES_MAX 10

struct wire_writer {
	uint8_t *data; // private, as all fields
	size_t used;
	size_t capacity; // lowered to `used` by the first failure, so that nothing fits any more
	bool overflowed;
};

struct wire_reader {
	const uint8_t *next; // private, as all fields
	size_t left;	     // 0 after a failure, so that nothing can be read any more
	int error;	     // the first failure, or 0
};

// True if the `length` bytes are well-formed UTF-8 by RFC 3629: no overlong form, surrogate
// or code point past U+10FFFF. NUL is a character like any other here.
bool wire_utf8_valid(const void *text, size_t length);

// Starts a message in the caller's buffer, which must outlive the writer.
static inline void wire_writer_init(struct wire_writer *writer, void *buffer, size_t capacity) {
	must(buffer != NULL);
	writer->data = buffer;
	writer->used = 0;
	writer->capacity = capacity;
	writer->overflowed = false;
}

// Bytes written so far; those before the overflow if there was one.
static inline size_t wire_writer_used(const struct wire_writer *writer) {
	return writer->used;
}

// Sets *ret_used to the size of the message. Returns 0, or -EMSGSIZE if anything put did not
// fit; the buffer then holds the part before it.
static inline int wire_writer_finish(const struct wire_writer *writer, size_t *ret_used) {
	if (writer->overflowed)
		return -EMSGSIZE;
	*ret_used = writer->used;
	return 0;
}

// Private: room for `size` more bytes, or NULL with the writer failed.
static inline uint8_t *wire_writer_take(struct wire_writer *writer, size_t size) {
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
	uint8_t *to = wire_writer_take(writer, sizeof(value));

	if (to != NULL)
		*to = value;
}

static inline void wire_put_u16(struct wire_writer *writer, uint16_t value) {
	uint8_t *to = wire_writer_take(writer, sizeof(value));
	uint16_t coded = htole16(value);

	if (to != NULL)
		memcpy(to, &coded, sizeof(coded));
}

static inline void wire_put_u32(struct wire_writer *writer, uint32_t value) {
	uint8_t *to = wire_writer_take(writer, sizeof(value));
	uint32_t coded = htole32(value);

	if (to != NULL)
		memcpy(to, &coded, sizeof(coded));
}

static inline void wire_put_u64(struct wire_writer *writer, uint64_t value) {
	uint8_t *to = wire_writer_take(writer, sizeof(value));
	uint64_t coded = htole64(value);

	if (to != NULL)
		memcpy(to, &coded, sizeof(coded));
}

// Two's complement.
static inline void wire_put_i64(struct wire_writer *writer, int64_t value) {
	wire_put_u64(writer, (uint64_t)value);
}

// The bytes alone, no length.
static inline void wire_put_bytes(struct wire_writer *writer, const void *bytes, size_t size) {
	uint8_t *to = wire_writer_take(writer, size);

	if (to != NULL && size > 0)
		memcpy(to, bytes, size);
}

// u16 length, then the text without a terminator, all or nothing. A text longer than
// WIRE_STRING_LENGTH_MAX overflows the writer. What a reader refuses (NUL, bytes that are not
// UTF-8) is not checked here.
void wire_put_string(struct wire_writer *writer, const char *text, size_t length);

// Little-endian groups of 7 bits, 1 to WIRE_VARINT_BYTES_MAX bytes, shortest form.
void wire_put_varint(struct wire_writer *writer, uint64_t value);

// Puts a slot of zeros whose value is known only later, and returns its offset for
// wire_patch_*(). The offset of a writer that has overflowed is of no meaning, and patching it
// does nothing.
static inline size_t wire_mark_u16(struct wire_writer *writer) {
	size_t offset = writer->used;

	wire_put_u16(writer, 0);
	return offset;
}

static inline size_t wire_mark_u32(struct wire_writer *writer) {
	size_t offset = writer->used;

	wire_put_u32(writer, 0);
	return offset;
}

// Fills a slot made by the wire_mark_*() of the same width on the same writer.
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

// Starts reading the caller's bytes, which must stay unchanged and outlive the reader and
// every view taken from it.
static inline void wire_reader_init(struct wire_reader *reader, const void *data, size_t size) {
	must(data != NULL || size == 0);
	// Never NULL, so that a view of nothing differs from a failure.
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

// 0 or the first failure: -EBADMSG (shorter than it says, or malformed), -EMSGSIZE (a cap
// exceeded), -EILSEQ (text that is no text), or what wire_reader_fail() was given.
static inline int wire_reader_error(const struct wire_reader *reader) {
	return reader->error;
}

// Fails the reader on a check of the caller's own; `error` is negative, or 0 for no effect,
// so that the end of a nested message can be handed up as it is. The first failure stays.
void wire_reader_fail(struct wire_reader *reader, int error);

// To be asked before anything read is believed: 0, the first failure as in
// wire_reader_error(), or -EBADMSG if bytes are left over.
static inline int wire_reader_finish(const struct wire_reader *reader) {
	if (reader->error != 0)
		return reader->error;
	return reader->left == 0 ? 0 : -EBADMSG;
}

// Private: the next `size` bytes, or NULL with the reader failed.
static inline const uint8_t *wire_reader_take(struct wire_reader *reader, size_t size) {
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
	const uint8_t *from = wire_reader_take(reader, sizeof(uint8_t));

	return from != NULL ? *from : 0;
}

static inline uint16_t wire_get_u16(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_take(reader, sizeof(uint16_t));
	uint16_t coded = 0;

	if (from != NULL)
		memcpy(&coded, from, sizeof(coded));
	return le16toh(coded);
}

static inline uint32_t wire_get_u32(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_take(reader, sizeof(uint32_t));
	uint32_t coded = 0;

	if (from != NULL)
		memcpy(&coded, from, sizeof(coded));
	return le32toh(coded);
}

static inline uint64_t wire_get_u64(struct wire_reader *reader) {
	const uint8_t *from = wire_reader_take(reader, sizeof(uint64_t));
	uint64_t coded = 0;

	if (from != NULL)
		memcpy(&coded, from, sizeof(coded));
	return le64toh(coded);
}

static inline int64_t wire_get_i64(struct wire_reader *reader) {
	return (int64_t)wire_get_u64(reader);
}

// 0 after a failure; a form longer than needed or past 64 bits is -EBADMSG.
uint64_t wire_get_varint(struct wire_reader *reader);

// The next `size` bytes where they lie, or NULL after a failure. A view of no bytes is not NULL.
static inline const void *wire_get_view(struct wire_reader *reader, size_t size) {
	const uint8_t *view = wire_reader_take(reader, size);

	return reader->error == 0 ? view : NULL;
}

// Copies the next `size` bytes; *ret_bytes is untouched on failure.
static inline void wire_get_bytes(struct wire_reader *reader, void *ret_bytes, size_t size) {
	const uint8_t *from = wire_reader_take(reader, size);

	if (from != NULL && size > 0)
		memcpy(ret_bytes, from, size);
}

// What wire_put_string() wrote, copied and NUL-terminated; returns its length, 0 after a
// failure, which leaves the text untouched: -EMSGSIZE if it and its terminator do not fit in
// `text_size`, -EILSEQ if it holds a NUL or is not UTF-8.
size_t wire_get_string(struct wire_reader *reader, char *ret_text, size_t text_size);

// The same without a copy: the text where it lies, not terminated, of at most `length_max`
// bytes; NULL after a failure, *ret_length then untouched.
const char *wire_get_string_view(struct wire_reader *reader, size_t length_max, size_t *ret_length);

// The number of elements that follow, each of at least `element_bytes_min` bytes. A count over
// `count_max` is -EMSGSIZE, one that cannot fit in what is left is -EBADMSG: so a loop or an
// allocation by this count is bounded by the size of the message. 0 after a failure.
uint32_t
wire_get_count_u16(struct wire_reader *reader, uint32_t count_max, size_t element_bytes_min);
uint32_t
wire_get_count_u32(struct wire_reader *reader, uint32_t count_max, size_t element_bytes_min);

// Cuts off the next `size` bytes as a message of their own. After a failure the nested reader
// has failed with the same error, so it may be read without a check. Its own failures reach
// the outer one by wire_reader_fail(outer, wire_reader_finish(nested)).
void wire_reader_sub(struct wire_reader *reader, size_t size, struct wire_reader *ret_sub);
