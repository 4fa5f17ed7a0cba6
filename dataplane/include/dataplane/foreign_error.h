// SPDX-License-Identifier: BSD-3-Clause
// Converts the error conventions of libibverbs and DPDK to 0 or -errno.
//
// Each library has three conventions, documented per call in the manual pages only. A wrapper
// selects the convention of its call by the function it uses here. A failure without a reason
// becomes -EIO, never 0. Any thread may call, directly after the foreign call: errno and rte_errno
// are per thread and soon overwritten.
#pragma once

// For verbs calls that return an object, or NULL with errno (ibv_open_device, ibv_reg_mr).
int verbs_error_from_object(const void *object);

// For verbs calls that return 0 or a positive errno (ibv_modify_qp, ibv_dealloc_pd). Providers that
// return -errno, or -1 with errno, also exist and are handled. -1 becomes EPERM only if errno says
// nothing else.
int verbs_error_from_code(int code);

// For DPDK calls that return 0 (or a count) or -errno (rte_eth_dev_configure).
int dpdk_error_from_code(int code);

// For DPDK calls that return -1 and set rte_errno (rte_eal_init).
int dpdk_error_from_errno(int code);

// For DPDK calls that return an object, or NULL with rte_errno (rte_ring_create).
int dpdk_error_from_object(const void *object);
