// SPDX-License-Identifier: BSD-3-Clause
// Counters of congestion by the names that drivers give them, and what becomes of two looks.
#pragma once

#include "checks/links.h"

#include <control/congestion.h>

#define CONGESTION_LANES 9 // priorities, and pauses of the whole link
#define ETHTOOL_NAME_MAX 32

// One look at one port. A kind may be the sum of several counters; if their number changes, as when
// PFC is switched on for one more priority, the sum says nothing against the one before.
struct congestion_read {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t values[CONGESTION_KIND_COUNT];
	uint8_t parts[CONGESTION_KIND_COUNT]; // 0: there is none
	// Microseconds of pause by priority; CONGESTION_UNKNOWN: not told.
	uint64_t sent_us[CONGESTION_LANES], received_us[CONGESTION_LANES];
};

void congestion_begin(struct congestion_read *read, const char *device, uint8_t number);
// A counter of hw_counters, or of the port's network interface (ethtool). Names that are not in the
// table are left. Sums stay below CONGESTION_UNKNOWN.
void congestion_take_hw(struct congestion_read *read, const char *name, uint64_t value);
void congestion_take_ethtool(struct congestion_read *read, const char *name, uint64_t value);
// By place; NULL past the last.
const char *congestion_hw_name(uint32_t n);

// What a network interface counts: each counter is given to `take`. 0, or -errno.
typedef int congestion_ethtool_fn(
	const char *netdev, void (*take)(void *ctx, const char *name, uint64_t value), void *ctx
);
congestion_ethtool_fn congestion_ethtool;

// congestion_read.c: of the ports of one device, below root as link_read() takes it. Asks the
// driver.
void congestion_look(
	const char *root,
	const char *device,
	congestion_ethtool_fn *ethtool,
	struct congestion_read reads[LINK_DEVICE_PORTS_MAX],
	uint32_t *ret_count
);

struct congestion_book {
	struct congestion_read before[CONGESTION_PORTS_MAX];
	uint64_t looked_ns[CONGESTION_PORTS_MAX]; // when each of these was read
	uint64_t storm_ns[CONGESTION_PORTS_MAX];  // the device's last word of one; 0: none
	uint32_t before_count;
	struct congestion_port ports[CONGESTION_PORTS_MAX];
	uint32_t count;
};

// Enters a look. Pure. The finding is of ports that send pauses for half of the time or more, or
// whose device called its own pauses too long within the last minute.
void congestion_judge(
	struct congestion_book *book,
	const struct congestion_read *reads,
	uint32_t count,
	uint64_t now_ns,
	struct link_finding *ret_finding
);
