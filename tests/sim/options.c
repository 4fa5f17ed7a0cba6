// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_NODES 300
#define OPTIONS_SWARM_MAX 1000000
#define OPTIONS_MINUTES_MAX (60 * 24 * 30)

enum options_letter {
	OPTION_NODES = 'n',
	OPTION_HOSTS = 'H',
	OPTION_SCENARIO = 's',
	OPTION_PROFILE = 'p',
	OPTION_SEED = 'S',
	OPTION_MINUTES = 'm',
	OPTION_FAULTS = 'f',
	OPTION_SWARM = 'w',
	OPTION_EXHAUST = 'e',
	OPTION_DEPTH = 'd',
	OPTION_FROM = 'F',
	OPTION_JOBS = 'J',
	OPTION_VERDICTS = 'v',
	OPTION_BENCH = 'b',
	OPTION_TRACE = 't',
	OPTION_JSON = 'j',
	OPTION_UNCHECKED = 'u',
	OPTION_REMEMBER = 'r',
	OPTION_YOUNG = 'y',
	OPTION_LIST = 'l',
	OPTION_HELP = 'h',
};

static const struct option options_long[] = {
	{"nodes", required_argument, NULL, OPTION_NODES},
	{"hosts", required_argument, NULL, OPTION_HOSTS},
	{"scenario", required_argument, NULL, OPTION_SCENARIO},
	{"profile", required_argument, NULL, OPTION_PROFILE},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"minutes", required_argument, NULL, OPTION_MINUTES},
	{"faults", required_argument, NULL, OPTION_FAULTS},
	{"swarm", required_argument, NULL, OPTION_SWARM},
	{"exhaust", no_argument, NULL, OPTION_EXHAUST},
	{"depth", required_argument, NULL, OPTION_DEPTH},
	{"from", required_argument, NULL, OPTION_FROM},
	{"jobs", required_argument, NULL, OPTION_JOBS},
	{"verdicts", no_argument, NULL, OPTION_VERDICTS},
	{"bench", no_argument, NULL, OPTION_BENCH},
	{"trace", required_argument, NULL, OPTION_TRACE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"unchecked", no_argument, NULL, OPTION_UNCHECKED},
	{"remember", no_argument, NULL, OPTION_REMEMBER},
	{"young", no_argument, NULL, OPTION_YOUNG},
	{"list", no_argument, NULL, OPTION_LIST},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

void options_help(FILE *to) {
	fputs("Usage: tocsin-sim --scenario NAME [OPTION...]\n"
	      "       tocsin-sim --swarm COUNT [OPTION...]\n"
	      "       tocsin-sim --exhaust [--nodes N] [--depth D] [--from INDEX] [--jobs J]\n"
	      "       tocsin-sim --bench [--json] [--minutes M]\n"
	      "\n"
	      "Runs the RAS core of many nodes on a virtual network, under virtual time. The same\n"
	      "options do the same: the digest of two runs is equal.\n"
	      "\n"
	      "  --scenario NAME    what happens; --list tells which there are\n"
	      "  --nodes N          1 to 20000 (default 300; tiny: 3; a swarm: 64; --exhaust:\n"
	      "                     3 to 5, default 3)\n"
	      "  --hosts H          they run on so many hosts, in runs (default: one each;\n"
	      "                     host-down: 8 on each)\n"
	      "  --profile NAME     timers and topology: fast (default) or nccl\n"
	      "  --seed S           of everything that is drawn (default 1)\n"
	      "  --minutes M        virtual minutes that the scenario lasts (default: its own)\n"
	      "  --faults LIST      with --scenario faults: kill:5@2s,freeze:7@3s+6s,split/40@9s+5s,\n"
	      "                     that is kind, node, value, time, duration. Kinds: kill forget\n"
	      "                     leave start freeze stop host deaf mute split fence cut slow\n"
	      "                     reject reset leap stall loss swap stale move clone wrong\n"
	      "                     oneway lag lossin lossout fabric; clone:3/5 has a copy of the state\n"
	      "                     of 5, wrong:3/5 says to have its address, split:7/40 is an\n"
	      "                     island from the host of 7 on\n"
	      "  --remember         who starts again asks members of its last life, beside the seeds\n"
	      "  --young            all join within a second, and faults begin once there is one view\n"
	      "  --swarm COUNT      so many random mixes of faults, from seed S on; the first that\n"
	      "                     breaks an invariant is made smaller and shown\n"
	      "  --exhaust          every combination of up to D faults (--depth, 1 to 3, default 2)\n"
	      "                     from a menu, at a grid of moments, with --verdicts. A combination\n"
	      "                     that breaks an invariant is shown with its command\n"
	      "  --from INDEX       with --exhaust: begin with this combination (default 0)\n"
	      "  --jobs J           with --exhaust: J processes at once (default 1)\n"
	      "  --verdicts         with --scenario faults: verdict engines on all nodes, whose verdicts\n"
	      "                     are scored; no healthy node may be drained\n"
	      "  --bench            the table of figures to reach; its day-long row lasts M minutes\n"
	      "                     (default 60)\n"
	      "  --trace FILE       every step as a line of text\n"
	      "  --unchecked        leave the invariants out\n"
	      "  --json             one object instead of a table\n"
	      "  --list             the scenarios\n"
	      "  --help             this page\n"
	      "\n"
	      "Exit status: 0 done, 1 an invariant is broken or a target missed, 2 the command line\n"
	      "is wrong, 3 anything else.\n",
	      to);
}

void options_list(FILE *to) {
	for (uint32_t n = 0; n < scenario_count; n++)
		fprintf(to, "%-18s %s\n", scenarios[n].name, scenarios[n].summary);
	fprintf(to, "%-18s %s\n", scenario_of_faults.name, scenario_of_faults.summary);
}

static int option_number(
	const char *name, uint64_t min, uint64_t max, struct parse_error *error, uint64_t *ret_value
) {
	struct parse_error reason;
	int err = parse_u64(optarg, strlen(optarg), min, max, &reason, ret_value);

	if (err != 0)
		snprintf(error->text, sizeof(error->text), "--%s: %.200s", name, reason.text);
	return err;
}

static int option_scenario(struct options *options, struct parse_error *error) {
	options->run.scenario = scenario_find(optarg);
	if (options->run.scenario == NULL)
		return parse_fail(
			error, -EINVAL, optarg, strlen(optarg),
			"is no scenario; --list tells which there are"
		);
	return 0;
}

static int option_profile(struct options *options, struct parse_error *error) {
	options->run.profile = ras_profile_find(optarg);
	if (options->run.profile == NULL)
		return parse_fail(
			error, -EINVAL, optarg, strlen(optarg),
			"is no profile; there are: fast, nccl"
		);
	return 0;
}

static int
option_take(int letter, struct options *options, const char **faults, struct parse_error *error) {
	uint64_t number = 0;
	int err = 0;

	switch (letter) {
	case OPTION_NODES:
		err = option_number("nodes", 1, WORLD_NODES_MAX, error, &number);
		options->run.nodes = (uint32_t)number;
		break;
	case OPTION_HOSTS:
		err = option_number("hosts", 1, WORLD_NODES_MAX, error, &number);
		options->run.hosts = (uint32_t)number;
		break;
	case OPTION_SCENARIO:
		return option_scenario(options, error);
	case OPTION_PROFILE:
		return option_profile(options, error);
	case OPTION_SEED:
		return option_number("seed", 0, UINT64_MAX, error, &options->run.seed);
	case OPTION_MINUTES:
		err = option_number("minutes", 1, OPTIONS_MINUTES_MAX, error, &number);
		options->run.length_ns = number * 60 * WORLD_SEC;
		break;
	case OPTION_FAULTS:
		*faults = optarg;
		break;
	case OPTION_SWARM:
		err = option_number("swarm", 1, OPTIONS_SWARM_MAX, error, &number);
		options->swarm = (uint32_t)number;
		options->act = OPTIONS_SWARM;
		break;
	case OPTION_EXHAUST:
		options->act = OPTIONS_EXHAUST;
		break;
	case OPTION_DEPTH:
		err = option_number("depth", 1, EXHAUST_DEPTH_MAX, error, &number);
		options->exhaust.depth = (uint32_t)number;
		break;
	case OPTION_FROM:
		return option_number("from", 0, UINT64_MAX, error, &options->exhaust.from);
	case OPTION_JOBS:
		err = option_number("jobs", 1, EXHAUST_JOBS_MAX, error, &number);
		options->exhaust.jobs = (uint32_t)number;
		break;
	case OPTION_VERDICTS:
		options->run.verdicts = true;
		break;
	case OPTION_TRACE:
		options->trace = optarg;
		break;
	case OPTION_UNCHECKED:
		options->run.check = false;
		break;
	case OPTION_REMEMBER:
		options->run.remember = true;
		break;
	case OPTION_YOUNG:
		options->run.young = true;
		break;
	case OPTION_JSON:
		options->json = true;
		break;
	case OPTION_BENCH:
		options->act = OPTIONS_BENCH;
		break;
	case OPTION_LIST:
		options->act = OPTIONS_LIST;
		break;
	case OPTION_HELP:
		options->act = OPTIONS_HELP;
		break;
	default:
		snprintf(error->text, sizeof(error->text), "see --help");
		return -EINVAL;
	}
	return err;
}

static int options_check_exhaust(struct options *options, struct parse_error *error) {
	struct run_options *run = &options->run;

	if (run->nodes == 0)
		run->nodes = EXHAUST_NODES_MIN;
	if (run->nodes >= EXHAUST_NODES_MIN && run->nodes <= EXHAUST_NODES_MAX && run->hosts == 0)
		return 0;
	snprintf(
		error->text, sizeof(error->text),
		"--exhaust takes %u to %u nodes, each on a host of its own", EXHAUST_NODES_MIN,
		EXHAUST_NODES_MAX
	);
	return -EINVAL;
}

// Refuse FAULT_FABRIC without --verdicts, because only verdicts depend on the fabric. Refuse
// --verdicts with any scenario but the listed faults.
static int options_check_verdicts(const struct options *options, struct parse_error *error) {
	const struct run_options *run = &options->run;
	bool fabric = false;

	for (uint32_t n = 0; n < run->fault_count; n++)
		fabric = fabric || run->faults[n].kind == FAULT_FABRIC;
	if (run->verdicts ? run->scenario == &scenario_of_faults : !fabric)
		return 0;
	snprintf(
		error->text, sizeof(error->text),
		run->verdicts ? "--verdicts belongs to --scenario faults or --swarm"
			      : "the fault fabric needs --verdicts"
	);
	return -EINVAL;
}

// Check and complete the options in combination.
static int
options_apply_defaults(struct options *options, const char *faults, struct parse_error *error) {
	struct run_options *run = &options->run;
	const struct scenario *scenario = run->scenario;
	uint32_t nodes_max = WORLD_NODES_MAX;

	int err;

	if (options->act == OPTIONS_EXHAUST)
		return options_check_exhaust(options, error);
	if (options->act != OPTIONS_PLAY && options->act != OPTIONS_SWARM)
		return 0;
	if (options->act == OPTIONS_SWARM)
		scenario = &scenario_of_faults;
	if (scenario == NULL) {
		snprintf(
			error->text, sizeof(error->text),
			"nothing to do: --scenario NAME, --swarm COUNT, --exhaust or --bench is "
			"needed"
		);
		return -EINVAL;
	}
	run->scenario = scenario;
	if (scenario->nodes_max > 0)
		nodes_max = scenario->nodes_max;
	if (run->nodes == 0)
		run->nodes = scenario->nodes_max > 0	     ? nodes_max - 1
			     : options->act == OPTIONS_SWARM ? 64
							     : OPTIONS_NODES;
	if (run->nodes > nodes_max || run->hosts > run->nodes) {
		snprintf(
			error->text, sizeof(error->text),
			"%u nodes on %u hosts: %s takes 1 to %u nodes, on as many hosts at most",
			run->nodes, run->hosts, scenario->name, nodes_max
		);
		return -EINVAL;
	}
	if ((faults != NULL) != (scenario == &scenario_of_faults && options->act == OPTIONS_PLAY)) {
		snprintf(
			error->text, sizeof(error->text),
			"--faults LIST and --scenario faults belong together"
		);
		return -EINVAL;
	}
	err = faults == NULL ? 0
			     : faults_parse(
				       faults, run->nodes, run->faults, RUN_FAULTS_MAX,
				       &run->fault_count, error
			       );
	return err == 0 ? options_check_verdicts(options, error) : err;
}

int options_parse(
	int argc,
	char **argv,
	enum options_act act,
	struct options *ret_options,
	struct parse_error *error
) {
	struct options options = {
		.act = act,
		.exhaust = {.depth = 2, .jobs = 1},
		.run = {.profile = &ras_profile_fast, .seed = 1, .check = true, .explain = true},
	};
	const char *faults = NULL;
	int letter;
	int err;

	options.run.progress = isatty(STDERR_FILENO) == 1;
	while ((letter = getopt_long(argc, argv, "", options_long, NULL)) != -1) {
		err = option_take(letter, &options, &faults, error);
		if (err != 0)
			return err;
	}
	if (optind < argc)
		return parse_fail(
			error, -EINVAL, argv[optind], strlen(argv[optind]),
			"is no option; see --help"
		);
	err = options_apply_defaults(&options, faults, error);
	if (err != 0)
		return err;
	*ret_options = options;
	return 0;
}
