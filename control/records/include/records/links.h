// SPDX-License-Identifier: BSD-3-Clause
// LINKS: a connection of the overlay, as one end sees it.
#pragma once

#include <lib/record.h>

#define LINK_NODE_BYTES 64
#define LINK_USES_BYTES 128

struct link_row {
	char node[LINK_NODE_BYTES];
	const char *state;
	uint32_t protocol;
	char mine[LINK_USES_BYTES];
	char theirs[LINK_USES_BYTES];
	bool outgoing;
	uint64_t rtt_min_ns, rtt_mean_ns, rtt_max_ns;
	uint64_t silent_ns;
	uint64_t sent_bytes, sent_frames;
	uint64_t received_bytes, received_frames;
	uint64_t sent_bytes_per_s, received_bytes_per_s;
	uint32_t reconnects;
	uint32_t queued_bytes;
};

extern const struct record link_record;
