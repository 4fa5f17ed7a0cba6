// SPDX-License-Identifier: BSD-3-Clause
// A statically linked EAL loads no plugins.
#include "dpdk/eal_plugins.h"

void eal_plugins_set_hidden(bool hidden) {
	(void)hidden;
}
