// SPDX-License-Identifier: BSD-3-Clause
// Interface between libtocsin-verbs.so and libtocsin-wire-dpdk.so, which contains the DPDK wire and
// DPDK.
#pragma once

#include "nic/wire.h"

#define DPDK_MODULE_FILE "libtocsin-wire-dpdk.so"
#define DPDK_MODULE_SYMBOL "tocsin_wire_dpdk_module"

// Both libraries must come from one build, because they share the struct layouts of wire.h.
struct dpdk_module {
	const char *version; // TOCSIN_VERSION
	uint32_t wire_bytes; // size of struct soft_wire; distinguishes builds with the same version
	int (*create
	)(const struct wire_config *config,
	  char ret_reason[static SOFT_REASON_MAX + 1],
	  struct soft_wire **ret_wire);
	int (*check)(const struct wire_config *config, char ret_reason[static SOFT_REASON_MAX + 1]);
};

__attribute__((visibility("default"))) extern const struct dpdk_module tocsin_wire_dpdk_module;
