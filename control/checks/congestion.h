// SPDX-License-Identifier: BSD-3-Clause
// Congestion counters by their drivers' names, and rates between two reads.
#pragma once

#include "checks/links.h"

#include <control/congestion.h>

#define CONGESTION_LANES 9 // eight priorities, and pauses of the whole link
#define ETHTOOL_NAME_MAX 32

// One read of one port. A kind may be the sum of several counters. If their number changes, for
// example when PFC is enabled for another priority, sums are not comparable.
struct congestion_read {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t values[CONGESTION_KIND_COUNT];
	uint8_t parts[CONGESTION_KIND_COUNT]; // counters in the sum; 0: none
	// Pause time in microseconds, per priority; CONGESTION_UNKNOWN: not counted.
	uint64_t sent_us[CONGESTION_LANES], received_us[CONGESTION_LANES];
};

void congestion_read_init(struct congestion_read *read, const char *device, uint8_t number);
// Add a counter from hw_counters, or from ethtool statistics of the port's interface. Unknown names
// are ignored. Sums stay below CONGESTION_UNKNOWN.
void congestion_add_hw_counter(struct congestion_read *read, const char *name, uint64_t value);
void congestion_add_ethtool_counter(struct congestion_read *read, const char *name, uint64_t value);
// Return the n-th known name in hw_counters; NULL past the last.
const char *congestion_hw_name(uint32_t n);

// Pass each counter of a network interface to `take`. Returns 0 or -errno.
typedef int congestion_ethtool_fn(
	const char *netdev, void (*take)(void *ctx, const char *name, uint64_t value), void *ctx
);
congestion_ethtool_fn congestion_ethtool;

// congestion_read.c: read the ports of one device below `root`, as for link_read_device(). May
// block in the driver.
void congestion_read_device(
	const char *root,
	const char *device,
	congestion_ethtool_fn *ethtool,
	struct congestion_read reads[LINK_DEVICE_PORTS_MAX],
	uint32_t *ret_count
);

struct congestion_book {
	struct congestion_read before[CONGESTION_PORTS_MAX];
	uint64_t looked_ns[CONGESTION_PORTS_MAX]; // when each entry of `before` was read
	// Last storm that the device itself reported; 0: none.
	uint64_t storm_ns[CONGESTION_PORTS_MAX];
	uint32_t before_count;
	struct congestion_port ports[CONGESTION_PORTS_MAX];
	uint32_t count;
};

// Compare a read with the previous one. Pure. The finding names ports that send pauses for at least
// half of the time. It also names ports whose device reported its own pauses as too long within the
// last minute.
void congestion_judge(
	struct congestion_book *book,
	const struct congestion_read *reads,
	uint32_t count,
	uint64_t now_ns,
	struct link_finding *ret_finding
);
