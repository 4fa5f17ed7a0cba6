// SPDX-License-Identifier: BSD-3-Clause
// The table of commands, and the parser of a command line. Pure functions.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum verb {
	VERB_UNKNOWN,
	VERB_CLIENT_PROTOCOL,
	VERB_TIMEOUT,
	VERB_SET_FORMAT,
	VERB_STATUS,
	VERB_VERBOSE_STATUS,
	VERB_MONITOR,
	VERB_PEERS,
	VERB_LINKS,
	VERB_HEALTH,
	VERB_EVENTS,
	VERB_COMMS,
	VERB_CONNS,
	VERB_WHY,
	VERB_HISTORY,
	VERB_PING,
	VERB_COUNTERS,
	VERB_CHECKS,
	VERB_DEVICES,
	VERB_PAIRS,
	VERB_PROBE,
	VERB_PATHS,
	VERB_PATH,
	VERB_MATRIX,
	VERB_MAINTENANCE,
	VERB_NODE,
	VERB_REPORT,
	VERB_MAINT,
	VERB_FORGET,
	VERB_LEVEL,
	VERB_LOG,
	VERB_COUNT,
};

struct command {
	const char *name;
	const char *arguments; // syntax for error messages; NULL: none
	bool changes;	       // needs a privileged client
	bool remote;	       // other nodes may call it
	// A command of NCCL: its rest is taken unchanged, blanks included, and its answer has
	// NCCL's format. All other commands are answered in JSON.
	bool seeds;
};

extern const struct command commands[VERB_COUNT];

// Find the command of a line. *ret_rest points to the text after the name. For Tocsin's own
// commands, blanks around it are skipped, or cut off the line. VERB_UNKNOWN leaves the line
// unchanged.
enum verb command_parse(char *line, const char **ret_rest);

// Copy the next word of *rest and advance *rest after it. Returns false if there is no word, or if
// it does not fit.
bool command_word(const char **rest, char *word, size_t size);
