// SPDX-License-Identifier: BSD-3-Clause
// Result of a run as plain figures, which pass through a pipe into a table or JSON.
#pragma once

#include "invariant.h"
#include "verdict_matrix.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RESULT_NAME_BYTES 32

// Figures are NaN where a scenario does not measure them.
struct result {
	char scenario[RESULT_NAME_BYTES];
	char profile[RESULT_NAME_BYTES];
	uint32_t nodes, hosts;
	uint64_t seed;
	uint64_t digest;

	double joined_s;
	double first_dead_s, all_dead_s, dead_p50_s, dead_p99_s;
	double rejoined_s, converged_s;
	double false_suspect, false_dead;
	double flood_hops_max;
	double bytes_mean, bytes_p99, frames_mean, frames_p99; // per node and second
	double instance_bytes, world_bytes;
	double links_changed_per_join;
	double relay_delivered_pct, relay_nak_pct, relay_hops_p99, relay_ms_p99;
	double relay_delivered, relay_refused, relay_expired;
	double transfer_done_pct, transfer_done, transfer_ended, transfer_ms_p99;
	double collect_ms_p50, collect_ms_max, collect_hops_max, collect_partial;
	double notice_heard_pct, notice_ms_p99, notice_ms_max;
	double jobs_looks, jobs_named_pct, jobs_ranks, jobs_ms_max, jobs_rank_bytes, jobs_bytes;
	double jobs_judge_s;
	double brakes_on, own_pauses, conflicts, refused_joins, declared_dead;
	double virtual_s, wall_s, cpu_s;
	double frames;
	struct verdict_matrix matrix;

	bool broken;
	bool is_known_fault; // broken by a known fault of docs/internals/membership.md
	double broken_s;
	char broken_text[INVARIANT_TEXT_BYTES];
};

void result_init(struct result *result);
// Print a table of at most 100 columns.
void result_print(const struct result *result, FILE *to);
// Print one JSON object on one line.
int result_print_json(const struct result *result, FILE *to);
