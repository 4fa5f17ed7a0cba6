// SPDX-License-Identifier: BSD-3-Clause
#include "command.h"

#include <lib/escape.h>
#include <lib/must.h>
#include <lib/suggestion.h>

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define HELP_COLUMN 24
#define QUOTED_BYTES 80

void command_complain(const char *command_name, const char *format, ...) {
	va_list args;

	fprintf(stderr, "tocsin %s: ", command_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

// One option's help, its lines below each other behind a column for the option itself.
static void print_option(const struct option_spec *option, FILE *out) {
	const char *line = option->help;
	int width =
		fprintf(out, "  --%s%s%s", option->name, option->argument == NULL ? "" : " ",
			option->argument == NULL ? "" : option->argument);

	for (;;) {
		int length = (int)strcspn(line, "\n");

		fprintf(out, "%*s%.*s\n", HELP_COLUMN > width ? HELP_COLUMN - width : 1, "", length,
			line);
		if (line[length] == '\0')
			return;
		line += length + 1;
		width = 0;
	}
}

void command_print_help(const struct command *command, FILE *out) {
	static const struct option_spec help = {"help", NULL, "print this and exit"};

	fprintf(out, "Usage: tocsin %s [OPTION]...\n\n%s\n\nOptions:\n", command->name,
		command->summary);
	for (size_t n = 0; n < command->option_count; n++)
		print_option(&command->options[n], out);
	print_option(&help, out);
	fprintf(out, "\n%s", command->details);
}

static void complain_unknown(const struct command *command, const char *given, size_t length) {
	struct suggestion suggestion;
	char word[SUGGESTION_WORD_BYTES_MAX + 2];
	char quoted[QUOTED_BYTES];

	escape_quote(given, length, quoted, sizeof(quoted));
	snprintf(word, sizeof(word), "%.*s", (int)length, given);
	suggestion_init(&suggestion, word);
	for (size_t n = 0; n < command->option_count; n++) {
		char known[SUGGESTION_WORD_BYTES_MAX];

		snprintf(known, sizeof(known), "--%s", command->options[n].name);
		suggestion_add(&suggestion, known, strlen(known));
	}
	suggestion_add(&suggestion, "--help", 6);
	command_complain(
		command->name, "unknown option %s; %s", quoted, suggestion_text(&suggestion)
	);
}

// The option that the first `length` characters of given are; option_count when there is none.
static size_t find_option(const struct command *command, const char *given, size_t length) {
	for (size_t n = 0; n < command->option_count; n++) {
		const char *name = command->options[n].name;

		if (length == strlen(name) + 2 && memcmp(given, "--", 2) == 0 &&
		    memcmp(given + 2, name, length - 2) == 0)
			return n;
	}
	return command->option_count;
}

// Reads one option, and what it takes from the next argument; moves *at to the last one used.
static int parse_option(
	const struct command *command, int argc, char **argv, int *at, struct arguments *arguments
) {
	const char *given = argv[*at];
	size_t length = strcspn(given, "=");
	bool has_value = given[length] == '=';
	const struct option_spec *option;
	size_t n = find_option(command, given, length);

	if (n == command->option_count) {
		complain_unknown(command, given, length);
		return -EINVAL;
	}
	option = &command->options[n];
	if (arguments->values[n] != NULL) {
		command_complain(command->name, "--%s is given twice", option->name);
		return -EINVAL;
	}
	if (option->argument == NULL && has_value) {
		command_complain(command->name, "--%s takes no value", option->name);
		return -EINVAL;
	}
	if (option->argument != NULL && !has_value && *at + 1 == argc) {
		command_complain(
			command->name, "--%s needs a value: --%s %s", option->name, option->name,
			option->argument
		);
		return -EINVAL;
	}
	if (option->argument == NULL)
		arguments->values[n] = "";
	else
		arguments->values[n] = has_value ? given + length + 1 : argv[++*at];
	return 0;
}

int command_parse(
	const struct command *command, int argc, char **argv, struct arguments *ret_arguments
) {
	struct arguments arguments = {0};
	char quoted[QUOTED_BYTES];

	must(command->option_count <= COMMAND_OPTIONS_MAX);
	for (int at = 0; at < argc; at++) {
		if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
			return 1;
		if (argv[at][0] != '-' || argv[at][1] == '\0') {
			escape_quote(argv[at], strlen(argv[at]), quoted, sizeof(quoted));
			command_complain(
				command->name, "takes no argument %s; see tocsin %s --help", quoted,
				command->name
			);
			return -EINVAL;
		}
		if (parse_option(command, argc, argv, &at, &arguments) != 0)
			return -EINVAL;
	}
	*ret_arguments = arguments;
	return 0;
}
