// SPDX-License-Identifier: BSD-3-Clause
// The cluster's key: who holds it is a member, and members trust each other.
//
// A key file is text: empty lines, lines that begin with #, and one or two of
//
//	tocsin-key-1 <64 hexadecimal digits>
//
// The first key starts connections, either is accepted. That is how a key is replaced while the
// ring runs; after each step every agent reloads its file before the next step begins:
//
//	1. add   the new key behind the old one: everybody accepts it, nobody uses it yet
//	2. swap  the new key is first: connections start with it, the old one is still accepted
//	3. drop  the old key is gone; links that were proven with it are ended, one at a time, and
//	         made anew with the new one
//
// The keys are an immutable object in locked memory that is wiped at the end. It is counted, not
// copied: a reload makes a new one, and a handshake under way keeps the one it began with. One
// thread at a time, the control thread in the agent.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_KEYS_MAX 2
#define SEAL_KEY_ID_TEXT_BYTES 17 // 8 bytes in hexadecimal
#define SEAL_KEYS_FILE_BYTES_MAX 4096
#define SEAL_KEYS_TEXT_BYTES 1024 // of a file as seal_keys_format() writes it, with its NUL
#define SEAL_KEYS_DETAIL_BYTES 256

struct seal_keys;

// Reads a key file. On failure *ret_detail says in words what is wrong with which path and what is
// allowed; it never holds a byte of the file. Checked, as munge does:
//
//   - after every symbolic link is resolved, each directory from / on belongs to root or to the
//     caller's user, and nobody else may write into it, unless it is sticky;
//   - the file there is a regular one of the same owners, with mode 0600 or 0400, and at most
//     SEAL_KEYS_FILE_BYTES_MAX long.
//
// 0; -EPERM (one of these checks but the length), -EFBIG, -EINVAL (its text), -ENOMEM, or why it
// cannot be opened or read.
int seal_keys_load(
	const char *path,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES],
	const struct seal_keys **ret_keys
);
// The text of a key file. 0; -EINVAL with the detail; -ENOMEM.
int seal_keys_parse(
	const char *text,
	size_t size,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES],
	const struct seal_keys **ret_keys
);
// A fresh random key. 0 or -ENOMEM.
int seal_keys_create_random(const struct seal_keys **ret_keys);
// For a cluster without a key file: one key that follows from the cluster's name, so that agents
// who may only listen on loopback speak the same protocol. It keeps nobody out. 0 or -ENOMEM.
int seal_keys_create_keyless(const char *cluster, const struct seal_keys **ret_keys);

enum seal_keys_step {
	SEAL_KEYS_ADD,	// a fresh key behind the one there is
	SEAL_KEYS_SWAP, // the second becomes the first
	SEAL_KEYS_DROP, // the second is gone
};
// One step of a replacement, as a new object. 0; -EEXIST (ADD: there are two already), -ENOENT
// (SWAP, DROP: there is no second), -ENOMEM.
int seal_keys_create_step(
	const struct seal_keys *keys, enum seal_keys_step step, const struct seal_keys **ret_keys
);

const struct seal_keys *seal_keys_get(const struct seal_keys *keys);
// Takes NULL, returns NULL. The last reference wipes and frees.
const struct seal_keys *seal_keys_put(const struct seal_keys *keys);

bool seal_keys_is_keyless(const struct seal_keys *keys);
uint32_t seal_keys_count(const struct seal_keys *keys); // 1 .. SEAL_KEYS_MAX
// What names a key in logs and on the wire, and gives nothing of it away. index < count.
void seal_keys_id(
	const struct seal_keys *keys, uint32_t index, char text[static SEAL_KEY_ID_TEXT_BYTES]
);

// The text of a key file with these keys. The caller wipes it.
void seal_keys_format(const struct seal_keys *keys, char text[static SEAL_KEYS_TEXT_BYTES]);
// Writes a key file that must not exist yet, mode 0600, and waits for the disk. The directories are
// held to the rules of seal_keys_load(). 0; -EEXIST, -EPERM or another -errno, with the detail;
// nothing is left behind then.
int seal_keys_write_new(
	const char *path,
	const struct seal_keys *keys,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES]
);
// Replaces one that seal_keys_load() would take, in one step for whoever reads it; owner and mode
// stay, comments do not. 0 or -errno with the detail; the file is then as it was.
int seal_keys_rewrite(
	const char *path,
	const struct seal_keys *keys,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES]
);
