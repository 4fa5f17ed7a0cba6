// SPDX-License-Identifier: BSD-3-Clause
// tocsin health: for people, and as a check that Nagios or node-problem-detector runs.
#include "ask.h"

#include <lib/escape.h>

#include <string.h>

#define HEALTH_UNKNOWN 3

#define LINE_COLUMNS 80 // node-problem-detector cuts behind it

enum {
	OPTION_ALL,
	OPTION_EXIT,
	OPTION_LINE,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_ALL] = {"all", NULL, "each member, also those with whom nothing is wrong"},
	[OPTION_EXIT] = {"exit", "STYLE", "nagios (the default) or npd; see below"},
	[OPTION_LINE] = {"line", NULL, "one line of at most 80 characters, as checks want it"},
};

static const struct word_spec words[] = {
	{"NAME", "only this node", WORD_NAME, true, NULL},
};

static const char details[] =
	"Answered from the agent's store of verdicts, without asking anybody else. A node in maintenance\n"
	"or one that said goodbye is no alarm; one that is expected and not seen is unknown.\n"
	"\n"
	"With --json each finding has node, state, grade, verdict, reason, evidence, advice (nothing,\n"
	"show, warn, restart, drain), confidence (likely, sure), both_planes, observers, since, for_s and\n"
	"looked_s, the age of its newest evidence. The reasons are listed in docs/verdicts.md.\n"
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

// The one that weighs most, in the order in which grades do.
static const json_t *worst_finding(const json_t *answer) {
	static const char *const weights[] = {"warning", "unknown", "critical"};
	const json_t *findings = json_object_get(answer, "findings"), *worst = NULL;
	size_t worst_weight = 0;

	for (size_t n = 0; n < json_array_size(findings); n++) {
		const json_t *row = json_array_get(findings, n);
		const char *grade = json_string_value(json_object_get(row, "grade"));

		for (size_t weight = 0; grade != NULL && weight < 3; weight++) {
			if (strcmp(grade, weights[weight]) != 0 ||
			    (worst != NULL && weight + 1 <= worst_weight))
				continue;
			worst = row;
			worst_weight = weight + 1;
		}
	}
	return worst;
}

static const char *member(const json_t *object, const char *key) {
	const char *value = json_string_value(json_object_get(object, key));

	return value != NULL ? value : "?";
}

// At most LINE_COLUMNS characters of what other machines may have had a hand in.
static void print_line(const char *line) {
	char clean[4 * LINE_COLUMNS + ESCAPE_UNIT_BYTES_MAX + 1];
	size_t used = 0, fits = 0, columns = 0, left = strlen(line);

	while (left > 0 && columns <= LINE_COLUMNS) {
		struct escape_unit unit;

		escape_next(line, left, &unit);
		memcpy(clean + used, unit.text, unit.text_size);
		used += unit.text_size;
		columns += unit.text_size == unit.taken_bytes ? 1 : unit.text_size;
		line += unit.taken_bytes;
		left -= unit.taken_bytes;
		if (columns <= LINE_COLUMNS - 3)
			fits = used;
	}
	if (columns > LINE_COLUMNS)
		printf("%.*s...\n", (int)fits, clean);
	else
		printf("%.*s\n", (int)used, clean);
}

// "critical: n2 node-down NodeSilent, for 12s: 2 of 2 observers ...", cut where it has to be.
static void say_line(const json_t *answer, const char *name) {
	const json_t *row = worst_finding(answer);
	const char *grade = member(answer, "grade");
	char line[512];

	if (row == NULL && json_array_size(json_object_get(answer, "findings")) == 1 &&
	    name != NULL)
		row = json_array_get(json_object_get(answer, "findings"), 0);
	if (row == NULL)
		snprintf(
			line, sizeof(line), "%s: %lld agents alive, %lld dead, %lld suspect", grade,
			json_integer_value(json_object_get(answer, "alive")),
			json_integer_value(json_object_get(answer, "dead")),
			json_integer_value(json_object_get(answer, "suspect"))
		);
	else
		snprintf(
			line, sizeof(line), "%s: %s %s %s: %s", grade, member(row, "node"),
			member(row, "verdict"), member(row, "reason"), member(row, "evidence")
		);
	print_line(line);
}

static int run_line(const struct arguments *arguments, const char *question, bool npd) {
	json_t *answer = NULL;
	int status = ask_silently(&health_command, arguments, question, &answer);

	if (status != EXIT_DONE)
		return status_of("unknown", npd);
	say_line(answer, arguments->words[0]);
	status = status_of(member(answer, "grade"), npd);
	json_decref(answer);
	return status;
}

static int run(const struct arguments *arguments) {
	bool all = arguments->values[OPTION_ALL] != NULL;
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
	if (all && arguments->words[0] != NULL) {
		command_complain("health", "--all and a node's name exclude each other");
		return HEALTH_UNKNOWN;
	}
	snprintf(
		question, sizeof(question), "HEALTH %s",
		all			      ? "*"
		: arguments->words[0] != NULL ? arguments->words[0]
					      : ""
	);
	if (arguments->values[OPTION_LINE] != NULL)
		return run_line(arguments, question, npd);
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
