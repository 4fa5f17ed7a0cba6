// SPDX-License-Identifier: BSD-3-Clause
// The file `history` of the state directory: a ring of blocks, in place and of fixed size. These
// functions may wait for a disk, so only the keeper of the history calls them.
//
// Each tier has its own part of the file, so that neither shortens the other. A block that grows is
// written to two slots in turn. So the write never destroys the only copy of what was stored. The
// higher sequence number and, in one block, the longer copy is the current one.
#pragma once

#include <control/history_block.h>

#include <stdint.h>

struct history_file;

// Blocks that could not be used, counted since the file was opened.
struct history_file_report {
	uint64_t blocks;	// sound ones
	uint64_t damaged;	// torn, or with flipped bits
	uint64_t other_version; // written by another version
	uint64_t foreign;	// written by another node
	bool is_short;		// the file would take more than half of the free space
};

// Return how many blocks of the file a tier has.
uint32_t history_file_tier_blocks(uint64_t size_bytes, enum history_tier tier);

// Open the file in a directory, create and preallocate it, and read all headers. Returns 0 or
// -errno; -ENOSPC if the disk has no room for the smallest file.
int history_file_open(
	const char *directory,
	uint64_t size_bytes,
	uint64_t owner,
	struct history_file **ret_file,
	struct history_file_report *ret_report
);
struct history_file *history_file_close(struct history_file *file);

// Return the first sequence number that a tier has not used.
uint64_t history_file_next_sequence(const struct history_file *file, enum history_tier tier);

// Store a sealed block of `size` bytes. Returns 0, -ESTALE (the file was removed: open it again) or
// -errno. An earlier copy stays valid.
int history_file_write(struct history_file *file, const uint8_t *bytes, size_t size);

// Return the begin of the oldest period that a tier holds; INT64_MAX if it holds none.
int64_t history_file_oldest_s(const struct history_file *file, enum history_tier tier);

// Return the size of the blocks of a tier that overlap a time.
uint64_t history_file_bytes(
	const struct history_file *file, enum history_tier tier, int64_t since_s, int64_t until_s
);
// Read the blocks of a tier that overlap a time, in the order in which they were written. `take`
// gets each sound block. Returns the number of damaged ones, or -ENOMEM.
typedef void history_take_fn(void *ctx, const uint8_t *bytes, size_t used);
int history_file_read(
	struct history_file *file,
	enum history_tier tier,
	int64_t since_s,
	int64_t until_s,
	history_take_fn *take,
	void *ctx
);
