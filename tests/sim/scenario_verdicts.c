// SPDX-License-Identifier: BSD-3-Clause
// Faults of every kind, alone and in pairs, and the verdicts of uninvolved nodes on them.
//
// A round draws victims that lie apart. Each has one fault, or two that read each other have one
// each. Eight nodes are queried that neither are a victim nor read one. They must name the fault
// within its time. Then all faults end, and the nodes are queried again.
#include "scenario_verdicts.h"

#include "random.h"
#include "run.h"
#include "scenario_parts.h"
#include "stats.h"
#include "verdicts.h"

#include <lib/must.h>

#include <math.h>
#include <string.h>

#define OBSERVERS 8
#define BOUTS_MAX 16
#define HOLD_NS (34 * WORLD_SEC)    // the longest time to reach, plus a margin
#define GOOD_NS (10 * WORLD_SEC)    // default time until the healthy verdict is known everywhere
#define OVERLAP_NS (12 * WORLD_SEC) // maximum delay of the second fault of a pair
#define EXPLAIN_MAX 200
#define REST_NS (10 * WORLD_SEC) // time until all nodes have one view again
#define POLL_NS (100 * WORLD_MS)
#define STUCK_NOTICED_NS (2 * WORLD_SEC) // age at which a keeper reports a hung call
// From this size on there are no partitions: simulating all reports of all nodes would take
// hours.
#define LARGE_NODES 1000
// No fault begins earlier, since paths get a history of this length (path_remember()).
#define BEGIN_NS (VERDICTS_PAST_S * WORLD_SEC)

// One fault and its observers.
struct bout {
	enum matrix_row row;
	uint32_t victim, other; // other: the far end of a path
	uint64_t at_ns;		// begin of the fault
	bool begun;
	uint32_t observers[OBSERVERS];
	uint32_t observer_count;
	bool right[OBSERVERS]; // had the right verdict at some time
	bool exact[OBSERVERS]; // had exactly the right verdict at the time to reach
	bool stray[OBSERVERS]; // had a verdict that is never right for the fault
	bool judged;
	bool said;
	uint32_t pair; // number of its pair; 0: not in a pair
};

struct round {
	struct run *run;
	struct bout bouts[BOUTS_MAX];
	uint32_t count;
	struct stats *times; // times until named, by row
	uint64_t hold_ns;    // end of the round's faults
	// Victims of the previous round, which ended 20 s ago; they must not be victims again.
	// Such a node has changed its verdict three times: named, healed, and named again. One
	// intermediate verdict more makes it unstable (docs/verdicts.md), whatever the second
	// fault is. This scenario tests whether a fault is named; verdict_unstable tests that
	// rule.
	uint32_t before[2 * BOUTS_MAX];
	uint32_t before_count;
	uint32_t explained;
};

static bool is_path(enum matrix_row row) {
	return row == ROW_PATH_CUT || row == ROW_PATH_SLOW || row == ROW_PATH_LOSSY ||
	       (row >= ROW_PATH_SLOW_150 && row <= ROW_PATH_HOLE);
}

static uint64_t id_of(const struct world *world, uint32_t node) {
	return world->nodes[node].record->id;
}

static bool is_victim(const struct round *round, uint32_t node) {
	for (uint32_t n = 0; n < round->count; n++) {
		if (round->bouts[n].victim == node ||
		    (is_path(round->bouts[n].row) && round->bouts[n].other == node))
			return true;
	}
	return false;
}

static bool was_victim(const struct round *round, uint32_t node) {
	for (uint32_t n = 0; n < round->before_count; n++) {
		if (round->before[n] == node)
			return true;
	}
	return false;
}

static bool is_party(const struct round *round, uint32_t node) {
	const struct world *world = round->run->world;

	for (uint32_t n = 0; n < round->count; n++) {
		const struct bout *bout = &round->bouts[n];

		if (verdicts_reads(world, node, bout->victim) ||
		    (is_path(bout->row) && verdicts_reads(world, node, bout->other)))
			return true;
	}
	return false;
}

// Draw observers that take part in no fault of the round. In a small ring all nodes read some
// victim.
static void draw_observers(struct round *round, struct bout *bout) {
	struct world *world = round->run->world;

	for (uint32_t tries = 0; tries < 2000 && bout->observer_count < OBSERVERS; tries++) {
		uint32_t node = world_draw_up(world);
		bool known = false;

		for (uint32_t n = 0; n < bout->observer_count; n++)
			known = known || bout->observers[n] == node;
		if (!known && !is_victim(round, node) && (tries > 1000 || !is_party(round, node)))
			bout->observers[bout->observer_count++] = node;
	}
}

// Return a peer that the victim reads and that reads the victim. Paths that are about to end are
// skipped, since nothing can be observed on them.
static uint32_t far_end(struct round *round, uint32_t victim, uint32_t avoid) {
	struct world *world = round->run->world;
	const struct verdict_node *own = &world->verdicts->nodes[victim];
	uint32_t from = random_below(&world->random, own->path_count);

	uint32_t second = NET_NOBODY;

	for (uint32_t n = 0; n < own->path_count; n++) {
		uint32_t peer = own->paths[(from + n) % own->path_count].peer;

		if (peer == avoid || is_victim(round, peer))
			continue;
		if (!was_victim(round, peer) && verdicts_reads_on(world, victim, peer) &&
		    verdicts_reads_on(world, peer, victim))
			return peer;
		second = peer;
	}
	// In a small ring every peer may have had a fault before. A peer with a fault now has its
	// own verdict, and then no path is named.
	return second != NET_NOBODY ? second : own->paths[from].peer;
}

// `avoid` must not be the far end of a path, since another fault affects it.
static void
add_bout(struct round *round, enum matrix_row row, uint32_t victim, uint32_t pair, uint32_t avoid) {
	struct bout *bout = &round->bouts[round->count++];

	must(round->count <= BOUTS_MAX);
	*bout = (struct bout){.row = row, .victim = victim, .pair = pair};
	if (is_path(row))
		bout->other = far_end(round, victim, avoid);
}

static void
overlay_fault(struct round *round, enum fault_kind kind, uint32_t node, uint32_t value) {
	struct world *world = round->run->world;
	struct fault fault = {
		.kind = kind,
		.node = node,
		.value = value,
		.at_ns = world_now(world) - world->faults.begin_ns,
		.duration_ns = round->hold_ns - world_now(world),
	};

	fault_add(world, &fault);
}

static void freeze(struct round *round, uint32_t victim, enum observation_responder responder) {
	round->run->world->verdicts->nodes[victim].responder = responder;
	overlay_fault(round, FAULT_FREEZE, victim, 0);
}

// Watch the node's readers and the peers it reads, since their observations will be queried.
static void watch(struct world *world, uint32_t node) {
	struct verdict_node *own = &world->verdicts->nodes[node];

	own->watched = true;
	for (uint32_t n = 0; n < own->path_count; n++)
		world->verdicts->nodes[own->paths[n].peer].watched = true;
}

static void unwatch(struct world *world) {
	for (uint32_t n = 0; n < world->options.nodes; n++)
		world->verdicts->nodes[n].watched = false;
}

// Apply an RDMA fault at one end. Both ends were healthy before and have that in their history.
static void fabric_fault(struct round *round, const struct bout *bout) {
	struct world *world = round->run->world;
	struct verdict_node *victim = &world->verdicts->nodes[bout->victim];

	switch (bout->row) {
	case ROW_FABRIC_CUT:
		victim->cut = true;
		return;
	case ROW_NODE_SLOW:
		victim->slow = 300;
		break;
	case ROW_NODE_SLOW_150:
		victim->slow = 150;
		break;
	case ROW_NODE_SLOW_200:
		victim->slow = 200;
		break;
	case ROW_NODE_LOSSY:
		victim->lossy = true;
		break;
	case ROW_NODE_HOLE:
		victim->hole = true;
		break;
	case ROW_NODE_LOSS_5:
		overlay_fault(round, FAULT_LOSS, bout->victim, 5);
		break;
	case ROW_NODE_LOSS_30:
		overlay_fault(round, FAULT_LOSS, bout->victim, 30);
		break;
	case ROW_NODE_LOSS_60:
		overlay_fault(round, FAULT_LOSS, bout->victim, 60);
		break;
	default:
		return;
	}
	verdicts_remember(world, bout->victim);
}

static void between_fault(struct round *round, const struct bout *bout) {
	struct path_fault fault = {
		.a = bout->victim,
		.b = bout->other,
		.cut = bout->row == ROW_PATH_CUT,
		.lossy = bout->row == ROW_PATH_LOSSY,
		.hole = bout->row == ROW_PATH_HOLE,
		.slow = bout->row == ROW_PATH_SLOW	 ? 300
			: bout->row == ROW_PATH_SLOW_150 ? 150
			: bout->row == ROW_PATH_SLOW_200 ? 200
							 : 0,
		.loss = bout->row == ROW_PATH_LOSS_5	? 5
			: bout->row == ROW_PATH_LOSS_30 ? 30
			: bout->row == ROW_PATH_LOSS_60 ? 60
							: 0,
	};

	verdicts_path_fault(round->run->world, &fault);
}

static void begin_bout(struct round *round, struct bout *bout) {
	struct world *world = round->run->world;

	bout->begun = true;
	watch(world, bout->victim);
	if (is_path(bout->row))
		watch(world, bout->other);
	world->verdicts->nodes[bout->victim].sick = !is_path(bout->row);
	if (is_path(bout->row)) {
		between_fault(round, bout);
		return;
	}
	switch (bout->row) {
	case ROW_CRASH:
		overlay_fault(round, FAULT_KILL, bout->victim, 0);
		break;
	case ROW_FREEZE_HARDWARE:
		freeze(round, bout->victim, OBSERVATION_RESPONDER_HARDWARE);
		break;
	case ROW_FREEZE_KERNEL:
		freeze(round, bout->victim, OBSERVATION_RESPONDER_KERNEL);
		break;
	case ROW_FREEZE_IN_PROCESS:
		freeze(round, bout->victim, OBSERVATION_RESPONDER_IN_PROCESS);
		break;
	case ROW_HOST_DEAD:
		overlay_fault(round, FAULT_HOST, bout->victim, 0);
		break;
	case ROW_MGMT_CUT:
		overlay_fault(round, FAULT_DEAF, bout->victim, 0);
		overlay_fault(round, FAULT_MUTE, bout->victim, 0);
		break;
	case ROW_MGMT_DEAF:
		overlay_fault(round, FAULT_DEAF, bout->victim, 0);
		break;
	case ROW_MGMT_MUTE:
		overlay_fault(round, FAULT_MUTE, bout->victim, 0);
		break;
	case ROW_CHECK_FAILED:
		verdicts_say(
			world, bout->victim, VERDICT_CHECK_FAILED, "DiskFull",
			"/scratch is 99 % full"
		);
		break;
	default: // the keeper notices a hung call, later
		fabric_fault(round, bout);
		break;
	}
}

static void end_bout(struct run *run, struct bout *bout) {
	struct world *world = run->world;
	struct verdict_node *victim = &world->verdicts->nodes[bout->victim];

	victim->cut = victim->lossy = victim->hole = false;
	victim->slow = 0;
	if (bout->row == ROW_DEVICE_STUCK)
		verdicts_say(world, bout->victim, VERDICT_HEALTHY, "DeviceStuck", "");
	if (bout->row == ROW_CHECK_FAILED)
		verdicts_say(world, bout->victim, VERDICT_HEALTHY, "DiskFull", "");
	if (is_path(bout->row))
		verdicts_path_heal(world, bout->victim, bout->other);
}

enum verdict verdicts_held_by(const struct world *world, uint32_t observer, uint32_t node) {
	const struct verdict_node *own = &world->verdicts->nodes[observer];
	struct verdict_view view;

	if (own->engine == NULL || verdict_view_get(own->engine, id_of(world, node), &view) != 0)
		return VERDICT_NONE;
	return view.verdict;
}

static bool is_seen_as(enum matrix_row row, const struct observation *observation) {
	switch (row) {
	case ROW_PATH_CUT:
		return observation->kind == OBSERVATION_SILENT;
	case ROW_PATH_SLOW:
	case ROW_PATH_SLOW_150:
	case ROW_PATH_SLOW_200:
		return observation->kind == OBSERVATION_DEGRADED;
	case ROW_PATH_LOSSY:
	case ROW_PATH_HOLE:
		return observation->kind == OBSERVATION_LOSSY;
	default:
		// Return whether the observation shows loss on either plane, by retransmissions.
		return observation->kind == OBSERVATION_LOSSY ||
		       observation->reach == VERDICT_REACH_LOSES;
	}
}

// Return the column of the observer's verdict on the bout.
static uint32_t named_by(const struct world *world, uint32_t observer, const struct bout *bout) {
	const struct verdict_node *own = &world->verdicts->nodes[observer];
	enum verdict verdict = verdicts_held_by(world, observer, bout->victim);
	enum verdict far =
		is_path(bout->row) ? verdicts_held_by(world, observer, bout->other) : verdict;
	struct verdict_path_view path;
	uint32_t cursor = 0;

	if (!is_path(bout->row))
		return verdict;
	if (verdict > VERDICT_HEALTHY || far > VERDICT_HEALTHY)
		return verdict > far ? verdict : far;
	while (own->engine != NULL && verdict_bad_path_next(own->engine, &cursor, &path)) {
		uint64_t a = id_of(world, bout->victim);
		uint64_t b = id_of(world, bout->other);
		bool same = (path.observation.observer == a && path.observation.subject == b) ||
			    (path.observation.observer == b && path.observation.subject == a);

		if (same && path.blame == PATH_BLAME_PATH &&
		    is_seen_as(bout->row, &path.observation))
			return MATRIX_PATH;
	}
	return VERDICT_HEALTHY;
}

// Return the name of the fault that overlaps with this one.
static const char *partner_of(const struct round *round, const struct bout *bout) {
	for (uint32_t n = 0; bout->pair > 0 && n < round->count; n++) {
		if (&round->bouts[n] != bout && round->bouts[n].pair == bout->pair)
			return matrix_rows[round->bouts[n].row].name;
	}
	return "nothing";
}

// Explain the first failures.
static void
explain(struct round *round, const struct bout *bout, uint32_t n, uint32_t column, const char *when
) {
	const struct world *world = round->run->world;
	const struct verdict_node *own = &world->verdicts->nodes[bout->observers[n]];
	uint32_t nodes[2] = {bout->victim, bout->other};
	struct verdict_view view;

	if (!round->run->options->explain || round->explained++ >= EXPLAIN_MAX)
		return;
	fprintf(stderr, "%.1f s: %s (%u, beside %s), %.1f s, %s: n%05u calls it %s\n",
		(double)world_now(world) / 1e9, matrix_rows[bout->row].name, bout->pair,
		partner_of(round, bout), (double)(world_now(world) - bout->at_ns) / 1e9, when,
		bout->observers[n] + 1, column == MATRIX_PATH ? "path" : verdict_name(column));
	for (uint32_t m = 0; m < (is_path(bout->row) ? 2 : 1); m++) {
		if (own->engine != NULL &&
		    verdict_view_get(own->engine, id_of(world, nodes[m]), &view) == 0)
			fprintf(stderr, "  n%05u: %s %s, for %.1f s: %s\n", nodes[m] + 1,
				verdict_name(view.verdict), view.reason,
				(double)(world_now(world) - view.since_ns) / 1e9, view.evidence);
	}
}

// Return whether the verdict is wrong at any time. Some other verdicts are acceptable while a
// fault begins and ends.
static bool is_stray(const struct bout *bout, uint32_t column) {
	bool slow_or_lossy = column == VERDICT_PATH_DEGRADED || column == VERDICT_PATH_LOSSY;

	if (column == matrix_rows[bout->row].column || column == VERDICT_UNKNOWN ||
	    column <= VERDICT_HEALTHY || column == MATRIX_PATH)
		return false;
	return !slow_or_lossy || matrix_rows[bout->row].column > VERDICT_PATH_LOSSY;
}

static void
look_for_strays(struct round *round, struct bout *bout, uint32_t n, struct verdict_matrix *matrix) {
	uint32_t column = named_by(round->run->world, bout->observers[n], bout);

	if (bout->pair > 0 || bout->stray[n] || !is_stray(bout, column))
		return;
	bout->stray[n] = true;
	matrix->strays++;
	explain(round, bout, n, column, "meanwhile");
}

static void poll_bout(struct round *round, struct bout *bout, struct verdict_matrix *matrix) {
	const struct world *world = round->run->world;
	uint64_t passed_ns = world_now(world) - bout->at_ns;
	bool due = !bout->judged && passed_ns >= matrix_rows[bout->row].reach_s * WORLD_SEC;

	for (uint32_t n = 0; n < bout->observer_count; n++) {
		uint32_t right = matrix_rows[bout->row].column;
		uint32_t column =
			bout->right[n] && !due ? right : named_by(world, bout->observers[n], bout);

		if (!bout->right[n] && column == right) {
			bout->right[n] = true;
			if (bout->pair == 0)
				stats_add(&round->times[bout->row], passed_ns);
		}
		look_for_strays(round, bout, n, matrix);
		if (!due)
			continue;
		bout->exact[n] = column == right;
		if (column != right)
			explain(round, bout, n, column, "at the time to reach");
		if (bout->pair == 0)
			matrix->single[bout->row][column]++;
		else
			matrix->pair[bout->row][column]++;
	}
	bout->judged = bout->judged || due;
}

static void notice_stuck(struct run *run, struct bout *bout) {
	if (bout->row != ROW_DEVICE_STUCK || bout->said ||
	    world_now(run->world) < bout->at_ns + STUCK_NOTICED_NS)
		return;
	bout->said = true;
	verdicts_say(
		run->world, bout->victim, VERDICT_DEVICE_STUCK, "DeviceStuck",
		"ibv_create_qp on dev0 hangs"
	);
}

static void judge_pairs(struct round *round, struct verdict_matrix *matrix) {
	for (uint32_t n = 0; n + 1 < round->count; n++) {
		const struct bout *first = &round->bouts[n];
		const struct bout *second = &round->bouts[n + 1];

		if (first->pair == 0 || first->pair != second->pair)
			continue;
		matrix->pairs++;
		for (uint32_t m = 0; m < first->observer_count; m++) {
			matrix->pair_looks++;
			matrix->pair_exact += first->exact[m] && second->exact[m];
		}
	}
}

static void check_held(struct round *round, struct verdict_matrix *matrix) {
	for (uint32_t n = 0; n < round->count; n++) {
		const struct bout *bout = &round->bouts[n];

		for (uint32_t m = 0; bout->pair == 0 && m < bout->observer_count; m++) {
			uint32_t column = named_by(round->run->world, bout->observers[m], bout);

			if (column == matrix_rows[bout->row].column)
				continue;
			matrix->late++;
			matrix->late_of[bout->row]++;
			explain(round, bout, m, column, "at its end");
		}
	}
}

// Check the healed nodes that must be healthy by now, `passed_ns` after the end.
static void check_healed(struct round *round, uint64_t passed_ns) {
	struct verdict_matrix *matrix = &round->run->result->matrix;

	for (uint32_t n = 0; n < round->count; n++) {
		const struct bout *bout = &round->bouts[n];
		uint64_t good_ns = matrix_rows[bout->row].good_s * WORLD_SEC;

		if ((good_ns > 0 ? good_ns : GOOD_NS) != passed_ns)
			continue;
		for (uint32_t m = 0; m < bout->observer_count; m++) {
			uint32_t column = verdicts_held_by(
				round->run->world, bout->observers[m], bout->victim
			);

			matrix->after[bout->row][column]++;
			if (column <= VERDICT_HEALTHY)
				continue;
			// Two faults at once may change a verdict more than three times in a
			// minute. By rule it is then unstable until it has been constant for a
			// minute.
			if (bout->pair > 0 && column == VERDICT_UNSTABLE) {
				matrix->unstable++;
				continue;
			}
			matrix->not_healed++;
			explain(round, bout, m, column, "after its end");
		}
	}
}

// Set the begin of each fault and the common end.
static void plan_round(struct round *round) {
	struct world *world = round->run->world;
	uint64_t end_ns = 0;

	for (uint32_t n = 0; n < round->count; n++) {
		struct bout *bout = &round->bouts[n];
		uint64_t hold_ns = matrix_rows[bout->row].hold_s * WORLD_SEC;

		bout->at_ns = world_now(world);
		// Both faults of a pair have the same observers.
		if (n > 0 && bout->pair > 0 && round->bouts[n - 1].pair == bout->pair) {
			memcpy(bout->observers, bout[-1].observers, sizeof(bout->observers));
			bout->observer_count = bout[-1].observer_count;
			bout->at_ns +=
				random_below(&world->random, (uint32_t)(OVERLAP_NS / WORLD_MS)) *
				WORLD_MS;
		} else {
			draw_observers(round, bout);
		}
		if (hold_ns < HOLD_NS)
			hold_ns = HOLD_NS;
		if (bout->at_ns + hold_ns > end_ns)
			end_ns = bout->at_ns + hold_ns;
		round->run->result->matrix.faults += bout->pair == 0;
	}
	round->hold_ns = end_ns;
}

// End the faults. Verdicts that are held for a while after the end count as right for no fault.
static void heal_round(struct round *round) {
	struct run *run = round->run;
	uint64_t end_ns = world_now(run->world);
	uint64_t good_ns = GOOD_NS;

	for (uint32_t n = 0; n < round->count; n++)
		end_bout(run, &round->bouts[n]);
	for (uint32_t n = 0; n < round->count; n++) {
		uint64_t row_ns = matrix_rows[round->bouts[n].row].good_s * WORLD_SEC;

		good_ns = row_ns > good_ns ? row_ns : good_ns;
	}
	while (world_now(run->world) < end_ns + good_ns && !run->world->invariants.broken) {
		run_until(run, world_now(run->world) + POLL_NS);
		for (uint32_t n = 0; n < round->count; n++) {
			for (uint32_t m = 0; m < round->bouts[n].observer_count; m++)
				look_for_strays(round, &round->bouts[n], m, &run->result->matrix);
		}
		check_healed(round, world_now(run->world) - end_ns);
	}
	verdicts_audit_to(run, world_now(run->world) + REST_NS);
}

static void play_round(struct round *round) {
	struct run *run = round->run;
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;

	plan_round(round);
	while (world_now(world) < round->hold_ns && !world->invariants.broken) {
		for (uint32_t n = 0; n < round->count; n++) {
			struct bout *bout = &round->bouts[n];

			if (!bout->begun && world_now(world) >= bout->at_ns)
				begin_bout(round, bout);
		}
		run_until(run, world_now(world) + POLL_NS);
		for (uint32_t n = 0; n < round->count; n++) {
			if (!round->bouts[n].begun)
				continue;
			notice_stuck(run, &round->bouts[n]);
			poll_bout(round, &round->bouts[n], matrix);
		}
	}
	judge_pairs(round, matrix);
	check_held(round, matrix);
	heal_round(round);
	round->before_count = 0;
	for (uint32_t n = 0; n < round->count; n++) {
		struct verdict_node *victim = &world->verdicts->nodes[round->bouts[n].victim];

		round->before[round->before_count++] = round->bouts[n].victim;
		if (is_path(round->bouts[n].row))
			round->before[round->before_count++] = round->bouts[n].other;
		victim->sick = false;
		victim->responder = OBSERVATION_RESPONDER_HARDWARE;
	}
	unwatch(world);
	verdicts_settle_paths(world);
	round->count = 0;
}

// Return the k-th of `count` places of the ring, spread as far apart as possible.
static uint32_t place_of(const struct run *run, uint32_t from, uint32_t k, uint32_t count) {
	uint32_t nodes = run->options->nodes;

	return (from + (uint32_t)((uint64_t)k * nodes / count)) % nodes;
}

// Return how many faults may run at once without affecting each other or engaging the brake.
static uint32_t at_once(const struct run *run, uint32_t apart, uint32_t most) {
	uint32_t count = run->options->nodes / apart;

	return count < 1 ? 1 : count > most ? most : count;
}

// Draw the start of a round of `count` victims, each with `next` nodes behind it; none was a
// victim in the previous round.
static uint32_t draw_from(struct round *round, uint32_t count, uint32_t next) {
	struct run *run = round->run;
	uint32_t from = 0;

	for (uint32_t tries = 0; tries < 1000; tries++) {
		bool fresh = true;

		from = random_below(&run->world->random, run->options->nodes);
		for (uint32_t k = 0; k < count; k++) {
			uint32_t node = place_of(run, from, k, count);

			fresh = fresh && !was_victim(round, node) &&
				!was_victim(round, (node + next) % run->options->nodes);
		}
		if (fresh)
			break;
	}
	return from;
}

static void play_singles(struct round *round, uint32_t repeats) {
	struct run *run = round->run;
	uint32_t together = at_once(run, 100, ROW_FAULTS);
	uint32_t all = repeats * ROW_FAULTS;

	for (uint32_t n = 0; n < all && !run->world->invariants.broken; n += together) {
		uint32_t from;
		uint32_t count = all - n < together ? all - n : together;

		from = draw_from(round, count, 0);
		for (uint32_t k = 0; k < count; k++)
			add_bout(
				round, (enum matrix_row)((n + k) % ROW_FAULTS),
				place_of(run, from, k, count), 0, NET_NOBODY
			);
		play_round(round);
	}
}

// Play pairs of fault kinds, equal ones included, on two neighbouring nodes. Each seed plays a
// different share of all pairs.
static void play_pairs(struct round *round, uint32_t count) {
	struct run *run = round->run;
	uint32_t together = at_once(run, 200, 5);
	uint32_t from = 0;

	for (uint32_t n = 0; n < count && !run->world->invariants.broken; n++) {
		uint32_t victim;

		if (round->count == 0)
			from = draw_from(round, together, 1);
		victim = place_of(run, from, round->count / 2, together);
		add_bout(
			round, random_below(&run->world->random, ROW_FAULTS), victim, n + 1,
			(victim + 1) % run->options->nodes
		);
		add_bout(
			round, random_below(&run->world->random, ROW_FAULTS),
			(victim + 1) % run->options->nodes, n + 1, NET_NOBODY
		);
		if (round->count == 2 * together)
			play_round(round);
	}
	if (round->count > 0)
		play_round(round);
}

void verdicts_result(struct run *run, uint64_t begin_ns) {
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;
	double nodes = run->options->nodes;
	double seconds = (double)(world_now(world) - begin_ns) / 1e9;
	char text[160];

	matrix->engine_bytes = (double)world->verdicts->bytes / nodes;
	matrix->healthy_drained = world->verdicts->healthy_drained;
	if (world->verdicts->healthy_drained > 0 && run->options->explain)
		fprintf(stderr, "first of those drained: %s\n", world->verdicts->drained_text);
	verdicts_sum(world, &matrix->told_per_node_s, &matrix->told_bytes_per_node_s);
	matrix->told_per_node_s /= nodes * seconds;
	matrix->told_bytes_per_node_s /= nodes * seconds;
	if (matrix_falls_short(matrix, text, sizeof(text)))
		invariants_break(world, world->verdicts->drained_node, NET_NOBODY, "M: %s", text);
}

void play_verdicts(struct run *run) {
	struct stats times[ROW_COUNT] = {0};
	struct round round = {.run = run, .times = times};
	struct verdict_matrix *matrix = &run->result->matrix;
	uint64_t begin_ns = world_now(run->world);
	bool large = run->options->nodes >= LARGE_NODES;

	matrix->present = true;
	must(verdicts_begin(run->world) == 0);
	verdicts_audit_to(run, world_now(run->world) + BEGIN_NS);
	// A notice is sent over every link, so large rings play fewer faults.
	play_singles(&round, large ? 1 : 2);
	play_pairs(&round, large ? 15 : 36);
	if (run->options->nodes >= 64 && !large)
		play_splits(run);
	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		matrix->right_p50_s[row] = stats_quantile(&times[row], 0.5) / 1e9;
		matrix->right_max_s[row] = (double)times[row].max / 1e9;
	}
	verdicts_result(run, begin_ns);
}

void finish_verdicts(struct run *run) {
	verdicts_end(run->world);
}
