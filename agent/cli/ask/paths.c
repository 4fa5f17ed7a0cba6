// SPDX-License-Identifier: BSD-3-Clause
// tocsin paths: shows how nodes read each other over RDMA: a table, a matrix, or a picture.
#include "ask/ask.h"
#include "replace.h"
#include "show/answers.h"
#include "show/heat.h"
#include "show/paint.h"

#include <lib/escape.h>
#include <records/gpus.h>
#include <records/paths.h>

#include <errno.h>
#include <string.h>

#define NO_NODE "no node " // start of the agent's error for an unknown node

static const struct option_spec options[] = {
	{"all", NULL, "list the paths of all agents, each as one end reads it"},
	{"matrix", NULL,
	 "show the paths of all agents as a matrix, with a row for\n"
	 "each node that reads"},
	{"svg", "FILE",
	 "with --matrix: write a picture to FILE instead; its\n"
	 "cells have tooltips in a browser"},
};
enum { OPTION_ALL, OPTION_MATRIX, OPTION_SVG, OPTIONS };

static const char details[] =
	"The worst paths come first, at most 40; the rest is counted. Times are those of\n"
	"reads of 8 bytes: MEDIAN of the last window, USUAL is the baseline that the\n"
	"path has learnt, P99 of the last 128 reads. LOST counts all probes. SEEN is one\n"
	"of\n"
	"  silent     no read comes back\n"
	"  standing   read, but its counter is stalled: the agent there does not run\n"
	"  lossy      large reads are lost, small ones are not\n"
	"  degraded   slower than its own past and than other paths\n"
	"  no-pair    unknown: there is no queue pair, or at most one read within\n"
	"             10 s; no evidence for or against the node. tocsin links --rdma\n"
	"             says why there is no pair\n"
	"  good       it is read, and its counter advances\n"
	"A ^ behind it means that the device of this node counts congestion now, a !\n"
	"that it sends pause frames most of the time (JSON port_congestion). If GPU\n"
	"memory is not read well over a path that is good, a line above the table says\n"
	"how: silent, refused, wrong or slow (JSON gpus: all of them).\n"
	"\n"
	"For the paths of another node: --node NAME. For both ends of one path: tocsin\n"
	"path A B.\n"
	"\n"
	"The matrix has times for up to 8 nodes, and signs for up to 80. Beyond that it\n"
	"has groups of nodes by name, and a cell shows the worst path of its groups; a\n"
	"picture has groups beyond 128 nodes. The matrix says what it leaves out. Below\n"
	"the times is a stripe for nodes with several rails, with a sign for each rail\n"
	"of the reading node. Nodes that are not neighbours on a ring read each other in\n"
	"turn, so the matrix of a young cluster fills up in the time that `tocsin paths`\n"
	"names.\n"
	"\n"
	"With --json: paths, each with all numbers (nanoseconds; null: unknown), in no\n"
	"order, and counts. With --matrix --json: nodes, and cells. The member columns\n"
	"names the columns of a cell: the indexes of two nodes in nodes, an index in\n"
	"seen, then numbers, and a sign for each rail. --svg writes the picture as well.\n"
	"\n" ASK_EXIT_STATUS "Status 1 also means that FILE cannot be written.\n";

static void write_svg(FILE *out, const void *what) {
	heat_svg(what, out);
}

// Print the matrix, or save its picture in the file if one is given.
static int matrix_show(const struct contact *contact, json_t *answer, const char *file) {
	uint32_t groups_max = file != NULL     ? HEAT_SVG_GROUPS_MAX
			      : contact->whole ? HEAT_TEXT_GROUPS_MAX
					       : HEAT_TERMINAL_GROUPS_MAX;
	const struct target *target = target_of(contact);
	char quoted[256], line[HEAT_LINE_BYTES];
	int status = EXIT_DONE;
	struct heat *heat;
	int err = heat_create(answer, groups_max, &heat);

	if (err != 0) {
		command_error(
			"paths", "%s",
			err == -ENOMEM ? "out of memory" : "the agent's answer is not a matrix"
		);
		return err == -ENOMEM ? EXIT_NEGATIVE : EXIT_UNREACHED;
	}
	if (file != NULL) {
		err = replace_file(file, write_svg, heat);
		escape_quote(file, strlen(file), quoted, sizeof(quoted));
		heat_summary_line(heat, line);
		if (err != 0) {
			command_error(
				"paths", "--svg: %s cannot be written: %s", quoted,
				replace_error_text(err)
			);
			status = EXIT_NEGATIVE;
		} else if (!target->json) {
			printf("%s: %u nodes, %s\n", quoted, heat->node_count, line);
		}
	}
	if (target->json && status == EXIT_DONE)
		status = ask_print_json(target, answer);
	else if (file == NULL)
		heat_print(heat, contact->whole, paint_is_enabled(stdout), stdout);
	heat_destroy(heat);
	return status;
}

static int paths_run(const struct arguments *arguments) {
	bool all = arguments->values[OPTION_ALL] != NULL;
	bool matrix = arguments->values[OPTION_MATRIX] != NULL;
	struct contact contact;
	struct target target;
	json_t *answer;
	int status, err;

	if (arguments->values[OPTION_SVG] != NULL && !matrix) {
		command_error("paths", "--svg needs --matrix");
		return EXIT_USAGE;
	}
	if (all && matrix) {
		command_error("paths", "--matrix always shows all agents; give it without --all");
		return EXIT_USAGE;
	}
	if (!matrix && target_wants_json(arguments))
		return ask(&paths_command, arguments, all ? "PATHS *" : "PATHS", show_paths, NULL);
	status = target_init(&target, &paths_command, arguments);
	if (status != 0)
		return status;
	contact_init(&contact, &target.agent);
	err = contact_open(&contact, true);
	if (err == 0)
		err = contact_json(
			&contact,
			matrix ? "MATRIX"
			: all  ? "PATHS * --worst"
			       : "PATHS --worst",
			&answer
		);
	// Older agents read --worst as a node name. The request is then repeated without it.
	if (err == -EREMOTEIO && !matrix && strncmp(contact.why, NO_NODE, strlen(NO_NODE)) == 0)
		err = contact_json(&contact, all ? "PATHS *" : "PATHS", &answer);
	if (err != 0) {
		status = ask_report_failure(&contact, err);
	} else {
		status = matrix ? matrix_show(&contact, answer, arguments->values[OPTION_SVG])
				: ask_show(&contact, show_paths, answer);
		json_decref(answer);
	}
	contact_fini(&contact);
	return status;
}

static const struct record *const paths_records[] = {
	&path_record, &gpu_read_record, &gpu_read_place_record, NULL};

const struct command paths_command = {
	.name = "paths",
	.summary = "List how nodes read each other over RDMA, the worst paths first",
	.details = details,
	.options = options,
	.option_count = OPTIONS,
	.target = TARGET_READ,
	.records = paths_records,
	.run = paths_run,
};
