// SPDX-License-Identifier: BSD-3-Clause
// Options of mesh, and the options of other commands that mesh accepts.
#include "options/options_impl.h"
#include "run/agent_ask.h"

#include <errno.h>
#include <string.h>

#define MESH_ITERATIONS 1000
#define MESH_BW_DURATION_NS UINT64_C(500000000)
#define MESH_BW_DURATION_NS_MAX UINT64_C(60000000000)
// 1 MiB in flight fills 100 Gbit/s up to a round trip of 80 us. More would only lengthen the
// windows of a slow direction.
#define MESH_BW_DEPTH 16
#define AGENTS_ITERATIONS_MAX 10000 // the times of all samples are sent over the relay

static int set_local(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 2, MESH_NODES_MAX, error, &options->mesh.local);
}

static int set_at_once(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 1, MESH_NODES_MAX / 2, error, &options->mesh.at_once);
}

static int set_rank(struct options *options, const char *value, struct parse_error *error) {
	options->mesh.rank_given = true;
	return option_parse_u32(value, 0, MESH_NODES_MAX - 1, error, &options->mesh.rank);
}

static int set_ranks(struct options *options, const char *value, struct parse_error *error) {
	options->mesh.ranks_given = true;
	return option_parse_u32(value, 2, MESH_NODES_MAX, error, &options->mesh.ranks);
}

static int set_rendezvous(struct options *options, const char *value, struct parse_error *error) {
	if (value[0] == '\0' || strcmp(value, "file:") == 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value), "is neither HOST[:PORT] nor file:PATH"
		);
	options->mesh.rendezvous = value;
	return 0;
}

static int set_hosts(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->mesh.hosts = value;
	return 0;
}

static int set_agents(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->mesh.agents = true;
	return 0;
}

static int set_bandwidth(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->session.plan.command = PLAN_BW;
	return 0;
}

static int set_congestion(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->mesh.congestion = true;
	return 0;
}

static int set_incast(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->mesh.incast = true;
	return 0;
}

static const struct option rows[] = {
	OPTION_FLAG("--bandwidth", set_bandwidth, 0, OPTION_MESH),
	OPTION_FLAG("--congestion", set_congestion, 0, OPTION_MESH),
	OPTION_FLAG("--incast", set_incast, 0, OPTION_MESH),
	OPTION("--local", set_local, 0, OPTION_MESH),
	OPTION_FLAG("--agents", set_agents, 0, OPTION_MESH),
	OPTION("--at-once", set_at_once, 0, OPTION_MESH),
	OPTION("--rank", set_rank, 0, OPTION_MESH),
	OPTION("--ranks", set_ranks, 0, OPTION_MESH),
	OPTION("--rendezvous", set_rendezvous, 0, OPTION_MESH),
	OPTION("--hosts", set_hosts, 0, OPTION_MESH),
};

const struct option_table options_of_mesh = OPTION_TABLE(rows);

// Return the first option that belongs to a single pair or to another command, or NULL.
static const char *
option_unsupported_by_mesh(const struct option_words *words, const struct options *options) {
	const uint32_t of_bandwidth = PLAN_PART_DURATION | PLAN_PART_DEPTH | PLAN_PART_PAIRS |
				      PLAN_PART_BOTH_WAYS | PLAN_PART_INLINE;
	const uint32_t others = PLAN_PART_GAP | PLAN_PART_ARRIVALS | PLAN_PART_RATE |
				PLAN_PART_SEED | PLAN_PART_STAMPS;
	bool is_bandwidth = options->session.plan.command == PLAN_BW;
	uint32_t wrong = options->session.given &
			 (others | (is_bandwidth ? PLAN_PART_ITERATIONS : of_bandwidth));

	if (wrong != 0)
		return options_part_name(wrong);
	if (words->host != NULL)
		return words->host;
	if (options->hgrm_path != NULL)
		return "--hgrm";
	if (options->via_node != NULL)
		return "--via-agent";
	if (options->threshold_count > 0)
		return "--fail-if";
	if (options->perftest)
		return "--perftest";
	if (options->runs.count > 0 || options->runs.against != NULL ||
	    options->session.plan.runs > 1)
		return "--runs";
	if (options->runs.margin_given)
		return "--margin";
	if (options->session.memory.kind != MESSAGES_HOST)
		return "--memory";
	if (options->session.file_bytes != RESULT_FILE_BYTES)
		return "--json-bytes";
	if (options->session.priority > 0)
		return "--priority";
	return options->session.cores_given ? "--cores" : words->of_server;
}

// Check the options of --agents: only size and sample count can be set, and no process is started.
static int check_agents(const struct option_words *words, const struct options *options) {
	const struct plan *plan = &options->session.plan;
	const struct mesh_options *mesh = &options->mesh;

	if (plan->op != PLAN_READ)
		return option_fail("--op", "agents only read: use --op read");
	if ((options->session.given & PLAN_PART_POLICY) != 0)
		return option_fail("--policy", "cannot be used with --agents");
	if (words->of_place != NULL)
		return option_fail(words->of_place, "cannot be used with --agents");
	if (mesh->local > 0 || mesh->rendezvous != NULL || mesh->rank_given || mesh->ranks_given ||
	    mesh->hosts != NULL || mesh->at_once > 0)
		return option_fail(
			"--agents",
			"uses running agents, and cannot be combined with --local, --at-once, "
			"--rank, --ranks, --rendezvous or --hosts"
		);
	if (plan_size_max(plan) > AGENT_BYTES_MAX)
		return option_fail(
			"--size", "at most 64KiB, the size of the page that agents read"
		);
	if (plan->iterations > AGENTS_ITERATIONS_MAX)
		return option_fail("--iterations", "at most 10000 of each direction by agents");
	return 0;
}

static int check_mesh(const struct option_words *words, const struct options *options) {
	const struct plan *plan = &options->session.plan;
	const char *wrong = option_unsupported_by_mesh(words, options);
	struct lab_why why = {.text = ""};

	if (wrong != NULL)
		return option_fail(
			wrong, plan->command == PLAN_BW ? "cannot be used with mesh --bandwidth"
							: "cannot be used with mesh"
		);
	if (plan->command == PLAN_BW && options->mesh.agents)
		return option_fail("--agents", "agents measure latency only, not --bandwidth");
	if (plan->command != PLAN_BW && (options->mesh.congestion || options->mesh.incast))
		return option_fail(
			options->mesh.congestion ? "--congestion" : "--incast", "needs --bandwidth"
		);
	if (options->mesh.incast && (plan->op == PLAN_READ || plan_op_is_atomic(plan->op)))
		return option_fail(
			"--incast", "needs write, send or write-imm, whose data goes to the target"
		);
	if (plan->duration_ns > MESH_BW_DURATION_NS_MAX)
		return option_fail("--duration", "at most 60s of each direction");
	if (plan->size_count != 1)
		return option_fail("--size", "a mesh measures one size only");
	if (plan->iterations > RECORD_RAW_MAX)
		return option_fail("--iterations", "at most 262144 of each direction");
	if (plan_check(plan, &why) != 0)
		return option_fail("mesh", why.text);
	if (options->mesh.agents)
		return check_agents(words, options);
	if (options->agent_socket != NULL)
		return option_fail("--agent", "needs --via-agent or mesh --agents");
	if (options->mesh.hosts != NULL && (options->mesh.rank_given || options->mesh.ranks_given))
		return option_fail(
			"--hosts", "prints --rank and --ranks for each process: leave them out"
		);
	if (options->mesh.local > 0 && (words->of_mesh != NULL) &&
	    (options->mesh.rendezvous != NULL || options->mesh.rank_given ||
	     options->mesh.ranks_given || options->mesh.hosts != NULL))
		return option_fail(
			"--local",
			"starts all processes, and cannot be combined with --rank, --ranks, "
			"--rendezvous or --hosts"
		);
	return 0;
}

static void apply_bandwidth_defaults(struct options *options) {
	struct plan *plan = &options->session.plan;
	uint32_t given = options->session.given;

	// Data goes from the row of the matrix to its column, as its title says.
	if ((given & PLAN_PART_OP) == 0)
		plan->op = PLAN_WRITE;
	if ((given & PLAN_PART_DEPTH) == 0)
		plan->depth = MESH_BW_DEPTH;
	if ((given & PLAN_PART_DURATION) == 0)
		plan->duration_ns = MESH_BW_DURATION_NS;
}

int options_parse_mesh(int argc, char **argv, struct options *options) {
	struct option_words words;
	int err;

	options->action = OPTIONS_MESH;
	options_begin(argc, argv, PLAN_LAT, options);
	options->session.plan.iterations = MESH_ITERATIONS;
	err = options_parse_arguments(argc, argv, options, &words);
	if (err == 0)
		err = options_check_files(options);
	if (err != 0)
		return err;
	options_apply_defaults(options);
	if (options->session.plan.command == PLAN_BW)
		apply_bandwidth_defaults(options);
	options->mesh.port = options->session.address.port;
	return check_mesh(&words, options);
}
