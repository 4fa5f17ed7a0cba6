// SPDX-License-Identifier: BSD-3-Clause
// Controls whether a shared EAL loads its driver plugins.
#pragma once

#include <stdbool.h>

// Hide the plugins from rte_eal_init() on the calling thread, or show them again. No effect if the
// drivers are linked statically.
void eal_plugins_set_hidden(bool hidden);
