// SPDX-License-Identifier: BSD-3-Clause
// The only header that includes DPDK; only units of the library dataplane_dpdk may use it.
//
// rte_config.h must come before every other rte_ header.
#pragma once

#include <rte_config.h>

// Use rings with C11 memory ordering, which compiler and ThreadSanitizer understand; the other
// variant relies on x86. Both ends of each ring are compiled with this setting.
#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL
#endif

#include <rte_alarm.h>
#include <rte_bus.h>
#include <rte_cpuflags.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_net_crc.h>
#include <rte_ring.h>
#include <rte_telemetry.h>
#include <rte_vect.h>
