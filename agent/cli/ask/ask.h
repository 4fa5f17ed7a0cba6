// SPDX-License-Identifier: BSD-3-Clause
// Commands that send one request. The answer is shown as a page, or printed as received with
// --json.
#pragma once

#include "show/page.h"
#include "target.h"

// End of the help text of such commands.
#define ASK_EXIT_STATUS                                                               \
	"Exit status: 0 done, 1 the answer is no, 2 a mistake in the command line,\n" \
	"3 no agent answered.\n"

// Sentence in the help text of orders.
#define ASK_ORDER_RIGHTS                                                                    \
	"Root, the agent's own user, and members of the group in [client] group may give\n" \
	"this order.\n"

// Send the request and print the answer. Without --json, `show` formats the answer. ret_answer may
// be NULL; otherwise the caller releases *ret_answer. Returns the exit status.
int ask(const struct command *command,
	const struct arguments *arguments,
	const char *question,
	show_fn *show,
	json_t **ret_answer);
// Like ask(), but wait `more_ns` longer, for a request whose work takes time.
int ask_with_extra_time(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	uint64_t more_ns,
	show_fn *show,
	json_t **ret_answer
);

// Like ask(), but return the answer and print only errors. Returns 0 and sets *ret_object, or
// returns the exit status and one sentence in ret_why. The sentence is "" after an error in the
// command line.
int ask_without_output(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	json_t **ret_object,
	char ret_why[static CONTACT_WHY_BYTES]
);

// Send an order, and print the formatted sentence if it succeeds.
__attribute__((format(printf, 4, 5))) int ask_order(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	const char *format,
	...
);

// Print an error of contact_*(), with --json also as an object. Returns the exit status.
int ask_report_failure(const struct contact *contact, int err);

// Print the answer on stdout through `show`. Returns 0, or the exit status after an error message.
int ask_show(const struct contact *contact, show_fn *show, json_t *answer);
// Print the answer on stdout as one line of ASCII. Returns 0, or the exit status after an error
// message. main() reports a failed write.
int ask_print_json(const struct target *target, const json_t *answer);
