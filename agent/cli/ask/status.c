// SPDX-License-Identifier: BSD-3-Clause
// tocsin status: shows what is wrong and counts the rest; --nccl shows NCCL's report.
#include "ask/ask.h"
#include "show/paint.h"
#include "show/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_LINES_MAX 64
#define STATUS_FINDINGS 8
#define STATUS_EVENTS 5
#define ERROR_PREFIX "ERROR: "

enum {
	OPTION_NCCL,
	OPTION_VERBOSE,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_NCCL] =
		{"nccl", NULL, "the report that NCCL's RAS gives, of all jobs' communicators"},
	[OPTION_VERBOSE] = {"verbose", NULL, "with --nccl: all of its tables"},
};

static const char details[] =
	"What is wrong comes first, with names in Slurm's short form; the rest is counted, so that a ring\n"
	"of thousands fills one screen. All of it is what one agent knows without asking others, but for\n"
	"--nccl, which asks all of them. More of each: tocsin peers, health, links, events; of one node:\n"
	"tocsin why.\n"
	"\n" ASK_EXIT_STATUS;

static int status_show(struct contact *contact) {
	size_t columns = contact->whole ? FRAME_COLUMNS_WHOLE : FRAME_COLUMNS;
	struct summary summary = {.health = NULL};
	int err = contact_open(contact, true);
	char line[FRAME_LINE_BYTES];
	int status = EXIT_DONE;
	struct frame frame;
	json_t *object;

	if (err == 0)
		err = summary_gather(contact, &summary);
	if (err != 0) {
		status = ask_report_failure(contact, err);
	} else if (contact->target->json) {
		object = json_pack(
			"{s:O,s:O?,s:O?}", "health", summary.health, "links",
			json_object_get(summary.links, "links"), "events",
			json_object_get(summary.events, "events")
		);
		status = ask_print_json(contact->target, object);
		json_decref(object);
	} else if (frame_init(&frame, columns, STATUS_LINES_MAX) != 0) {
		command_error("status", "out of memory");
		status = EXIT_NEGATIVE;
	} else {
		summary_headline(summary.health, line);
		frame_add(&frame, FRAME_TEXT, "%s", line);
		summary_states(&summary, &frame);
		if (json_array_size(json_object_get(summary.health, "findings")) > 0)
			frame_add(&frame, FRAME_TEXT, "%s", "");
		summary_findings(summary.health, STATUS_FINDINGS, &frame);
		frame_add(&frame, FRAME_TEXT, "%s", "");
		summary_view(summary.health, &frame);
		summary_links(summary.links, &frame);
		frame_add(&frame, FRAME_TEXT, "events, the last that matter");
		summary_events(summary.events, STATUS_EVENTS, &frame);
		frame_print(&frame, paint_is_enabled(stdout), "\n", stdout);
		frame_fini(&frame);
	}
	summary_fini(&summary);
	return status;
}

// NCCL's report.

static int nccl_report_show(struct contact *contact, bool verbose) {
	bool colour = paint_is_enabled(stdout);
	const char *text;
	json_t *answer;
	int status;
	int err = contact_open(contact, contact->target->json);

	if (err == 0)
		err = contact_ask(contact, verbose ? "VERBOSE STATUS" : "STATUS");
	if (err == 0)
		err = contact_read_to_end(contact, &text);
	if (err != 0)
		return ask_report_failure(contact, err);
	if (strncmp(text, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0) {
		text += strlen(ERROR_PREFIX);
		paint_escape(text, strcspn(text, "\n"), contact->why, sizeof(contact->why));
		return ask_report_failure(contact, -EREMOTEIO);
	}
	while (!contact->target->json && *text != '\0') {
		size_t size = strcspn(text, "\n");
		char *line = strndup(text, size);

		if (line != NULL)
			paint_print_line(line, colour, stdout);
		free(line);
		text += size + (text[size] == '\n');
	}
	if (!contact->target->json)
		return EXIT_DONE;
	answer = json_loads(text, 0, NULL);
	if (answer == NULL) {
		snprintf(
			contact->why, sizeof(contact->why),
			"the report of the agent on %s is not whole", contact->place
		);
		return ask_report_failure(contact, -EPROTO);
	}
	status = ask_print_json(contact->target, answer);
	if (json_object_get(answer, "error") != NULL)
		status = EXIT_NEGATIVE;
	json_decref(answer);
	return status;
}

static int status_run(const struct arguments *arguments) {
	bool verbose = arguments->values[OPTION_VERBOSE] != NULL;
	bool nccl = arguments->values[OPTION_NCCL] != NULL;
	struct contact contact;
	struct target target;
	int status;

	if (verbose && !nccl) {
		command_error(
			"status", "--verbose goes with --nccl; more of this view: peers, health, "
				  "links, events"
		);
		return EXIT_USAGE;
	}
	status = target_init(&target, &status_command, arguments);
	if (status != 0)
		return status;
	contact_init(&contact, &target);
	status = nccl ? nccl_report_show(&contact, verbose) : status_show(&contact);
	contact_fini(&contact);
	return status;
}

const struct command status_command = {
	.name = "status",
	.summary = "Show the cluster on one screen: what is wrong first, the rest counted",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.target = TARGET_READ,
	.run = status_run,
};
