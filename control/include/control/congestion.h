// SPDX-License-Identifier: BSD-3-Clause
// What the ports of this machine's RDMA devices count of congestion: marks, the notifications that
// answer them (CNP), pauses (PFC), and what is lost or sent again for it. Facts: they blame nobody,
// but for a port that itself sends pauses nearly all the time (the check `pauses`).
#pragma once

#include <control/checks.h>

#include <stdbool.h>
#include <stdint.h>

enum congestion_kind {
	CONGESTION_ECN_MARKED,	    // packets that came with a mark
	CONGESTION_CNP_SENT,	    // told their senders
	CONGESTION_CNP_HANDLED,	    // told to us: we slow down
	CONGESTION_CNP_IGNORED,	    // and of these: we do not
	CONGESTION_PAUSE_SENT,	    // frames: we hold the switch back
	CONGESTION_PAUSE_RECEIVED,  // the switch holds us back
	CONGESTION_PAUSE_STORMS,    // times that the device itself found its pauses too long
	CONGESTION_RX_DISCARDS,	    // packets that came and had no room
	CONGESTION_OUT_OF_SEQUENCE, // packets that came behind a gap
	CONGESTION_RETRANSMITS, // times that something was sent again: told of a gap, or no answer
	CONGESTION_ADAPTIVE,	// of these by adaptive retransmission
	CONGESTION_KIND_COUNT,
};

// "cnp_sent"
const char *congestion_name(enum congestion_kind kind);

#define CONGESTION_PORTS_MAX 64
#define CONGESTION_UNKNOWN UINT64_MAX // the driver does not count it

struct congestion_port {
	char device[CHECKS_NAME_MAX];
	uint8_t number;
	uint64_t totals[CONGESTION_KIND_COUNT]; // as the driver counts, or CONGESTION_UNKNOWN
	// Between the last two looks; CONGESTION_UNKNOWN: there is but one, or a counter was reset.
	uint64_t milli_per_s[CONGESTION_KIND_COUNT];
	// Of the time, the priority that was paused most, per mille; UINT32_MAX: not known.
	uint32_t sent_permille, received_permille;
};

// What a port counted between the last two looks, in a word.
enum congestion_level {
	CONGESTION_NOT_COUNTED, // by no driver, or but one look was made
	CONGESTION_QUIET,
	CONGESTION_MOVES, // marks, CNP, pauses, discards, or adaptive retransmissions; other ones
			  // and gaps come of a peer that died, too, and are left out
	CONGESTION_STORM, // it sends pauses half of the time, or its device calls them a storm
	CONGESTION_LEVEL_COUNT,
};

enum congestion_level congestion_level(const struct congestion_port *port);
const char *congestion_level_name(enum congestion_level level); // "not-counted", "quiet", ...

// How often the port of a device, as rails are named ("mlx5_0", "mlx5_0:2"), has sent something
// again; CONGESTION_UNKNOWN: its driver does not count that.
uint64_t checks_resent(const struct checks *checks, const char *device);
// Whether it is that port.
bool congestion_is_of(const struct congestion_port *port, const char *device);

// How many ports, those that count something; valid until the next input.
uint32_t checks_congestion(const struct checks *checks, const struct congestion_port **ret_ports);
