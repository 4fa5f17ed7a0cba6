// SPDX-License-Identifier: BSD-3-Clause
// The one place that includes DPDK; only units of the library dataplane_dpdk may.
//
// rte_config.h must come before every other rte_ header.
#pragma once

#include <rte_config.h>

// Rings with the orderings of C11, which the compiler and ThreadSanitizer know; the other kind
// trusts in x86. Both ends of our rings are compiled with this.
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
