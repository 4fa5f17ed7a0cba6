// SPDX-License-Identifier: BSD-3-Clause
// What a program gets before it begins: its user, and its standard input. In the helper, which has
// one thread.
#include "base/spawn_inside.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

// NOLINTBEGIN(concurrency-mt-unsafe): the process has one thread

static int set_environment(const struct passwd *user) {
	if (setenv("HOME", user->pw_dir, 1) != 0 || setenv("USER", user->pw_name, 1) != 0 ||
	    setenv("LOGNAME", user->pw_name, 1) != 0)
		return neg_errno();
	return 0;
}

// By the errno that was left: several say that a name is unknown. What else it says is of a
// directory that did not answer, which knows the name perhaps.
static int why_no_user(int errnum) {
	bool unknown = errnum == 0 || errnum == ENOENT || errnum == ESRCH || errnum == EBADF ||
		       errnum == EPERM;

	return unknown ? SPAWN_NO_USER : -errnum;
}

int spawn_become_user(const char *name) {
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	if (user == NULL)
		return why_no_user(errno);
	if (user->pw_uid == geteuid() && user->pw_uid == getuid())
		return 0;
	// Whom the helper could not end is not started.
	if (prctl(PR_CAPBSET_READ, CAP_KILL) != 1)
		return -EPERM;
	if (initgroups(user->pw_name, user->pw_gid) != 0 ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
		return neg_errno();
	// The kernel takes them from who was root alone: an agent that is not may have been given
	// what this took, and its programs would have it from there on.
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return neg_errno();
	return set_environment(user);
}

// NOLINTEND(concurrency-mt-unsafe)

// A file in memory, not a pipe: it takes all at once, whatever the program reads of it.
int spawn_input_open(const void *bytes, size_t size, int *ret_fd) {
	scoped_fd int fd = memfd_create("tocsin-input", MFD_CLOEXEC);

	if (fd < 0)
		return neg_errno();
	if (write(fd, bytes, size) != (ssize_t)size)
		return -EIO;
	if (lseek(fd, 0, SEEK_SET) != 0)
		return neg_errno();
	*ret_fd = scoped_take_fd(&fd);
	return 0;
}
