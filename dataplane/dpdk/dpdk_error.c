// SPDX-License-Identifier: BSD-3-Clause
// Converts DPDK's error conventions to 0 or -errno.
#include <dataplane/dpdk.h>
#include <dataplane/foreign_error.h>
#include <lib/error.h>

#include <stddef.h>

// DPDK's counterpart of neg_errno(): a failure that set nothing must not read as success.
static int neg_rte_errno(void) {
	int err = rte_errno;

	return err > 0 ? -err : -EIO;
}

int dpdk_error_from_code(int code) {
	return code < 0 ? code : 0;
}

int dpdk_error_from_errno(int code) {
	return code < 0 ? neg_rte_errno() : 0;
}

int dpdk_error_from_object(const void *object) {
	return object != NULL ? 0 : neg_rte_errno();
}
