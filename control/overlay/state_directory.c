// SPDX-License-Identifier: BSD-3-Clause
// The state directory itself: created, checked and locked by one agent.
#include "overlay/state_file.h"

#include <lib/error.h>
#include <lib/log.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int state_detail(
	char detail[static STATE_DETAIL_BYTES], const char *what, const char *path, int err
) {
	snprintf(detail, STATE_DETAIL_BYTES, "%s %s: %s", what, path, strerrordesc_np(-err));
	return err;
}

// *ret_lock stays unchanged on a read-only file system: no other agent writes there either.
static int directory_lock(int directory, const char *path, char *detail, int *ret_lock) {
	scoped_fd int lock = -1;
	char text[32] = "?";
	char pid[32];

	lock = openat(directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0 && errno == EROFS) {
		log_event(
			LOG_LEVEL_WARN, "state_directory_read_only", log_str("path", path),
			log_str("effect", "this run stores no state")
		);
		return 0;
	}
	if (lock < 0)
		return state_detail(detail, "cannot create the lock file in", path, neg_errno());
	if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
		int err = errno == EWOULDBLOCK ? -EBUSY : neg_errno();

		state_file_read(directory, "lock", text, sizeof(text));
		text[strcspn(text, "\n")] = '\0';
		snprintf(
			detail, STATE_DETAIL_BYTES,
			"the state directory %s is used by another agent, process %s", path, text
		);
		return err;
	}
	snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(lock, 0) != 0 || pwrite(lock, pid, strlen(pid), 0) < 0)
		log_event(LOG_LEVEL_WARN, "lock_write_failed", log_errno("error", errno));
	*ret_lock = scoped_release_fd(&lock);
	return 0;
}

const char *state_directory_problem(const struct stat *info) {
	if (info->st_uid != geteuid() && info->st_uid != 0)
		return "it belongs to another user";
	if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "other users can write to it; set mode 0755 or stricter";
	return NULL;
}

int state_directory_open(
	const char *path,
	char ret_detail[static STATE_DETAIL_BYTES],
	int *ret_directory,
	int *ret_lock
) {
	scoped_fd int directory = -1;
	const char *problem;
	struct stat info;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return state_detail(
			ret_detail, "cannot create the state directory", path, neg_errno()
		);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || fstat(directory, &info) != 0)
		return state_detail(
			ret_detail, "cannot open the state directory", path, neg_errno()
		);
	problem = state_directory_problem(&info);
	if (problem != NULL) {
		snprintf(
			ret_detail, STATE_DETAIL_BYTES, "the state directory %s: %s", path, problem
		);
		return -EPERM;
	}
	*ret_directory = scoped_release_fd(&directory);
	return directory_lock(*ret_directory, path, ret_detail, ret_lock);
}
