// SPDX-License-Identifier: BSD-3-Clause
// tocsin health: for people, and as a check that Nagios or node-problem-detector runs.
#include "ask.h"

#include <lib/escape.h>

#include <string.h>

#define HEALTH_UNKNOWN 3

enum {
	OPTION_EXIT,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_EXIT] = {"exit", "STYLE", "nagios (the default) or npd; see below"},
};

static const struct word_spec words[] = {
	{"NAME", "only this node", WORD_NAME, true, NULL},
};

static const char details[] =
	"Answered from the agent's table, without asking anybody else. A node in maintenance or one that\n"
	"said goodbye is no alarm; one that is expected and not seen is unknown.\n"
	"\n"
	"Exit status     nagios   npd (node-problem-detector)\n"
	"  ok            0        0\n"
	"  warning       1        0   a suspicion, which ends within seconds, is no problem of a node\n"
	"  critical      2        1\n"
	"  unknown       3        2\n"
	"No agent that answers, and a mistake in the command line, are unknown.\n";

static const struct {
	const char *grade;
	int nagios;
	int npd;
} statuses[] = {
	{"ok", 0, 0},
	{"warning", 1, 0},
	{"critical", 2, 1},
	{"unknown", HEALTH_UNKNOWN, 2},
};
#define STATUS_COUNT (sizeof(statuses) / sizeof(statuses[0]))

// The unknown of the style for any word that is no grade.
static int status_of(const char *grade, bool npd) {
	size_t n = 0;

	while (n + 1 < STATUS_COUNT && strcmp(statuses[n].grade, grade) != 0)
		n++;
	return npd ? statuses[n].npd : statuses[n].nagios;
}

// "critical: 3 of 5 agents answer, ..." or the member of the object.
static int judge(struct ask_answer *answer, bool npd) {
	const char *grade = answer->first;

	answer->first[strcspn(answer->first, ":")] = '\0';
	if (answer->json != NULL)
		grade = json_string_value(json_object_get(answer->json, "grade"));
	return status_of(grade != NULL ? grade : "", npd);
}

static int run(const struct arguments *arguments) {
	const char *style = arguments->values[OPTION_EXIT];
	struct ask_answer answer = {.json = NULL};
	bool npd = style != NULL && strcmp(style, "npd") == 0;
	char question[128], quoted[80];
	int status;

	if (style != NULL && !npd && strcmp(style, "nagios") != 0) {
		escape_quote(style, strlen(style), quoted, sizeof(quoted));
		command_complain("health", "--exit: %s is neither nagios nor npd", quoted);
		return HEALTH_UNKNOWN;
	}
	snprintf(
		question, sizeof(question), "HEALTH %s",
		arguments->words[0] != NULL ? arguments->words[0] : ""
	);
	status = ask(&health_command, arguments, question, &answer);
	status = status == EXIT_DONE ? judge(&answer, npd) : status_of("unknown", npd);
	json_decref(answer.json);
	return status;
}

const struct command health_command = {
	.name = "health",
	.summary = "Say what is wrong, as a check: its exit status is the answer",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.usage_status = HEALTH_UNKNOWN,
	.run = run,
};
