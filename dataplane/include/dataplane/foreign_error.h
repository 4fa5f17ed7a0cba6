// SPDX-License-Identifier: BSD-3-Clause
// Foreign error habits end here: each becomes 0 or -errno.
//
// libibverbs and DPDK have three habits each, and which call has which is written in their
// manual pages only. A wrapper names the habit of the call it wraps by the function it
// picks here. A failure without a reason is -EIO, never 0. Any thread; call at once after
// the foreign call, since errno and rte_errno are per thread and soon overwritten.
#pragma once

// verbs calls that give an object, or NULL with errno (ibv_open_device, ibv_reg_mr).
int verbs_error_from_object(const void *object);

// verbs calls that give 0 or a positive errno (ibv_modify_qp, ibv_dealloc_pd). Providers
// that give -errno, or -1 with errno, are understood too: both exist, and -1 is never
// taken for EPERM when errno says something else.
int verbs_error_from_code(int code);

// DPDK calls that give 0 (or a count) or -errno (rte_eth_dev_configure).
int dpdk_error_from_code(int code);

// DPDK calls that give -1 and set rte_errno (rte_eal_init).
int dpdk_error_from_errno(int code);

// DPDK calls that give an object, or NULL with rte_errno (rte_ring_create).
int dpdk_error_from_object(const void *object);
