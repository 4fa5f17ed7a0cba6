// SPDX-License-Identifier: BSD-3-Clause
// Converts libibverbs' error conventions to 0 or -errno.
#include <dataplane/foreign_error.h>
#include <lib/error.h>

#include <stddef.h>

int verbs_error_from_object(const void *object) {
	return object != NULL ? 0 : neg_errno();
}

int verbs_error_from_code(int code) {
	if (code == -1)
		return neg_errno();
	return code > 0 ? -code : code;
}
