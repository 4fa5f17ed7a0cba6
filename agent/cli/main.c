// SPDX-License-Identifier: BSD-3-Clause
// tocsin, the client: finds the command and passes it the remaining arguments.
#include "command.h"
#include "completion.h"
#include "man.h"
#include "target.h"

#include <lib/escape.h>
#include <lib/standard_streams.h>
#include <lib/suggestion.h>

#include <string.h>

#define QUOTED_BYTES 80

const struct command *const commands[] = {
	&status_command,
	&health_command,
	&peers_command,
	&links_command,
	&paths_command,
	&path_command,
	&events_command,
	&why_command,
	&history_command,
	&checks_command,
	&ping_command,
	&comms_command,
	&top_command,
	&report_command,
	&maint_command,
	&forget_command,
	&level_command,
	&log_command,
	&slurm_command,
	&drains_command,
	// Commands that need no agent.
	&version_command,
	&ifaces_command,
	&devices_command,
	&keygen_command,
	&run_job_command,
	&soft_run_command,
	NULL,
};

static void print_help(FILE *out) {
	fprintf(out, "Usage: tocsin COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n");
	for (size_t n = 0; commands[n] != NULL; n++)
		fprintf(out, "  %-12s%s\n", commands[n]->name, commands[n]->summary);
	fprintf(out,
		"\nOptions:\n"
		"  --help      print this and exit; tocsin COMMAND --help or tocsin help COMMAND\n"
		"              for a command's own\n"
		"  --version   print the version and exit; so does -V\n"
		"  --completion bash|zsh\n"
		"              print a completion script for that shell and exit\n"
		"  Those that commands share, such as --json and --socket, may stand before\n"
		"  COMMAND.\n"
		"\nExit status: 0 done, 1 the answer is no, 2 a mistake in the command line or a\n"
		"setting, 3 no agent answered; health, run and soft-run have their own.\n");
}

static const struct command *find_command(const char *name) {
	for (size_t n = 0; commands[n] != NULL; n++) {
		if (strcmp(commands[n]->name, name) == 0)
			return commands[n];
	}
	return NULL;
}

static void report_unknown_command(const char *given) {
	struct suggestion suggestion;
	char quoted[QUOTED_BYTES];

	escape_quote(given, strlen(given), quoted, sizeof(quoted));
	suggestion_init(&suggestion, given);
	for (size_t n = 0; commands[n] != NULL && given[0] != '-'; n++)
		suggestion_add(&suggestion, commands[n]->name, strlen(commands[n]->name));
	if (given[0] == '-') {
		suggestion_add(&suggestion, "--completion", 12);
		suggestion_add(&suggestion, "--help", 6);
		suggestion_add(&suggestion, "--version", 9);
	}
	fprintf(stderr, "tocsin: unknown %s %s; %s\n", given[0] == '-' ? "option" : "command",
		quoted, suggestion_text(&suggestion));
}

// Run `tocsin help` or `tocsin help COMMAND`.
static int help_run(int argc, char **argv) {
	const struct command *command;
	char quoted[QUOTED_BYTES];

	if (argc == 0) {
		print_help(stdout);
		return EXIT_DONE;
	}
	if (argc > 1) {
		escape_quote(argv[1], strlen(argv[1]), quoted, sizeof(quoted));
		fprintf(stderr, "tocsin help: takes one COMMAND, no further %s\n", quoted);
		return EXIT_USAGE;
	}
	command = find_command(argv[0]);
	if (command == NULL) {
		report_unknown_command(argv[0]);
		return EXIT_USAGE;
	}
	command_print_help(command, stdout);
	return EXIT_DONE;
}

static bool is_shared_option(const char *word, bool *ret_takes_next) {
	size_t length = strcspn(word, "=");

	for (size_t n = 0; n < target_option_count(TARGET_READ); n++) {
		const struct option_spec *option = &target_options[n];

		if (strncmp(word, "--", 2) != 0 || strlen(option->name) + 2 != length ||
		    memcmp(word + 2, option->name, length - 2) != 0)
			continue;
		*ret_takes_next = option->argument != NULL && word[length] == '\0';
		return true;
	}
	return false;
}

// Move shared options in front of the command behind it. Returns 0, or EXIT_USAGE if there is no
// command.
static int move_command_first(int argc, char **argv) {
	bool takes_next;
	char *name;
	int at = 1;

	while (at < argc && is_shared_option(argv[at], &takes_next))
		at += takes_next ? 2 : 1;
	if (at >= argc) {
		fprintf(stderr, "tocsin: COMMAND is missing: tocsin [OPTION]... COMMAND; "
				"tocsin --help lists them\n");
		return EXIT_USAGE;
	}
	name = argv[at];
	memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
	argv[1] = name;
	return 0;
}

static int command_run(int argc, char **argv) {
	const struct command *command;
	struct arguments arguments;
	int parsed;

	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "help") == 0)
		return help_run(argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("tocsin %s\n", TOCSIN_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "--man") == 0) { // used by the build
		man_print(stdout);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "--completion") == 0) {
		if (argc == 3 && completion_print(argv[2], stdout))
			return EXIT_DONE;
		fprintf(stderr, "tocsin: --completion takes bash or zsh\n");
		return EXIT_USAGE;
	}
	if (move_command_first(argc, argv) != 0)
		return EXIT_USAGE;
	command = find_command(argv[1]);
	if (command == NULL) {
		report_unknown_command(argv[1]);
		return EXIT_USAGE;
	}
	parsed = command_parse(command, argc - 2, argv + 2, &arguments);
	if (parsed < 0)
		return command->usage_status != 0 ? command->usage_status : EXIT_USAGE;
	if (parsed > 0) {
		command_print_help(command, stdout);
		return EXIT_DONE;
	}
	return command->run(&arguments);
}

int main(int argc, char **argv) {
	const char *reason;
	int status;

	standard_streams_open();
	status = command_run(argc, argv);
	reason = command_flush_output();
	// A write error must not look like success, for example on a full disk.
	if (reason == NULL)
		return status;
	fprintf(stderr, "tocsin: cannot write the answer%s%s\n", reason[0] != '\0' ? ": " : "",
		reason);
	return status == EXIT_DONE ? EXIT_NEGATIVE : status;
}
