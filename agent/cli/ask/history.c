// SPDX-License-Identifier: BSD-3-Clause
// tocsin history: shows what agents recorded of a node or a path.
#include "show/history.h"

#include "ask/ask.h"
#include "ask/when.h"
#include "replace.h"
#include "show/answers.h"

#include <lib/escape.h>
#include <records/events.h>
#include <records/history.h>

#include <string.h>

enum {
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_SVG,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_SINCE] = {"since", "TIME", "begin of the time; default: 1h, an hour ago"},
	[OPTION_UNTIL] = {"until", "TIME", "end of the time; default: now"},
	[OPTION_SVG] = {"svg", "FILE", "write a picture to FILE as well"},
};

static const struct word_spec words[] = {
	{"NODE", "a node", WORD_NAME, false, NULL},
	{"PEER", "the path from NODE to this node, as NODE recorded it", WORD_NAME, true, NULL},
};

static const char details[] =
	"The agent that is asked answers from its own file: the state and the verdicts\n"
	"of NODE as this agent saw them, its own paths to NODE, and the events about\n"
	"NODE. For its own node it shows all its paths. With PEER, the agent of NODE is\n"
	"asked for its path to PEER. --node asks another agent.\n"
	"\n"
	"There are at most 61 periods. They are as long as [history] interval, or an\n"
	"hour if the time is longer than two days or older than the records of each\n"
	"interval, or a multiple of these. Only paths to neighbours on a ring are\n"
	"recorded. tocsind --check-config prints how far back the records go.\n"
	"\n"
	"The height of a sign is the median latency of small reads, on a logarithmic\n"
	"scale from the least to the largest one of the line. Latencies are exact within\n"
	"12.5 %, least and largest ones exactly.\n"
	"\n"
	"Times are written as in tocsin events --help.\n"
	"\n"
	"With --json: node, observer, since, until, step_ns, oldest, periods, paths,\n"
	"events.\n"
	"\n" ASK_EXIT_STATUS "Status 1 also means that FILE cannot be written.\n";

static void write_svg(FILE *out, const void *answer) {
	history_svg(answer, out);
}

// Show the answer, and save the picture if one is wanted. Returns the exit status.
static int history_show(const struct contact *contact, json_t *answer, const char *file) {
	char quoted[256];
	int status, err;

	status = target_of(contact)->json ? ask_print_json(target_of(contact), answer)
					  : ask_show(contact, show_history, answer);
	if (file == NULL || status != EXIT_DONE)
		return status;
	err = replace_file(file, write_svg, answer);
	if (err == 0)
		return EXIT_DONE;
	escape_quote(file, strlen(file), quoted, sizeof(quoted));
	command_error(
		"history", "--svg: %s cannot be written: %s", quoted, replace_error_text(err)
	);
	return EXIT_NEGATIVE;
}

static int history_run(const struct arguments *arguments) {
	const char *peer = arguments->words[1];
	const char *since_text = arguments->values[OPTION_SINCE];
	const char *until_text = arguments->values[OPTION_UNTIL];
	char since[WHEN_BYTES] = "1h", until[WHEN_BYTES] = "";
	char question[128 + 2 * WHEN_BYTES];
	struct contact contact;
	struct target target;
	json_t *answer;
	int status, err;

	if ((since_text != NULL && !when_translate("history", "since", since_text, since)) ||
	    (until_text != NULL && !when_translate("history", "until", until_text, until)))
		return EXIT_USAGE;
	status = target_init(&target, &history_command, arguments);
	if (status != 0)
		return status;
	if (peer != NULL && target.agent.node != NULL) {
		command_error("history", "NODE PEER asks NODE; give it without --node");
		return EXIT_USAGE;
	}
	if (peer != NULL)
		target.agent.node = arguments->words[0];
	snprintf(
		question, sizeof(question), "HISTORY %s %s %s",
		peer != NULL ? peer : arguments->words[0], since, until
	);
	contact_init(&contact, &target.agent);
	err = contact_open(&contact, true);
	if (err == 0)
		err = contact_json(&contact, question, &answer);
	if (err != 0) {
		status = ask_report_failure(&contact, err);
	} else {
		status = history_show(&contact, answer, arguments->values[OPTION_SVG]);
		json_decref(answer);
	}
	contact_fini(&contact);
	return status;
}

static const struct record *const history_records[] = {
	&history_period_record, &history_path_record, &history_point_record, &event_record, NULL};

const struct command history_command = {
	.name = "history",
	.summary = "Show what the agents recorded of a node or a path",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 2,
	.target = TARGET_READ,
	.records = history_records,
	.run = history_run,
};
