// SPDX-License-Identifier: BSD-3-Clause
// Owners and modes of a file and its directories. Reads the file system only.
#include <lib/error.h>
#include <lib/escape.h>
#include <lib/file_trust.h>
#include <lib/scoped.h>
#include <lib/user.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUOTED_BYTES 100

int(file_trust_refuse)(char *detail, int err, const char *path, const char *format, ...) {
	va_list args;
	size_t used;

	escape_quote(path, strlen(path), detail, QUOTED_BYTES);
	used = strlen(detail);
	va_start(args, format);
	vsnprintf(detail + used, FILE_TRUST_DETAIL_BYTES - used, format, args);
	va_end(args);
	return err;
}

static bool user_is_trusted(uid_t user, const struct file_trust *trust) {
	return user == 0 || (!trust->root_only && (user == geteuid() || user == trust->user));
}

// Refuse an object of a user who is not trusted.
static int owner_refuse(
	char *detail,
	const char *path,
	const char *what,
	uid_t owner,
	const struct file_trust *trust
) {
	if (trust->root_only)
		return file_trust_refuse(
			detail, -EPERM, path, ": %s to user %u; it must belong to root", what, owner
		);
	return file_trust_refuse(
		detail, -EPERM, path, ": %s to user %u; it must belong to root or user %u", what,
		owner, geteuid()
	);
}

bool file_trust_is_writable_by_others(const struct stat *status, const struct file_trust *trust) {
	bool group_is_trusted = trust->root_group && status->st_gid == 0;

	return (status->st_mode & S_IWOTH) != 0 ||
	       ((status->st_mode & S_IWGRP) != 0 && !group_is_trusted);
}

static int check_directory(const char *path, const struct file_trust *trust, char *detail) {
	struct stat status;
	int err;

	if (lstat(path, &status) != 0) {
		err = neg_errno();
		return file_trust_refuse(
			detail, err, path, ": cannot check this directory: %s",
			strerrordesc_np(-err)
		);
	}
	if (!user_is_trusted(status.st_uid, trust))
		return owner_refuse(detail, path, "this directory belongs", status.st_uid, trust);
	if (file_trust_is_writable_by_others(&status, trust) &&
	    (trust->root_only || (status.st_mode & S_ISVTX) == 0))
		return file_trust_refuse(
			detail, -EPERM, path,
			": other users can write to this directory (mode %04o): run chmod go-w",
			status.st_mode & ALLPERMS
		);
	return 0;
}

int file_trust_check_directories(
	const char *resolved,
	const struct file_trust *trust,
	char ret_detail[static FILE_TRUST_DETAIL_BYTES]
) {
	scoped_mem char *path = strdup(resolved);
	int err;

	if (path == NULL)
		return file_trust_refuse(
			ret_detail, -ENOMEM, resolved, ": cannot check it: out of memory"
		);
	err = check_directory("/", trust, ret_detail);
	for (char *slash = strchr(path + 1, '/'); err == 0 && slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		err = check_directory(path, trust, ret_detail);
		*slash = '/';
	}
	return err;
}

int file_trust_check_owner(
	const char *path,
	const struct stat *status,
	const struct file_trust *trust,
	char ret_detail[static FILE_TRUST_DETAIL_BYTES]
) {
	if (!S_ISREG(status->st_mode))
		return file_trust_refuse(ret_detail, -EPERM, path, ": not a regular file");
	if (!user_is_trusted(status->st_uid, trust))
		return owner_refuse(ret_detail, path, "belongs", status->st_uid, trust);
	return 0;
}

bool file_trust_is_agent(uid_t owner) {
	uid_t user;

	return geteuid() == 0 && user_find_id(FILE_TRUST_AGENT_USER, &user) == 0 && user == owner;
}
