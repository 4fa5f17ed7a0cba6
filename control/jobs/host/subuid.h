// SPDX-License-Identifier: BSD-3-Clause
// Ranges of subordinate uids, as in /etc/subuid: NAME:FIRST:COUNT. All uids of one owner share one
// quota, because one person controls them all.
//
// No user database is read, so the uid behind a name is unknown. The ranges of a name share a quota
// of their own. If the line has a number instead of a name, the ranges share that user's quota.
#pragma once

#include <control/jobhost.h>

#include <sys/types.h>

// Return the uid whose quota counts for `uid`: that of its range, or itself. `subuids` may be NULL.
uid_t subuid_owner(const struct subuids *subuids, uid_t uid);
