// SPDX-License-Identifier: BSD-3-Clause
// Users of this machine.
#pragma once

#include <sys/types.h>

// Find the id of a user. Returns 0, -ENOENT (there is no such user), -ERANGE (the entry exceeds
// 1 MiB), -ENOMEM, or the error of the user directory. Any thread.
int user_find_id(const char *name, uid_t *ret_user);
