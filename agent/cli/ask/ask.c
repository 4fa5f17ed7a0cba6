// SPDX-License-Identifier: BSD-3-Clause
// Sends one request of a command to the agent and prints the answer as text or JSON.
#include "ask/ask.h"

#include "show/paint.h"

#include <errno.h>
#include <stdarg.h>

// Names come from other machines, so characters outside ASCII are written as \uXXXX. A terminal
// does not interpret these.
#define DUMP_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))

int ask_print_json(const struct target *target, const json_t *answer) {
	if (json_dumpf(answer, stdout, DUMP_FLAGS) == 0) {
		putchar('\n');
		return EXIT_DONE;
	}
	if (command_flush_output() == NULL)
		command_error(target->agent.command_name, "out of memory");
	return EXIT_NEGATIVE;
}

int ask_report_failure(const struct contact *contact, int err) {
	json_t *answer;

	if (target_of(contact)->json) {
		answer = json_pack("{s:s}", "error", contact->why);
		ask_print_json(target_of(contact), answer);
		json_decref(answer);
		fflush(stdout);
	}
	command_error(contact->target->command_name, "%s", contact->why);
	return err == -EREMOTEIO ? EXIT_NEGATIVE : EXIT_UNREACHED;
}

int ask_show(const struct contact *contact, show_fn *show, json_t *answer) {
	struct page page;

	if (page_begin(&page, contact->whole, answer) != 0) {
		command_error(contact->target->command_name, "out of memory");
		return EXIT_NEGATIVE;
	}
	show(&page, answer);
	page_end(&page, paint_is_enabled(stdout), stdout);
	return EXIT_DONE;
}

int ask(const struct command *command,
	const struct arguments *arguments,
	const char *question,
	show_fn *show,
	json_t **ret_answer) {
	return ask_with_extra_time(command, arguments, question, 0, show, ret_answer);
}

int ask_with_extra_time(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	uint64_t more_ns,
	show_fn *show,
	json_t **ret_answer
) {
	struct contact contact;
	struct target target;
	json_t *object = NULL;
	int status = target_init(&target, command, arguments);
	int err;

	if (status != 0)
		return status;
	contact_init(&contact, &target.agent);
	err = contact_open(&contact, true);
	contact.answer_ns += more_ns;
	if (err == 0)
		err = contact_json(&contact, question, &object);
	if (err != 0)
		status = ask_report_failure(&contact, err);
	else if (target.json)
		status = ask_print_json(&target, object);
	else
		status = ask_show(&contact, show, object);
	if (err == 0 && ret_answer != NULL)
		*ret_answer = object;
	else if (err == 0)
		json_decref(object);
	contact_fini(&contact);
	return status;
}

int ask_without_output(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	json_t **ret_object,
	char ret_why[static CONTACT_WHY_BYTES]
) {
	struct contact contact;
	struct target target;
	int status = target_init(&target, command, arguments);
	int err;

	ret_why[0] = '\0';
	if (status != 0)
		return status;
	contact_init(&contact, &target.agent);
	err = contact_open(&contact, true);
	if (err == 0)
		err = contact_json(&contact, question, ret_object);
	if (err != 0)
		snprintf(ret_why, CONTACT_WHY_BYTES, "%s", contact.why);
	status = err == 0 ? EXIT_DONE : ask_report_failure(&contact, err);
	contact_fini(&contact);
	return status;
}

static void show_nothing(struct page *page, const json_t *answer) {
	(void)page;
	(void)answer;
}

int ask_order(
	const struct command *command,
	const struct arguments *arguments,
	const char *question,
	const char *format,
	...
) {
	int status = ask(command, arguments, question, show_nothing, NULL);
	va_list rest;

	if (status != EXIT_DONE || target_wants_json(arguments))
		return status;
	va_start(rest, format);
	vprintf(format, rest);
	va_end(rest);
	putchar('\n');
	return EXIT_DONE;
}
