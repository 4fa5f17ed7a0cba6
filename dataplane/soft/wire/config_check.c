// SPDX-License-Identifier: BSD-3-Clause
// Checks whether a device could be opened, before one exists. Any thread.
#include "nic/wire.h"

int soft_config_check(
	const struct soft_config *config, char ret_reason[static SOFT_REASON_MAX + 1]
) {
	struct soft_counters counters = {0};
	const struct wire_config of_wire = {
		.address = config->address,
		.address_any = config->address_any,
		.args = config->wire_args,
		.counters = &counters,
	};
	struct soft_wire *wire = NULL;
	int err = 0;

	ret_reason[0] = '\0';
	if (config->wire == SOFT_WIRE_UDP)
		err = wire_udp_create(&of_wire, ret_reason, &wire);
	else if (config->wire == SOFT_WIRE_DPDK)
		err = wire_dpdk_check(&of_wire, ret_reason);
	wire_destroy(wire);
	return err;
}
