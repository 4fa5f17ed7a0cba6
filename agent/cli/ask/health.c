// SPDX-License-Identifier: BSD-3-Clause
// tocsin health: reports node health. Output is for people, for Nagios or node-problem-detector,
// for a drain script, or a file of metrics.
#include "ask/ask.h"
#include "show/answers.h"
#include "show/textfile.h"

#include <lib/escape.h>
#include <records/findings.h>

#include <string.h>

#define HEALTH_UNKNOWN 3
#define DRAIN_NEITHER 2

#define LINE_COLUMNS 80 // node-problem-detector truncates longer lines

enum {
	OPTION_ALL,
	OPTION_EXIT,
	OPTION_LINE,
	OPTION_TEXTFILE,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_ALL] = {"all", NULL, "print every member, also those without a problem"},
	[OPTION_EXIT] = {"exit", "STYLE", "nagios (the default), npd or drain; see below"},
	[OPTION_LINE] = {"line", NULL, "print one line of at most 80 characters, for checks"},
	[OPTION_TEXTFILE] =
		{"textfile", "FILE",
		 "print nothing, and replace FILE with metrics for the\n"
		 "textfile collector of node_exporter; status 0 means that\n"
		 "FILE was written"},
};

static const struct word_spec words[] = {
	{"NAME", "only this node", WORD_NAME, true, NULL},
};

static const char details[] =
	"The agent answers from its store of verdicts and asks no other agent. A node\n"
	"that left on purpose raises no alarm. A node in maintenance raises none either,\n"
	"and its row says so. A node that is expected ([overlay] expect) and never came\n"
	"is missing: its verdict is unknown, its reason NeverSeen.\n"
	"\n"
	"tocsin(1) lists the members of a finding (--json). verdicts.md lists the\n"
	"reasons (docs/ in the source, share/doc/tocsin/ where it is installed).\n"
	"\n"
	"Exit status     nagios   npd (node-problem-detector)\n"
	"  ok            0        0\n"
	"  warning       1        0   a suspicion ends in seconds: no problem\n"
	"  critical      2        1\n"
	"  unknown       3        2\n"
	"If no agent answers, the answer cannot be written, or the command line has a\n"
	"mistake, the status is unknown.\n"
	"\n"
	"With --exit=drain and one node, the status is meant for a scheduler, and\n"
	"nothing is printed without --line:\n"
	"  0          nothing is wrong; a drain that was made for this may be undone\n"
	"  1          drain the node\n"
	"  2 or more  do neither: the node is unknown, held by the brake, in\n"
	"             maintenance, not confirmed yet, or has a problem that a drain\n"
	"             does not solve; always under [health] act = no\n";

enum style {
	STYLE_NAGIOS,
	STYLE_NPD,
	STYLE_DRAIN,
	STYLE_COUNT,
};

static const char *const style_names[STYLE_COUNT] = {
	[STYLE_NAGIOS] = "nagios",
	[STYLE_NPD] = "npd",
	[STYLE_DRAIN] = "drain",
};

static const int unknown_statuses[STYLE_COUNT] = {
	[STYLE_NAGIOS] = HEALTH_UNKNOWN,
	[STYLE_NPD] = 2,
	[STYLE_DRAIN] = DRAIN_NEITHER,
};

static const struct {
	const char *grade;
	int nagios;
	int npd;
} statuses[] = {
	{"ok", 0, 0},
	{"warning", 1, 0},
	{"critical", 2, 1},
};
#define STATUS_COUNT (sizeof(statuses) / sizeof(statuses[0]))

// Return the exit status for a grade; an unknown grade gives the `unknown` status of the style.
static int grade_exit_status(const char *grade, enum style style) {
	for (size_t n = 0; n < STATUS_COUNT; n++) {
		if (strcmp(statuses[n].grade, grade) == 0)
			return style == STYLE_NPD ? statuses[n].npd : statuses[n].nagios;
	}
	return unknown_statuses[style];
}

// Return the --exit=drain status for the only node of the answer. Unknown words give DRAIN_NEITHER.
static int drain_status(const json_t *answer) {
	const json_t *row = json_array_get(json_object_get(answer, "findings"), 0);
	const char *advice = json_string_value(json_object_get(row, "advice"));
	const char *grade = json_string_value(json_object_get(row, "grade"));

	if (advice == NULL || grade == NULL || json_is_true(json_object_get(row, "maint")) ||
	    json_is_false(json_object_get(answer, "act")))
		return DRAIN_NEITHER;
	if (strcmp(advice, "drain") == 0)
		return 1;
	return strcmp(advice, "nothing") == 0 && strcmp(grade, "ok") == 0 ? 0 : DRAIN_NEITHER;
}

// Return the finding with the worst grade, or NULL if all are ok.
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

static const char *json_member(const json_t *object, const char *key) {
	const char *value = json_string_value(json_object_get(object, key));

	return value != NULL ? value : "?";
}

// Print at most LINE_COLUMNS characters of text that may come from other machines. Quotes and
// backslashes are harmless on a line, and an escaped text has backslashes already.
static void print_line(const char *line) {
	char clean[4 * LINE_COLUMNS + ESCAPE_UNIT_BYTES_MAX + 1];
	size_t used = 0, fits = 0, columns = 0, left = strlen(line);

	while (left > 0 && columns <= LINE_COLUMNS) {
		struct escape_unit unit;

		escape_next(line, left, &unit);
		if (line[0] == '"' || line[0] == '\\') {
			unit.text[0] = line[0];
			unit.text_size = 1;
		}
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

// Describe a problem of the queried agent or its configuration, which no finding of a node
// mentions. Returns false if there is none.
static bool agent_problem_text(const json_t *answer, char *ret_text, size_t size) {
	const json_t *mistakes = json_object_get(answer, "mistakes");
	const json_t *join = json_object_get(answer, "join_problem");
	const char *address = json_string_value(json_object_get(answer, "address_problem"));
	const char *mistake = json_string_value(json_array_get(mistakes, 0));

	if (json_is_false(json_object_get(answer, "joined")))
		snprintf(
			ret_text, size, "not a member of a ring yet%s%s",
			json_is_string(join) ? ": " : "",
			json_is_string(join) ? json_string_value(join) : ""
		);
	else if (json_is_true(json_object_get(answer, "alone")))
		snprintf(ret_text, size, "sees none of the nodes that it should see");
	else if (address != NULL)
		snprintf(ret_text, size, "others cannot connect to it: %s", address);
	else if (mistake != NULL)
		snprintf(ret_text, size, "misconfigured: %s", mistake);
	else
		return false;
	return true;
}

// Return true if the problem of the queried agent itself must be reported. It must if no finding is
// as bad as the overall grade. It also must if the worst finding is the agent itself, which has not
// joined.
static bool agent_problem_comes_first(const json_t *answer, const json_t *row) {
	if (row == NULL || strcmp(json_member(row, "grade"), json_member(answer, "grade")) != 0)
		return true;
	return strcmp(json_member(row, "node"), json_member(answer, "node")) == 0 &&
	       json_is_false(json_object_get(answer, "joined"));
}

// Print one line such as "critical: n2 node-down NodeSilent, for 12s: 2 of 2 observers ...", cut to
// its maximum.
static void print_health_line(const json_t *answer, const char *name) {
	const json_t *row = worst_finding(answer);
	const char *grade = json_member(answer, "grade"), *mark = "";
	char line[512], problem[256], reason[64] = "";

	if (row == NULL && json_array_size(json_object_get(answer, "findings")) == 1 &&
	    name != NULL)
		row = json_array_get(json_object_get(answer, "findings"), 0);
	if (strcmp(json_member(row, "reason"), "None") != 0)
		snprintf(reason, sizeof(reason), " %s", json_member(row, "reason"));
	if (json_is_true(json_object_get(row, "maint")))
		mark = " in maintenance,";
	else if (strcmp(json_member(row, "would"), "drain") == 0)
		mark = " would be drained,"; // [health] act = no
	else if (strcmp(json_member(row, "would"), "restart") == 0)
		mark = " would be restarted,";
	if (name == NULL && strcmp(grade, "ok") != 0 && agent_problem_comes_first(answer, row) &&
	    agent_problem_text(answer, problem, sizeof(problem)))
		snprintf(
			line, sizeof(line), "%s: %s %s", grade, json_member(answer, "node"), problem
		);
	else if (row == NULL)
		snprintf(
			line, sizeof(line), "%s: %lld agents alive, %lld dead, %lld suspect", grade,
			json_integer_value(json_object_get(answer, "alive")),
			json_integer_value(json_object_get(answer, "dead")),
			json_integer_value(json_object_get(answer, "suspect"))
		);
	else if (*json_member(row, "evidence") == '\0')
		snprintf(
			line, sizeof(line), "%s: %s%s %s%s", grade, json_member(row, "node"), mark,
			json_member(row, "verdict"), reason
		);
	else
		snprintf(
			line, sizeof(line), "%s: %s%s %s%s: %s", grade, json_member(row, "node"),
			mark, json_member(row, "verdict"), reason, json_member(row, "evidence")
		);
	print_line(line);
}

// Read the exit style, and check that the options go together. Returns false after reporting an
// error.
static bool options_read_style(const struct arguments *arguments, enum style *ret_style) {
	const char *const *values = arguments->values;
	const char *name = values[OPTION_EXIT];
	bool is_check = values[OPTION_LINE] != NULL || name != NULL;
	bool has_name = arguments->words[0] != NULL;
	enum style style = STYLE_NAGIOS;
	char quoted[80];

	while (name != NULL && style < STYLE_COUNT && strcmp(name, style_names[style]) != 0)
		style++;
	if (style == STYLE_COUNT) {
		escape_quote(name, strlen(name), quoted, sizeof(quoted));
		command_error("health", "--exit: %s is not one of nagios, npd and drain", quoted);
	} else if (values[OPTION_ALL] != NULL && has_name) {
		command_error("health", "--all and a node's name exclude each other");
	} else if (style == STYLE_DRAIN && !has_name) {
		command_error("health", "--exit=drain needs the NAME of one node");
	} else if (values[OPTION_LINE] != NULL && target_wants_json(arguments)) {
		command_error("health", "--line and --json exclude each other");
	} else if (values[OPTION_TEXTFILE] != NULL && is_check) {
		command_error("health", "--textfile and --line or --exit exclude each other");
	} else {
		*ret_style = style;
		return true;
	}
	return false;
}

static int health_run(const struct arguments *arguments) {
	const char *const *values = arguments->values;
	bool all = values[OPTION_ALL] != NULL, has_line = values[OPTION_LINE] != NULL;
	char question[128], why[CONTACT_WHY_BYTES], line[CONTACT_WHY_BYTES + 16];
	json_t *answer = NULL;
	enum style style;
	int status, err;

	if (!options_read_style(arguments, &style))
		return HEALTH_UNKNOWN;
	snprintf(
		question, sizeof(question), "HEALTH %s",
		all			      ? "*"
		: arguments->words[0] != NULL ? arguments->words[0]
					      : ""
	);
	if (values[OPTION_TEXTFILE] != NULL) {
		// The file is written even if no agent answers; the file then says so.
		status = ask_without_output(&health_command, arguments, question, &answer, why);
		if (status != EXIT_DONE)
			answer = NULL;
		err = textfile_write(values[OPTION_TEXTFILE], answer);
		json_decref(answer);
		return err == 0 ? EXIT_DONE : HEALTH_UNKNOWN;
	}
	if (has_line || style == STYLE_DRAIN)
		status = ask_without_output(&health_command, arguments, question, &answer, why);
	else
		status = ask(&health_command, arguments, question, show_health, &answer);
	// Check runners read standard output, so an unreachable agent is reported there.
	if (has_line && status != EXIT_DONE && why[0] != '\0') {
		snprintf(line, sizeof(line), "unknown: %s", why);
		print_line(line);
	}
	if (status != EXIT_DONE) {
		status = unknown_statuses[style];
	} else {
		if (has_line)
			print_health_line(answer, arguments->words[0]);
		status = style == STYLE_DRAIN
				 ? drain_status(answer)
				 : grade_exit_status(json_member(answer, "grade"), style);
	}
	json_decref(answer);
	// A status of 1 would mean a warning, a problem or a drain. main() reports the write error.
	if (command_flush_output() != NULL)
		status = unknown_statuses[style];
	return status;
}

static const struct record *const health_records[] = {&finding_record, NULL};

const struct command health_command = {
	.name = "health",
	.summary = "Report problems as a check: the exit status is the answer",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.usage_status = HEALTH_UNKNOWN,
	.records = health_records,
	.run = health_run,
};
