// SPDX-License-Identifier: BSD-3-Clause
// The commands that are one question: the agent's answer as a page, or as it came, in JSON.
#pragma once

#include "contact.h"
#include "show/page.h"

// For the details of such commands.
#define ASK_EXIT_STATUS                                                                         \
	"Exit status: 0 done, 1 the answer is no, 2 a mistake in the command line, 3 no agent " \
	"answered.\n"

// Puts the question and prints the answer: with --json as it came, else as `show` shows it.
// ret_answer may be NULL; it is the caller's to put. Returns the exit status.
int ask(const struct command *command,
	const struct arguments *arguments,
	const char *question,
	show_fn *show,
	json_t **ret_answer);
// Waits for longer than other answers take: for what is asked to be done.
int ask_patiently(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	uint64_t more_ns,
	show_fn *show,
	json_t **ret_answer
);

// Takes the answer as an object and prints nothing but a complaint. 0 and *ret_object, or the exit
// status and why, in one sentence; "" if it is the command line that is wrong.
int ask_silently(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	json_t **ret_object,
	char ret_why[static CONTACT_WHY_BYTES]
);

// The same for an order, whose success is said in a sentence.
__attribute__((format(printf, 4, 5))) int ask_order(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	const char *format,
	...
);

// What contact_*() returned as an exit status, after a complaint, and in JSON also an answer.
int ask_fail(const struct contact *contact, int err);

// The answer as `show` shows it, on stdout. 0, or the exit status after a complaint.
int ask_show(const struct contact *contact, show_fn *show, json_t *answer);
// One line on stdout, in ASCII. 0, or the exit status after a complaint.
int ask_print_json(const struct target *target, const json_t *answer);
