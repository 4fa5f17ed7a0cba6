// SPDX-License-Identifier: BSD-3-Clause
// Tokens: their text, their files, and the secrets of an end.
#include "run/token.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE "/etc/tocsin/tocsin.key"
#define RANDOM_BYTES 16
#define PATH_BYTES 512
#define PLACES_COUNT 3
#define LETTERS                                                \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789-"

static const char *environment_variable(const char *name) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it meanwhile
	const char *value = secure_getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

void token_wipe(char (*token)[TOKEN_BYTES]) {
	sodium_memzero(*token, sizeof(*token));
}

int token_make(char ret_token[static TOKEN_BYTES], struct lab_why *why) {
	uint8_t random[RANDOM_BYTES];

	if (proof_init() != 0)
		return lab_fail(why, -EIO, "no random numbers for a token");
	randombytes_buf(random, sizeof(random));
	sodium_bin2hex(ret_token, TOKEN_BYTES, random, sizeof(random));
	sodium_memzero(random, sizeof(random));
	return 0;
}

int token_check(const char *token, const char *source, struct lab_why *why) {
	size_t length = strlen(token);

	if (length >= TOKEN_LENGTH_MIN && length <= TOKEN_LENGTH_MAX &&
	    strspn(token, LETTERS) == length)
		return 0;
	return lab_fail(
		why, -EINVAL,
		"%s has no token, which is %d to %d letters, digits or -; a server prints one, or "
		"take /proc/sys/kernel/random/uuid",
		source, TOKEN_LENGTH_MIN, TOKEN_LENGTH_MAX
	);
}

int token_file_read(const char *path, char ret_token[static TOKEN_BYTES], struct lab_why *why) {
	// O_NONBLOCK: a pipe must not block
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[TOKEN_BYTES + 1];
	struct stat status;
	ssize_t length;
	int err;

	if (fd < 0 || fstat(fd, &status) != 0)
		return lab_fail(why, neg_errno(), "%s: %s", path, strerrordesc_np(errno));
	if (!S_ISREG(status.st_mode) || (status.st_uid != geteuid() && status.st_uid != 0))
		return lab_fail(
			why, -EPERM, "%s is not a regular file of user %u or of root", path,
			geteuid()
		);
	if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return lab_fail(
			why, -EPERM, "%s: mode %04o lets other users in: run chmod 0600", path,
			status.st_mode & ALLPERMS
		);
	length = read(fd, text, sizeof(text) - 1);
	if (length < 0)
		return lab_fail(why, neg_errno(), "%s: %s", path, strerrordesc_np(errno));
	text[length] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	err = token_check(text, path, why);
	if (err == 0)
		memcpy(ret_token, text, strlen(text) + 1);
	sodium_memzero(text, sizeof(text));
	return err;
}

int token_file_write(const char *path, const char *token, struct lab_why *why) {
	char partial[PATH_BYTES];
	scoped_fd int fd = -1;
	int err = 0;

	if (snprintf(partial, sizeof(partial), "%s.%d", path, getpid()) >= (int)sizeof(partial))
		return lab_fail(why, -ENAMETOOLONG, "%s: the path is too long", path);
	// A client reads the file as soon as it exists, so it is written atomically.
	(void)unlink(partial);
	fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return lab_fail(why, neg_errno(), "%s: %s", partial, strerrordesc_np(errno));
	if (dprintf(fd, "%s\n", token) < 0 || rename(partial, path) != 0)
		err = neg_errno();
	if (err == 0)
		return 0;
	unlink(partial);
	return lab_fail(why, err, "%s: %s", path, strerrordesc_np(-err));
}

int token_file_replace(const char *path, const char *token, struct lab_why *why) {
	scoped_token char earlier[TOKEN_BYTES] = "";
	struct stat status;

	// The write explains any other error of lstat().
	if (lstat(path, &status) == 0) {
		if (!S_ISREG(status.st_mode))
			return lab_fail(why, -EEXIST, "%s is not a regular file", path);
		if (status.st_size > 0 && token_file_read(path, earlier, why) != 0)
			return -EEXIST;
	}
	return token_file_write(path, token, why);
}

// Format candidate directory number `place`; lower numbers are tried first. Returns false if there
// is none. XDG_RUNTIME_DIR of another user, which sudo may keep, is skipped: that user could
// replace the files in it.
static bool place_format(int place, char text[static PATH_BYTES]) {
	const char *runtime = environment_variable("XDG_RUNTIME_DIR");
	struct stat status;
	int length;

	if (place == 0 && (runtime == NULL || runtime[0] != '/' || stat(runtime, &status) != 0 ||
			   status.st_uid != geteuid()))
		return false;
	if (place == 0)
		length = snprintf(text, PATH_BYTES, "%s/tocsin-perf", runtime);
	else if (place == 1)
		length = snprintf(text, PATH_BYTES, "/run/user/%u/tocsin-perf", geteuid());
	else
		length = snprintf(text, PATH_BYTES, "/tmp/tocsin-%u", geteuid());
	return length < PATH_BYTES - 32; // room for the name of a file
}

// Return true if only this user can have written into the directory.
static bool place_is_private(const char *path) {
	struct stat status;

	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static bool server_is_on_loopback(const struct sock_addr *server) {
	static const uint8_t any[sizeof(server->address)];

	return sock_addr_is_loopback(server) || memcmp(server->address, any, sizeof(any)) == 0;
}

static void place_add_name(char path[static PATH_BYTES], uint16_t port) {
	size_t used = strlen(path);

	snprintf(path + used, PATH_BYTES - used, "/perf-%u.token", port);
}

int token_publish(const struct sock_addr *server, const char *token, struct lab_why *why) {
	struct lab_why last = {.text = ""};
	char path[PATH_BYTES];

	if (!server_is_on_loopback(server))
		return 0;
	for (int place = 0; place < PLACES_COUNT; place++) {
		last.text[0] = '\0';
		if (!place_format(place, path))
			continue;
		if (mkdir(path, 0700) != 0 && errno != EEXIST) {
			(void)lab_fail(&last, -EIO, "%s: %s", path, strerrordesc_np(errno));
			continue;
		}
		if (!place_is_private(path)) {
			(void)lab_fail(
				&last, -EPERM, "%s is no directory of user %u with mode 0700", path,
				geteuid()
			);
			continue;
		}
		place_add_name(path, server->port);
		if (token_file_write(path, token, &last) == 0)
			return 0;
	}
	return lab_fail(why, -EIO, "%s", last.text);
}

// Read the published token of a port. Returns false if there is none that can be trusted.
static bool published_read(
	int place, uint16_t port, char path[static PATH_BYTES], char ret_token[static TOKEN_BYTES]
) {
	struct lab_why unheard = {.text = ""};

	if (!place_format(place, path) || !place_is_private(path))
		return false;
	place_add_name(path, port);
	return token_file_read(path, ret_token, &unheard) == 0;
}

void token_unpublish(const struct sock_addr *server, const char *token) {
	scoped_token char published[TOKEN_BYTES] = "";
	char path[PATH_BYTES];

	if (!server_is_on_loopback(server))
		return;
	for (int place = 0; place < PLACES_COUNT; place++) {
		if (published_read(place, server->port, path, published) &&
		    strcmp(published, token) == 0)
			unlink(path);
	}
}

// Add the cluster's keys. The default file is left out if it cannot be used, since most users may
// not read it.
static int
keys_add(const struct lab_access *access, struct proof_secrets *secrets, struct lab_why *why) {
	const char *path = access->key_file != NULL ? access->key_file : KEY_FILE;
	char detail[SEAL_KEYS_DETAIL_BYTES] = "";
	const struct seal_keys *keys;
	int err;

	if (access->key_file == NULL && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		return 0;
	err = seal_keys_load(path, detail, &keys);
	if (err != 0)
		return access->key_file != NULL ? lab_fail(why, err, "--key-file %s", detail) : 0;
	for (uint32_t n = 0; n < keys->count; n++)
		proof_add_key(secrets, &keys->keys[n]);
	seal_keys_put(keys);
	return 0;
}

// Copy the token of TOCSIN_PERF_TOKEN; "" if it is not set. Returns 0 or -EINVAL.
static int environment_read(char ret_token[static TOKEN_BYTES], struct lab_why *why) {
	const char *given = environment_variable(TOKEN_ENVIRONMENT);

	ret_token[0] = '\0';
	if (given == NULL)
		return 0;
	if (token_check(given, TOKEN_ENVIRONMENT, why) != 0)
		return -EINVAL;
	snprintf(ret_token, TOKEN_BYTES, "%s", given);
	return 0;
}

int access_begin_server(
	const struct lab_access *access,
	struct proof_secrets *ret_secrets,
	char ret_token[static TOKEN_BYTES],
	bool *ret_is_new,
	struct lab_why *why
) {
	scoped_secrets struct proof_secrets secrets = {.open = access->open};
	scoped_token char token[TOKEN_BYTES] = "";
	int err = proof_init() == 0 ? 0 : lab_fail(why, -EIO, "no random numbers");
	bool is_new;

	if (err == 0)
		err = environment_read(token, why);
	is_new = err == 0 && token[0] == '\0';
	if (is_new)
		err = token_make(token, why);
	if (err != 0)
		return err;
	proof_add_token(&secrets, token);
	err = keys_add(access, &secrets, why);
	if (err != 0)
		return err;
	*ret_secrets = secrets;
	memcpy(ret_token, token, sizeof(token));
	*ret_is_new = is_new;
	return 0;
}

int access_begin_client(
	const struct lab_access *access,
	const struct sock_addr *server,
	struct proof_secrets *ret_secrets,
	struct lab_why *why
) {
	scoped_secrets struct proof_secrets secrets = {.token_required = true};
	scoped_token char token[TOKEN_BYTES] = "";
	char path[PATH_BYTES];
	int err = proof_init() == 0 ? 0 : lab_fail(why, -EIO, "no random numbers");

	if (err == 0 && access->token_file != NULL) {
		snprintf(secrets.source, sizeof(secrets.source), "%s", access->token_file);
		err = token_file_read(access->token_file, token, why);
	} else if (err == 0) {
		snprintf(secrets.source, sizeof(secrets.source), TOKEN_ENVIRONMENT);
		err = environment_read(token, why);
	}
	if (err != 0)
		return err;
	if (token[0] == '\0') {
		// A key that the user names must be proven, too.
		secrets.token_required = access->key_file != NULL;
		secrets.source[0] = '\0';
	}
	for (int place = 0;
	     place < PLACES_COUNT && sock_addr_is_loopback(server) && token[0] == '\0'; place++) {
		if (published_read(place, server->port, path, token))
			snprintf(
				secrets.source, sizeof(secrets.source), "%.*s",
				(int)sizeof(secrets.source) - 1, path
			);
	}
	if (token[0] != '\0')
		proof_add_token(&secrets, token);
	err = keys_add(access, &secrets, why);
	if (err == 0)
		*ret_secrets = secrets;
	return err;
}

int access_begin_lead(
	const struct lab_access *access,
	struct proof_secrets *ret_secrets,
	char ret_token[static TOKEN_BYTES],
	struct lab_why *why
) {
	scoped_secrets struct proof_secrets secrets = {.count = 0};
	scoped_token char token[TOKEN_BYTES] = "";
	bool is_new;
	int err;

	if (access->token_file == NULL)
		return access_begin_server(access, ret_secrets, ret_token, &is_new, why);
	err = proof_init() == 0 ? 0 : lab_fail(why, -EIO, "no random numbers");
	if (err == 0)
		err = token_file_read(access->token_file, token, why);
	if (err != 0)
		return err;
	proof_add_token(&secrets, token);
	err = keys_add(access, &secrets, why);
	if (err != 0)
		return err;
	*ret_secrets = secrets;
	memcpy(ret_token, token, sizeof(token));
	return 0;
}
