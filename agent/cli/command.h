// SPDX-License-Identifier: BSD-3-Clause
// Description of `tocsin COMMAND [OPTION]... [WORD]...`. One table describes each command, its
// options and words. Parsing, help, man page and error messages are derived from it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COMMAND_OPTIONS_MAX 24
#define COMMAND_WORDS_MAX 2
#define COMMAND_TEXT_BYTES 1024 // limit of all words of a WORD_TEXT

// Exit status of tocsin, unless a command documents others.
enum exit_status {
	EXIT_DONE = 0,
	EXIT_NEGATIVE = 1, // the request was understood, and the answer is no
	EXIT_USAGE = 2,
	EXIT_UNREACHED = 3, // no agent answered
};

struct option_spec {
	const char *name;     // "peer" for --peer
	const char *argument; // "ADDR"; NULL if the option takes no value
	const char *help;     // lines of at most 56 columns, separated by newlines
};

enum word_kind {
	WORD_NAME,    // node name, without blanks and control characters
	WORD_CHOICE,  // one of the choices
	WORD_TEXT,    // all remaining words, joined by blanks
	WORD_COMMAND, // a program and all arguments after it, options included
};

struct word_spec {
	const char *name; // "NAME"
	const char *help; // same format as in struct option_spec
	enum word_kind kind;
	bool optional;		    // the words after it are optional as well
	const char *const *choices; // for WORD_CHOICE, terminated by NULL
};

struct record;

// Kind of agent access of a command; it selects the shared options.
enum command_target {
	TARGET_NONE,
	TARGET_READ,  // any agent, over any transport
	TARGET_ORDER, // the local agent, over its Unix socket
};

// Parsed arguments.
struct arguments {
	// One entry per option of the command, in the order of its table. NULL: not given; "":
	// given, for an option without a value.
	const char *values[COMMAND_OPTIONS_MAX];
	const char *shared[COMMAND_OPTIONS_MAX]; // the same for target_options
	const char *words[COMMAND_WORDS_MAX];	 // NULL: not given
	char text[COMMAND_TEXT_BYTES];		 // for WORD_TEXT; `words` points here
	char **command;				 // for WORD_COMMAND, terminated by NULL
};

struct command {
	const char *name;
	const char *summary; // one line of at most 66 columns in the list of commands
	const char *details; // help text after the options, in lines of at most 79 columns
	const struct option_spec *options;
	size_t option_count;
	const struct word_spec *words;
	size_t word_count;
	char letter; // short form "-f" of an option; 0: none
	size_t letter_option;
	enum command_target target;
	bool whole_seconds;			       // --timeout must be whole seconds
	int usage_status;			       // status after a usage error; 0: EXIT_USAGE
	const struct record *const *records;	       // rows of the JSON answer, NULL at the end
	int (*run)(const struct arguments *arguments); // returns the exit status
};

// Parse argv[0 .. argc - 1], the arguments after the command's name. Options are --name VALUE or
// --name=VALUE, mixed with words; only words follow "--". argv[argc] must be NULL. Returns 0,
// -EINVAL after an error message on stderr, or 1 for --help. ret_arguments->words may point into
// ret_arguments, which must not be moved.
int command_parse(
	const struct command *command, int argc, char **argv, struct arguments *ret_arguments
);

// Format the arguments of a command for help: "[OPTION]... NAME [on|off]".
#define COMMAND_SHAPE_BYTES 128
void command_usage_text(const struct command *command, char text[static COMMAND_SHAPE_BYTES]);

void command_print_help(const struct command *command, FILE *out);

// Return the n-th option: first the command's own, then the shared ones, then --help. NULL beyond
// the last.
const struct option_spec *command_option(const struct command *command, size_t n);

// Print "tocsin ifaces: ..." and a newline on stderr.
__attribute__((format(printf, 2, 3))) void
command_error(const char *command_name, const char *format, ...);

// Flush stdout. Returns NULL, or the reason why this or an earlier write failed ("" if a write
// outside this function failed, so that its reason is not known). main() reports the error.
const char *command_flush_output(void);

// All commands, terminated by NULL; defined in main.c.
extern const struct command *const commands[];

extern const struct command checks_command;
extern const struct command comms_command;
extern const struct command devices_command;
extern const struct command drains_command;
extern const struct command events_command;
extern const struct command forget_command;
extern const struct command health_command;
extern const struct command history_command;
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
