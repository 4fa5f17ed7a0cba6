// SPDX-License-Identifier: BSD-3-Clause
// tocsin slurm: turns verdicts into drains, for all nodes on a controller, or for one node on
// itself.
#include "ask/ask.h"
#include "slurm/slurm_round.h"

#include <lib/clock.h>
#include <lib/parse.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define ASK_TIMEOUT_NS (3 * SECOND_NS) // timeout for a node's own agent to report its health

enum {
	OPTION_DRY_RUN,
	OPTION_INTERVAL,
	OPTION_ONCE,
	OPTION_PER_INTERVAL,
	OPTION_RECORD,
	OPTION_REST,
	OPTION_REST_API,
	OPTION_REST_TOKEN,
	OPTION_REST_USER,
	OPTION_SCONTROL,
	OPTION_SETTLE,
	OPTION_SHARE,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_DRY_RUN] = {"dry-run", NULL, "print what would be done, and do nothing"},
	[OPTION_INTERVAL] = {"interval", "TIME", "sync: time between two rounds (default 10s)"},
	[OPTION_ONCE] = {"once", NULL, "sync: run one round, and exit"},
	[OPTION_PER_INTERVAL] =
		{"per-interval", "COUNT", "drain at most COUNT nodes in one round (default 4)"},
	[OPTION_RECORD] = SLURM_OPTION_RECORD("slurm-sync.json; check: slurm-check.json"),
	[OPTION_REST] = SLURM_OPTION_REST,
	[OPTION_REST_API] = SLURM_OPTION_REST_API,
	[OPTION_REST_TOKEN] = SLURM_OPTION_REST_TOKEN,
	[OPTION_REST_USER] = SLURM_OPTION_REST_USER,
	[OPTION_SCONTROL] = SLURM_OPTION_SCONTROL,
	[OPTION_SETTLE] =
		{"settle", "TIME",
		 "undrain a node only after it was healthy for this time\n"
		 "(default 60s)"},
	[OPTION_SHARE] =
		{"share", "PERCENT",
		 "sync: drain no node while more than this share of all\n"
		 "nodes is out of service, for any reason (default 20)"},
};

static const char *const modes[] = {"sync", "check", NULL};

static const struct word_spec words[] = {
	{"sync|check", "sync: all nodes, on a controller; check: this node", WORD_CHOICE, false,
	 modes},
};

static const char details[] =
	"sync compares the output of `scontrol show node` with the agent's verdicts,\n"
	"again and again. check does so once for the node that SLURMD_NODENAME names,\n"
	"which slurmd sets; tocsin-slurm-health runs it as Slurm's HealthCheckProgram.\n"
	"check asks Slurm only if a drain of the node is advised or recorded, because\n"
	"Slurm may not answer before slurmd, which waits for check, has registered.\n"
	"\n"
	"A node is drained with the reason \"tocsin: REASON: EVIDENCE\". Its own agent is\n"
	"asked first. If only the node itself is said to have reported the fault, and its\n"
	"agent reports none, the node is not drained. If its agent does not answer, the\n"
	"reason ends with \"; its agent: WHY\". A node is\n"
	"undrained only if its reason, its user and its time are exactly those in FILE.\n"
	"It must also be healthy, and its own agent, asked again, must find nothing\n"
	"wrong with itself. A reason that is empty, that somebody changed or that is not\n"
	"in FILE stays for ever; `tocsin drains` lists those of the last kind. An\n"
	"unknown node is neither drained nor undrained; no node is, while the agent or\n"
	"Slurm does not answer. After Slurm has powered a node on, sync waits for a\n"
	"minute before it drains the node for a problem of the time when the node was\n"
	"off. Each change is one line.\n"
	"\n"
	"Nodes must have the same names in Slurm and in Tocsin.\n"
	"\n"
	"slurmrestd reads nodes in any version, and changes them since v0.0.39 (Slurm\n"
	"23.02). The token file has mode 0600 and holds the output of `scontrol token`;\n"
	"it is read for each request, so tokens may be replaced. No redirect is followed\n"
	"and no proxy is used. An answer may have 64 MiB and take 10 s. Any other\n"
	"failure is reported once, and no node is changed until it has passed.\n"
	"\n" ASK_EXIT_STATUS;

// Read the number of an option, bounded by max. Without the option *value stays.
static int
option_read_number(const struct arguments *arguments, int option, uint32_t max, uint32_t *value) {
	const char *text = arguments->values[option];
	struct parse_error error;
	uint64_t number;

	if (text == NULL)
		return 0;
	if (parse_u64(text, strlen(text), 0, max, &error, &number) != 0) {
		command_error("slurm", "--%s: %s", options[option].name, error.text);
		return EXIT_USAGE;
	}
	*value = (uint32_t)number;
	return 0;
}

static int option_read_time(const struct arguments *arguments, int option, uint64_t *ns) {
	const char *text = arguments->values[option];
	struct parse_error error;

	if (text == NULL)
		return 0;
	if (parse_duration_ns(text, strlen(text), SECOND_NS, 86400 * SECOND_NS, &error, ns) == 0)
		return 0;
	command_error("slurm", "--%s: %s", options[option].name, error.text);
	return EXIT_USAGE;
}

struct plan {
	struct slurm_rounds rounds;
	struct target target;
	uint64_t interval_ns;
	bool once;
	const char *only; // NULL: all nodes
};

static int plan_read_options(const struct arguments *arguments, struct plan *plan) {
	struct slurm_limits *limits = &plan->rounds.limits;
	uint64_t settle_ns = 60 * SECOND_NS;
	const char *const *values = arguments->values;
	const struct slurm_way_options way_words = {
		.scontrol = values[OPTION_SCONTROL],
		.rest = values[OPTION_REST],
		.rest_api = values[OPTION_REST_API],
		.rest_token = values[OPTION_REST_TOKEN],
		.rest_user = values[OPTION_REST_USER],
	};
	int status;

	plan->interval_ns = 10 * SECOND_NS;
	*limits = (struct slurm_limits){.per_interval = 4, .share_percent = 20};
	plan->rounds.dry_run = arguments->values[OPTION_DRY_RUN] != NULL;
	plan->once = arguments->values[OPTION_ONCE] != NULL;
	plan->rounds.record_file = values[OPTION_RECORD];
	status = slurm_way_select("slurm", &way_words, &plan->rounds.way);
	if (status == 0)
		status = option_read_number(
			arguments, OPTION_PER_INTERVAL, 100000, &limits->per_interval
		);
	if (status == 0)
		status = option_read_number(arguments, OPTION_SHARE, 100, &limits->share_percent);
	if (status == 0)
		status = option_read_time(arguments, OPTION_INTERVAL, &plan->interval_ns);
	if (status == 0)
		status = option_read_time(arguments, OPTION_SETTLE, &settle_ns);
	limits->settle_s = settle_ns / SECOND_NS;
	return status;
}

// Ask a node's own agent for its health, before a change. In `check` the queried agent usually is
// that node's own; it is asked again anyway.
static json_t *
node_ask_own_agent(void *ctx, const char *node, char ret_why[static SLURM_WHY_BYTES]) {
	const struct plan *plan = ctx;
	struct target target = plan->target;
	char question[SLURM_NODE_MAX + 16];
	struct contact contact;
	json_t *answer = NULL;
	int err;

	if (!target_is_name(node)) {
		snprintf(ret_why, SLURM_WHY_BYTES, "no agent can have this name");
		return NULL;
	}
	snprintf(question, sizeof(question), "HEALTH %s", node);
	target.agent.node = node;
	target.agent.timeout_ns = ASK_TIMEOUT_NS;
	contact_init(&contact, &target.agent);
	contact.silent = true;
	err = contact_open(&contact, true);
	if (err == 0)
		err = contact_json(&contact, question, &answer);
	contact_fini(&contact);
	if (err == 0)
		return answer;
	// The words before the hint, for example "n5 did not answer in time".
	snprintf(ret_why, SLURM_WHY_BYTES, "%.*s", (int)strcspn(contact.why, ";"), contact.why);
	return NULL;
}

static int plan_run_one_round(struct plan *plan, struct contact *contact) {
	char question[SLURM_NODE_MAX + 16];
	json_t *answer;
	int err;

	snprintf(question, sizeof(question), "HEALTH %s", plan->only != NULL ? plan->only : "*");
	err = contact_open(contact, true);
	if (err == 0)
		err = contact_json(contact, question, &answer);
	if (err != 0) {
		slurm_round_report_error(&plan->rounds, contact->why);
		return err == -EREMOTEIO ? EXIT_NEGATIVE : EXIT_UNREACHED;
	}
	err = slurm_round(&plan->rounds, answer, plan->only);
	json_decref(answer);
	return err == 0 ? EXIT_DONE : EXIT_NEGATIVE;
}

static int plan_run_rounds(struct plan *plan, struct contact *contact) {
	struct clock clock;
	sigset_t stops;

	if (plan->once)
		return plan_run_one_round(plan, contact);
	clock_init_monotonic(&clock);
	// Stop signals are blocked during a round, so that no drain is interrupted.
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &stops, NULL);
	for (;;) {
		uint64_t now_ns = clock_now_ns(&clock), next_ns = now_ns + plan->interval_ns;
		uint64_t wait_ns;
		struct timespec wait;

		plan->rounds.now_ns = now_ns;
		// Errors were reported; the next round tries again.
		(void)plan_run_one_round(plan, contact);
		now_ns = clock_now_ns(&clock);
		wait_ns = now_ns < next_ns ? next_ns - now_ns : 0;
		wait.tv_sec = (time_t)(wait_ns / SECOND_NS);
		wait.tv_nsec = (long)(wait_ns % SECOND_NS);
		if (sigtimedwait(&stops, NULL, &wait) > 0)
			return EXIT_DONE;
	}
}

static int slurm_run(const struct arguments *arguments) {
	const char *node = getenv("SLURMD_NODENAME"); // NOLINT(concurrency-mt-unsafe): one thread
	struct plan plan = {.once = false};
	struct contact contact;
	int status = plan_read_options(arguments, &plan);

	if (status == 0)
		status = target_init(&plan.target, &slurm_command, arguments);
	if (status != 0)
		return status;
	if (strcmp(arguments->words[0], "check") == 0) {
		if (node == NULL || node[0] == '\0' || strlen(node) > SLURM_NODE_MAX) {
			command_error(
				"slurm",
				"check: SLURMD_NODENAME is not set to the name of this node"
			);
			return EXIT_USAGE;
		}
		// This command sees one node only. The grants of the agents limit the drains of all
		// nodes.
		plan.once = true;
		plan.only = node;
		plan.rounds.limits.per_interval = 1;
		plan.rounds.limits.share_percent = 100;
	}
	if (plan.rounds.record_file == NULL)
		plan.rounds.record_file =
			slurm_record_default(plan.only != NULL ? "check" : "sync");
	plan.rounds.json = plan.target.json;
	plan.rounds.ask = node_ask_own_agent;
	plan.rounds.ask_ctx = &plan;
	contact_init(&contact, &plan.target.agent);
	contact.silent = true;
	status = plan_run_rounds(&plan, &contact);
	contact_fini(&contact);
	slurm_rounds_fini(&plan.rounds);
	return status;
}

const struct command slurm_command = {
	.name = "slurm",
	.summary = "Drain and undrain Slurm's nodes according to their verdicts",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.run = slurm_run,
};
