// SPDX-License-Identifier: BSD-3-Clause
// The shape of `tocsin COMMAND [OPTION]...`: one table describes commands and options, and from it
// come parsing, help and the complaints.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COMMAND_OPTIONS_MAX 24

// What tocsin exits with, unless a command documents more.
enum exit_status {
	EXIT_DONE = 0,
	EXIT_NEGATIVE = 1, // the question was understood, and the answer is no
	EXIT_USAGE = 2,
};

struct option_spec {
	const char *name;     // "peer" for --peer
	const char *argument; // "ADDR", or NULL for one that takes none
	const char *help;     // lines of at most 68 columns, parted by \n
};

// What was given: one place for each of the command's options, in its order.
struct arguments {
	const char
		*values[COMMAND_OPTIONS_MAX]; // NULL: not given; "" for one that takes no argument
};

struct command {
	const char *name;
	const char *summary; // one line for the list of commands
	const char *details; // the rest of its help, behind the options
	const struct option_spec *options;
	size_t option_count;
	int (*run)(const struct arguments *arguments); // returns the exit status
};

// Reads argv[0 .. argc - 1], which follow the command's name: --name VALUE or --name=VALUE.
// 0; -EINVAL after a complaint on stderr; 1 when --help was asked for.
int command_parse(
	const struct command *command, int argc, char **argv, struct arguments *ret_arguments
);

void command_print_help(const struct command *command, FILE *out);

// "tocsin ifaces: ..." on stderr, and a newline.
__attribute__((format(printf, 2, 3))) void
command_complain(const char *command_name, const char *format, ...);

extern const struct command ifaces_command;
extern const struct command keygen_command;
