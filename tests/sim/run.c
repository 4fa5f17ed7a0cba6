// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

#include "random.h"
#include "verdicts.h"

#include <lib/error.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_STEP_NS (250 * WORLD_MS)
#define RUN_LOOK_NS (10 * WORLD_MS)
#define RUN_EXCERPT_LINES 60
// After this time, the rings of nodes that start at once are complete.
#define RUN_SETTLE_NS (15 * WORLD_SEC)
#define RUN_JOIN_SPREAD_NS WORLD_SEC
#define RUN_JOIN_LIMIT_NS (120 * WORLD_SEC)
#define RUN_TAIL_NS (2 * WORLD_SEC)

static double run_wall_s(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double run_cpu_s(void) {
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void run_show(struct run *run) {
	double wall_s = run_wall_s();

	if (!run->options->progress || wall_s - run->wall_begin_s < 2 ||
	    wall_s - run->wall_shown_s < 0.5)
		return;
	run->wall_shown_s = wall_s;
	run->shown = true;
	fprintf(stderr, "\r%s: %.1f s virtual, %" PRIu64 " messages, %.0f s ",
		run->options->scenario->name, (double)world_now(run->world) / 1e9,
		run->world->net.frames_delivered, wall_s - run->wall_begin_s);
	fflush(stderr);
}

// Listed faults have few nodes and short lives of wrong verdicts, so each step is audited.
static void run_audit(const struct run *run) {
	if (run->options->verdicts && run->world->verdicts != NULL)
		verdicts_audit(run->world);
}

void run_until(struct run *run, uint64_t until_ns) {
	struct world *world = run->world;

	while (world_now(world) < until_ns && !world->invariants.broken) {
		uint64_t next_ns = world_now(world) + RUN_STEP_NS;

		world_run(world, next_ns < until_ns ? next_ns : until_ns);
		run_audit(run);
		run_show(run);
	}
}

double run_await_one_view(struct run *run, uint64_t limit_ns) {
	uint64_t begin_ns = world_now(run->world);

	for (;;) {
		uint64_t next_ns = world_now(run->world) + RUN_STEP_NS;

		if (next_ns > begin_ns + limit_ns)
			next_ns = begin_ns + limit_ns;
		if (world_await_one_view(run->world, next_ns, RUN_LOOK_NS))
			return (double)(world_now(run->world) - begin_ns) / 1e9;
		if (run->world->invariants.broken || next_ns == begin_ns + limit_ns)
			return NAN;
		run_audit(run);
		run_show(run);
	}
}

// Return the time over which nodes start: by hand, by a script, or all at power-on.
static uint64_t run_young_spread_ns(const struct run *run) {
	static const uint64_t spreads_ns[] = {0, 0, 20 * WORLD_MS, 200 * WORLD_MS, WORLD_SEC};
	uint64_t random = random_stream(run->options->seed, 5);

	return spreads_ns[random_below(&random, sizeof(spreads_ns) / sizeof(spreads_ns[0]))];
}

// Form the ring: either it stands from the start, or the nodes join through the seeds within a
// second.
static void run_form(struct run *run) {
	struct world *world = run->world;
	uint32_t nodes = run->options->nodes;
	uint64_t begin_ns = world_now(world);
	bool joins = run->options->scenario->joins || run->options->young;
	struct ras_table *table = joins ? NULL : world_table(world);
	uint64_t spread_ns = RUN_JOIN_SPREAD_NS;

	if (run->options->young)
		spread_ns = run_young_spread_ns(run);
	for (uint32_t n = 0; n < nodes; n++) {
		if (joins && nodes > 1)
			run_until(run, begin_ns + spread_ns * n / nodes);
		node_start(world, n, table, NODE_REMEMBERS);
	}
	ras_table_destroy(table);
	run->result->joined_s = run_await_one_view(run, RUN_JOIN_LIMIT_NS);
	if (isnan(run->result->joined_s))
		invariants_break(
			world, world->straggler, NET_NOBODY, "H: no one view after all were started"
		);
	if (!joins)
		run->result->joined_s = NAN;
	if (!run->options->young)
		run_until(run, world_now(world) + RUN_SETTLE_NS);
}

static void run_faults(struct run *run) {
	const struct scenario *scenario = run->options->scenario;
	const struct ras_profile *profile = run->options->profile;
	struct world *world = run->world;
	uint64_t limit_ns = scenario->limit_s * WORLD_SEC;

	measure_window(world);
	world->faults.begin_ns = world_now(world);
	world->faults.end_ns = world_now(world);
	if (scenario->play != NULL)
		scenario->play(run);
	// The nodes of a profile without evidence need as long as their timers run.
	if (!profile->evidence)
		limit_ns = 4 * profile->dead_ns + run->options->nodes * 2 * profile->news_ns;
	run_until(run, world->faults.end_ns);
	// If more deaths occur at once than the brake lets pass, the brake delays them.
	if (world->options.nodes - world_count_up(world) > profile->brake_peers)
		limit_ns += profile->brake_hold_ns;
	run->result->converged_s = run_await_one_view(run, limit_ns);
	if (isnan(run->result->converged_s) && profile->evidence) {
		run->result->is_known_fault =
			!world->invariants.broken && world_has_unproven_loss(world);
		invariants_break(
			world, world->straggler, NET_NOBODY,
			"H: no one view %u s after the last fault%s", scenario->limit_s,
			run->result->is_known_fault ? " (known fault N7)" : ""
		);
	}
	if (world->faults.count == 0)
		run->result->converged_s = NAN;
	run_until(run, world->faults.begin_ns + run->length_ns);
	run_until(run, world_now(world) + RUN_TAIL_NS);
}

static void run_end_load(struct run *run) {
	for (uint32_t seconds = 0; seconds < 60 && !run->world->invariants.broken; seconds++) {
		if (load_idle(run->world))
			return;
		run_until(run, world_now(run->world) + WORLD_SEC);
	}
}

static double percent(uint64_t part, uint64_t of) {
	return of > 0 ? 100.0 * (double)part / (double)of : NAN;
}

static void run_collect_transfers(const struct load_transfers *load, struct result *result) {
	uint64_t ended = 0;

	if (load->count == 0)
		return;
	for (uint32_t n = 0; n < RAS_TRANSFER_OUTCOME_COUNT; n++)
		ended += n != RAS_TRANSFER_DONE ? load->outcomes[n] : 0;
	result->transfer_done_pct = percent(load->between_live_done, load->between_live);
	result->transfer_done = (double)load->outcomes[RAS_TRANSFER_DONE];
	result->transfer_ended = (double)ended;
	result->transfer_ms_p99 = stats_quantile(&load->time, 0.99) / 1e6;
}

static void run_collect_load(const struct load *load, struct result *result) {
	result->relay_delivered_pct = percent(load->between_live_delivered, load->between_live);
	result->relay_nak_pct = percent(load->to_dead_refused, load->to_dead);
	result->collect_ms_p50 = stats_quantile(&load->collect_time, 0.5) / 1e6;
	if (load->collect_time.count > 0) {
		result->collect_ms_max = (double)load->collect_time.max / 1e6;
		result->collect_hops_max = load->collect_hops_max;
		result->collect_partial = (double)load->collect_partial;
	}
	if (load->notices_due > 0) {
		result->notice_heard_pct = percent(load->notices_heard, load->notices_due);
		result->notice_ms_p99 = stats_quantile(&load->notice_delay, 0.99) / 1e6;
		result->notice_ms_max = (double)load->notice_delay.max / 1e6;
	}
	if (load->message_count == 0)
		return;
	result->relay_delivered = (double)load->outcomes[RAS_RELAY_OUTCOME_DELIVERED];
	result->relay_refused =
		(double)(load->outcomes[RAS_RELAY_OUTCOME_REFUSED] + load->refused_at_once);
	result->relay_expired = (double)load->outcomes[RAS_RELAY_OUTCOME_EXPIRED];
	result->relay_hops_p99 = stats_quantile(&load->relay_hops, 0.99);
	result->relay_ms_p99 = stats_quantile(&load->relay_round_trip, 0.99) / 1e6;
}

static void run_collect(struct run *run) {
	const struct world *world = run->world;
	const struct measure *measure = &world->measure;
	struct result *result = run->result;
	struct measure_traffic traffic;
	struct rusage usage;

	measure_traffic(world, &traffic);
	result->bytes_mean = traffic.bytes_mean;
	result->bytes_p99 = traffic.bytes_p99;
	result->frames_mean = traffic.frames_mean;
	result->frames_p99 = traffic.frames_p99;
	result->first_dead_s = measure_first_death_s(measure);
	result->all_dead_s = measure_last_death_s(measure);
	result->dead_p50_s = stats_quantile(&measure->death_delay, 0.5) / 1e9;
	result->dead_p99_s = stats_quantile(&measure->death_delay, 0.99) / 1e9;
	result->rejoined_s = measure_last_return_s(measure);
	result->false_suspect = (double)measure->false_suspect;
	result->false_dead = (double)measure->false_dead;
	result->declared_dead = (double)measure->declared_dead;
	result->brakes_on = (double)measure->brakes_on;
	result->own_pauses = (double)measure->own_pauses;
	result->conflicts = (double)measure->conflicts;
	result->refused_joins = (double)measure->refused_joins;
	result->flood_hops_max = measure->flood_hops_max;
	result->instance_bytes = (double)measure_instance_bytes(world);
	getrusage(RUSAGE_SELF, &usage);
	result->world_bytes = (double)usage.ru_maxrss * 1024;
	run_collect_load(&world->load, result);
	run_collect_transfers(&world->load.transfers, result);
	result->frames = (double)world->net.frames_delivered;
	result->virtual_s = (double)(world_now(world) - WORLD_SEC) / 1e9;
}

// J: no node is falsely declared dead. Profiles without evidence are exempt, since they exist
// only for comparison.
static void run_check_false(struct run *run) {
	const struct measure *measure = &run->world->measure;

	if (run->options->scenario->lives && run->options->profile->evidence &&
	    measure->false_dead > 0)
		invariants_break(
			run->world, measure->false_node, NET_NOBODY, "J: %" PRIu64 " false deaths",
			measure->false_dead
		);
}

static void run_explain(struct run *run) {
	const struct invariants *invariants = &run->world->invariants;
	char command[RUN_COMMAND_BYTES];

	run->result->broken = true;
	run->result->broken_s = (double)invariants->at_ns / 1e9;
	snprintf(
		run->result->broken_text, sizeof(run->result->broken_text), "%s", invariants->text
	);
	if (!run->options->explain)
		return;
	run_command(run->options, command);
	fprintf(stderr, "broken at %.9f s: %s\nrepeat: tocsin-sim %s\nwhat led to it:\n",
		run->result->broken_s, invariants->text, command);
	trace_excerpt(
		&run->world->trace, invariants->nodes, invariants->node_count, RUN_EXCERPT_LINES,
		stderr
	);
}

static int run_world(struct run *run) {
	const struct run_options *options = run->options;
	const struct scenario *scenario = options->scenario;
	uint32_t nodes = options->nodes + scenario->spare;
	uint32_t per_host = scenario->per_host > 0 ? scenario->per_host : 1;
	struct world_options world_options = {
		.nodes = nodes,
		.hosts = options->hosts > 0 ? options->hosts : (nodes + per_host - 1) / per_host,
		.profile = options->profile,
		.seed = options->seed,
		.check = options->check,
		.remember = options->remember,
		.trace = options->trace,
	};

	run->result->hosts = world_options.hosts;
	return world_create(&world_options, &run->world);
}

int run_play(const struct run_options *options, struct result *ret_result) {
	const struct scenario *scenario = options->scenario;
	struct run run = {
		.options = options,
		.result = ret_result,
		.wall_begin_s = run_wall_s(),
		.cpu_begin_s = run_cpu_s(),
	};
	int err;

	result_init(ret_result);
	snprintf(ret_result->scenario, sizeof(ret_result->scenario), "%s", scenario->name);
	snprintf(ret_result->profile, sizeof(ret_result->profile), "%s", options->profile->name);
	ret_result->nodes = options->nodes;
	ret_result->seed = options->seed;
	run.length_ns = options->length_ns > 0 ? options->length_ns : scenario->seconds * WORLD_SEC;
	err = run_world(&run);
	if (err != 0)
		return err;
	if (scenario->prepare != NULL)
		scenario->prepare(&run);
	run_form(&run);
	if (!run.world->invariants.broken)
		run_faults(&run);
	run_collect(&run);
	if (!run.world->invariants.broken && scenario->finish != NULL)
		scenario->finish(&run);
	run_end_load(&run);
	run_check_false(&run);
	run_collect_load(&run.world->load, ret_result);
	if (run.shown)
		fprintf(stderr, "\n");
	if (run.world->invariants.broken)
		run_explain(&run);
	ret_result->digest = run.world->trace.digest;
	ret_result->wall_s = run_wall_s() - run.wall_begin_s;
	ret_result->cpu_s = run_cpu_s() - run.cpu_begin_s;
	world_destroy(run.world);
	return 0;
}

// Body of the child process.
static _Noreturn void run_child(const struct run_options *options, int to) {
	struct result result;
	int err = run_play(options, &result);

	if (err == 0 && write(to, &result, sizeof(result)) != (ssize_t)sizeof(result))
		err = -EPIPE;
	_exit(err == 0 ? 0 : 1);
}

int run_apart_start(const struct run_options *options, struct run_apart *ret_apart) {
	int ends[2];
	pid_t child;

	if (pipe(ends) != 0)
		return neg_errno();
	fflush(NULL);
	child = fork();
	if (child < 0)
		return neg_errno();
	if (child == 0) {
		close(ends[0]);
		run_child(options, ends[1]);
	}
	close(ends[1]);
	*ret_apart = (struct run_apart){.pid = child, .from = ends[0]};
	return 0;
}

int run_apart_wait(const struct run_apart *apart, struct result *ret_result) {
	struct result result;
	size_t got = 0;
	ssize_t part;
	int status;

	while (got < sizeof(result) &&
	       (part = read(apart->from, (char *)&result + got, sizeof(result) - got)) > 0)
		got += (size_t)part;
	close(apart->from);
	if (waitpid(apart->pid, &status, 0) != apart->pid)
		return neg_errno();
	if (got != sizeof(result)) {
		result_init(&result);
		result.broken = true;
		snprintf(
			result.broken_text, sizeof(result.broken_text),
			WIFSIGNALED(status) ? "the program ended by signal %d"
					    : "it ended with status %d",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)
		);
	}
	*ret_result = result;
	return 0;
}

int run_play_apart(const struct run_options *options, struct result *ret_result) {
	struct run_apart apart;
	int err = run_apart_start(options, &apart);

	return err == 0 ? run_apart_wait(&apart, ret_result) : err;
}

void run_command(const struct run_options *options, char text[static RUN_COMMAND_BYTES]) {
	char fault[FAULT_TEXT_BYTES];
	size_t used;

	used = (size_t)snprintf(
		text, RUN_COMMAND_BYTES, "--nodes %u --scenario %s --profile %s --seed %" PRIu64,
		options->nodes, options->scenario->name, options->profile->name, options->seed
	);
	if (options->hosts > 0)
		used += (size_t
		)snprintf(text + used, RUN_COMMAND_BYTES - used, " --hosts %u", options->hosts);
	if (options->young)
		used += (size_t)snprintf(text + used, RUN_COMMAND_BYTES - used, " --young");
	if (options->remember)
		used += (size_t)snprintf(text + used, RUN_COMMAND_BYTES - used, " --remember");
	if (options->verdicts)
		used += (size_t)snprintf(text + used, RUN_COMMAND_BYTES - used, " --verdicts");
	if (options->length_ns > 0)
		used += (size_t)snprintf(
			text + used, RUN_COMMAND_BYTES - used, " --minutes %" PRIu64,
			options->length_ns / (60 * WORLD_SEC)
		);
	for (uint32_t n = 0; n < options->fault_count; n++) {
		fault_format(&options->faults[n], fault);
		used += (size_t)snprintf(
			text + used, RUN_COMMAND_BYTES - used, "%s%s", n == 0 ? " --faults " : ",",
			fault
		);
	}
}
