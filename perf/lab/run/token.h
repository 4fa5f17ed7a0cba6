// SPDX-License-Identifier: BSD-3-Clause
// Secrets of an end: its token, from where the user put it, and the cluster's key.
//
// A server makes a random token for its life, unless TOCSIN_PERF_TOKEN has one. A client takes it
// from --token-file or from TOCSIN_PERF_TOKEN. A client of a server on this machine also reads the
// file of the server's port in the runtime directory of its user. Where both ends can read the
// cluster's key, that is enough.
#pragma once

#include "run/proof.h"

#define TOKEN_ENVIRONMENT "TOCSIN_PERF_TOKEN"
#define TOKEN_LENGTH_MIN 32
#define TOKEN_LENGTH_MAX 128
#define TOKEN_BYTES (TOKEN_LENGTH_MAX + 1)

// Options of the user about access.
struct lab_access {
	const char *token_file; // server: to write; client and processes of a mesh: to read
	const char *key_file;	// NULL: the default, if it can be read
	bool open;
};

// Wipe a token; `scoped_token` does so on every exit from the block of a local.
void token_wipe(char (*token)[TOKEN_BYTES]);
#define scoped_token __attribute__((cleanup(token_wipe)))

// Make a random token. Returns 0 or -EIO.
int token_make(char ret_token[static TOKEN_BYTES], struct lab_why *why);
// Check the text of a token: letters, digits, "-". Returns 0 or -EINVAL with the reason in `why`,
// which names the source and does not quote the text.
int token_check(const char *token, const char *source, struct lab_why *why);
// Read a file that contains a token in its first line. It must belong to this user or to root, and
// other users must not be able to read it. Returns 0, or -errno with the reason in `why`.
int token_file_read(const char *path, char ret_token[static TOKEN_BYTES], struct lab_why *why);
// Write a file with mode 0600; an existing file is replaced. Returns 0, or -errno with the reason
// in `why`.
int token_file_write(const char *path, const char *token, struct lab_why *why);
// Write the file that a user named: only an empty file, or an earlier token, is replaced. A wrong
// path must not cost a key file, or a device such as /dev/null. Returns as token_file_write().
int token_file_replace(const char *path, const char *token, struct lab_why *why);

// Write the token of a server to the runtime directory of this user, by its port. Does nothing if
// the server is not reachable over loopback. Returns 0, or -errno with the reason in `why`; then
// nothing was written.
int token_publish(const struct sock_addr *server, const char *token, struct lab_why *why);
// Remove the file, if it contains this token.
void token_unpublish(const struct sock_addr *server, const char *token);

// Collect the secrets of a server: TOCSIN_PERF_TOKEN, else a new token, and the cluster's keys.
// Returns 0, or -errno with the reason in `why`.
int access_begin_server(
	const struct lab_access *access,
	struct proof_secrets *ret_secrets,
	char ret_token[static TOKEN_BYTES],
	bool *ret_is_new,
	struct lab_why *why
);
// Collect the secrets of a client of this server: --token-file, else TOCSIN_PERF_TOKEN, else the
// file in the runtime directory; and the cluster's keys. It is no failure if there are none.
// Returns 0, or -errno with the reason in `why`.
int access_begin_client(
	const struct lab_access *access,
	const struct sock_addr *server,
	struct proof_secrets *ret_secrets,
	struct lab_why *why
);
// Collect the secrets of process 0 of a mesh. Like access_begin_server(), but the token is read
// from --token-file.
int access_begin_lead(
	const struct lab_access *access,
	struct proof_secrets *ret_secrets,
	char ret_token[static TOKEN_BYTES],
	struct lab_why *why
);
