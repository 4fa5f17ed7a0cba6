// SPDX-License-Identifier: BSD-3-Clause
// Faults of every kind, alone and in pairs, and what nodes that have no part in them hold of them.
//
// A round: victims are drawn that lie apart, each suffers one fault (or two that read each other
// suffer one each), and eight nodes that neither read a victim nor are one are asked, until and at
// the time by which it has to be named. Then all is mended, and they are asked once more.
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
#define HOLD_NS (34 * WORLD_SEC) // the longest time to reach, and some
#define REST_NS (18 * WORLD_SEC) // until all have one view, and verdicts have settled
#define POLL_NS (100 * WORLD_MS)
#define AUDIT_NS (5 * WORLD_SEC)
#define STUCK_NOTICED_NS (2 * WORLD_SEC) // a keeper reports a call that is older
#define SPLIT_PERCENT 30
#define SPLIT_SAMPLES 20
#define SPLIT_NS (40 * WORLD_SEC)
// From here on nothing is split: all would tell all what they see, for hours of a processor. Such
// worlds begin joined, so that they are younger than the past which paths are given.
#define LARGE_NODES 1000
#define LARGE_BEGIN_NS (90 * WORLD_SEC)
#define BEGIN_NS (10 * WORLD_SEC)
#define EXACT_PERCENT 99
#define SPLIT_EACH_NS (3600 * WORLD_SEC)
#define SPLIT_LEAST_NS (10 * WORLD_SEC)
#define SPLIT_MOST_NS (300 * WORLD_SEC)
#define SPLIT_AFTER_NS (120 * WORLD_SEC)
#define SMALL_PERCENT 5
#define BRAKE_EACH_NS (1200 * WORLD_SEC)

// One fault, and who watches it.
struct bout {
	enum matrix_row row;
	uint32_t victim, other; // other: the far end of a path
	uint64_t at_ns;
	uint32_t observers[OBSERVERS];
	uint32_t observer_count;
	bool right[OBSERVERS]; // was, at some time
	bool exact[OBSERVERS]; // at the time to reach
	bool judged;
	bool said;
	uint32_t pair; // 0: alone, else of which pair
};

struct round {
	struct run *run;
	struct bout bouts[BOUTS_MAX];
	uint32_t count;
	struct stats *times; // by row
};

static bool is_path(enum matrix_row row) {
	return row == ROW_PATH_CUT || row == ROW_PATH_SLOW || row == ROW_PATH_LOSSY;
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

// Those with no part in any fault of the round; in a small ring all read somebody.
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

// One that it reads, and that reads it; no path that is about to end, on which nothing can be seen.
static uint32_t far_end(struct round *round, uint32_t victim) {
	struct world *world = round->run->world;
	const struct verdict_node *own = &world->verdicts->nodes[victim];
	uint32_t from = random_below(&world->random, own->path_count);

	for (uint32_t n = 0; n < own->path_count; n++) {
		uint32_t peer = own->paths[(from + n) % own->path_count].peer;

		if (!is_victim(round, peer) && verdicts_reads_on(world, victim, peer) &&
		    verdicts_reads_on(world, peer, victim))
			return peer;
	}
	return own->paths[from].peer;
}

static struct bout *
add_bout(struct round *round, enum matrix_row row, uint32_t victim, uint32_t pair) {
	struct bout *bout = &round->bouts[round->count++];

	must(round->count <= BOUTS_MAX);
	*bout = (struct bout){.row = row, .victim = victim, .pair = pair};
	if (is_path(row))
		bout->other = far_end(round, victim);
	return bout;
}

static void overlay_fault(struct run *run, enum fault_kind kind, uint32_t node) {
	struct world *world = run->world;
	struct fault fault = {
		.kind = kind,
		.node = node,
		.at_ns = world_now(world) - world->faults.begin_ns,
		.duration_ns = HOLD_NS,
	};

	fault_add(world, &fault);
}

static void freeze(struct run *run, uint32_t victim, enum sight_responder responder) {
	run->world->verdicts->nodes[victim].responder = responder;
	overlay_fault(run, FAULT_FREEZE, victim);
}

// All that read it, and that read what it reads, will be asked what they see.
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

static void begin_bout(struct run *run, struct bout *bout) {
	struct world *world = run->world;
	struct verdict_node *victim = &world->verdicts->nodes[bout->victim];
	struct path_fault fault = {.a = bout->victim, .b = bout->other};

	bout->at_ns = world_now(world);
	watch(world, bout->victim);
	if (is_path(bout->row))
		watch(world, bout->other);
	victim->sick = !is_path(bout->row);
	switch (bout->row) {
	case ROW_CRASH:
		overlay_fault(run, FAULT_KILL, bout->victim);
		break;
	case ROW_FREEZE_HARDWARE:
		freeze(run, bout->victim, SIGHT_RESPONDER_HARDWARE);
		break;
	case ROW_FREEZE_KERNEL:
		freeze(run, bout->victim, SIGHT_RESPONDER_KERNEL);
		break;
	case ROW_FREEZE_IN_PROCESS:
		freeze(run, bout->victim, SIGHT_RESPONDER_IN_PROCESS);
		break;
	case ROW_HOST_DEAD:
		overlay_fault(run, FAULT_HOST, bout->victim);
		break;
	case ROW_MGMT_CUT:
		overlay_fault(run, FAULT_DEAF, bout->victim);
		overlay_fault(run, FAULT_MUTE, bout->victim);
		break;
	case ROW_FABRIC_CUT:
		victim->cut = true;
		break;
	case ROW_DEVICE_STUCK:
		break; // noticed by its own keeper, later
	case ROW_CHECK_FAILED:
		verdicts_say(
			world, bout->victim, VERDICT_CHECK_FAILED, "DiskFull",
			"/scratch is 99 % full"
		);
		break;
	case ROW_NODE_SLOW:
		victim->slow = 3;
		verdicts_remember(world, bout->victim);
		break;
	case ROW_NODE_LOSSY:
		victim->lossy = true;
		verdicts_remember(world, bout->victim);
		break;
	default:
		fault.cut = bout->row == ROW_PATH_CUT;
		fault.slow = bout->row == ROW_PATH_SLOW ? 3 : 0;
		fault.lossy = bout->row == ROW_PATH_LOSSY;
		verdicts_path_fault(world, &fault);
		break;
	}
}

static void end_bout(struct run *run, struct bout *bout) {
	struct world *world = run->world;
	struct verdict_node *victim = &world->verdicts->nodes[bout->victim];

	victim->cut = victim->lossy = false;
	victim->slow = 0;
	if (bout->row == ROW_DEVICE_STUCK)
		verdicts_say(world, bout->victim, VERDICT_HEALTHY, "DeviceStuck", "");
	if (bout->row == ROW_CHECK_FAILED)
		verdicts_say(world, bout->victim, VERDICT_HEALTHY, "DiskFull", "");
	if (is_path(bout->row))
		verdicts_path_heal(world, bout->victim, bout->other);
}

static enum verdict held_by(const struct world *world, uint32_t observer, uint32_t node) {
	const struct verdict_node *own = &world->verdicts->nodes[observer];
	struct verdict_view view;

	if (own->engine == NULL || verdict_of(own->engine, id_of(world, node), &view) != 0)
		return VERDICT_NONE;
	return view.verdict;
}

// What the observer says of the bout, as a column.
static uint32_t named_by(const struct world *world, uint32_t observer, const struct bout *bout) {
	const struct verdict_node *own = &world->verdicts->nodes[observer];
	enum verdict verdict = held_by(world, observer, bout->victim);
	enum verdict far = is_path(bout->row) ? held_by(world, observer, bout->other) : verdict;
	enum sight_kind kind = bout->row == ROW_PATH_CUT    ? SIGHT_SILENT
			       : bout->row == ROW_PATH_SLOW ? SIGHT_DEGRADED
							    : SIGHT_LOSSY;
	struct verdict_path_view path;
	uint32_t cursor = 0;

	if (!is_path(bout->row))
		return verdict;
	if (verdict > VERDICT_HEALTHY || far > VERDICT_HEALTHY)
		return verdict > far ? verdict : far;
	while (own->engine != NULL && verdict_path_next(own->engine, &cursor, &path)) {
		uint64_t a = id_of(world, bout->victim);
		uint64_t b = id_of(world, bout->other);
		bool same = (path.sight.observer == a && path.sight.subject == b) ||
			    (path.sight.observer == b && path.sight.subject == a);

		if (same && path.sight.kind == kind && path.blame == PATH_BLAME_PATH)
			return MATRIX_PATH;
	}
	return VERDICT_HEALTHY;
}

static void poll_bout(struct round *round, struct bout *bout, struct verdict_matrix *matrix) {
	const struct world *world = round->run->world;
	uint64_t passed_ns = world_now(world) - bout->at_ns;
	bool due = !bout->judged && passed_ns >= matrix_rows[bout->row].reach_s * WORLD_SEC;

	for (uint32_t n = 0; n < bout->observer_count; n++) {
		uint32_t column = bout->right[n] && !due
					  ? matrix_rows[bout->row].column
					  : named_by(world, bout->observers[n], bout);

		if (!bout->right[n] && column == matrix_rows[bout->row].column) {
			bout->right[n] = true;
			if (bout->pair == 0)
				stats_add(&round->times[bout->row], passed_ns);
		}
		if (!due)
			continue;
		bout->exact[n] = column == matrix_rows[bout->row].column;
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

static void check_healed(struct round *round, struct verdict_matrix *matrix) {
	struct world *world = round->run->world;

	for (uint32_t n = 0; n < round->count; n++) {
		const struct bout *bout = &round->bouts[n];

		for (uint32_t m = 0; m < bout->observer_count; m++)
			matrix->not_healed +=
				held_by(world, bout->observers[m], bout->victim) > VERDICT_HEALTHY;
	}
}

static void audit_to(struct run *run, uint64_t until_ns) {
	while (world_now(run->world) < until_ns && !run->world->invariants.broken) {
		uint64_t next_ns = world_now(run->world) + AUDIT_NS;

		run_until(run, next_ns < until_ns ? next_ns : until_ns);
		verdicts_audit(run->world);
	}
}

static void play_round(struct round *round) {
	struct run *run = round->run;
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;
	uint64_t begin_ns = world_now(world);

	for (uint32_t n = 0; n < round->count; n++) {
		struct bout *bout = &round->bouts[n];

		// Both of a pair are asked about by the same nodes.
		if (n > 0 && bout->pair > 0 && round->bouts[n - 1].pair == bout->pair) {
			memcpy(bout->observers, bout[-1].observers, sizeof(bout->observers));
			bout->observer_count = bout[-1].observer_count;
		} else {
			draw_observers(round, bout);
		}
		matrix->faults += bout->pair == 0;
	}
	for (uint32_t n = 0; n < round->count; n++)
		begin_bout(run, &round->bouts[n]);
	while (world_now(world) < begin_ns + HOLD_NS && !world->invariants.broken) {
		run_until(run, world_now(world) + POLL_NS);
		for (uint32_t n = 0; n < round->count; n++) {
			notice_stuck(run, &round->bouts[n]);
			poll_bout(round, &round->bouts[n], matrix);
		}
	}
	judge_pairs(round, matrix);
	for (uint32_t n = 0; n < round->count; n++)
		end_bout(run, &round->bouts[n]);
	audit_to(run, world_now(world) + REST_NS);
	check_healed(round, matrix);
	for (uint32_t n = 0; n < round->count; n++) {
		struct verdict_node *victim = &world->verdicts->nodes[round->bouts[n].victim];

		victim->sick = false;
		victim->responder = SIGHT_RESPONDER_HARDWARE;
	}
	unwatch(world);
	round->count = 0;
}

// Places of the ring, `count` of them, as far apart as they can be.
static uint32_t place_of(const struct run *run, uint32_t from, uint32_t k, uint32_t count) {
	uint32_t nodes = run->options->nodes;

	return (from + (uint32_t)((uint64_t)k * nodes / count)) % nodes;
}

// So many at once that they have no part in each other, nor wake the brake.
static uint32_t at_once(const struct run *run, uint32_t apart, uint32_t most) {
	uint32_t count = run->options->nodes / apart;

	return count < 1 ? 1 : count > most ? most : count;
}

static void play_singles(struct round *round, uint32_t repeats) {
	struct run *run = round->run;
	uint32_t together = at_once(run, 100, ROW_FAULTS);
	uint32_t all = repeats * ROW_FAULTS;

	for (uint32_t n = 0; n < all && !run->world->invariants.broken; n += together) {
		uint32_t from = random_below(&run->world->random, run->options->nodes);
		uint32_t count = all - n < together ? all - n : together;

		for (uint32_t k = 0; k < count; k++)
			add_bout(
				round, (enum matrix_row)((n + k) % ROW_FAULTS),
				place_of(run, from, k, count), 0
			);
		play_round(round);
	}
}

// Each kind with each, itself included, on two nodes that are next to each other.
static void play_pairs(struct round *round, uint32_t every) {
	struct run *run = round->run;
	uint32_t together = at_once(run, 200, 5);
	uint32_t from = 0;
	uint32_t number = 0;

	for (uint32_t n = 0; n < ROW_FAULTS * ROW_FAULTS && !run->world->invariants.broken; n++) {
		enum matrix_row a = (enum matrix_row)(n / ROW_FAULTS);
		enum matrix_row b = (enum matrix_row)(n % ROW_FAULTS);
		uint32_t victim;

		if (b < a || (a + b) % every != 0)
			continue;
		if (round->count == 0)
			from = random_below(&run->world->random, run->options->nodes);
		victim = place_of(run, from, round->count / 2, together);
		number++;
		add_bout(round, a, victim, number);
		add_bout(round, b, (victim + 1) % run->options->nodes, number);
		if (round->count == 2 * together)
			play_round(round);
	}
	if (round->count > 0)
		play_round(round);
}

// One of the smaller side that two of the larger read: of others nobody there can know anything.
static uint32_t draw_read(struct world *world, uint32_t nodes, uint32_t island) {
	uint32_t node = 0;

	for (uint32_t tries = 0; tries < 1000; tries++) {
		uint32_t readers = 0;

		node = random_below(&world->random, island);
		for (uint32_t n = island; n < nodes && readers < 2; n++)
			readers += verdicts_reads(world, n, node);
		if (readers > 1)
			break;
	}
	return node;
}

// What those on the larger side hold of those on the smaller.
static void look_over(struct run *run, enum matrix_row row, uint32_t island) {
	struct world *world = run->world;
	uint32_t nodes = run->options->nodes;

	for (uint32_t n = 0; n < SPLIT_SAMPLES; n++) {
		uint32_t observer = island + random_below(&world->random, nodes - island);
		uint32_t node = draw_read(world, nodes, island);

		run->result->matrix.single[row][held_by(world, observer, node)]++;
	}
}

static void play_splits(struct run *run) {
	struct world *world = run->world;
	uint32_t island = run->options->nodes * SPLIT_PERCENT / 100;
	struct fault split = {
		.kind = FAULT_SPLIT,
		.value = SPLIT_PERCENT,
		.at_ns = world_now(world) - world->faults.begin_ns,
		.duration_ns = SPLIT_NS,
	};

	fault_add(world, &split);
	for (uint32_t n = 0; n < run->options->nodes; n++)
		world->verdicts->nodes[n].watched = true;
	audit_to(run, world_now(world) + matrix_rows[ROW_MGMT_SPLIT].reach_s * WORLD_SEC);
	look_over(run, ROW_MGMT_SPLIT, island);
	audit_to(run, world_now(world) + SPLIT_NS + 20 * WORLD_SEC);
	for (uint32_t n = 0; n < island; n++)
		world->verdicts->nodes[n].cut = world->verdicts->nodes[n].sick = true;
	audit_to(run, world_now(world) + matrix_rows[ROW_FABRIC_SPLIT].reach_s * WORLD_SEC);
	look_over(run, ROW_FABRIC_SPLIT, island);
	for (uint32_t n = 0; n < island; n++)
		world->verdicts->nodes[n].cut = false;
	audit_to(run, world_now(world) + 30 * WORLD_SEC);
	unwatch(world);
	for (uint32_t n = 0; n < island; n++)
		world->verdicts->nodes[n].sick = false;
	audit_to(run, world_now(world) + REST_NS);
}

static void verdicts_result(struct run *run, uint64_t begin_ns) {
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;
	double nodes = run->options->nodes;
	double seconds = (double)(world_now(world) - begin_ns) / 1e9;

	matrix->engine_bytes = (double)world->verdicts->bytes / nodes;
	matrix->healthy_drained = world->verdicts->healthy_drained;
	if (world->verdicts->healthy_drained > 0 && run->options->explain)
		fprintf(stderr, "first of those drained: %s\n", world->verdicts->drained_text);
	verdicts_sum(world, &matrix->told_per_node_s, &matrix->told_bytes_per_node_s);
	matrix->told_per_node_s /= nodes * seconds;
	matrix->told_bytes_per_node_s /= nodes * seconds;
	if (matrix->healthy_drained > 0)
		invariants_break(
			world, world->verdicts->drained_node, NET_NOBODY,
			"M: %u healthy nodes would be drained", matrix->healthy_drained
		);
	else if (matrix->faults > 0 && matrix_single_pct(matrix) < EXACT_PERCENT)
		invariants_break(
			world, 0, NET_NOBODY, "M: only %.2f %% of single faults are named exactly",
			matrix_single_pct(matrix)
		);
}

void play_verdicts(struct run *run) {
	struct stats times[ROW_COUNT] = {0};
	struct round round = {.run = run, .times = times};
	struct verdict_matrix *matrix = &run->result->matrix;
	uint64_t begin_ns = world_now(run->world);
	bool large = run->options->nodes >= LARGE_NODES;

	matrix->present = true;
	must(verdicts_begin(run->world) == 0);
	audit_to(run, world_now(run->world) + (large ? LARGE_BEGIN_NS : BEGIN_NS));
	// A notice is a message on every link: thousands of nodes have fewer faults each.
	play_singles(&round, large ? 1 : 2);
	play_pairs(&round, large ? 7 : 3);
	if (run->options->nodes >= 64 && !large)
		play_splits(run);
	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		matrix->right_p50_s[row] = stats_quantile(&times[row], 0.5) / 1e9;
		matrix->right_max_s[row] = (double)times[row].max / 1e9;
	}
	verdicts_result(run, begin_ns);
}

// The overlay falls apart now and then, for less than the brake holds: the larger part has to
// brake.
static void add_brakes(struct run *run) {
	for (uint64_t at_ns = BRAKE_EACH_NS / 4; at_ns + BRAKE_EACH_NS / 4 < run->length_ns;
	     at_ns += BRAKE_EACH_NS) {
		struct fault split = {
			.kind = FAULT_SPLIT,
			.value = 25 + random_below(&run->world->random, 26),
			.at_ns = at_ns,
			.duration_ns =
				random_between(&run->world->random, 10 * WORLD_SEC, 40 * WORLD_SEC),
		};

		fault_add(run->world, &split);
	}
}

// Members that are slow now and then, brakes, and nothing else: nobody is to be drained.
void play_verdicts_slow(struct run *run) {
	uint64_t begin_ns = world_now(run->world);

	run->result->matrix.present = true;
	must(verdicts_begin(run->world) == 0);
	play_slow_members(run);
	add_brakes(run);
	audit_to(run, begin_ns + run->length_ns);
	verdicts_result(run, begin_ns);
}

// A part that is no more than may be drained in ten minutes is cut off from nearly all others for
// as long as the split lasts: whoever acts on it is right.
static bool is_small_part(const struct run *run, uint32_t island) {
	return island * 100 <= run->options->nodes * SMALL_PERCENT;
}

static void play_one_split(struct run *run, bool of_fabric) {
	struct world *world = run->world;
	uint32_t percent = 3 + random_below(&world->random, 58);
	uint32_t island = run->options->nodes * percent / 100;
	uint64_t length_ns = SPLIT_LEAST_NS << random_below(&world->random, 5);
	struct fault split = {
		.kind = FAULT_SPLIT,
		.value = percent,
		.at_ns = world_now(world) - world->faults.begin_ns,
	};

	length_ns += random_between(&world->random, 0, length_ns);
	if (length_ns > SPLIT_MOST_NS)
		length_ns = SPLIT_MOST_NS;
	split.duration_ns = length_ns;
	for (uint32_t n = 0; n < run->options->nodes; n++) {
		world->verdicts->nodes[n].watched = true;
		world->verdicts->nodes[n].sick = n < island && is_small_part(run, island);
	}
	if (of_fabric)
		world->verdicts->island = island;
	else
		fault_add(world, &split);
	audit_to(run, world_now(world) + length_ns);
	world->verdicts->island = 0;
	audit_to(run, world_now(world) + SPLIT_AFTER_NS);
	unwatch(world);
	for (uint32_t n = 0; n < run->options->nodes; n++)
		world->verdicts->nodes[n].sick = false;
}

// Every hour one plane falls apart for ten seconds to five minutes, at any place: nobody is to be
// drained by it, in neither part.
void play_verdicts_splits(struct run *run) {
	struct world *world = run->world;
	uint64_t begin_ns = world_now(world), next_ns = begin_ns + BEGIN_NS;
	bool of_fabric = false;

	run->result->matrix.present = true;
	must(verdicts_begin(world) == 0);
	while (next_ns + SPLIT_MOST_NS + SPLIT_AFTER_NS < begin_ns + run->length_ns &&
	       !world->invariants.broken) {
		audit_to(run, next_ns + random_between(&world->random, 0, SPLIT_EACH_NS / 4));
		play_one_split(run, of_fabric);
		of_fabric = !of_fabric;
		next_ns += SPLIT_EACH_NS;
	}
	audit_to(run, begin_ns + run->length_ns);
	verdicts_result(run, begin_ns);
}

void finish_verdicts(struct run *run) {
	verdicts_end(run->world);
}
