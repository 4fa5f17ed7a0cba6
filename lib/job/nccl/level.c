// SPDX-License-Identifier: BSD-3-Clause
// Levels of detail, and the NCCL events that each level requests.
#include "bridge.h"

#include <string.h>

int bridge_level_mask(enum bridge_level level, int version, bool is_sampling) {
	// From version 6 on, collectives by copy engines have an event type of their own.
	int launches = NCCL_COLL | NCCL_P2P | (version >= 6 ? NCCL_CE_COLL : 0);

	// NCCL 2.31 and later takes time stamps inside kernels for these events. That costs 4 to 13
	// % of small operations (NVIDIA/nccl#2355). So from version 7 on only BRIDGE_ALWAYS
	// requests them all the time.
	if (level == BRIDGE_SAMPLED || (level == BRIDGE_KERNELS && version >= 7))
		level = is_sampling ? BRIDGE_KERNELS : BRIDGE_LAUNCHES;
	if (level == BRIDGE_ALWAYS)
		level = BRIDGE_KERNELS;
	if (level == BRIDGE_KERNELS && version < 3)
		level = BRIDGE_NETWORK; // versions 1 and 2 have no kernel events
	switch (level) {
	case BRIDGE_OFF:
		return 0;
	case BRIDGE_NETWORK:
		return launches | NCCL_PROXY_OP;
	case BRIDGE_KERNELS:
		return launches | NCCL_KERNEL_CH;
	default:
		return launches;
	}
}

enum bridge_level bridge_level_effective(enum bridge_level own, enum tocsin_level asked) {
	static const enum bridge_level levels[TOCSIN_LEVEL_COUNT] = {
		[TOCSIN_LEVEL_LAUNCHES] = BRIDGE_LAUNCHES,
		[TOCSIN_LEVEL_NETWORK] = BRIDGE_NETWORK,
		[TOCSIN_LEVEL_SAMPLED] = BRIDGE_SAMPLED,
		[TOCSIN_LEVEL_KERNELS] = BRIDGE_KERNELS,
		[TOCSIN_LEVEL_KERNELS_ALWAYS] = BRIDGE_ALWAYS,
	};

	// A rank that was never counted cannot start later, because its numbers would differ from
	// those of other ranks.
	return own == BRIDGE_OFF || asked == TOCSIN_LEVEL_DEFAULT ? own : levels[asked];
}

enum bridge_level bridge_level_parse(const char *text, bool *ret_wrong) {
	static const struct {
		const char *name;
		enum bridge_level level;
	} levels[] = {
		{"off", BRIDGE_OFF},	     {"launches", BRIDGE_LAUNCHES},
		{"network", BRIDGE_NETWORK}, {"kernels", BRIDGE_KERNELS},
		{"sampled", BRIDGE_SAMPLED}, {"kernels-always", BRIDGE_ALWAYS},
	};

	*ret_wrong = false;
	if (text == NULL || text[0] == '\0')
		return BRIDGE_LAUNCHES;
	for (size_t n = 0; n < sizeof(levels) / sizeof(levels[0]); n++)
		if (strcmp(text, levels[n].name) == 0)
			return levels[n].level;
	*ret_wrong = true;
	return BRIDGE_LAUNCHES;
}
