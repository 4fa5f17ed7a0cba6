// SPDX-License-Identifier: BSD-3-Clause
// Checks who could have changed a file, by the owners and modes of the file and its directories.
//
// Check the directories before the file in them. If both pass, only trusted users can exchange the
// file, so there is no race between the check and the use of the resolved path.
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FILE_TRUST_DETAIL_BYTES 256
#define FILE_TRUST_AGENT_USER "tocsin" // user of the agent in tocsind.service

// Root is always trusted, and the caller's effective user unless `root_only` is set.
struct file_trust {
	uid_t user;	 // trusted too; may be one of these two
	bool root_group; // members of the group root may write
	bool root_only;	 // nobody but root is trusted; a sticky directory is refused, too
};

// Write a sentence about a path to `detail`, of FILE_TRUST_DETAIL_BYTES. Returns err, so that a
// check can end with this call.
__attribute__((format(printf, 4, 5))) int
file_trust_refuse(char *detail, int err, const char *path, const char *format, ...);

// Static analysis does not follow a variadic call, and would assume that it may return 0.
#ifdef __clang_analyzer__
#define file_trust_refuse(detail, err, ...) \
	((void)file_trust_refuse(detail, err, __VA_ARGS__), (err))
#endif

// Check every directory above the last part of a resolved path (absolute, without links). Each must
// belong to a trusted user. Other users may write to it only if it is sticky and `root_only` is
// false. Returns 0, or -EPERM, -ENOMEM or the error of lstat() with an explanation.
int file_trust_check_directories(
	const char *resolved,
	const struct file_trust *trust,
	char ret_detail[static FILE_TRUST_DETAIL_BYTES]
);
// Check that a file is regular and belongs to a trusted user. Its mode is left to the caller.
// Returns 0, or -EPERM with an explanation.
int file_trust_check_owner(
	const char *path,
	const struct stat *status,
	const struct file_trust *trust,
	char ret_detail[static FILE_TRUST_DETAIL_BYTES]
);
// Return true if users who are not trusted may write to an object of this status.
bool file_trust_is_writable_by_others(const struct stat *status, const struct file_trust *trust);
// Return true if this process is root and the owner is FILE_TRUST_AGENT_USER: root's tools work on
// files of the agent. Looks up the user; any thread.
bool file_trust_is_agent(uid_t owner);
