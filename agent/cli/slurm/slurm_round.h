// SPDX-License-Identifier: BSD-3-Clause
// One round: reads all nodes and applies the decisions. Each change is reported once.
#pragma once

#include "slurm/drain_record.h"
#include "slurm/slurm_policy.h"
#include "slurm/slurm_tables.h"
#include "slurm/slurm_way.h"

struct slurm_node_report; // last report about one node

// Return the answer of HEALTH from the node's own agent, over the overlay. Returns NULL with a
// short reason if it does not answer in time.
typedef json_t *slurm_ask_fn(void *ctx, const char *node, char ret_why[static SLURM_WHY_BYTES]);

struct slurm_rounds {
	struct slurm_way way;
	struct slurm_limits limits;
	const char *record_file; // file of the record of our drains
	slurm_ask_fn *ask;	 // called before a drain and before an undrain
	void *ask_ctx;
	uint64_t now_ns; // time of this round
	bool dry_run;
	bool observes_only; // the agent of this round has [health] act = no
	bool json;
	struct slurm_node_report *said; // sorted by node
	size_t said_count;
	// First node of the next round: the one after those whose agents did not answer.
	size_t turn;
	char trouble[256]; // last error that was reported; "": none
	// Reported reasons why the record could not be read, and could not be written.
	char unread[DRAIN_WHY_BYTES];
	char write_error_reported[DRAIN_WHY_BYTES];
	struct drain_record record; // content at the beginning of this round
};

void slurm_rounds_fini(struct slurm_rounds *rounds);

// Return true if the drain is ours: as recorded, or extended by Slurm itself.
bool slurm_drain_is_recorded(const struct drain_record *record, const struct slurm_node *node);

// Run one round for the node `only`, or for all if it is NULL. A round for one node asks Slurm only
// if that node may change. Returns 0, even if single nodes could not be changed, or -errno after
// reporting why nothing could be read.
int slurm_round(struct slurm_rounds *rounds, const json_t *health, const char *only);
// Report once that the agent or Slurm could not be queried.
void slurm_round_report_error(struct slurm_rounds *rounds, const char *what);
