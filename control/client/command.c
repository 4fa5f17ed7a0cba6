// SPDX-License-Identifier: BSD-3-Clause
// Splits a line of the client protocol into its command and its words.
#include "client/command.h"

#include <string.h>
#include <strings.h>

const struct command commands[VERB_COUNT] = {
	[VERB_UNKNOWN] = {"", NULL, false, false, true},
	[VERB_CLIENT_PROTOCOL] = {"CLIENT PROTOCOL", "version", false, false, true},
	[VERB_TIMEOUT] = {"TIMEOUT", "seconds", false, false, true},
	[VERB_SET_FORMAT] = {"SET FORMAT", "text|json", false, false, true},
	[VERB_STATUS] = {"STATUS", NULL, false, true, true},
	[VERB_VERBOSE_STATUS] = {"VERBOSE STATUS", NULL, false, true, true},
	[VERB_MONITOR] = {"MONITOR", "[groups]", false, false, true},
	[VERB_PEERS] = {"PEERS", "[state]", false, true, false},
	[VERB_LINKS] = {"LINKS", NULL, false, true, false},
	[VERB_HEALTH] = {"HEALTH", "[node]", false, true, false},
	[VERB_EVENTS] = {"EVENTS", "[since [until]]", false, true, false},
	[VERB_COMMS] = {"COMMS", "[job]", false, true, false},
	[VERB_CONNS] = {"CONNS", NULL, false, true, false},
	[VERB_WHY] = {"WHY", "node [@time]|job|communicator", false, true, false},
	[VERB_HISTORY] = {"HISTORY", "node [since [until]]", false, true, false},
	[VERB_PING] = {"PING", "node", false, true, false},
	[VERB_COUNTERS] = {"COUNTERS", NULL, false, true, false},
	[VERB_CHECKS] = {"CHECKS", NULL, false, true, false},
	[VERB_DEVICES] = {"DEVICES", NULL, false, true, false},
	[VERB_PAIRS] = {"PAIRS", NULL, false, true, false},
	[VERB_PROBE] = {"PROBE", "node [count [bytes [microseconds [times]]]]", false, true, false},
	[VERB_PATHS] = {"PATHS", "[node|*] [--worst]", false, true, false},
	[VERB_PATH] = {"PATH", "node node", false, true, false},
	[VERB_MATRIX] = {"MATRIX", NULL, false, true, false},
	[VERB_NODE] = {"NODE", "node command", false, false, false},
	[VERB_REPORT] = {"REPORT", "node reason", true, false, false},
	[VERB_MAINTENANCE] = {"MAINTENANCE", NULL, false, true, false},
	[VERB_MAINT] = {"MAINT", "node on|off [seconds user [reason]]", true, false, false},
	[VERB_FORGET] = {"FORGET", "node|--unreachable|--remembered", true, false, false},
	[VERB_LEVEL] = {"LEVEL", "level seconds [job]", true, false, false},
	[VERB_LOG] = {"LOG", "level", true, false, false},
};

#define BLANKS " \t"

static bool command_matches(const struct command *command, const char *line) {
	size_t length = strlen(command->name);
	char after;

	if (strncasecmp(line, command->name, length) != 0)
		return false;
	after = line[length];
	if (command->seeds && command->arguments == NULL)
		return after == '\0';
	// MONITOR needs no argument; NCCL's other commands need the blank before theirs.
	if (command->seeds)
		return after == ' ' || (after == '\0' && command->arguments[0] == '[');
	return after == '\0' || after == ' ' || after == '\t';
}

enum verb command_parse(char *line, const char **ret_rest) {
	enum verb verb = VERB_UNKNOWN + 1;
	size_t length;
	char *rest;

	while (verb < VERB_COUNT && !command_matches(&commands[verb], line))
		verb++;
	if (verb == VERB_COUNT)
		return VERB_UNKNOWN;
	rest = line + strlen(commands[verb].name);
	if (commands[verb].seeds) {
		*ret_rest = *rest == '\0' ? rest : rest + 1;
		return verb;
	}
	length = strlen(rest);
	while (length > 0 && strchr(BLANKS, rest[length - 1]) != NULL)
		rest[--length] = '\0';
	*ret_rest = rest + strspn(rest, BLANKS);
	return verb;
}

bool command_word(const char **rest, char *word, size_t size) {
	size_t length = strcspn(*rest, BLANKS);

	if (length == 0 || length >= size)
		return false;
	memcpy(word, *rest, length);
	word[length] = '\0';
	*rest += length;
	*rest += strspn(*rest, BLANKS);
	return true;
}
