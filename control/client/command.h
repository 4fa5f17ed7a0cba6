// SPDX-License-Identifier: BSD-3-Clause
// The table of commands, and a line read against it. Pure.
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
	VERB_PING,
	VERB_COUNTERS,
	VERB_CHECKS,
	VERB_DEVICES,
	VERB_PAIRS,
	VERB_PROBE,
	VERB_PATHS,
	VERB_PATH,
	VERB_MATRIX,
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
	const char *arguments; // for errors; NULL: takes none
	bool changes;	       // needs the right to
	bool remote;	       // may be asked by another node
	// NCCL's: blanks and the rest are taken as they stand, and it is answered as NCCL does. All
	// others are answered in JSON.
	bool seeds;
};

extern const struct command commands[VERB_COUNT];

// *ret_rest points into the line: what follows the name, for Tocsin's own commands without the
// blanks around it (which are cut off the line). VERB_UNKNOWN leaves the line as it was.
enum verb command_parse(char *line, const char **ret_rest);

// The next word of *rest, which moves behind it. false if there is none, or it does not fit.
bool command_word(const char **rest, char *word, size_t size);
