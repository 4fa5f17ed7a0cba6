// SPDX-License-Identifier: BSD-3-Clause
// Internals shared by the parts of the exchange: exchange.c has its life and inputs, each other
// file one topic.
#pragma once

#include "triangulate.h"

#include <lib/wire.h>
#include <ras/collective.h>

#define REPORT_WAIT_MAX_NS (100 * MS) // upper bound of the random wait before a report
#define OWN_PATH_KEEP_NS (30 * SEC)   // lifetime of a good path that nobody asks about
#define CLEAR_REPEATS 1		      // extra reports of the end of a fault
// Lifetime of a fault that was reported and not withdrawn. Until then its receivers call the node
// unknown, because the evidence is stale.
#define OWN_FAULT_KEEP_NS ((1 + STALE_FORGET_TIMES) * OWN_PATH_KEEP_NS)

struct own_path {
	struct observation observation;
	uint64_t seen_ns;
	uint64_t due_ns;  // next report, RAS_NEVER: none
	uint64_t told_ns; // last report, 0: none
	uint64_t told_seen_ns;
	enum observation_kind told_kind;
	enum verdict_reach told_reach;
	bool again; // the last report was a repetition
	uint8_t clears;
	bool quiet; // suppressed: enough others reported it recently
	enum observation_kind quiet_kind;
	enum verdict_reach quiet_reach;
	uint32_t next; // next path of the bucket, plus one
};

struct own_statement {
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
	uint32_t *buckets; // hash table by subject: index of a path + 1
	uint32_t bucket_count;
	struct own_statement own_statements[VERDICT_STATEMENTS_MAX];
	uint32_t own_statement_count;
	uint32_t turn;	  // index of the path to report first, since the budget held it back
	uint64_t next_ns; // requested wake-up
	// Rate limit, by the reports received in this second and the one before.
	uint64_t window_ns;
	uint32_t heard_now, heard_before;
	uint64_t credit; // thousandths of a report
	uint64_t credit_ns;
	struct observation_exchange_counters counters;
};

uint64_t exchange_random_below(struct observation_exchange *exchange, uint64_t below);
void exchange_wake(struct observation_exchange *exchange, uint64_t at_ns);

// own_paths.c: the paths that this agent reads, by subject.
struct own_path *
own_path_find(struct observation_exchange *exchange, const struct observation *observation);
// Add a path. Returns 0 or -ENOMEM.
int own_path_add(
	struct observation_exchange *exchange,
	const struct observation *observation,
	struct own_path **ret_path
);
// Return the first path of the subject's bucket plus one; 0: none. The bucket may contain other
// subjects.
uint32_t own_paths_bucket(const struct observation_exchange *exchange, uint64_t subject);
// Drop good paths that nobody asks about, and paths not read for long. A path whose fault was
// reported is kept for longer, so that its next good read withdraws the report.
void own_paths_expire(struct observation_exchange *exchange, uint64_t now_ns);

// exchange_plan.c: whether a path must be reported, and when.
bool observation_reports_fault(const struct observation *observation);
bool own_path_reported_fault(const struct own_path *path);
// Return whether others need this good read. Either enough others report the subject bad to blame
// the subject, or the subject itself reports enough others. False if a report of this agent already
// answers that and is not about to expire.
bool own_path_answer_is_wanted(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
);
// Schedule the next report of a path.
void own_path_schedule(
	struct observation_exchange *exchange, struct own_path *path, uint64_t now_ns
);
// Schedule own paths to both ends of another agent's observation, since their reads may answer the
// observation.
void own_paths_schedule(
	struct observation_exchange *exchange,
	const struct observation *observation,
	uint64_t now_ns
);
// Return whether enough others reported the same, and nothing in this agent's last report
// contradicts it.
bool own_path_is_redundant(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
);

// exchange_tell.c: put due reports into one notice, within the budget.
struct notice {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	struct wire_writer writer;
	bool full;
	bool waits; // some path waits for the budget or for room
};
void exchange_budget_window(struct observation_exchange *exchange, uint64_t now_ns);
void exchange_tell(struct observation_exchange *exchange, uint64_t now_ns);

// own_statements.c: statements of this agent about itself.
void own_statements_publish(
	struct observation_exchange *exchange, uint64_t now_ns, struct notice *notice
);
