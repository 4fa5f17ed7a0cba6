// SPDX-License-Identifier: BSD-3-Clause
// The cluster's key. Every holder of the key is a member, and members trust each other.
//
// A key file is text: empty lines, comment lines that begin with #, and one or two lines of
//
//	tocsin-key-1 <64 hexadecimal digits>
//
// The first key starts connections; both are accepted. So a key can be replaced while the ring
// runs. Every agent must reload its file after each step, before the next step begins:
//
//	1. add   the new key after the old one: all agents accept it, none uses it yet
//	2. swap  the new key is first: connections start with it, the old key is still accepted
//	3. drop  the old key is removed; links proven with it are ended one at a time, and
//	         reconnect with the new key
//
// The keys are an immutable object in locked memory, which is wiped at the end. The object is
// reference-counted, not copied. A reload creates a new object, and a running handshake keeps the
// object it began with. Only one thread may use keys at a time: in the agent, the control thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_KEYS_MAX 2
#define SEAL_KEY_ID_TEXT_BYTES 17 // 8 bytes in hexadecimal, with NUL
#define SEAL_KEYS_FILE_BYTES_MAX 4096
#define SEAL_KEYS_TEXT_BYTES 1024 // size of a text that seal_keys_format() writes, with its NUL
#define SEAL_KEYS_DETAIL_BYTES 256

struct seal_keys;

// Read a key file. On failure, ret_detail explains what is wrong with which path, and what is
// allowed. It never contains a byte of the file. The checks are those of munge:
//
// - Symbolic links are resolved first. Each directory from / on must belong to root or the caller's
// user. No other user may write into it, unless it is sticky.
// - The file must be a regular file of the same owners with mode 0600 or 0400. Its maximum length
// is SEAL_KEYS_FILE_BYTES_MAX.
//
// Returns 0, -EPERM (a check failed), -EFBIG (too long), -EINVAL (malformed text), -ENOMEM, or the
// error of open or read.
int seal_keys_load(
	const char *path,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES],
	const struct seal_keys **ret_keys
);
// Parse the text of a key file. Returns 0, -EINVAL with an explanation, or -ENOMEM.
int seal_keys_parse(
	const char *text,
	size_t size,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES],
	const struct seal_keys **ret_keys
);
// Create a random key. Returns 0 or -ENOMEM.
int seal_keys_create_random(const struct seal_keys **ret_keys);
// Create the key of a cluster without a key file: it is derived from the cluster's name. So agents
// that may only listen on loopback use the same protocol. This key protects against nothing.
// Returns 0 or -ENOMEM.
int seal_keys_create_keyless(const char *cluster, const struct seal_keys **ret_keys);

enum seal_keys_step {
	SEAL_KEYS_ADD,	// append a new key
	SEAL_KEYS_SWAP, // make the second key the first
	SEAL_KEYS_DROP, // remove the second key
};
// Create the keys that follow from one step of a key replacement. Returns 0, -EEXIST (ADD: there
// are already two keys), -ENOENT (SWAP, DROP: there is no second key) or -ENOMEM.
int seal_keys_create_step(
	const struct seal_keys *keys, enum seal_keys_step step, const struct seal_keys **ret_keys
);

const struct seal_keys *seal_keys_get(const struct seal_keys *keys);
// Release a reference; NULL is allowed. The last release wipes and frees the keys. Returns NULL.
const struct seal_keys *seal_keys_put(const struct seal_keys *keys);

bool seal_keys_is_keyless(const struct seal_keys *keys);
uint32_t seal_keys_count(const struct seal_keys *keys); // 1 .. SEAL_KEYS_MAX
// Write the public id of a key, for logs and the wire. The id reveals nothing about the key.
// `index` must be less than the count.
void seal_keys_id(
	const struct seal_keys *keys, uint32_t index, char text[static SEAL_KEY_ID_TEXT_BYTES]
);

// Write the text of a key file with these keys. The caller must wipe the text.
void seal_keys_format(const struct seal_keys *keys, char text[static SEAL_KEYS_TEXT_BYTES]);
// Write a new key file with mode 0600, and wait until it is on disk. The directories must satisfy
// the rules of seal_keys_load(). Returns 0, or -EEXIST, -EPERM or another -errno with an
// explanation; on error no file remains.
int seal_keys_write_new(
	const char *path,
	const struct seal_keys *keys,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES]
);
// Replace a key file that satisfies seal_keys_load(). Readers see either the old or the new file.
// Owner and mode are kept, comments are lost. Returns 0, or -errno with an explanation; on error
// the file is unchanged.
int seal_keys_rewrite(
	const char *path,
	const struct seal_keys *keys,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES]
);
