// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory.
#pragma once

#include "history/history_file.h"

#include <control/history.h>
#include <control/loop.h>

#include <stdatomic.h>

// State that the calls of the keeper share. Calls run one after the other, so only one uses the
// state. The last reference frees it.
struct disk {
	_Atomic uint32_t references; // release on drop, acquire by the last one
	char *directory;
	uint64_t size_bytes, owner;
	uint32_t interval_s;
	struct history_file *file; // NULL: not open; for the keeper alone
	// Results of the last attempt to open it. The loop reads them before it asks again.
	struct history_file_report report;
	uint64_t next_sequence[HISTORY_TIERS];
};

struct disk *disk_get(struct disk *disk);
void disk_put(struct disk *disk);

// A copy of a block that waits for its write.
struct pending_block {
	struct pending_block *next;
	enum history_tier tier;
	uint64_t sequence;
	size_t size;
	uint8_t bytes[];
};

struct path_entry {
	struct history_path_name name;
	struct history_bins fine, coarse;
};

struct history {
	struct loop *loop;
	struct history_config config;
	struct disk *disk;
	struct keeper *keeper;
	struct history_query *queries; // questions without an answer
	// The members below are used only with a file.
	struct path_entry *entries[HISTORY_PATHS_MAX];
	uint32_t entry_count;
	bool is_open, is_asked_to_open;
	struct keeper_request open_request, write_request;
	struct history_block *blocks[HISTORY_TIERS];
	struct history_mark coarse_mark; // where the coarse period under way begins in its block
	struct pending_block *pending;	 // in order of sequence, per tier
	struct loop_timer tick, write_timer;
	uint64_t fine_begin_ns, wrote_ns;
	int64_t fine_begin_s, coarse_begin_s;
	uint32_t coarse_ticks; // fine periods since the coarse one was stored
	uint64_t open_failures, write_failures;
	int last_open_err;
	bool was_stuck;
};

// history_store.c Let the keeper open the file.
void history_open_file(struct history *history);
// Copy the block of a tier and write it soon.
void history_store_block(struct history *history, enum history_tier tier);
void history_store_stop(struct history *history);

// history_ask.c End all questions with `err`, because the disk hangs.
void history_fail_queries(struct history *history, int err);
