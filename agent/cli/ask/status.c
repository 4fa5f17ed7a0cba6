// SPDX-License-Identifier: BSD-3-Clause
// tocsin status: shows what is wrong and counts the rest; --nccl shows NCCL's report.
#include "ask/ask.h"
#include "show/paint.h"
#include "show/summary.h"

#include <records/status.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_COLUMNS 80 // on a terminal
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
		{"nccl", NULL,
		 "print the report of NCCL's RAS on the communicators of\n"
		 "all jobs"},
	[OPTION_VERBOSE] = {"verbose", NULL, "with --nccl: print all tables of the report"},
};

static const char details[] =
	"Problems come first, with node names in Slurm's short form. The rest is\n"
	"counted, so that a cluster of thousands of nodes fits one screen. The answer is\n"
	"what one agent knows without asking others, except for --nccl, which asks all\n"
	"agents. For more detail: tocsin peers, health, links and events; for one node:\n"
	"tocsin why.\n"
	"\n"
	"With --json: health, links and events, as those commands have them. With\n"
	"--nccl --json: NCCL's report; it and each of its communicators have tocsin.\n"
	"\n" ASK_EXIT_STATUS;

// Move all lines of a wide frame to a frame of the terminal's width. Sentences are broken at
// blanks. Rows of tables are cut and end in ~, as in the tables of other commands.
static void frame_move_lines(struct frame *frame, struct frame *wide, bool are_rows) {
	size_t columns = frame->columns;

	for (size_t n = 0; n < wide->count; n++) {
		const char *text = wide->lines[n].text, *indent = "";
		enum frame_kind kind = wide->lines[n].kind;

		if (are_rows) {
			frame_add(frame, kind, "%s", text);
			continue;
		}
		do {
			size_t room = columns - strlen(indent), size = strlen(text);

			if (size > room) {
				size = room;
				while (size > 0 && text[size] != ' ')
					size--;
				size = size > 0 ? size : room; // 0: a single long word
			}
			frame_add(frame, kind, "%s%.*s", indent, (int)size, text);
			text += size;
			text += strspn(text, " ");
			indent = "  ";
		} while (*text != '\0');
	}
	wide->count = 0;
}

static int status_print(const struct summary *summary, bool whole) {
	size_t columns = whole ? FRAME_COLUMNS_WHOLE : STATUS_COLUMNS;
	struct frame frame, wide = {.lines = NULL};
	char line[FRAME_LINE_BYTES];
	int err = frame_init(&frame, columns, STATUS_LINES_MAX);

	// Lines of the wide frame are not cut, and names are still in their short form.
	if (err == 0)
		err = frame_init(
			&wide, whole ? FRAME_COLUMNS_WHOLE : FRAME_COLUMNS_WHOLE - 1,
			STATUS_LINES_MAX
		);
	if (err != 0) {
		frame_fini(&frame);
		command_error("status", "out of memory");
		return EXIT_NEGATIVE;
	}
	summary_headline(summary->health, line);
	frame_add(&wide, FRAME_TEXT, "%s", line);
	summary_states(summary, &wide);
	frame_move_lines(&frame, &wide, false);
	if (json_array_size(json_object_get(summary->health, "findings")) > 0)
		frame_add(&frame, FRAME_TEXT, "%s", "");
	summary_findings(summary->health, STATUS_FINDINGS, &wide);
	frame_move_lines(&frame, &wide, true);
	frame_add(&frame, FRAME_TEXT, "%s", "");
	summary_view(summary->health, &wide);
	summary_links(summary->links, &wide);
	frame_move_lines(&frame, &wide, false);
	frame_add(&frame, FRAME_TEXT, "last important events");
	summary_events(summary->events, STATUS_EVENTS, &wide);
	frame_move_lines(&frame, &wide, true);
	frame_print(&frame, paint_is_enabled(stdout), "\n", stdout);
	frame_fini(&frame);
	frame_fini(&wide);
	return EXIT_DONE;
}

static int status_show(struct contact *contact) {
	struct summary summary = {.health = NULL};
	int err = contact_open(contact, true);
	json_t *object;
	int status;

	if (err == 0)
		err = summary_gather(contact, &summary);
	if (err != 0) {
		status = ask_report_failure(contact, err);
	} else if (target_of(contact)->json) {
		object = json_pack(
			"{s:O,s:O?,s:O?}", "health", summary.health, "links",
			json_object_get(summary.links, "links"), "events",
			json_object_get(summary.events, "events")
		);
		status = ask_print_json(target_of(contact), object);
		json_decref(object);
	} else {
		status = status_print(&summary, contact->whole);
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
	int err = contact_open(contact, target_of(contact)->json);

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
	while (!target_of(contact)->json && *text != '\0') {
		size_t size = strcspn(text, "\n");
		char *line = strndup(text, size);

		if (line != NULL)
			paint_print_line(line, colour, stdout);
		free(line);
		text += size + (text[size] == '\n');
	}
	if (!target_of(contact)->json)
		return EXIT_DONE;
	answer = json_loads(text, 0, NULL);
	if (answer == NULL) {
		snprintf(
			contact->why, sizeof(contact->why),
			"the report of the agent on %s is incomplete", contact->place
		);
		return ask_report_failure(contact, -EPROTO);
	}
	status = ask_print_json(target_of(contact), answer);
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
			"status",
			"--verbose needs --nccl; for more detail see tocsin peers, health, links and events"
		);
		return EXIT_USAGE;
	}
	status = target_init(&target, &status_command, arguments);
	if (status != 0)
		return status;
	contact_init(&contact, &target.agent);
	status = nccl ? nccl_report_show(&contact, verbose) : status_show(&contact);
	contact_fini(&contact);
	return status;
}

static const struct record *const status_records[] = {
	&status_cluster_record, &unanswered_record, &status_communicator_record, NULL};

const struct command status_command = {
	.name = "status",
	.summary = "Show the cluster on one screen: problems first, the rest counted",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.target = TARGET_READ,
	.records = status_records,
	.run = status_run,
};
