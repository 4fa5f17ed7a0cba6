// SPDX-License-Identifier: BSD-3-Clause
// Reads the command line.
#include "options.h"

#include "kept.h"

#include <lib/escape.h>
#include <lib/parse.h>
#include <lib/suggestion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_BYTES 80
#define NAME_BYTES 32
#define MARGIN_PPM 20000
#define MESH_ITERATIONS 1000
#define RUN_PATIENCE_NS UINT64_C(60000000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char help_text[] =
	"Usage: tocsin-perf lat|bw [OPTION]... [HOST]\n"
	"       tocsin-perf mesh [--local N] [OPTION]...\n"
	"       tocsin-perf net [--duration TIME] [--json FILE]\n"
	"       tocsin-perf policy [--rates LIST] [OPTION]... [HOST]\n"
	"       tocsin-perf compare A.json... --with B.json... [--margin PERCENT] [--html FILE]\n"
	"       tocsin-perf history DIRECTORY [--margin PERCENT] [--html FILE]\n"
	"       tocsin-perf verify FILE [--html FILE]\n"
	"\n"
	"lat measures the latency of RDMA operations between two ends, bw how many they move with many\n"
	"under way at once. Without HOST it waits for one\n"
	"client, and serves it; with HOST it is that client, and prints what it measured. Without a\n"
	"word about devices each end takes the best there is, else the software device.\n"
	"mesh measures the latency between all pairs of several processes, which srun or mpirun starts, or\n"
	"itself on one machine, and says what stands out: a node, racks, rails.\n"
	"net measures the floors of this machine, without any device: clock, system call, cache line,\n"
	"wake-up, UDP; for 300ms each by default. lat and bw print the least of a few beside results.\n"
	"policy plays lat with every policy of waiting under every load of --rates (closed,100,1000,5000 by\n"
	"default; arrivals by Poisson), and puts latency beside the processor time of both workers. Without\n"
	"HOST both ends are its own. It passes on --op (send by default), --size, --duration (1s), --device,\n"
	"--timeout and --port, and has --json.\n"
	"compare says whether the runs of B are slower than those of A, or faster, or the same within\n"
	"the margin (2% of A by default). Each file is a run; it needs some of each side.\n"
	"history says since which run of a directory something is slower or faster, of results of the\n"
	"same plan, machines and devices, in the order in which they began.\n"
	"verify computes every figure of a file that --json wrote once more, from what it keeps.\n"
	"These three draw a page of it, too, where --html asks for one.\n"
	"\n"
	"What is measured (the client decides; what the server is given must be the same):\n"
	"  --op OP              read (default), write, send, write-imm, cas, fadd; of write, send and\n"
	"                       write-imm the peer answers each, and half of the round trip is one way\n"
	"  --size LIST          bytes: 64 (default), 2,64,4KiB; all: powers of two up to 8 MiB\n"
	"  --iterations N       samples of each size; 20000 by default\n"
	"  --duration TIME      in place of these: for so long, as 5s\n"
	"  --gap TIME           from the end of an operation to the next one; in no sample\n"
	"  --policy POLICY      how both ends wait: spin (default), window, event, adaptive\n"
	"  --arrivals WHEN      closed (default): the next one when the one before has ended. An open\n"
	"                       loop: constant, poisson, onoff (bursts of 8) at --rate, trace:FILE\n"
	"  --rate N             operations a second of an open loop\n"
	"  --seed N             of poisson and onoff; 1 by default\n"
	"Of bw: 64 KiB for 2s of each size by default, and --iterations are messages. Not for it are\n"
	"--gap, --arrivals, --rate, --fail-if and --hgrm:\n"
	"  --depth N            operations under way on each queue pair; 64 by default\n"
	"  --queue-pairs N      1 by default\n"
	"  --bidirectional      the server sends as the client does\n"
	"Of mesh, which has 1000 samples of each direction by default and no --duration:\n"
	"  --local N            N processes of this machine, started by itself\n"
	"  --rendezvous WHERE   where process 0 is: HOST[:PORT], port 18521 by default, or file:PATH of a\n"
	"                       file that all see; by default the first node of Slurm's step\n"
	"  --rank R --ranks N   this is process R of N, for other launchers\n"
	"  --hosts LIST         print the commands that start it by ssh on node[1-4], and end\n"
	"  --at-once N          pairs at most; by default as many as processors allow\n"
	"Where (each end for itself):\n"
	"  --device NAME        an RDMA device, or soft\n"
	"  --ib-port N, --gid-index N, --mtu BYTES, --traffic-class N, --service-level N\n"
	"  --timeout N          of a packet without an answer, 4.096 us * 2^N; 14 (67 ms) by default\n"
	"  --retry N            how often it is sent again, 0 to 7; 6 by default\n"
	"  --cores N            the processor that polls\n"
	"  --port N             of the control connection; 18520 by default\n"
	"  --listen ADDRESS     the server's; all by default\n"
	"What becomes of it (the client's):\n"
	"  --fail-if WHAT       p99>10us, half.p50>2us, service.p99>1ms, max>1ms, min, mean; again and\n"
	"                       again; < too. Exit status 1 if the whole interval lies beyond, 3 if a\n"
	"                       part of it does\n"
	"  --json FILE          all of it, for verify; - is standard output, in place of the table\n"
	"  --csv FILE           a line for each quantile\n"
	"  --hgrm FILE          percentiles as HdrHistogram prints them\n"
	"  --html FILE          a page with pictures, one file that needs no network\n"
	"  --perftest           the columns of perftest in place of the table\n"
	"  --runs K             K runs, each of new processes at both ends: what compare takes. --json\n"
	"                       r.json writes r.1.json, r.2.json and so on\n"
	"  --against 'OPTIONS'  runs with these options as well, in turn (A B B A ...), then compared;\n"
	"                       r.a1.json, r.b1.json. --margin as of compare\n"
	"  --run N/K            this is one of K runs: the server begins anew for the next. Of a server:\n"
	"                       it waits a minute for this one\n"
	"  --help, --version, -V\n"
	"\n"
	"Exit status: 0 done, 1 a threshold fails, B or the newest runs are slower, or a figure differs,\n"
	"2 a mistake in an option, 3 a threshold, a comparison or a history is undecided, 4 the run\n"
	"failed; what was measured by then is printed.\n";

void options_print_help(void) {
	fputs(help_text, stdout);
}

static int option_fail(const char *option, const char *text) {
	fprintf(stderr, "tocsin-perf: %s: %s\n", option, text);
	return -EINVAL;
}

static int set_op(struct options *options, const char *value, struct parse_error *error) {
	if (plan_op_parse(value, &options->session.plan.op) != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is none of read, write, send, write-imm, cas, fadd"
		);
	return 0;
}

static int add_size(struct plan *plan, const char *text, size_t length, struct parse_error *error) {
	if (plan->size_count == PLAN_SIZES_MAX)
		return parse_fail(error, -EINVAL, text, length, "is one size too many");
	return parse_size_bytes(
		text, length, 1, PLAN_SIZE_BYTES_MAX, error, &plan->sizes[plan->size_count++]
	);
}

static int set_size(struct options *options, const char *value, struct parse_error *error) {
	struct plan *plan = &options->session.plan;
	int err = 0;

	plan->size_count = 0;
	if (strcmp(value, "all") == 0) {
		for (uint64_t size = 1; size <= PLAN_SIZE_BYTES_MAX; size *= 2)
			plan->sizes[plan->size_count++] = size;
		return 0;
	}
	for (;;) {
		size_t length = strcspn(value, ",");

		err = add_size(plan, value, length, error);
		if (err != 0 || value[length] == '\0')
			return err;
		value += length + 1;
	}
}

static int set_iterations(struct options *options, const char *value, struct parse_error *error) {
	return parse_u64(
		value, strlen(value), 1, PLAN_ITERATIONS_MAX, error,
		&options->session.plan.iterations
	);
}

static int set_duration(struct options *options, const char *value, struct parse_error *error) {
	return parse_duration_ns(
		value, strlen(value), 1000000, PLAN_DURATION_NS_MAX, error,
		&options->session.plan.duration_ns
	);
}

static int set_gap(struct options *options, const char *value, struct parse_error *error) {
	return parse_duration_ns(
		value, strlen(value), 0, PLAN_GAP_NS_MAX, error, &options->session.plan.gap_ns
	);
}

static int set_policy(struct options *options, const char *value, struct parse_error *error) {
	if (idle_policy_parse(value, &options->session.plan.policy) != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is none of spin, window, event, adaptive"
		);
	return 0;
}

static int set_arrivals(struct options *options, const char *value, struct parse_error *error) {
	struct plan *plan = &options->session.plan;

	if (strncmp(value, "trace:", 6) == 0 && value[6] != '\0') {
		plan->arrivals = PLAN_TRACE;
		options->session.trace_path = value + 6;
		return 0;
	}
	if (plan_arrivals_parse(value, &plan->arrivals) != 0 || plan->arrivals == PLAN_TRACE)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is none of closed, constant, poisson, onoff, trace:FILE"
		);
	return 0;
}

static int
parse_u32(const char *value, uint32_t min, uint32_t max, struct parse_error *error, uint32_t *ret) {
	uint64_t number;
	int err = parse_u64(value, strlen(value), min, max, error, &number);

	if (err == 0)
		*ret = (uint32_t)number;
	return err;
}

static int set_rate(struct options *options, const char *value, struct parse_error *error) {
	return parse_u32(value, 1, PLAN_RATE_MAX, error, &options->session.plan.rate);
}

static int set_seed(struct options *options, const char *value, struct parse_error *error) {
	return parse_u64(value, strlen(value), 0, INT64_MAX, error, &options->session.plan.seed);
}

static int set_depth(struct options *options, const char *value, struct parse_error *error) {
	return parse_u32(value, 1, PLAN_DEPTH_MAX, error, &options->session.plan.depth);
}

static int set_pairs(struct options *options, const char *value, struct parse_error *error) {
	return parse_u32(value, 1, PLAN_PAIRS_MAX, error, &options->session.plan.pairs);
}

static int set_device(struct options *options, const char *value, struct parse_error *error) {
	if (value[0] == '\0' || strlen(value) > DEVICE_NAME_MAX)
		return parse_fail(error, -EINVAL, value, strlen(value), "is no name of a device");
	options->session.device = value;
	return 0;
}

static int set_ib_port(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 1, 254, error, &number);

	if (err == 0)
		options->session.settings.port = (uint8_t)number;
	return err;
}

static int set_gid_index(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 0, 255, error, &number);

	if (err == 0)
		options->session.settings.gid_index = (int)number;
	return err;
}

static int set_mtu(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 256, 4096, error, &number);

	if (err == 0 && (number & (number - 1)) != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value), "is none of 256 512 1024 2048 4096"
		);
	if (err == 0)
		options->session.settings.mtu = (uint16_t)number;
	return err;
}

static int
set_traffic_class(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 0, 255, error, &number);

	if (err == 0)
		options->session.settings.traffic_class = (uint8_t)number;
	return err;
}

static int
set_service_level(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 0, 15, error, &number);

	if (err == 0)
		options->session.settings.service_level = (uint8_t)number;
	return err;
}

static int set_timeout(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 0, 31, error, &number);

	if (err == 0)
		options->session.settings.timeout = (uint8_t)number;
	return err;
}

static int set_retry(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 0, 7, error, &number);

	if (err == 0)
		options->session.settings.retry = (uint8_t)number;
	return err;
}

static int set_cores(struct options *options, const char *value, struct parse_error *error) {
	struct lab_session *session = &options->session;
	struct cpu_set allowed;
	int err = cpu_set_get_allowed(&allowed);

	if (err == 0)
		err = cpu_set_parse_allowed(value, strlen(value), &allowed, error, &session->cores);
	if (err == 0 && cpu_set_count(&session->cores) != 1)
		return parse_fail(
			error, -EINVAL, value, strlen(value), "is not one processor: one polls"
		);
	session->cores_given = err == 0;
	return err;
}

static int set_port(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = parse_u32(value, 1, 65535, error, &number);

	if (err == 0)
		options->session.address.port = (uint16_t)number;
	return err;
}

static int set_listen(struct options *options, const char *value, struct parse_error *error) {
	uint16_t port = options->session.address.port;
	int err = sock_addr_parse_host(value, strlen(value), error, &options->session.address);

	options->session.address.port = port;
	return err;
}

static int set_fail_if(struct options *options, const char *value, struct parse_error *error) {
	if (options->threshold_count == THRESHOLDS_MAX)
		return parse_fail(
			error, -EINVAL, value, strlen(value), "is one threshold too many"
		);
	return threshold_parse(
		value, strlen(value), error, &options->thresholds[options->threshold_count++]
	);
}

static int set_runs(struct options *options, const char *value, struct parse_error *error) {
	return parse_u32(value, 1, VERSUS_FILES_MAX, error, &options->runs.count);
}

static int set_against(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->runs.against = value;
	return 0;
}

static int set_runs_margin(struct options *options, const char *value, struct parse_error *error) {
	uint64_t ppm;
	int err = parse_percent_ppm(value, strlen(value), 0, 1000000, error, &ppm);

	if (err == 0)
		options->runs.margin_ppm = (uint32_t)ppm;
	return err;
}

static int set_local(struct options *options, const char *value, struct parse_error *error) {
	return parse_u32(value, 2, MESH_NODES_MAX, error, &options->mesh.local);
}

static int set_at_once(struct options *options, const char *value, struct parse_error *error) {
	return parse_u32(value, 1, MESH_NODES_MAX / 2, error, &options->mesh.at_once);
}

static int set_rank(struct options *options, const char *value, struct parse_error *error) {
	options->mesh.rank_given = true;
	return parse_u32(value, 0, MESH_NODES_MAX - 1, error, &options->mesh.rank);
}

static int set_ranks(struct options *options, const char *value, struct parse_error *error) {
	options->mesh.ranks_given = true;
	return parse_u32(value, 2, MESH_NODES_MAX, error, &options->mesh.ranks);
}

static int set_rendezvous(struct options *options, const char *value, struct parse_error *error) {
	if (value[0] == '\0' || strcmp(value, "file:") == 0)
		return parse_fail(error, -EINVAL, value, strlen(value), "is no place");
	options->mesh.rendezvous = value;
	return 0;
}

static int set_hosts(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->mesh.hosts = value;
	return 0;
}

static int set_run(struct options *options, const char *value, struct parse_error *error) {
	struct plan *plan = &options->session.plan;
	size_t length = strcspn(value, "/");
	uint64_t run, runs;

	if (value[length] == '\0')
		return parse_fail(error, -EINVAL, value, length, "is no run, as 3/8");
	if (parse_u64(value, length, 1, PLAN_RUNS_MAX, error, &run) != 0 ||
	    parse_u64(
		    value + length + 1, strlen(value + length + 1), run, PLAN_RUNS_MAX, error, &runs
	    ) != 0)
		return -EINVAL;
	plan->run = (uint32_t)run;
	plan->runs = (uint32_t)runs;
	options->session.patience_ns = RUN_PATIENCE_NS;
	return 0;
}

static int set_json(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->json_path = value;
	return 0;
}

static int set_csv(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->csv_path = value;
	return 0;
}

static int set_hgrm(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->hgrm_path = value;
	return 0;
}

static int set_html(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->html_path = value;
	return 0;
}

// Who may have it: options about a result are the client's.
enum whose { BOTH, CLIENT, SERVER, MESH };

static const struct option {
	const char *name;
	int (*set)(struct options *options, const char *value, struct parse_error *error);
	uint32_t part; // of the plan
	enum whose whose;
} known[] = {
	{"--op", set_op, PLAN_PART_OP, BOTH},
	{"--size", set_size, PLAN_PART_SIZES, BOTH},
	{"--iterations", set_iterations, PLAN_PART_ITERATIONS, BOTH},
	{"--duration", set_duration, PLAN_PART_DURATION, BOTH},
	{"--gap", set_gap, PLAN_PART_GAP, BOTH},
	{"--policy", set_policy, PLAN_PART_POLICY, BOTH},
	{"--arrivals", set_arrivals, PLAN_PART_ARRIVALS, BOTH},
	{"--rate", set_rate, PLAN_PART_RATE, BOTH},
	{"--seed", set_seed, PLAN_PART_SEED, BOTH},
	{"--depth", set_depth, PLAN_PART_DEPTH, BOTH},
	{"--queue-pairs", set_pairs, PLAN_PART_PAIRS, BOTH},
	{"--device", set_device, 0, BOTH},
	{"--ib-port", set_ib_port, 0, BOTH},
	{"--gid-index", set_gid_index, 0, BOTH},
	{"--mtu", set_mtu, 0, BOTH},
	{"--traffic-class", set_traffic_class, 0, BOTH},
	{"--service-level", set_service_level, 0, BOTH},
	{"--timeout", set_timeout, 0, BOTH},
	{"--retry", set_retry, 0, BOTH},
	{"--cores", set_cores, 0, BOTH},
	{"--port", set_port, 0, BOTH},
	{"--listen", set_listen, 0, SERVER},
	{"--fail-if", set_fail_if, 0, CLIENT},
	{"--json", set_json, 0, CLIENT},
	{"--run", set_run, 0, BOTH},
	{"--runs", set_runs, 0, CLIENT},
	{"--against", set_against, 0, CLIENT},
	{"--margin", set_runs_margin, 0, CLIENT},
	{"--csv", set_csv, 0, CLIENT},
	{"--local", set_local, 0, MESH},
	{"--at-once", set_at_once, 0, MESH},
	{"--rank", set_rank, 0, MESH},
	{"--ranks", set_ranks, 0, MESH},
	{"--rendezvous", set_rendezvous, 0, MESH},
	{"--hosts", set_hosts, 0, MESH},
	{"--hgrm", set_hgrm, 0, CLIENT},
	{"--html", set_html, 0, CLIENT},
};

static int complain_unknown(const char *given) {
	struct suggestion suggestion;
	char quoted[QUOTED_BYTES], name[NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(given, "="), given);
	suggestion_init(&suggestion, name);
	for (size_t n = 0; n < COUNT_OF(known); n++)
		suggestion_add(&suggestion, known[n].name, strlen(known[n].name));
	suggestion_add(&suggestion, "--perftest", strlen("--perftest"));
	suggestion_add(&suggestion, "--bidirectional", strlen("--bidirectional"));
	escape_quote(given, strlen(given), quoted, sizeof(quoted));
	fprintf(stderr, "tocsin-perf: unknown option %s; %s\n", quoted,
		suggestion_text(&suggestion));
	return -EINVAL;
}

static const struct option *option_find(const char *given) {
	size_t length = strcspn(given, "=");

	for (size_t n = 0; n < COUNT_OF(known); n++) {
		if (strlen(known[n].name) == length && memcmp(known[n].name, given, length) == 0)
			return &known[n];
	}
	return NULL;
}

struct reading {
	int argc;
	char **argv;
	int at;
	const char *host;
	const char *of_client, *of_server, *of_mesh; // an option that only they have
};

static int take_option(struct reading *reading, struct options *options) {
	const char *given = reading->argv[reading->at], *value = strchr(given, '=');
	const struct option *option = option_find(given);
	struct parse_error error = {.text = ""};
	int err;

	if (option == NULL)
		return complain_unknown(given);
	if (value != NULL)
		value++;
	else if (reading->at + 1 < reading->argc)
		value = reading->argv[++reading->at];
	if (value == NULL)
		return option_fail(option->name, "needs a value");
	err = option->set(options, value, &error);
	if (err != 0)
		return option_fail(option->name, error.text[0] != '\0' ? error.text : "is wrong");
	options->session.given |= option->part;
	if (option->whose == CLIENT)
		reading->of_client = option->name;
	if (option->whose == SERVER)
		reading->of_server = option->name;
	if (option->whose == MESH)
		reading->of_mesh = option->name;
	return 0;
}

static int take_one(struct reading *reading, struct options *options) {
	const char *given = reading->argv[reading->at];

	if (strcmp(given, "--perftest") == 0) {
		options->perftest = true;
		reading->of_client = given;
		return 0;
	}
	if (strcmp(given, "--bidirectional") == 0) {
		options->session.plan.both_ways = true;
		options->session.given |= PLAN_PART_BOTH_WAYS;
		return 0;
	}
	if (given[0] == '-')
		return take_option(reading, options);
	if (reading->host != NULL)
		return option_fail(given, "there is one HOST, and this is a second");
	reading->host = given;
	return 0;
}

// An atomic works on 8 bytes whatever was said of none; a duration stands for iterations.
static void settle_defaults(struct options *options) {
	struct plan *plan = &options->session.plan;
	uint32_t given = options->session.given;

	if ((given & PLAN_PART_SIZES) == 0 && plan->command == PLAN_BW)
		plan->sizes[0] = PLAN_BW_SIZE;
	if ((given & PLAN_PART_SIZES) == 0 && plan_op_is_atomic(plan->op))
		plan->sizes[0] = 8;
	if (plan->command == PLAN_BW && (given & PLAN_PART_DEPTH) == 0)
		plan->depth = PLAN_BW_DEPTH;
	if (plan->command == PLAN_BW &&
	    (given & (PLAN_PART_DURATION | PLAN_PART_ITERATIONS)) == 0) {
		plan->iterations = 0;
		plan->duration_ns = PLAN_BW_DURATION_NS;
	}
	if ((given & PLAN_PART_DURATION) != 0 && (given & PLAN_PART_ITERATIONS) == 0)
		plan->iterations = 0;
	if (plan->arrivals == PLAN_TRACE)
		plan->iterations = plan->duration_ns = 0;
}

// What is of one run has no meaning for several.
static int check_runs(struct options *options) {
	struct runs *runs = &options->runs;
	const char *of_one = options->csv_path != NULL	      ? "--csv"
			     : options->hgrm_path != NULL     ? "--hgrm"
			     : options->html_path != NULL     ? "--html"
			     : options->perftest	      ? "--perftest"
			     : options->threshold_count > 0   ? "--fail-if"
			     : options->session.plan.runs > 1 ? "--run"
							      : NULL;

	if (runs->count == 0 && runs->against != NULL)
		return option_fail("--against", "needs --runs K");
	if (runs->count == 0)
		return 0;
	if (of_one != NULL)
		return option_fail(of_one, "is of one run, and there is --runs");
	if (options->json_path != NULL && strcmp(options->json_path, "-") == 0)
		return option_fail("--json", "names the file of each run, and - has no name");
	if (options->json_path != NULL && strlen(options->json_path) > RUNS_PATH_BYTES_MAX)
		return option_fail("--json", "with --runs has at most 480 bytes");
	runs->json_path = options->json_path;
	return 0;
}

static int check_client(const struct reading *reading, struct options *options) {
	const struct plan *plan = &options->session.plan;
	struct parse_error error = {.text = ""};
	struct lab_why why = {.text = ""};

	if (reading->of_server != NULL)
		return option_fail(reading->of_server, "is the server's, and there is a HOST");
	if (plan_check(plan, &why) != 0)
		return option_fail(plan_command_name(plan->command), why.text);
	if (plan->command == PLAN_BW &&
	    (options->threshold_count > 0 || options->hgrm_path != NULL))
		return option_fail(
			options->hgrm_path != NULL ? "--hgrm" : "--fail-if",
			"is of latencies: use lat, or compare for bw"
		);
	for (uint32_t n = 0; n < options->threshold_count; n++) {
		if (threshold_check(&options->thresholds[n], &options->session.plan, &why) != 0)
			return option_fail("--fail-if", why.text);
	}
	if (check_runs(options) != 0)
		return -EINVAL;
	if (sock_addr_resolve(
		    reading->host, strlen(reading->host), options->session.address.port,
		    SOCK_ADDR_NONE, &error, &options->session.address
	    ) != 0)
		return option_fail("HOST", error.text);
	return 0;
}

// What it was told is compared with the client's plan when that is known; what can be in no plan is
// wrong now.
static int check_server(const struct reading *reading, const struct options *options) {
	struct lab_why why = {.text = ""};

	if (reading->of_client != NULL)
		return option_fail(reading->of_client, "is the client's, and there is no HOST");
	if (plan_check(&options->session.plan, &why) != 0)
		return option_fail(plan_command_name(options->session.plan.command), why.text);
	return 0;
}

static int
parse_measure(int argc, char **argv, enum plan_command command, struct options *options) {
	struct reading reading = {.argc = argc, .argv = argv, .at = 2};
	int err;

	options->action = OPTIONS_MEASURE;
	options->session.plan = plan_default;
	options->session.plan.command = command;
	options->session.settings = device_settings_default;
	options->session.address.port = CHANNEL_PORT;
	options->session.signal_fd = -1;
	options->runs.margin_ppm = MARGIN_PPM;
	options->runs.argc = argc;
	options->runs.argv = argv;
	for (; reading.at < argc; reading.at++) {
		err = take_one(&reading, options);
		if (err != 0)
			return err;
	}
	if (reading.of_mesh != NULL)
		return option_fail(reading.of_mesh, "is of mesh");
	settle_defaults(options);
	options->is_server = reading.host == NULL;
	return options->is_server ? check_server(&reading, options)
				  : check_client(&reading, options);
}

// What is of one pair, or of another command.
static const char *not_of_mesh(const struct reading *reading, const struct options *options) {
	const uint32_t others = PLAN_PART_DURATION | PLAN_PART_GAP | PLAN_PART_ARRIVALS |
				PLAN_PART_RATE | PLAN_PART_SEED | PLAN_PART_DEPTH |
				PLAN_PART_PAIRS | PLAN_PART_BOTH_WAYS;
	uint32_t wrong = options->session.given & others;

	for (size_t n = 0; n < COUNT_OF(known); n++) {
		if ((known[n].part & wrong) != 0)
			return known[n].name;
	}
	if (wrong != 0)
		return "--bidirectional";
	if (reading->host != NULL)
		return reading->host;
	if (options->hgrm_path != NULL)
		return "--hgrm";
	if (options->html_path != NULL)
		return "--html";
	if (options->threshold_count > 0)
		return "--fail-if";
	if (options->perftest)
		return "--perftest";
	if (options->runs.count > 0 || options->runs.against != NULL ||
	    options->session.plan.runs > 1)
		return "--runs";
	return options->session.cores_given ? "--cores" : reading->of_server;
}

static int check_mesh(const struct reading *reading, const struct options *options) {
	const struct plan *plan = &options->session.plan;
	const char *wrong = not_of_mesh(reading, options);
	struct lab_why why = {.text = ""};

	if (wrong != NULL)
		return option_fail(wrong, "is not of mesh");
	if (plan->size_count != 1)
		return option_fail("--size", "a mesh has one");
	if (plan->iterations > RECORD_RAW_MAX)
		return option_fail("--iterations", "at most 262144 of each direction");
	if (plan_check(plan, &why) != 0)
		return option_fail("mesh", why.text);
	if (options->mesh.local > 0 && (reading->of_mesh != NULL) &&
	    (options->mesh.rendezvous != NULL || options->mesh.rank_given ||
	     options->mesh.ranks_given || options->mesh.hosts != NULL))
		return option_fail("--local", "starts all of them, and needs no other's place");
	return 0;
}

static int parse_mesh(int argc, char **argv, struct options *options) {
	struct reading reading = {.argc = argc, .argv = argv, .at = 2};

	options->action = OPTIONS_MESH;
	options->session.plan = plan_default;
	options->session.plan.iterations = MESH_ITERATIONS;
	options->session.settings = device_settings_default;
	options->session.address.port = MESH_PORT;
	options->session.signal_fd = -1;
	options->runs.argc = argc;
	options->runs.argv = argv;
	for (; reading.at < argc; reading.at++) {
		int err = take_one(&reading, options);

		if (err != 0)
			return err;
	}
	settle_defaults(options);
	options->mesh.port = options->session.address.port;
	return check_mesh(&reading, options);
}

static bool asks_for(int argc, char **argv, const char *long_name, const char *short_name) {
	for (int n = 1; n < argc; n++) {
		if (strcmp(argv[n], long_name) == 0 || strcmp(argv[n], short_name) == 0)
			return true;
	}
	return false;
}

int options_parse(int argc, char **argv, struct options *ret_options) {
	char quoted[QUOTED_BYTES];

	memset(ret_options, 0, sizeof(*ret_options));
	ret_options->action = OPTIONS_HELP;
	if (asks_for(argc, argv, "--help", "-h"))
		return 0;
	ret_options->action = OPTIONS_VERSION;
	if (asks_for(argc, argv, "--version", "-V"))
		return 0;
	if (argc < 2) {
		fprintf(stderr,
			"tocsin-perf: what? lat, bw, mesh, net, policy, compare, history or verify; see --help\n"
		);
		return -EINVAL;
	}
	if (strcmp(argv[1], "lat") == 0)
		return parse_measure(argc, argv, PLAN_LAT, ret_options);
	if (strcmp(argv[1], "bw") == 0)
		return parse_measure(argc, argv, PLAN_BW, ret_options);
	if (strcmp(argv[1], "mesh") == 0)
		return parse_mesh(argc, argv, ret_options);
	if (strcmp(argv[1], "net") == 0) {
		ret_options->action = OPTIONS_NET;
		return 0;
	}
	if (strcmp(argv[1], "policy") == 0) {
		ret_options->action = OPTIONS_POLICY;
		return 0;
	}
	if (kept_is_verb(argv[1])) {
		ret_options->action = OPTIONS_KEPT;
		return 0;
	}
	escape_quote(argv[1], strlen(argv[1]), quoted, sizeof(quoted));
	fprintf(stderr,
		"tocsin-perf: %s is none of lat, bw, mesh, net, policy, compare, history, verify; see --help\n",
		quoted);
	return -EINVAL;
}
