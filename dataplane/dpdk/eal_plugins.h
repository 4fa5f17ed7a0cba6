// SPDX-License-Identifier: BSD-3-Clause
// Whether EAL loads its drivers, which are plugins where DPDK is linked as shared libraries.
#pragma once

#include <stdbool.h>

// Hide plugins from the rte_eal_init() of the calling thread, or show them again. Nothing happens
// where drivers are linked in.
void eal_plugins_hide(bool hide);
