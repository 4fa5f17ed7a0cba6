// SPDX-License-Identifier: BSD-3-Clause
// Sets up a program before exec(): its user, its standard input, and the check of its path. Runs in
// the single-threaded helper or its child; spawn_program_resolve() in any thread.
#include "loop/spawn_inside.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

// NOLINTBEGIN(concurrency-mt-unsafe): the process has one thread

int spawn_become_user(const char *name) {
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	// Several errnos of getpwnam() mean that the name is unknown. All other values mean that
	// the user directory failed, which may know the name.
	if (user == NULL) {
		bool unknown = errno == 0 || errno == ENOENT || errno == ESRCH || errno == EBADF ||
			       errno == EPERM;

		return unknown ? SPAWN_NO_USER : -errno;
	}
	if (user->pw_uid == geteuid() && user->pw_uid == getuid())
		return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 ? 0
										     : neg_errno();
	// Refuse to start a program that the helper could not kill.
	if (prctl(PR_CAPBSET_READ, CAP_KILL) != 1)
		return -EPERM;
	if (initgroups(user->pw_name, user->pw_gid) != 0 ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
		return neg_errno();
	// The kernel clears ambient capabilities only on a change from root. An agent of another
	// user may hold some for this change, such as CAP_SETUID. Its programs must not inherit
	// them.
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return neg_errno();
	if (setenv("HOME", user->pw_dir, 1) != 0 || setenv("USER", user->pw_name, 1) != 0 ||
	    setenv("LOGNAME", user->pw_name, 1) != 0)
		return neg_errno();
	return 0;
}

// NOLINTEND(concurrency-mt-unsafe)

int spawn_program_resolve(
	const char *path,
	uid_t user,
	char ret_detail[static FILE_TRUST_DETAIL_BYTES],
	char **ret_resolved
) {
	const struct file_trust trust = {.user = user, .root_group = true};
	scoped_mem char *resolved = realpath(path, NULL);
	struct stat status;
	int err;

	if (resolved == NULL || lstat(resolved, &status) != 0) {
		err = neg_errno();
		snprintf(ret_detail, FILE_TRUST_DETAIL_BYTES, "%s", strerrordesc_np(-err));
		return err;
	}
	err = file_trust_check_directories(resolved, &trust, ret_detail);
	if (err == 0)
		err = file_trust_check_owner(resolved, &status, &trust, ret_detail);
	if (err == 0 && file_trust_is_writable_by_others(&status, &trust))
		err = file_trust_refuse(
			ret_detail, -EPERM, resolved,
			": other users can write to this program (mode %04o): run chmod go-w",
			status.st_mode & ALLPERMS
		);
	if (err != 0)
		return err == -EPERM ? SPAWN_REFUSED : err;
	*ret_resolved = scoped_release_mem(&resolved);
	return 0;
}

// A file in memory instead of a pipe: one write stores all bytes, even if the program never reads
// them.
int spawn_input_open(const void *bytes, size_t size, int *ret_fd) {
	scoped_fd int fd = memfd_create("tocsin-input", MFD_CLOEXEC);

	if (fd < 0)
		return neg_errno();
	if (write(fd, bytes, size) != (ssize_t)size)
		return -EIO;
	if (lseek(fd, 0, SEEK_SET) != 0)
		return neg_errno();
	*ret_fd = scoped_release_fd(&fd);
	return 0;
}
