// SPDX-License-Identifier: BSD-3-Clause
// Comparison of tables with a peer whose digest stays different from ours.
//
// DIGESTS carries our digest per range. The peer answers with BRIEF: its entries in the ranges that
// differ, without records. We send the updates that the peer lacks, apply what is newer, and PULL
// the records that we miss. Only differing ranges are exchanged. A comparison starts only after the
// two digests were unchanged for a while: until then, updates are probably still on their way.
#pragma once

#include <stdint.h>

struct link;
struct ras;
struct wire_reader;

struct sync {
	uint64_t busy_ns; // observed time before which this agent starts no other comparison
};

// Note a digest received on the link. Starts a comparison if it has differed for long enough.
void sync_digest_received(struct ras *ras, struct link *link, uint64_t digest);

int sync_digests_received(struct ras *ras, struct link *link, struct wire_reader *reader);
int sync_brief_received(struct ras *ras, struct link *link, struct wire_reader *reader);
int sync_pull_received(struct ras *ras, struct link *link, struct wire_reader *reader);

// Send a PULL for the records of these peers.
void sync_pull_send(struct ras *ras, struct link *link, const uint64_t *ids, uint32_t count);
