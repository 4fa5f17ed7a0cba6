// SPDX-License-Identifier: BSD-3-Clause
// Congestion counters of this node's RDMA ports: marks, congestion notification packets (CNP),
// pauses (PFC), discards and retransmissions. The counters are facts and blame nobody. One
// exception: a port that itself sends pauses nearly all the time fails the check `pauses`.
#pragma once

#include <control/checks.h>

#include <stdbool.h>
#include <stdint.h>

enum congestion_kind {
	CONGESTION_ECN_MARKED,		 // packets received with an ECN mark
	CONGESTION_CNP_SENT,		 // CNPs sent to the senders of marked packets
	CONGESTION_CNP_HANDLED,		 // CNPs received that slowed this port down
	CONGESTION_CNP_IGNORED,		 // CNPs received that this port ignored
	CONGESTION_PAUSE_SENT,		 // pause frames sent: this port stops the switch
	CONGESTION_PAUSE_RECEIVED,	 // pause frames received: the switch stops this port
	CONGESTION_PAUSE_STORMS,	 // times that the device itself found its pauses too long
	CONGESTION_RX_DISCARDS,		 // packets received and dropped because there was no room
	CONGESTION_OUT_OF_SEQUENCE,	 // packets received after a sequence gap
	CONGESTION_RETRANSMITS,		 // retransmissions, after a sequence gap or a timeout
	CONGESTION_ADAPTIVE_RETRANSMITS, // the part of them due to adaptive retransmission
	CONGESTION_KIND_COUNT,
};

// Return the name of a counter, such as "cnp_sent".
const char *congestion_name(enum congestion_kind kind);

#define CONGESTION_PORTS_MAX 64
#define CONGESTION_UNKNOWN UINT64_MAX // the driver does not count this

struct congestion_port {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t totals[CONGESTION_KIND_COUNT]; // driver counters, or CONGESTION_UNKNOWN
	// Rates between the last two reads, in thousandths per second. CONGESTION_UNKNOWN if there
	// was only one read, or if a counter was reset.
	uint64_t milli_per_s[CONGESTION_KIND_COUNT];
	// Share of the time for which the most paused priority was paused, per mille; UINT32_MAX if
	// unknown.
	uint32_t sent_permille, received_permille;
};

// Summary of what a port counted between the last two reads.
enum congestion_level {
	CONGESTION_NOT_COUNTED, // no driver counts, or there was only one read
	CONGESTION_QUIET,
	// Marks, CNPs, pauses, discards or adaptive retransmissions. Other retransmissions and
	// sequence gaps do not count here: a peer that dies causes them too.
	CONGESTION_ACTIVE,
	CONGESTION_STORM, // sends pauses half of the time, or its device reports a storm
	CONGESTION_LEVEL_COUNT,
};

enum congestion_level congestion_level(const struct congestion_port *port);
const char *congestion_level_name(enum congestion_level level); // "not-counted", "quiet", ...

// Return how often one port retransmitted, or CONGESTION_UNKNOWN if its driver does not count that.
// `device` is a rail name: "mlx5_0" or "mlx5_0:2".
uint64_t checks_retransmits(const struct checks *checks, const char *device);
// Return whether `port` is the port of this rail name.
bool congestion_port_is_of_device(const struct congestion_port *port, const char *device);

// Return the number of ports that count anything. *ret_ports is valid until the next input.
uint32_t checks_congestion(const struct checks *checks, const struct congestion_port **ret_ports);
