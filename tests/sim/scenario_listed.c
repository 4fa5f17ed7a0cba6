// SPDX-License-Identifier: BSD-3-Clause
// Faults of the command line. With --verdicts every node has a verdict engine, and the verdicts of
// the nodes without a fault are scored: when the verdict of each fault is due, and after the end.
#include "run.h"
#include "scenario_parts.h"
#include "scenario_verdicts.h"
#include "verdicts.h"

#include <lib/must.h>

#define WARM_NS (10 * WORLD_SEC)   // engines run for this long before the first fault
#define HEALED_NS (20 * WORLD_SEC) // from one view of all nodes to healthy verdicts

// Return whether the two faults are the halves of one: a node that is deaf and mute has lost its
// management network.
static bool are_halves(const struct fault *a, const struct fault *b) {
	return a->kind + b->kind == FAULT_DEAF + FAULT_MUTE && a->kind != b->kind &&
	       (a->kind == FAULT_DEAF || a->kind == FAULT_MUTE) && a->node == b->node &&
	       a->at_ns == b->at_ns && a->duration_ns == b->duration_ns;
}

static bool is_half(const struct run_options *options, uint32_t index) {
	for (uint32_t n = 0; n < options->fault_count; n++) {
		if (are_halves(&options->faults[index], &options->faults[n]))
			return true;
	}
	return false;
}

// Return the row of the matrix that expects a verdict of the fault; ROW_COUNT if none does.
static enum matrix_row row_of(const struct run_options *options, uint32_t index) {
	switch (options->faults[index].kind) {
	case FAULT_KILL:
		return ROW_CRASH;
	case FAULT_FREEZE:
		return ROW_FREEZE_HARDWARE;
	case FAULT_HOST:
		return ROW_HOST_DEAD;
	case FAULT_FABRIC:
		return ROW_FABRIC_CUT;
	case FAULT_DEAF:
		return is_half(options, index) ? ROW_MGMT_CUT : ROW_MGMT_DEAF;
	case FAULT_MUTE:
		return is_half(options, index) ? ROW_COUNT : ROW_MGMT_MUTE;
	default:
		return ROW_COUNT;
	}
}

static bool has_single_fault(const struct run_options *options) {
	return options->fault_count == 1 || (options->fault_count == 2 && is_half(options, 0));
}

// Return whether another fault names the same node, too; then its verdict depends on both.
static bool is_named_twice(const struct run_options *options, uint32_t index) {
	const struct fault *fault = &options->faults[index];

	for (uint32_t n = 0; n < options->fault_count; n++) {
		const struct fault *other = &options->faults[n];

		if (n == index || are_halves(fault, other))
			continue;
		if (other->node == fault->node ||
		    (fault_names_another(other->kind) && other->value == fault->node))
			return true;
	}
	return false;
}

// Record what each well node calls the victim.
static void look_at_fault(struct run *run, uint32_t index, enum matrix_row row) {
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;
	uint32_t victim = run->options->faults[index].node;

	if (is_named_twice(run->options, index))
		return;
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (n == victim || !verdicts_is_well(world, n))
			continue;
		if (has_single_fault(run->options))
			matrix->single[row][verdicts_held_by(world, n, victim)]++;
		else
			matrix->pair[row][verdicts_held_by(world, n, victim)]++;
	}
}

// Return the index of the fault whose verdict is due next, or fault_count. A verdict is due reach_s
// of its row after the fault began. A fault that ends before that has none.
static uint32_t
find_next_due_fault(const struct run *run, const bool *looked, uint64_t *ret_due_ns) {
	const struct run_options *options = run->options;
	uint32_t next = options->fault_count;

	*ret_due_ns = UINT64_MAX;
	for (uint32_t n = 0; n < options->fault_count; n++) {
		const struct fault *fault = &options->faults[n];
		enum matrix_row row = row_of(options, n);
		uint64_t reach_ns = row < ROW_COUNT ? matrix_rows[row].reach_s * WORLD_SEC : 0;
		uint64_t due_ns = run->world->faults.begin_ns + fault->at_ns + reach_ns;

		if (looked[n] || row == ROW_COUNT || due_ns >= *ret_due_ns ||
		    (fault->duration_ns > 0 && fault->duration_ns <= reach_ns))
			continue;
		*ret_due_ns = due_ns;
		next = n;
	}
	return next;
}

static void look_when_due(struct run *run) {
	bool looked[RUN_FAULTS_MAX] = {false};
	uint64_t due_ns;
	uint32_t next;

	while ((next = find_next_due_fault(run, looked, &due_ns)) < run->options->fault_count) {
		run_until(run, due_ns);
		look_at_fault(run, next, row_of(run->options, next));
		looked[next] = true;
	}
	run_until(run, run->world->faults.end_ns);
}

void play_listed(struct run *run) {
	struct world *world = run->world;
	uint64_t end_ns;

	if (run->options->verdicts) {
		must(verdicts_begin(world) == 0);
		world->verdicts->by_faults = true;
		run_until(run, world_now(world) + WARM_NS);
		world->faults.begin_ns = world->faults.end_ns = world_now(world);
	}
	for (uint32_t n = 0; n < run->options->fault_count; n++)
		fault_add(world, &run->options->faults[n]);
	end_ns = world->faults.end_ns;
	load_relay(world, 100 * WORLD_MS, end_ns);
	load_collect(world, 2 * WORLD_SEC, end_ns);
	load_notices(world, 3 * WORLD_SEC, end_ns);
	if (run->options->verdicts)
		look_when_due(run);
}

// M: after all faults, nodes that run are healthy to each other, and others are not. By rule, a
// verdict that changed three times in a minute is unstable until it has been constant for a minute.
static void check_end(struct run *run, uint32_t observer, uint32_t subject) {
	struct world *world = run->world;
	const struct verdict_engine *engine = world->verdicts->nodes[observer].engine;
	const struct node *node = &world->nodes[subject];
	struct verdict_view view;

	if (verdict_view_get(engine, node->record->id, &view) != 0)
		return;
	if (verdicts_is_well(world, subject) && view.verdict > VERDICT_HEALTHY &&
	    view.verdict != VERDICT_UNSTABLE)
		invariants_break(
			world, observer, subject,
			"M: n%05u calls n%05u %s after all faults (%s: %s)", observer + 1,
			subject + 1, verdict_name(view.verdict), view.reason, view.evidence
		);
	if (node->state == NODE_OFF && !node->left && view.verdict == VERDICT_HEALTHY)
		invariants_break(
			world, observer, subject, "M: n%05u calls n%05u healthy, which is off",
			observer + 1, subject + 1
		);
}

void finish_listed(struct run *run) {
	struct world *world = run->world;

	if (world->verdicts == NULL)
		return;
	run_until(run, world_now(world) + HEALED_NS);
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		for (uint32_t k = 0; k < world->options.nodes; k++) {
			if (n != k && world->nodes[n].state == NODE_UP)
				check_end(run, n, k);
		}
	}
	run->result->matrix.present = true;
	verdicts_result(run, world->faults.begin_ns);
	verdicts_end(world);
}
