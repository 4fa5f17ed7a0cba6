// SPDX-License-Identifier: BSD-3-Clause
// The only exported symbol of the module.
#include "dpdk_module.h"

const struct dpdk_module tocsin_wire_dpdk_module = {
	.version = TOCSIN_VERSION,
	.wire_bytes = sizeof(struct soft_wire),
	.create = wire_dpdk_create,
	.check = wire_dpdk_check,
};
