// SPDX-License-Identifier: BSD-3-Clause
// One look at all nodes, and what is done about them. What is said is said once for each change.
#pragma once

#include "slurm/drain_record.h"
#include "slurm/slurm_policy.h"
#include "slurm/slurm_tables.h"
#include "slurm/slurm_way.h"

struct slurm_said; // of one node, what was said last

// What the node's own agent says of itself now, over the overlay: the answer to HEALTH. NULL: it
// does not answer, or not in time.
typedef json_t *slurm_ask_fn(void *ctx, const char *node);

struct slurm_rounds {
	struct slurm_way way;
	struct slurm_limits limits;
	const char *record_file; // which drains are ours
	slurm_ask_fn *ask;	 // before an undrain
	void *ask_ctx;
	uint64_t now_ns; // of this look
	bool dry_run;
	bool json;
	struct slurm_said *said; // by name
	size_t said_count;
	size_t turn;	   // where the next look begins: behind who did not answer in this one
	char trouble[256]; // the last one that was said; "": none
	char unread[DRAIN_WHY_BYTES]; // why the record could not be read, or written, as was said
	char unwritten[DRAIN_WHY_BYTES];
	struct drain_record record; // as of the beginning of this look
};

void slurm_rounds_fini(struct slurm_rounds *rounds);

// Whether its drain is ours: as the record has it, or with what Slurm itself wrote behind it.
bool slurm_is_recorded(const struct drain_record *record, const struct slurm_node *node);

// `only`: this node, NULL for all. 0 also where single nodes could not be changed; else what kept
// us from looking, which has been said.
int slurm_round(struct slurm_rounds *rounds, const json_t *health, const char *only);
// There is nothing to compare with: the agent, or Slurm, could not be asked. Said once.
void slurm_round_trouble(struct slurm_rounds *rounds, const char *what);
