// SPDX-License-Identifier: BSD-3-Clause
// Prints the completion scripts of `tocsin` for bash and zsh from the tables of its commands.
#include "completion.h"

#include "command.h"

#include <string.h>

// Return whether the value of an option is a file.
static bool option_takes_file(const struct option_spec *option) {
	return strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "PATH") == 0;
}

static void bash_put_options(const struct command *command, FILE *out) {
	const struct option_spec *option;

	for (size_t n = 0; (option = command_option(command, n)) != NULL; n++)
		fprintf(out, "%s--%s", n > 0 ? " " : "", option->name);
}

// Print the patterns "--a|--b" of the options that take a file, or any other value.
static void bash_put_values(const struct command *command, bool files, FILE *out) {
	const struct option_spec *option;
	const char *between = "";

	for (size_t n = 0; (option = command_option(command, n)) != NULL; n++) {
		if (option->argument == NULL || option_takes_file(option) != files)
			continue;
		fprintf(out, "%s%s:--%s", between, command->name, option->name);
		between = "|";
	}
	if (between[0] == '\0')
		fputs("-", out); // a pattern that matches no command
}

static void bash_put_command(const struct command *command, FILE *out) {
	fprintf(out, "\t%s)\n\t\toptions='", command->name);
	bash_put_options(command, out);
	fputs("'\n", out);
	for (size_t n = 0; n < command->word_count; n++) {
		const struct word_spec *word = &command->words[n];

		if (word->kind == WORD_COMMAND)
			fputs("\t\tfiles=yes\n", out);
		if (word->kind != WORD_CHOICE)
			continue;
		fputs("\t\twords='", out);
		for (size_t k = 0; word->choices[k] != NULL; k++)
			fprintf(out, "%s%s", k > 0 ? " " : "", word->choices[k]);
		fputs("'\n", out);
	}
	fputs("\t\t;;\n", out);
}

static const char bash_head[] =
	"# Completion of tocsin for bash, made by `tocsin --completion bash`.\n"
	"_tocsin() {\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal command=${COMP_WORDS[1]-} options= words= files=\n"
	"\tCOMPREPLY=()\n";

static const char bash_tail[] = "\t*) return ;;\n"
				"\tesac\n"
				"\tif [[ $current == -* ]]; then\n"
				"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
				"\telif [[ -n $files ]]; then\n"
				"\t\tCOMPREPLY=($(compgen -f -- \"$current\"))\n"
				"\telse\n"
				"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
				"\tfi\n"
				"}\n"
				"complete -F _tocsin tocsin\n";

static void bash_print(FILE *out) {
	fputs(bash_head, out);
	fputs("\tif (( COMP_CWORD == 1 )); then\n\t\tCOMPREPLY=($(compgen -W '", out);
	for (size_t n = 0; commands[n] != NULL; n++)
		fprintf(out, "%s ", commands[n]->name);
	fputs("help --help --version' -- \"$current\"))\n\t\treturn\n\tfi\n", out);
	// The value of an option: a file, or text that only the user knows.
	for (int files = 1; files >= 0; files--) {
		fputs("\tcase $command:$before in\n\t", out);
		for (size_t n = 0; commands[n] != NULL; n++) {
			fputs(n > 0 ? "|" : "", out);
			bash_put_values(commands[n], files != 0, out);
		}
		fputs(files != 0
			      ? ")\n\t\tCOMPREPLY=($(compgen -f -- \"$current\"))\n\t\treturn ;;\n"
			      : ")\n\t\treturn ;;\n",
		      out);
		fputs("\tesac\n", out);
	}
	fputs("\tcase $command in\n", out);
	for (size_t n = 0; commands[n] != NULL; n++)
		bash_put_command(commands[n], out);
	fputs(bash_tail, out);
}

// Print text inside of single quotes. Brackets and colons separate the parts of a description.
static void zsh_put_text(const char *text, FILE *out) {
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (*text == '\n')
			fputc(' ', out);
		else if (*text == '[' || *text == ']' || *text == ':' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void zsh_put_command(const struct command *command, FILE *out) {
	const struct option_spec *option;

	fprintf(out, "%s) _arguments", command->name);
	for (size_t n = 0; (option = command_option(command, n)) != NULL; n++) {
		fprintf(out, " \\\n\t'--%s[", option->name);
		zsh_put_text(option->help, out);
		fputc(']', out);
		if (option->argument != NULL) {
			fputc(':', out);
			zsh_put_text(option->argument, out);
			fputs(option_takes_file(option) ? ":_files" : ": ", out);
		}
		fputc('\'', out);
	}
	for (size_t n = 0; n < command->word_count; n++) {
		const struct word_spec *word = &command->words[n];
		bool is_last = word->kind == WORD_TEXT || word->kind == WORD_COMMAND;

		fputs(" \\\n\t'", out);
		if (is_last)
			fputc('*', out);
		else
			fprintf(out, "%zu", n + 1);
		fputs(word->optional && !is_last ? "::" : ":", out);
		zsh_put_text(word->name, out);
		fputs(word->kind == WORD_COMMAND ? ":_files" : ":", out);
		if (word->kind == WORD_CHOICE) {
			fputc('(', out);
			for (size_t k = 0; word->choices[k] != NULL; k++)
				fprintf(out, "%s%s", k > 0 ? " " : "", word->choices[k]);
			fputc(')', out);
		} else if (word->kind != WORD_COMMAND) {
			fputc(' ', out);
		}
		fputc('\'', out);
	}
	fputs(" ;;\n", out);
}

static void zsh_print(FILE *out) {
	fputs("#compdef tocsin\n"
	      "# Completion of tocsin for zsh, made by `tocsin --completion zsh`.\n"
	      "local -a tocsin_commands=(\n",
	      out);
	for (size_t n = 0; commands[n] != NULL; n++) {
		fprintf(out, "\t'%s:", commands[n]->name);
		zsh_put_text(commands[n]->summary, out);
		fputs("'\n", out);
	}
	fputs(")\n"
	      "if (( CURRENT == 2 )); then\n"
	      "\t_describe command tocsin_commands\n"
	      "\treturn\n"
	      "fi\n"
	      "shift words\n"
	      "(( CURRENT-- ))\n"
	      "case $words[1] in\n",
	      out);
	for (size_t n = 0; commands[n] != NULL; n++)
		zsh_put_command(commands[n], out);
	fputs("esac\n", out);
}

bool completion_print(const char *shell, FILE *out) {
	if (strcmp(shell, "bash") == 0)
		bash_print(out);
	else if (strcmp(shell, "zsh") == 0)
		zsh_print(out);
	else
		return false;
	return true;
}
