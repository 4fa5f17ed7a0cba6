// SPDX-License-Identifier: BSD-3-Clause
// The DPDK wire in a build without DPDK. wire_devargs_off.c rejects such a wire when its name is
// parsed. These calls reject it for programs that fill a struct soft_config themselves.
#include "nic/wire.h"

#include <errno.h>
#include <stdio.h>

int wire_dpdk_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	(void)ret_wire;
	return wire_dpdk_check(config, ret_reason);
}

int wire_dpdk_check(const struct wire_config *config, char ret_reason[static SOFT_REASON_MAX + 1]) {
	snprintf(
		ret_reason, SOFT_REASON_MAX + 1,
		"the wire dpdk:%.30s needs DPDK, which this build lacks; use udp, or build with "
		"-Ddpdk=shared",
		config->args
	);
	return -EOPNOTSUPP;
}
