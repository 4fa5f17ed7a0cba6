// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the exchange share: exchange.c has its life and inputs, the others one matter
// each.
#pragma once

#include "triangulate.h"

#include <lib/wire.h>
#include <ras/collective.h>

#define WAIT_NS (100 * MS) // at most, before anything is told
#define KEEP_NS (30 * SEC) // of a good path nobody asks for
#define CLEARS 1	   // more times that the end of something bad is told

struct own_path {
	struct observation observation;
	uint64_t seen_ns;
	uint64_t due_ns;  // to be told, RAS_NEVER: not
	uint64_t told_ns; // the last time, 0: never
	uint64_t told_seen_ns;
	enum observation_kind told_kind;
	enum verdict_reach told_reach;
	bool again; // it was told as it is more than once
	uint8_t clears;
	bool quiet; // enough others said it: it waits until that is old
	enum observation_kind quiet_kind;
	enum verdict_reach quiet_reach;
	uint32_t next; // of its bucket, plus one
};

struct own_words {
	struct statement statement;
	uint64_t due_ns, told_ns;
	uint8_t clears;
};

struct observation_exchange {
	struct verdict_engine *engine;
	uint64_t self;
	uint64_t random;
	struct ras_memory memory;
	struct observation_exchange_ops ops;
	void *ops_ctx;
	struct own_path *paths;
	uint32_t path_count, path_capacity;
	uint32_t *buckets; // by subject: path + 1
	uint32_t bucket_count;
	struct own_words words[VERDICT_STATEMENTS_MAX];
	uint32_t word_count;
	uint32_t turn;	  // the path that had to wait for the budget goes first
	uint64_t next_ns; // asked for
	// The budget: what this and the last second brought.
	uint64_t window_ns;
	uint32_t heard_now, heard_before;
	uint64_t credit; // thousandths of a observation
	uint64_t credit_ns;
	struct observation_exchange_counters counters;
};

uint64_t exchange_draw(struct observation_exchange *exchange, uint64_t below);
void exchange_wake(struct observation_exchange *exchange, uint64_t at_ns);

// own_paths.c: the paths that this agent reads, by subject.
struct own_path *
own_path_find(struct observation_exchange *exchange, const struct observation *observation);
// -ENOMEM.
int own_path_add(
	struct observation_exchange *exchange,
	const struct observation *observation,
	struct own_path **ret_path
);
// The first of a chain by `next` that holds all to the subject, and others; plus one, 0: none.
uint32_t own_paths_of(const struct observation_exchange *exchange, uint64_t subject);
// Good paths that nobody asks for, and what has not been looked at for long.
void own_paths_forget(struct observation_exchange *exchange, uint64_t now_ns);

// exchange_plan.c: whether a path is to be told, and when.
bool observation_speaks_against(const struct observation *observation);
bool own_path_told_against(const struct own_path *path);
// Whether so many others say that the end of this good path is bad that its node would be blamed,
// or that node says it of so many itself, and ours has not answered that: what it told was seen
// before they began, or will soon be too old where it was heard.
bool own_path_is_asked(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
);
// When it is to be told next.
void own_path_plan(struct observation_exchange *exchange, struct own_path *path, uint64_t now_ns);
// Others have told that of a path: ours to its ends may have to be told now.
void own_paths_plan(
	struct observation_exchange *exchange,
	const struct observation *observation,
	uint64_t now_ns
);
// Enough others said it, and nothing that we said contradicts it.
bool own_path_is_said(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
);

// exchange_tell.c: what is due goes into one notice, within the budget.
struct notice {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	struct wire_writer writer;
	bool full;
	bool waits; // some path does, for the budget or for room
};
void exchange_budget_window(struct observation_exchange *exchange, uint64_t now_ns);
void exchange_tell(struct observation_exchange *exchange, uint64_t now_ns);

// own_words.c: what this agent says of itself.
void own_words_tell(struct observation_exchange *exchange, uint64_t now_ns, struct notice *notice);
