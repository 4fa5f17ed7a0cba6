// SPDX-License-Identifier: BSD-3-Clause
// The one error channel: 0 or -errno.
#pragma once

#include <errno.h>

// Turns errno of a failed call into our return value. A callee that failed without setting
// errno must not read as success, so 0 becomes -EIO.
static inline int neg_errno(void) {
	int err = errno > 0 ? -errno : -EIO;

	// Static analysis does not follow a sign, and would take each failure for a possible 0.
	if (err >= 0)
		__builtin_unreachable();
	return err;
}
