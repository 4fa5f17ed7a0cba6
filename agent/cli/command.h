// SPDX-License-Identifier: BSD-3-Clause
// The shape of `tocsin COMMAND [OPTION]... [WORD]...`: one table describes commands, their options
// and what else they take, and from it come parsing, help, the man page and the complaints.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COMMAND_OPTIONS_MAX 24
#define COMMAND_WORDS_MAX 2
#define COMMAND_TEXT_BYTES 1024 // of words that make one text

// What tocsin exits with, unless a command documents more.
enum exit_status {
	EXIT_DONE = 0,
	EXIT_NEGATIVE = 1, // the question was understood, and the answer is no
	EXIT_USAGE = 2,
	EXIT_UNREACHED = 3, // no agent answered it
};

struct option_spec {
	const char *name;     // "peer" for --peer
	const char *argument; // "ADDR", or NULL for one that takes none
	const char *help;     // lines of at most 68 columns, parted by \n
};

enum word_kind {
	WORD_NAME,    // of a node: no blank, no control character
	WORD_CHOICE,  // one of the choices
	WORD_TEXT,    // all that follow, with a blank between
	WORD_COMMAND, // a program and all that follows it, options as well
};

struct word_spec {
	const char *name; // "NAME"
	const char *help; // as of an option
	enum word_kind kind;
	bool optional;		    // only the last may be
	const char *const *choices; // of WORD_CHOICE, NULL behind the last
};

// What a command wants of an agent, and with it which options it shares with others.
enum command_target {
	TARGET_NONE,
	TARGET_READ,  // any agent on any way
	TARGET_ORDER, // this machine's agent, on its Unix socket
};

// What was given.
struct arguments {
	// One place for each of the command's options, in its order; NULL: not given, "" for one
	// that takes no argument.
	const char *values[COMMAND_OPTIONS_MAX];
	const char *shared[COMMAND_OPTIONS_MAX]; // the same for target_options
	const char *words[COMMAND_WORDS_MAX];	 // NULL: not given
	char text[COMMAND_TEXT_BYTES];		 // of WORD_TEXT; its place in words points here
	char **command;				 // of WORD_COMMAND: NULL ends it
};

struct command {
	const char *name;
	const char *summary; // one line for the list of commands
	const char *details; // the rest of its help, behind the options
	const struct option_spec *options;
	size_t option_count;
	const struct word_spec *words;
	size_t word_count;
	char letter; // "-f" stands for an option of it; '\0': for none
	size_t letter_option;
	enum command_target target;
	bool whole_seconds;			       // --timeout takes no less
	int usage_status;			       // of a mistake in its line; 0: EXIT_USAGE
	int (*run)(const struct arguments *arguments); // returns the exit status
};

// Reads argv[0 .. argc - 1], which follow the command's name: --name VALUE or --name=VALUE, words
// between them, and behind -- words only, if the command takes any. argv[argc] is NULL.
// 0; -EINVAL after a complaint on stderr; 1 when --help was asked for. ret_arguments->words may
// point into it: it is not to be moved.
int command_parse(
	const struct command *command, int argc, char **argv, struct arguments *ret_arguments
);

// "[OPTION]... NAME [on|off]": what follows the name of the command.
#define COMMAND_SHAPE_BYTES 128
void command_shape(const struct command *command, char text[static COMMAND_SHAPE_BYTES]);

void command_print_help(const struct command *command, FILE *out);

// Its n-th option, shared ones behind its own, --help at the end; NULL past that.
const struct option_spec *command_option(const struct command *command, size_t n);

// "tocsin ifaces: ..." on stderr, and a newline.
__attribute__((format(printf, 2, 3))) void
command_complain(const char *command_name, const char *format, ...);

// Of main.c, for help and the man page; NULL behind the last.
extern const struct command *const commands[];

extern const struct command checks_command;
extern const struct command comms_command;
extern const struct command devices_command;
extern const struct command drains_command;
extern const struct command events_command;
extern const struct command forget_command;
extern const struct command health_command;
extern const struct command ifaces_command;
extern const struct command keygen_command;
extern const struct command level_command;
extern const struct command links_command;
extern const struct command log_command;
extern const struct command maint_command;
extern const struct command path_command;
extern const struct command paths_command;
extern const struct command peers_command;
extern const struct command ping_command;
extern const struct command report_command;
extern const struct command run_job_command;
extern const struct command slurm_command;
extern const struct command soft_run_command;
extern const struct command status_command;
extern const struct command top_command;
extern const struct command version_command;
extern const struct command why_command;
