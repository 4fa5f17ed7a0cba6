// SPDX-License-Identifier: BSD-3-Clause
// Error returns: a function that can fail returns 0 or -errno.
#pragma once

#include <errno.h>

// Return -errno of a failed call. A call that failed without setting errno must not look like
// success, so 0 becomes -EIO.
static inline int neg_errno(void) {
	int err = errno > 0 ? -errno : -EIO;

	// Static analysis does not track the sign and would assume that a failure may return 0.
	if (err >= 0)
		__builtin_unreachable();
	return err;
}
