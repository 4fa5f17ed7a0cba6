// SPDX-License-Identifier: BSD-3-Clause
// Options of lat and bw: which end accepts them, and which can be combined.
#include "options/options_impl.h"
#include "run/agent_ask.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MARGIN_PPM 20000

// Reject options that would have no effect.
static int check_arrivals(const struct options *options) {
	const struct plan *plan = &options->session.plan;
	uint32_t given = options->session.given;
	bool drawn = plan->arrivals == PLAN_POISSON || plan->arrivals == PLAN_ONOFF;

	if (plan->arrivals == PLAN_TRACE &&
	    (given & (PLAN_PART_ITERATIONS | PLAN_PART_DURATION)) != 0)
		return option_fail(
			options_part_name(given & (PLAN_PART_ITERATIONS | PLAN_PART_DURATION)),
			"cannot be used with a trace, which sets the number of operations"
		);
	if (!drawn && (given & PLAN_PART_SEED) != 0)
		return option_fail("--seed", "needs --arrivals poisson or onoff");
	return 0;
}

// Reject options for a single run if there are several runs.
static int check_runs(struct options *options) {
	struct runs *runs = &options->runs;
	struct stat facts;
	const char *of_one = options->csv_path != NULL	      ? "--csv"
			     : options->hgrm_path != NULL     ? "--hgrm"
			     : options->html_path != NULL     ? "--html"
			     : options->perftest	      ? "--perftest"
			     : options->threshold_count > 0   ? "--fail-if"
			     : options->session.plan.runs > 1 ? "--run"
							      : NULL;

	if (runs->count == 0 && runs->against != NULL)
		return option_fail("--against", "needs --runs K");
	if (runs->margin_given && runs->against == NULL)
		return option_fail("--margin", "needs --against");
	if (runs->count == 0)
		return 0;
	if (of_one != NULL)
		return option_fail(of_one, "cannot be used with --runs");

	// Each run is a process that reads the trace, and a pipe can be read only once.
	if (options->trace_path != NULL && stat(options->trace_path, &facts) == 0 &&
	    !S_ISREG(facts.st_mode))
		return option_fail(
			"--arrivals",
			"--runs needs a trace in a regular file, because each run reads it"
		);
	if (options->json_path != NULL && strcmp(options->json_path, "-") == 0)
		return option_fail(
			"--json", "cannot be - with --runs: each run needs a file of its own"
		);
	if (options->json_path != NULL && strlen(options->json_path) > RUNS_PATH_BYTES_MAX)
		return option_fail("--json", "must have at most 480 bytes with --runs");
	runs->json_path = options->json_path;
	return 0;
}

static int check_file_bytes(const struct lab_session *session) {
	uint32_t sizes = session->plan.size_count;
	size_t least = result_bytes_min(&session->plan);
	struct lab_why why = {.text = ""};

	if (session->file_bytes >= least)
		return 0;
	(void)lab_fail(
		&why, -EINVAL, "%zuKiB are too few for %u size%s of this run: at least %zuKiB",
		session->file_bytes >> 10, sizes, sizes == 1 ? "" : "s", (least + 1023) >> 10
	);
	return option_fail("--json-bytes", why.text);
}

static int check_client(const struct option_words *words, struct options *options) {
	const struct plan *plan = &options->session.plan;
	struct parse_error error = {.text = ""};
	struct lab_why why = {.text = ""};

	if (words->of_server != NULL)
		return option_fail(
			words->of_server,
			"is an option of the server, and HOST makes this the client"
		);
	if (check_arrivals(options) != 0)
		return -EINVAL;
	if (plan_check(plan, &why) != 0)
		return option_fail(plan_command_name(plan->command), why.text);
	if (plan->command == PLAN_BW && options->hgrm_path != NULL)
		return option_fail("--hgrm", "is an option of lat, not of bw");
	for (uint32_t n = 0; n < options->threshold_count; n++) {
		if (threshold_check(&options->thresholds[n], &options->session.plan, &why) != 0)
			return option_fail("--fail-if", why.text);
	}
	if (check_runs(options) != 0 || check_file_bytes(&options->session) != 0)
		return -EINVAL;
	if (sock_addr_resolve(
		    words->host, strlen(words->host), options->session.address.port, SOCK_ADDR_NONE,
		    &error, &options->session.address
	    ) != 0)
		return option_fail("HOST", error.text);
	return 0;
}

// Return the first option that --via-agent does not support, or NULL. With an agent only operation,
// sizes and the sample count can be set.
static const char *
option_unsupported_via_agent(const struct option_words *words, const struct options *options) {
	uint32_t wrong = options->session.given &
			 ~(uint32_t)(PLAN_PART_OP | PLAN_PART_SIZES | PLAN_PART_ITERATIONS);

	if (wrong != 0)
		return options_part_name(wrong);
	if (words->of_server != NULL || words->of_place != NULL)
		return words->of_server != NULL ? words->of_server : words->of_place;
	if (options->runs.count > 0 || options->runs.against != NULL)
		return "--runs";
	if (options->runs.margin_given)
		return "--margin";
	return options->session.plan.runs > 1 ? "--run" : NULL;
}

static int check_via_agent(const struct option_words *words, struct options *options) {
	struct plan *plan = &options->session.plan;
	const char *wrong = option_unsupported_via_agent(words, options);
	struct lab_why why = {.text = ""};

	if (plan->command != PLAN_LAT || plan->op != PLAN_READ)
		return option_fail("--via-agent", "agents only read: use lat --op read");
	if (words->host != NULL)
		return option_fail(words->host, "--via-agent NODE cannot be used with a HOST");
	if (wrong != NULL)
		return option_fail(wrong, "cannot be used with --via-agent");
	if (!agent_name_is_word(options->via_node))
		return option_fail("--via-agent", "is not a valid node name");
	if (plan_size_max(plan) > AGENT_BYTES_MAX)
		return option_fail(
			"--size", "at most 64KiB, the size of the page that agents read"
		);
	if (plan->iterations > AGENT_TIMES_MAX - RESULT_LEAD)
		return option_fail("--iterations", "at most 65520 through an agent");
	for (uint32_t n = 0; n < options->threshold_count; n++) {
		if (threshold_check(&options->thresholds[n], plan, &why) != 0)
			return option_fail("--fail-if", why.text);
	}
	plan->via_agents = true;
	return check_file_bytes(&options->session);
}

// Check the options of a server. The session compares them with the client's plan later; values
// that no plan can have are rejected now.
static int check_server(const struct option_words *words, const struct options *options) {
	struct plan plan = options->session.plan;
	struct lab_why why = {.text = ""};

	if (words->of_client != NULL)
		return option_fail(
			words->of_client, "is an option of the client, which needs a HOST"
		);
	if (check_arrivals(options) != 0)
		return -EINVAL;
	// The client's operation is unknown here, and --inline is valid only for some. So the check
	// leaves --inline out.
	if ((options->session.given & PLAN_PART_OP) == 0)
		plan.inline_bytes = PLAN_INLINE_DEFAULT;
	if (plan_check(&plan, &why) != 0)
		return option_fail(plan_command_name(options->session.plan.command), why.text);
	return 0;
}

int options_parse_measure(
	int argc, char **argv, enum plan_command command, struct options *options
) {
	struct option_words words;
	int err;

	options->action = OPTIONS_MEASURE;
	options_begin(argc, argv, command, options);
	options->session.address.port = CHANNEL_PORT;
	options->runs.margin_ppm = MARGIN_PPM;
	err = options_parse_arguments(argc, argv, options, &words);
	if (err == 0)
		err = options_check_files(options);
	if (err != 0)
		return err;
	if (words.of_mesh != NULL)
		return option_fail(words.of_mesh, "is an option of mesh");
	options_apply_defaults(options);
	if (options->via_node != NULL)
		return check_via_agent(&words, options);
	if (options->agent_socket != NULL)
		return option_fail("--agent", "needs --via-agent or mesh --agents");
	options->is_server = words.host == NULL;
	return options->is_server ? check_server(&words, options) : check_client(&words, options);
}
