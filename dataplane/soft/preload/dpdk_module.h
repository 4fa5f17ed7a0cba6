// SPDX-License-Identifier: BSD-3-Clause
// What libtocsin-verbs.so finds in libtocsin-wire-dpdk.so: the dpdk wire, and DPDK with it.
#pragma once

#include "nic/wire.h"

#define DPDK_MODULE_FILE "libtocsin-wire-dpdk.so"
#define DPDK_MODULE_SYMBOL "tocsin_wire_dpdk_module"

// Both sides know the structs of wire.h by their layout: only those of one build go together.
struct dpdk_module {
	const char *version; // TOCSIN_VERSION
	uint32_t wire_bytes; // of struct soft_wire, for builds that have the same version
	int (*create
	)(const struct wire_config *config,
	  char ret_reason[static SOFT_HOLDER_MAX + 1],
	  struct soft_wire **ret_wire);
	int (*check)(const struct wire_config *config, char ret_reason[static SOFT_HOLDER_MAX + 1]);
};

__attribute__((visibility("default"))) extern const struct dpdk_module tocsin_wire_dpdk_module;
