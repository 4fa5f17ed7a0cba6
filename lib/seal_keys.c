// SPDX-License-Identifier: BSD-3-Clause
// Keys in memory, and the text of a key file. seal_keys_file.c reads and writes the files.
#include <lib/must.h>
#include <lib/seal_secret.h>

#include <sodium.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t\r"
#define KEY_LINE_WORD "tocsin-key-1"
#define HEX_DIGITS "0123456789abcdefABCDEF"
#define HEX_LENGTH ((size_t)2 * SEAL_SECRET_BYTES)

void seal_hash(
	const uint8_t *key,
	const char *purpose,
	const void *bytes,
	size_t size,
	uint8_t ret_hash[static SEAL_SECRET_BYTES]
) {
	uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = {0};

	must(strlen(purpose) <= sizeof(personal));
	memcpy(personal, purpose, strlen(purpose));
	must(crypto_generichash_blake2b_salt_personal(
		     ret_hash, SEAL_SECRET_BYTES, bytes, size, key,
		     key == NULL ? 0 : SEAL_SECRET_BYTES, NULL, personal
	     ) == 0);
}

static struct seal_keys *keys_create(void) {
	struct seal_keys *keys;

	if (sodium_init() < 0)
		return NULL;
	keys = sodium_malloc(sizeof(*keys));
	if (keys == NULL)
		return NULL;
	memset(keys, 0, sizeof(*keys));
	keys->references = 1;
	return keys;
}

// Add the next key, whose secret is already written.
static void key_adopt(struct seal_keys *keys) {
	struct seal_key *key = &keys->keys[keys->count++];
	uint8_t hash[SEAL_SECRET_BYTES];

	seal_hash(key->secret, "tocsin key id", NULL, 0, hash);
	memcpy(key->id, hash, sizeof(key->id));
}

static void keys_add_random(struct seal_keys *keys) {
	randombytes_buf(keys->keys[keys->count].secret, SEAL_SECRET_BYTES);
	key_adopt(keys);
}

int seal_keys_create_random(const struct seal_keys **ret_keys) {
	struct seal_keys *keys = keys_create();

	if (keys == NULL)
		return -ENOMEM;
	keys_add_random(keys);
	*ret_keys = keys;
	return 0;
}

int seal_keys_create_keyless(const char *cluster, const struct seal_keys **ret_keys) {
	struct seal_keys *keys = keys_create();

	if (keys == NULL)
		return -ENOMEM;
	keys->is_keyless = true;
	seal_hash(NULL, "tocsin keyless", cluster, strlen(cluster), keys->keys[0].secret);
	key_adopt(keys);
	*ret_keys = keys;
	return 0;
}

int seal_keys_create_step(
	const struct seal_keys *keys, enum seal_keys_step step, const struct seal_keys **ret_keys
) {
	struct seal_keys *next;

	if (step == SEAL_KEYS_ADD && keys->count == SEAL_KEYS_MAX)
		return -EEXIST;
	if (step != SEAL_KEYS_ADD && keys->count < SEAL_KEYS_MAX)
		return -ENOENT;
	next = keys_create();
	if (next == NULL)
		return -ENOMEM;
	next->keys[next->count++] = keys->keys[step == SEAL_KEYS_SWAP ? 1 : 0];
	if (step == SEAL_KEYS_SWAP)
		next->keys[next->count++] = keys->keys[0];
	if (step == SEAL_KEYS_ADD)
		keys_add_random(next);
	*ret_keys = next;
	return 0;
}

// Only the reference count of shared keys changes. It is not part of their value.
const struct seal_keys *seal_keys_get(const struct seal_keys *keys) {
	struct seal_keys *counted = (struct seal_keys *)keys;

	must(keys->references > 0 && keys->references < UINT32_MAX);
	counted->references++;
	return keys;
}

const struct seal_keys *seal_keys_put(const struct seal_keys *keys) {
	struct seal_keys *counted = (struct seal_keys *)keys;

	if (keys == NULL)
		return NULL;
	must(keys->references > 0);
	if (--counted->references == 0)
		sodium_free(counted); // wipes the memory
	return NULL;
}

bool seal_keys_is_keyless(const struct seal_keys *keys) {
	return keys->is_keyless;
}

uint32_t seal_keys_count(const struct seal_keys *keys) {
	return keys->count;
}

void seal_keys_id(
	const struct seal_keys *keys, uint32_t index, char text[static SEAL_KEY_ID_TEXT_BYTES]
) {
	must(index < keys->count);
	sodium_bin2hex(text, SEAL_KEY_ID_TEXT_BYTES, keys->keys[index].id, SEAL_KEY_ID_BYTES);
}

const struct seal_key *
seal_keys_find(const struct seal_keys *keys, const uint8_t id[static SEAL_KEY_ID_BYTES]) {
	for (uint32_t n = 0; n < keys->count; n++) {
		if (memcmp(keys->keys[n].id, id, SEAL_KEY_ID_BYTES) == 0)
			return &keys->keys[n];
	}
	return NULL;
}

void seal_keys_format(const struct seal_keys *keys, char text[static SEAL_KEYS_TEXT_BYTES]) {
	char secret[HEX_LENGTH + 1];
	char id[SEAL_KEY_ID_TEXT_BYTES];
	size_t used;

	used = (size_t)snprintf(
		text, SEAL_KEYS_TEXT_BYTES,
		"# Key of a Tocsin cluster. Every user who can read this file can join it.\n"
		"# The first key starts connections; all keys are accepted. To replace a\n"
		"# key, see tocsin keygen --help.\n"
	);
	for (uint32_t n = 0; n < keys->count; n++) {
		seal_keys_id(keys, n, id);
		sodium_bin2hex(secret, sizeof(secret), keys->keys[n].secret, SEAL_SECRET_BYTES);
		used += (size_t)snprintf(
			text + used, SEAL_KEYS_TEXT_BYTES - used, "# id %s\n" KEY_LINE_WORD " %s\n",
			id, secret
		);
		must(used < SEAL_KEYS_TEXT_BYTES);
	}
	sodium_memzero(secret, sizeof(secret));
}

// Text that is being parsed. A message names the wrong line but never quotes it, because it may be
// a key all the same.
struct reader {
	const char *at;
	size_t left;
	uint32_t line;
	char *detail;
};

__attribute__((format(printf, 2, 3))) static int
keys_refuse(struct reader *reader, const char *format, ...) {
	va_list args;
	int used = 0;

	if (reader->line > 0)
		used = snprintf(reader->detail, SEAL_KEYS_DETAIL_BYTES, "line %u: ", reader->line);
	va_start(args, format);
	vsnprintf(reader->detail + used, SEAL_KEYS_DETAIL_BYTES - (size_t)used, format, args);
	va_end(args);
	return -EINVAL;
}

// Return how many of the first bytes belong to `set`. A NUL belongs to no set.
static size_t bytes_span(const char *text, size_t size, const char *set) {
	size_t n = 0;

	while (n < size && text[n] != '\0' && strchr(set, text[n]) != NULL)
		n++;
	return n;
}

// Find the next line, without the blanks around it. Returns false at the end.
static bool reader_next_line(struct reader *reader, const char **ret_line, size_t *ret_size) {
	const char *line = reader->at;
	const char *newline;
	size_t size, blanks;

	if (reader->left == 0)
		return false;
	newline = memchr(line, '\n', reader->left);
	size = newline == NULL ? reader->left : (size_t)(newline - line);
	reader->at += size + (newline != NULL);
	reader->left -= size + (newline != NULL);
	reader->line++;
	blanks = bytes_span(line, size, BLANKS);
	line += blanks;
	size -= blanks;
	while (size > 0 && bytes_span(line + size - 1, 1, BLANKS) == 1)
		size--;
	*ret_line = line;
	*ret_size = size;
	return true;
}

static int
keys_parse_line(struct reader *reader, const char *line, size_t size, struct seal_keys *keys) {
	const struct seal_key *added = &keys->keys[keys->count];
	size_t word = strlen(KEY_LINE_WORD);
	size_t blanks;

	if (size < word || memcmp(line, KEY_LINE_WORD, word) != 0)
		return keys_refuse(
			reader, "neither a comment (#) nor a key (" KEY_LINE_WORD
				" and digits); remove this line"
		);
	blanks = bytes_span(line + word, size - word, BLANKS);
	line += word + blanks;
	size -= word + blanks;
	if (blanks == 0 || size != HEX_LENGTH || bytes_span(line, size, HEX_DIGITS) != size)
		return keys_refuse(
			reader,
			KEY_LINE_WORD " must be followed by a blank and exactly %zu hexadecimal "
				      "digits",
			HEX_LENGTH
		);
	if (keys->count == SEAL_KEYS_MAX)
		return keys_refuse(
			reader, "this is a third key; a key file has at most %d keys", SEAL_KEYS_MAX
		);
	sodium_hex2bin(
		keys->keys[keys->count].secret, SEAL_SECRET_BYTES, line, size, NULL, NULL, NULL
	);
	key_adopt(keys);
	if (sodium_is_zero(added->secret, sizeof(added->secret)))
		return keys_refuse(reader, "the key is all zeros; make a key with tocsin keygen");
	for (uint32_t n = 0; n + 1 < keys->count; n++) {
		if (sodium_memcmp(keys->keys[n].secret, added->secret, SEAL_SECRET_BYTES) == 0)
			return keys_refuse(
				reader, "this key is the same as the first key; the two must differ"
			);
	}
	return 0;
}

int seal_keys_parse(
	const char *text,
	size_t size,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES],
	const struct seal_keys **ret_keys
) {
	struct reader reader = {.at = text, .left = size, .detail = ret_detail};
	struct seal_keys *keys = keys_create();
	const char *line;
	size_t line_size;
	int err = 0;

	if (keys == NULL) {
		snprintf(ret_detail, SEAL_KEYS_DETAIL_BYTES, "out of memory");
		return -ENOMEM;
	}
	while (err == 0 && reader_next_line(&reader, &line, &line_size)) {
		if (line_size > 0 && line[0] != '#')
			err = keys_parse_line(&reader, line, line_size, keys);
	}
	if (err == 0 && keys->count == 0) {
		reader.line = 0;
		err = keys_refuse(
			&reader,
			"the file has no key, which is a line " KEY_LINE_WORD
			" and %zu hexadecimal "
			"digits; make a key with tocsin keygen",
			HEX_LENGTH
		);
	}
	if (err != 0) {
		seal_keys_put(keys);
		return err;
	}
	*ret_keys = keys;
	return 0;
}
