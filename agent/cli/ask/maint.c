// SPDX-License-Identifier: BSD-3-Clause
// tocsin maint: begins, ends and lists maintenance of nodes.
#include "ask/ask.h"
#include "show/answers.h"

#include <lib/escape.h>
#include <lib/parse.h>
#include <records/maintenance.h>

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define FOR_MAX_NS (366 * UINT64_C(86400) * SECOND_NS)
#define REASON_BYTES_MAX 128
#define USER_BYTES_MAX 32

enum {
	OPTION_FOR,
	OPTION_REASON,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_FOR] =
		{"for", "TIME",
		 "with on: maintenance ends by itself after 1s to 366d, in\n"
		 "whole seconds; without this option it has no end"},
	[OPTION_REASON] = {"reason", "TEXT", "with on: why, as one line of at most 128 bytes"},
};

static const char *const switches[] = {"on", "off", NULL};

static const struct word_spec words[] = {
	{"NAME", "the node; without it, all nodes in maintenance", WORD_NAME, true, NULL},
	{"on|off", "on: begin maintenance, off: end it", WORD_CHOICE, true, switches},
};

static const char details[] =
	"All agents learn of the order, and store it: it survives a restart of all of\n"
	"them. A node in maintenance raises no alarm, and is shown as being in\n"
	"maintenance. A second `on` replaces the reason and the end. If two people give\n"
	"orders at the same time, all agents keep the same one.\n"
	"\n"
	"The list has the time since the order, the time until its end, the author and\n"
	"the reason. The author is the user of the program; under sudo it is the user who\n"
	"called sudo. The agent adds the user id that the kernel reports.\n"
	"\n" ASK_ORDER_RIGHTS "Everybody may list.\n\n" ASK_EXIT_STATUS;

// Return the name of the user for an order, or "-".
static const char *author_name(void) {
	// NOLINTBEGIN(concurrency-mt-unsafe): one thread
	const char *sudo = getuid() == 0 ? getenv("SUDO_USER") : NULL;
	const struct passwd *entry = sudo == NULL ? getpwuid(getuid()) : NULL;
	// NOLINTEND(concurrency-mt-unsafe)
	const char *name = sudo != NULL ? sudo : entry != NULL ? entry->pw_name : "";

	for (const char *at = name; *at != '\0'; at++) {
		if (*at <= ' ' || *at > '~')
			return "-";
	}
	return name[0] != '\0' && strlen(name) <= USER_BYTES_MAX ? name : "-";
}

static int check_options(const struct arguments *arguments, uint64_t *ret_for_ns) {
	const char *time = arguments->values[OPTION_FOR];
	const char *reason = arguments->values[OPTION_REASON];
	bool on = arguments->words[1] != NULL && strcmp(arguments->words[1], "on") == 0;
	struct parse_error error;
	uint64_t for_ns = 0;

	if (arguments->words[0] != NULL && arguments->words[1] == NULL) {
		command_error("maint", "on|off is missing: tocsin maint NAME on|off");
		return EXIT_USAGE;
	}
	if (!on && (time != NULL || reason != NULL)) {
		command_error(
			"maint", "--%s needs the word on: tocsin maint NAME on --%s ...",
			time != NULL ? "for" : "reason", time != NULL ? "for" : "reason"
		);
		return EXIT_USAGE;
	}
	if (time != NULL &&
	    (parse_duration_ns(time, strlen(time), SECOND_NS, FOR_MAX_NS, &error, &for_ns) != 0 ||
	     for_ns % SECOND_NS != 0)) {
		command_error(
			"maint", "--for: \"%.40s\" is not a time from 1s to 366d in whole seconds",
			time
		);
		return EXIT_USAGE;
	}
	if (reason != NULL && !escape_text_is_plain(reason, strlen(reason))) {
		command_error(
			"maint",
			"--reason has a control character, or is not UTF-8; give one line of text"
		);
		return EXIT_USAGE;
	}
	if (reason != NULL && strlen(reason) > REASON_BYTES_MAX) {
		command_error("maint", "--reason is longer than %d bytes", REASON_BYTES_MAX);
		return EXIT_USAGE;
	}
	*ret_for_ns = for_ns;
	return 0;
}

static int maint_run(const struct arguments *arguments) {
	const char *name = arguments->words[0], *reason = arguments->values[OPTION_REASON];
	const char *time = arguments->values[OPTION_FOR];
	char question[512];
	uint64_t for_ns;
	int status = check_options(arguments, &for_ns);

	if (status != 0)
		return status;
	if (name == NULL)
		return ask(&maint_command, arguments, "MAINTENANCE", show_maintenance, NULL);
	if (strcmp(arguments->words[1], "off") == 0) {
		snprintf(question, sizeof(question), "MAINT %s off", name);
		return ask_order(
			&maint_command, arguments, question, "%s is in service: alarms are raised",
			name
		);
	}
	snprintf(
		question, sizeof(question), "MAINT %s on %" PRIu64 " %s%s%s", name,
		for_ns / SECOND_NS, author_name(), reason != NULL ? " " : "",
		reason != NULL ? reason : ""
	);
	return ask_order(
		&maint_command, arguments, question, "%s is in maintenance%s%s: no alarms", name,
		time != NULL ? " for " : "", time != NULL ? time : ""
	);
}

static const struct record *const records[] = {&maintenance_record, NULL};

const struct command maint_command = {
	.name = "maint",
	.summary = "List the nodes in maintenance, or switch a node's maintenance",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 2,
	.target = TARGET_ORDER,
	.records = records,
	.run = maint_run,
};
