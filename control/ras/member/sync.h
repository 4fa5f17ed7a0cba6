// SPDX-License-Identifier: BSD-3-Clause
// Comparing tables with a peer whose digest stays different from ours.
//
// DIGESTS carries our digest per range; the peer lists, in BRIEF, what it holds in the ranges
// that differ; we send it what it lacks, take what is newer, and PULL the records we miss. Only
// what differs travels. Digests that still change belong to news on their way and start nothing.
#pragma once

#include <stdint.h>

struct link;
struct ras;
struct wire_reader;

struct sync {
	uint64_t busy_ns; // one comparison at a time: none before this; observed time
};

// A digest was heard on the link.
void sync_heard(struct ras *ras, struct link *link, uint64_t digest);

int sync_digests(struct ras *ras, struct link *link, struct wire_reader *reader);
int sync_brief(struct ras *ras, struct link *link, struct wire_reader *reader);
int sync_pull(struct ras *ras, struct link *link, struct wire_reader *reader);

// Asks for the records of these.
void sync_want(struct ras *ras, struct link *link, const uint64_t *ids, uint32_t count);
