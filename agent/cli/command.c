// SPDX-License-Identifier: BSD-3-Clause
// Parses the arguments of a command by its option table, and prints its help.
#include "command.h"

#include "target.h"

#include <lib/escape.h>
#include <lib/must.h>
#include <lib/suggestion.h>

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define HELP_COLUMN 24
#define QUOTED_BYTES 80

static const struct option_spec help_option = {"help", NULL, "print this and exit"};

const char *command_flush_output(void) {
	static int first_err; // a later call finds stdout empty, and succeeds

	if (fflush(stdout) != 0 && first_err == 0)
		first_err = errno;
	if (first_err != 0)
		return strerrordesc_np(first_err);
	return ferror(stdout) ? "" : NULL;
}

void command_error(const char *command_name, const char *format, ...) {
	va_list args;

	fprintf(stderr, "tocsin %s: ", command_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

const struct option_spec *command_option(const struct command *command, size_t n) {
	size_t shared = target_option_count(command->target);

	if (n < command->option_count)
		return &command->options[n];
	n -= command->option_count;
	if (n < shared)
		return &target_options[n];
	return n == shared ? &help_option : NULL;
}

// Print a multi-line help text, aligned behind the column of its subject.
static void print_entry(const char *line, int width, FILE *out) {
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

static const char *const shape_tails[] = {
	[WORD_NAME] = "",
	[WORD_CHOICE] = "",
	[WORD_TEXT] = "...",
	[WORD_COMMAND] = " [ARGUMENT]...",
};

void command_usage_text(const struct command *command, char text[static COMMAND_SHAPE_BYTES]) {
	size_t used = (size_t)snprintf(text, COMMAND_SHAPE_BYTES, "[OPTION]...");

	for (size_t n = 0; n < command->word_count; n++) {
		const struct word_spec *word = &command->words[n];

		used += (size_t)snprintf(
			text + used, COMMAND_SHAPE_BYTES - used, " %s%s%s%s",
			word->optional ? "[" : "", word->name, shape_tails[word->kind],
			word->optional ? "]" : ""
		);
		must(used < COMMAND_SHAPE_BYTES);
	}
}

void command_print_help(const struct command *command, FILE *out) {
	const struct option_spec *option;
	char shape[COMMAND_SHAPE_BYTES];

	command_usage_text(command, shape);
	fprintf(out, "Usage: tocsin %s %s\n\n%s\n\n", command->name, shape, command->summary);
	for (size_t n = 0; n < command->word_count; n++) {
		const struct word_spec *word = &command->words[n];

		print_entry(word->help, fprintf(out, "  %s", word->name), out);
	}
	fprintf(out, "%sOptions:\n", command->word_count > 0 ? "\n" : "");
	for (size_t n = 0; (option = command_option(command, n)) != NULL; n++) {
		const char *argument = option->argument;
		int width =
			fprintf(out, "  --%s%s%s", option->name, argument == NULL ? "" : " ",
				argument == NULL ? "" : argument);

		print_entry(option->help, width, out);
	}
	fprintf(out, "\n%s", command->details);
}

static int report_unknown_option(const struct command *command, const char *given, size_t length) {
	const struct option_spec *option;
	struct suggestion suggestion;
	char word[SUGGESTION_WORD_BYTES_MAX + 2];
	char quoted[QUOTED_BYTES];

	escape_quote(given, length, quoted, sizeof(quoted));
	snprintf(word, sizeof(word), "%.*s", (int)length, given);
	suggestion_init(&suggestion, word);
	for (size_t n = 0; (option = command_option(command, n)) != NULL; n++) {
		char known[SUGGESTION_WORD_BYTES_MAX];

		snprintf(known, sizeof(known), "--%s", option->name);
		suggestion_add(&suggestion, known, strlen(known));
	}
	command_error(command->name, "unknown option %s; %s", quoted, suggestion_text(&suggestion));
	return -EINVAL;
}

// Return the option that matches the first `length` characters of `given`, or NULL. *ret_place is
// where its value is stored.
static const struct option_spec *find_option(
	const struct command *command,
	const char *given,
	size_t length,
	struct arguments *arguments,
	const char ***ret_place
) {
	bool is_letter = length == 2 && command->letter != '\0' && given[1] == command->letter;
	size_t own = command->option_count;
	const struct option_spec *option;

	for (size_t n = 0; (option = command_option(command, n)) != &help_option; n++) {
		if (!(is_letter && n == command->letter_option) &&
		    (length != strlen(option->name) + 2 || memcmp(given, "--", 2) != 0 ||
		     memcmp(given + 2, option->name, length - 2) != 0))
			continue;
		*ret_place = n < own ? &arguments->values[n] : &arguments->shared[n - own];
		return option;
	}
	return NULL;
}

// Parse one option and its value. *at moves to the last argument used.
static int parse_option(
	const struct command *command, int argc, char **argv, int *at, struct arguments *arguments
) {
	const char *given = argv[*at];
	size_t length = strcspn(given, "=");
	bool has_value = given[length] == '=';
	const struct option_spec *option;
	const char **place;

	option = find_option(command, given, length, arguments, &place);
	if (option == NULL)
		return report_unknown_option(command, given, length);
	// A repeated flag is harmless. A repeated option with a value would lose one of its values.
	if (*place != NULL && option->argument != NULL) {
		command_error(command->name, "--%s is given twice", option->name);
		return -EINVAL;
	}
	if (option->argument == NULL && has_value) {
		command_error(command->name, "--%s takes no value", option->name);
		return -EINVAL;
	}
	if (option->argument != NULL && !has_value && *at + 1 == argc) {
		command_error(
			command->name, "--%s needs a value: --%s %s", option->name, option->name,
			option->argument
		);
		return -EINVAL;
	}
	if (option->argument == NULL)
		*place = "";
	else
		*place = has_value ? given + length + 1 : argv[++*at];
	return 0;
}

static int
check_choice(const struct command *command, const struct word_spec *spec, const char *word) {
	struct suggestion suggestion;
	char quoted[QUOTED_BYTES];

	suggestion_init(&suggestion, word);
	for (const char *const *choice = spec->choices; *choice != NULL; choice++) {
		if (strcmp(word, *choice) == 0)
			return 0;
		suggestion_add(&suggestion, *choice, strlen(*choice));
	}
	escape_quote(word, strlen(word), quoted, sizeof(quoted));
	command_error(
		command->name, "%s: %s is not allowed; %s", spec->name, quoted,
		suggestion_text(&suggestion)
	);
	return -EINVAL;
}

// Append a word to the free text, which must fit into one protocol line.
static int text_append_word(
	const struct command *command,
	const struct word_spec *spec,
	const char *word,
	struct arguments *arguments
) {
	size_t used = strlen(arguments->text);
	char quoted[QUOTED_BYTES];

	if (!escape_text_is_plain(word, strlen(word))) {
		escape_quote(word, strlen(word), quoted, sizeof(quoted));
		command_error(
			command->name,
			"%s: %s has a control character, or is not UTF-8; give one line of "
			"text",
			spec->name, quoted
		);
		return -EINVAL;
	}
	if (used + 1 + strlen(word) > TARGET_TEXT_BYTES_MAX) {
		command_error(
			command->name, "%s: the text is longer than %d bytes", spec->name,
			TARGET_TEXT_BYTES_MAX
		);
		return -EINVAL;
	}
	snprintf(
		arguments->text + used, sizeof(arguments->text) - used, "%s%s", used > 0 ? " " : "",
		word
	);
	return 0;
}

static int parse_word(
	const struct command *command, const char *word, size_t *place, struct arguments *arguments
) {
	const struct word_spec *spec = &command->words[*place];
	char quoted[QUOTED_BYTES];
	int err = 0;

	if (*place == command->word_count) {
		escape_quote(word, strlen(word), quoted, sizeof(quoted));
		command_error(
			command->name, "takes no %sargument %s; see tocsin %s --help",
			command->word_count > 0 ? "further " : "", quoted, command->name
		);
		return -EINVAL;
	}
	switch (spec->kind) {
	case WORD_NAME:
		// A name becomes part of a protocol line, so blanks and control characters are
		// rejected.
		if (target_is_name(word))
			break;
		escape_quote(word, strlen(word), quoted, sizeof(quoted));
		command_error(
			command->name, "%s: %s is not a valid name: 1 to %d bytes without blanks",
			spec->name, quoted, TARGET_NAME_BYTES_MAX
		);
		err = -EINVAL;
		break;
	case WORD_CHOICE:
		err = check_choice(command, spec, word);
		break;
	case WORD_TEXT:
		arguments->words[*place] = arguments->text;
		return text_append_word(command, spec, word, arguments);
	case WORD_COMMAND:
		break; // any word is allowed
	}
	arguments->words[(*place)++] = word;
	return err;
}

int command_parse(
	const struct command *command, int argc, char **argv, struct arguments *ret_arguments
) {
	struct arguments *arguments = ret_arguments;
	char shape[COMMAND_SHAPE_BYTES];
	bool words_only = false;
	size_t place = 0;
	int err = 0;

	must(command->option_count <= COMMAND_OPTIONS_MAX);
	must(command->word_count <= COMMAND_WORDS_MAX);
	memset(arguments, 0, sizeof(*arguments));
	for (int at = 0; at < argc && err == 0; at++) {
		bool is_word = argv[at][0] != '-' || argv[at][1] == '\0' || words_only;
		bool is_command = is_word && place < command->word_count &&
				  command->words[place].kind == WORD_COMMAND;

		if (!words_only && (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0))
			return 1;
		if (!is_word && command->word_count > 0 && strcmp(argv[at], "--") == 0)
			words_only = true;
		else if (is_command) {
			// The arguments after the word belong to the command that it starts.
			arguments->command = argv + at;
			arguments->words[place] = argv[at];
			break;
		} else if (is_word)
			err = parse_word(command, argv[at], &place, arguments);
		else
			err = parse_option(command, argc, argv, &at, arguments);
	}
	if (err != 0)
		return err;
	for (size_t n = 0; n < command->word_count; n++) {
		if (command->words[n].optional ||
		    (arguments->words[n] != NULL && arguments->words[n][0] != '\0'))
			continue;
		command_usage_text(command, shape);
		command_error(
			command->name, "%s is missing: tocsin %s %s", command->words[n].name,
			command->name, shape
		);
		return -EINVAL;
	}
	return 0;
}
