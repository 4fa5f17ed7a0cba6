// SPDX-License-Identifier: BSD-3-Clause
// Key files: checks who may have changed them, and writes them.

#include <lib/error.h>
#include <lib/file_trust.h>
#include <lib/scoped.h>
#include <lib/seal_secret.h>

#include <sodium.h>

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static_assert(SEAL_KEYS_DETAIL_BYTES == FILE_TRUST_DETAIL_BYTES, "texts of both are exchanged");

#define TEMPORARY_SUFFIX ".XXXXXX"

static const struct file_trust keys_trust = {0}; // only root and our own user may write

static int refuse_errno(char *detail, int err, const char *path, const char *what) {
	return file_trust_refuse(detail, err, path, ": cannot %s: %s", what, strerrordesc_np(-err));
}

// Report a failed open with the user id of this process.
static int refuse_open(char *detail, int err, const char *path) {
	return file_trust_refuse(
		detail, err, path, ": cannot open it as user %u: %s", geteuid(),
		strerrordesc_np(-err)
	);
}

// Open the file after checking that no other user can have exchanged it. The caller frees
// *ret_resolved.
static int keys_file_open(
	const char *path, char **ret_resolved, struct stat *ret_status, int *ret_fd, char *detail
) {
	scoped_mem char *resolved = realpath(path, NULL);
	scoped_fd int fd = -1;
	struct file_trust owner_trust = keys_trust;
	struct stat status;
	mode_t mode;
	int err;

	if (resolved == NULL)
		return refuse_open(detail, neg_errno(), path);
	err = file_trust_check_directories(resolved, &keys_trust, detail);
	if (err != 0)
		return err;
	// With these flags open() does not wait for a pipe, and does not follow a link that just
	// appeared.
	fd = open(resolved, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse_open(detail, neg_errno(), path);
	if (fstat(fd, &status) != 0)
		return refuse_errno(detail, neg_errno(), path, "check it");
	// Root's tools work on the key of an agent that runs as its own user.
	if (file_trust_is_agent(status.st_uid))
		owner_trust.user = status.st_uid;
	err = file_trust_check_owner(path, &status, &owner_trust, detail);
	if (err != 0)
		return err;
	mode = status.st_mode & ALLPERMS;
	if (mode != 0600 && mode != 0400)
		return file_trust_refuse(
			detail, -EPERM, path,
			": mode %04o; it must be 0600 or 0400: run chmod 0600", mode
		);
	if (status.st_size > SEAL_KEYS_FILE_BYTES_MAX)
		return file_trust_refuse(
			detail, -EFBIG, path, ": %lld bytes; a key file has at most %d",
			(long long)status.st_size, SEAL_KEYS_FILE_BYTES_MAX
		);
	*ret_status = status;
	*ret_resolved = scoped_release_mem(&resolved);
	*ret_fd = scoped_release_fd(&fd);
	return 0;
}

static int read_bounded(int fd, char *text, size_t capacity, size_t *ret_size) {
	size_t size = 0;

	while (size < capacity) {
		ssize_t got = read(fd, text + size, capacity - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return neg_errno();
		if (got == 0)
			break;
		size += (size_t)got;
	}
	*ret_size = size;
	return 0;
}

int seal_keys_load(
	const char *path,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES],
	const struct seal_keys **ret_keys
) {
	// one byte more shows whether the file grew meanwhile
	char text[SEAL_KEYS_FILE_BYTES_MAX + 1];
	char reason[SEAL_KEYS_DETAIL_BYTES];
	scoped_mem char *resolved = NULL;
	scoped_fd int fd = -1;
	struct stat status;
	size_t size;
	int err = keys_file_open(path, &resolved, &status, &fd, ret_detail);

	if (err != 0)
		return err;
	err = read_bounded(fd, text, sizeof(text), &size);
	if (err != 0) {
		refuse_errno(ret_detail, err, path, "read it");
	} else if (size > SEAL_KEYS_FILE_BYTES_MAX) {
		err = file_trust_refuse(
			ret_detail, -EFBIG, path, ": a key file has at most %d bytes",
			SEAL_KEYS_FILE_BYTES_MAX
		);
	} else {
		err = seal_keys_parse(text, size, reason, ret_keys);
		if (err != 0)
			file_trust_refuse(ret_detail, err, path, ": %s", reason);
	}
	sodium_memzero(text, sizeof(text));
	return err;
}

static int write_keys(int fd, const struct seal_keys *keys) {
	char text[SEAL_KEYS_TEXT_BYTES];
	size_t size, written = 0;
	int err = 0;

	seal_keys_format(keys, text);
	size = strlen(text);
	while (err == 0 && written < size) {
		ssize_t done = write(fd, text + written, size - written);

		if (done >= 0)
			written += (size_t)done;
		else if (errno != EINTR)
			err = neg_errno();
	}
	if (err == 0 && fsync(fd) != 0)
		err = neg_errno();
	sodium_memzero(text, sizeof(text));
	return err;
}

// A name is on the disk only when its directory is.
static int sync_directory(const char *resolved) {
	scoped_mem char *directory = strdup(resolved);
	scoped_fd int fd = -1;

	if (directory == NULL)
		return -ENOMEM;
	*(strrchr(directory, '/') + 1) = '\0';
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		return neg_errno();
	return 0;
}

// Resolve the directory of a file that need not exist, and append the file's name as it is.
static int resolve_new_path(const char *path, char **ret_resolved, char *detail) {
	scoped_mem char *copy = strdup(path);
	scoped_mem char *directory = NULL;
	const char *name = path;
	char *slash;

	if (copy == NULL)
		return refuse_errno(detail, -ENOMEM, path, "create it");
	slash = strrchr(copy, '/');
	if (slash != NULL) {
		name = path + (slash - copy) + 1;
		slash[slash == copy] = '\0';
	}
	if (name[0] == '\0')
		return file_trust_refuse(detail, -EINVAL, path, ": this is not a file name");
	directory = realpath(slash == NULL ? "." : copy, NULL);
	if (directory == NULL)
		return refuse_errno(detail, neg_errno(), path, "find its directory");
	if (asprintf(ret_resolved, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name) < 0)
		return refuse_errno(detail, -ENOMEM, path, "create it");
	return 0;
}

int seal_keys_write_new(
	const char *path,
	const struct seal_keys *keys,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES]
) {
	scoped_mem char *resolved = NULL;
	scoped_fd int fd = -1;
	int err = resolve_new_path(path, &resolved, ret_detail);

	if (err != 0)
		return err;
	err = file_trust_check_directories(resolved, &keys_trust, ret_detail);
	if (err != 0)
		return err;
	fd = open(resolved, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return refuse_errno(ret_detail, neg_errno(), path, "create it");
	err = fchmod(fd, 0600) == 0 ? write_keys(fd, keys) : neg_errno();
	if (err == 0)
		err = sync_directory(resolved);
	if (err == 0)
		return 0;
	unlink(resolved);
	return refuse_errno(ret_detail, err, path, "write it");
}

static int
file_replace(const char *resolved, const struct stat *status, const struct seal_keys *keys) {
	scoped_mem char *temporary = NULL;
	scoped_fd int fd = -1;
	int err;

	if (asprintf(&temporary, "%s" TEMPORARY_SUFFIX, resolved) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	// The new file has the owner and the mode of the file that it replaces.
	if (fchown(fd, status->st_uid, status->st_gid) != 0 ||
	    fchmod(fd, status->st_mode & ALLPERMS) != 0)
		err = neg_errno();
	else
		err = write_keys(fd, keys);
	if (err == 0 && rename(temporary, resolved) != 0)
		err = neg_errno();
	if (err != 0) {
		unlink(temporary);
		return err;
	}
	return sync_directory(resolved);
}

int seal_keys_rewrite(
	const char *path,
	const struct seal_keys *keys,
	char ret_detail[static SEAL_KEYS_DETAIL_BYTES]
) {
	scoped_mem char *resolved = NULL;
	scoped_fd int fd = -1;
	struct stat status;
	int err = keys_file_open(path, &resolved, &status, &fd, ret_detail);

	if (err != 0)
		return err;
	err = file_replace(resolved, &status, keys);
	return err == 0 ? 0 : refuse_errno(ret_detail, err, path, "replace it");
}
