// SPDX-License-Identifier: BSD-3-Clause
// Parser of a command line, common to all commands.
#include "options/options_impl.h"

#include <lib/escape.h>
#include <lib/suggestion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_BYTES 80
#define NAME_BYTES 32
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct option_table *const tables[] = {
	&options_of_plan,
	&options_of_place,
	&options_of_result,
	&options_of_mesh,
};

int option_fail(const char *option, const char *text) {
	fprintf(stderr, "tocsin-perf: %s: %s\n", option, text);
	return -EINVAL;
}

int option_parse_u32(
	const char *value,
	uint32_t min,
	uint32_t max,
	struct parse_error *error,
	uint32_t *ret_value
) {
	uint64_t number;
	int err = parse_u64(value, strlen(value), min, max, error, &number);

	if (err == 0)
		*ret_value = (uint32_t)number;
	return err;
}

// Find the option of an argument. Returns NULL after an error message if the option is unknown.
static const struct option *option_find(const char *given) {
	size_t length = strcspn(given, "=");
	struct suggestion suggestion;
	char quoted[QUOTED_BYTES], name[NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)length, given);
	suggestion_init(&suggestion, name);
	for (size_t of = 0; of < COUNT_OF(tables); of++) {
		for (size_t n = 0; n < tables[of]->count; n++) {
			const struct option *option = &tables[of]->options[n];
			size_t known_length = strlen(option->name);

			if (known_length == length && memcmp(option->name, given, length) == 0)
				return option;
			suggestion_add(&suggestion, option->name, known_length);
		}
	}
	escape_quote(given, strlen(given), quoted, sizeof(quoted));
	fprintf(stderr, "tocsin-perf: unknown option %s; %s\n", quoted,
		suggestion_text(&suggestion));
	return NULL;
}

const char *options_part_name(uint32_t parts) {
	for (size_t n = 0; n < options_of_plan.count; n++) {
		if ((options_of_plan.options[n].part & parts) != 0)
			return options_of_plan.options[n].name;
	}
	return NULL;
}

struct reading {
	int argc, at;
	char **argv;
	struct option_words words;
};

static int parse_option(struct reading *reading, struct options *options) {
	const char *given = reading->argv[reading->at], *value = strchr(given, '=');
	const struct option *option = option_find(given);
	struct parse_error error = {.text = ""};

	if (option == NULL)
		return -EINVAL;

	// The value is the text behind "=", or the next argument.
	if (option->is_flag && !option->may_be_valued && value != NULL)
		return option_fail(option->name, "takes no value");
	if (value != NULL)
		value++;
	else if (!option->is_flag && reading->at + 1 >= reading->argc)
		return option_fail(option->name, "needs a value");
	else if (!option->is_flag)
		value = reading->argv[++reading->at];
	if (option->set(options, value, &error) != 0)
		return option_fail(
			option->name, error.text[0] != '\0' ? error.text : "has an invalid value"
		);
	options->session.given |= option->part;
	if (option->owner == OPTION_CLIENT)
		reading->words.of_client = option->name;
	if (option->owner == OPTION_SERVER)
		reading->words.of_server = option->name;
	if (option->owner == OPTION_MESH)
		reading->words.of_mesh = option->name;
	if (option >= options_of_place.options &&
	    option < options_of_place.options + options_of_place.count)
		reading->words.of_place = option->name;
	return 0;
}

int options_parse_arguments(
	int argc, char **argv, struct options *options, struct option_words *ret_words
) {
	struct reading reading = {.argc = argc, .argv = argv, .at = 2};
	int err = 0;

	for (; reading.at < argc && err == 0; reading.at++) {
		if (argv[reading.at][0] == '-')
			err = parse_option(&reading, options);
		else if (reading.words.host != NULL)
			err = option_fail(
				argv[reading.at], "is a second HOST; only one is possible"
			);
		else
			reading.words.host = argv[reading.at];
	}
	if (err == 0)
		*ret_words = reading.words;
	return err;
}

void options_begin(int argc, char **argv, enum plan_command command, struct options *ret_options) {
	ret_options->session.plan = plan_default;
	ret_options->session.plan.command = command;
	ret_options->session.settings = device_settings_default;
	ret_options->session.file_bytes = RESULT_FILE_BYTES;
	ret_options->session.signal_fd = -1;
	ret_options->runs.argc = argc;
	ret_options->runs.argv = argv;
}

// Set defaults that depend on other options. Atomics have 8 bytes unless a size is given. A
// duration replaces the default number of iterations.
void options_apply_defaults(struct options *options) {
	struct plan *plan = &options->session.plan;
	uint32_t given = options->session.given;

	if ((given & PLAN_PART_SIZES) == 0 && plan->command == PLAN_BW)
		plan->sizes[0] = PLAN_BW_SIZE;
	if ((given & PLAN_PART_SIZES) == 0 && plan_op_is_atomic(plan->op))
		plan->sizes[0] = 8;
	if (plan->command == PLAN_BW && (given & PLAN_PART_DEPTH) == 0)
		plan->depth = PLAN_BW_DEPTH;
	if (plan->command == PLAN_BW &&
	    (given & (PLAN_PART_DURATION | PLAN_PART_ITERATIONS)) == 0) {
		plan->iterations = 0;
		plan->duration_ns = PLAN_BW_DURATION_NS;
	}
	if ((given & PLAN_PART_DURATION) != 0 && (given & PLAN_PART_ITERATIONS) == 0)
		plan->iterations = 0;
	if (plan->arrivals == PLAN_TRACE)
		plan->iterations = plan->duration_ns = 0;
}
