// SPDX-License-Identifier: BSD-3-Clause
// Decides from a verdict and Slurm's state whether to drain, undrain or keep a node. Pure
// functions.
#include "slurm/slurm_policy.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define USER_MAX 100 // maximum length of a user name

const char *slurm_why_words(enum slurm_why why) {
	static const char *const words[SLURM_WHY_COUNT] = {
		[SLURM_WHY_NOTHING] = "as it should be",
		[SLURM_WHY_FOREIGN] = "drained by somebody else, whose reason stays",
		[SLURM_WHY_UNRECORDED] =
			"its reason is like ours, but is not in the record: see tocsin drains",
		[SLURM_WHY_EMPTY] = "drained without a reason: not by us",
		[SLURM_WHY_DOWN] = "down in Slurm, or Slurm does not reach it at present",
		[SLURM_WHY_UNKNOWN] = "the agents do not know its health",
		[SLURM_WHY_UNREAD] = "its state in Slurm is not understood",
		[SLURM_WHY_SETTLES] = "healthy again, but not for long enough",
		[SLURM_WHY_REBOOTS] = "healthy again, but a reboot was requested",
		[SLURM_WHY_STARTS] =
			"healthy again, but Slurm has not heard of it since slurmctld started",
		[SLURM_WHY_UNCONFIRMED] = "healthy, but its own agent does not confirm it",
		[SLURM_WHY_RETURNED] = "powered on a moment ago, and the problem is older",
		[SLURM_WHY_BRAKE] = "not drained: as many as allowed are already out of service",
		[SLURM_WHY_DENIED] =
			("not drained: its own agent does not report the fault that is "
			 "attributed to it"),
		[SLURM_WHY_SKIPPED] =
			("not drained yet: its own agent is asked in a later round, because others "
			 "do not answer"),
	};

	return words[why];
}

bool slurm_reason_has_prefix(const char *reason) {
	return strncmp(reason, SLURM_PREFIX, strlen(SLURM_PREFIX)) == 0;
}

bool slurm_reason_was_extended(const char *reason, const char *before) {
	static const char *const added[] = {" : reboot issued", " : reboot complete"};
	size_t length = strlen(before);
	const char *rest = reason + length;

	if (length == 0 || strncmp(reason, before, length) != 0 || *rest == '\0')
		return false;
	while (*rest != '\0') {
		size_t n = 0;

		while (n < 2 && strncmp(rest, added[n], strlen(added[n])) != 0)
			n++;
		if (n == 2)
			return false;
		rest += strlen(added[n]);
	}
	return true;
}

static bool
drain_limit_is_reached(const struct slurm_limits *limits, const struct slurm_tally *tally) {
	uint64_t out = (uint64_t)tally->out + 1;

	return tally->drained >= limits->per_interval ||
	       out * 100 > (uint64_t)tally->nodes * limits->share_percent;
}

static enum slurm_advice finding_advice(const struct slurm_finding *finding) {
	return finding != NULL ? finding->advice : SLURM_ADVICE_UNKNOWN;
}

static enum slurm_why foreign_reason_why(const struct slurm_node *node) {
	if (node->reason[0] == '\0')
		return SLURM_WHY_EMPTY;
	return slurm_reason_has_prefix(node->reason) ? SLURM_WHY_UNRECORDED : SLURM_WHY_FOREIGN;
}

static enum slurm_action decide_drained_node(
	const struct slurm_limits *limits,
	const struct slurm_node *node,
	const struct slurm_finding *finding,
	enum slurm_why *why
) {
	enum slurm_advice advice = finding_advice(finding);

	if (!node->ours)
		*why = foreign_reason_why(node);
	else if (advice == SLURM_ADVICE_UNKNOWN)
		*why = SLURM_WHY_UNKNOWN;
	else if (advice == SLURM_ADVICE_HEALTHY && finding->for_s < limits->settle_s)
		*why = SLURM_WHY_SETTLES;
	else if (advice == SLURM_ADVICE_HEALTHY && node->reboots)
		*why = SLURM_WHY_REBOOTS;
	else if (advice == SLURM_ADVICE_HEALTHY && node->starts)
		*why = SLURM_WHY_STARTS;
	else if (advice == SLURM_ADVICE_HEALTHY)
		return SLURM_UNDRAIN;
	return SLURM_KEEP;
}

// Return true if the node was powered on less than SLURM_BOOT_S ago, and the finding is older. A
// cloud node or a power-saving node is dead while it is off. Slurm reports it up before its agent
// joins.
static bool
finding_predates_return(const struct slurm_node *node, const struct slurm_finding *finding) {
	return node->returned && node->returned_for_s < SLURM_BOOT_S &&
	       finding->for_s > node->returned_for_s;
}

enum slurm_action slurm_decide(
	const struct slurm_limits *limits,
	const struct slurm_tally *tally,
	const struct slurm_node *node,
	const struct slurm_finding *finding,
	enum slurm_why *ret_why
) {
	enum slurm_advice advice = finding_advice(finding);

	*ret_why = SLURM_WHY_NOTHING;
	if (!node->known) {
		*ret_why = SLURM_WHY_UNREAD;
		return SLURM_KEEP;
	}
	if (node->drain)
		return decide_drained_node(limits, node, finding, ret_why);
	if (advice == SLURM_ADVICE_UNKNOWN)
		*ret_why = SLURM_WHY_UNKNOWN;
	if (advice != SLURM_ADVICE_DRAIN)
		return SLURM_KEEP;
	// A reason without DRAIN is a person's note, or Slurm's own reason for DOWN, and must not
	// be replaced.
	if (node->reason[0] != '\0' && !node->ours)
		*ret_why = foreign_reason_why(node);
	else if (node->down)
		*ret_why = SLURM_WHY_DOWN;
	else if (finding_predates_return(node, finding))
		*ret_why = SLURM_WHY_RETURNED;
	else if (drain_limit_is_reached(limits, tally))
		*ret_why = SLURM_WHY_BRAKE;
	else
		return SLURM_DRAIN;
	return SLURM_KEEP;
}

enum slurm_why
slurm_drain_objection(const struct slurm_finding *finding, const struct slurm_own_answer *own) {
	if (!finding->own_word)
		return SLURM_WHY_NOTHING;
	if (own->skipped)
		return SLURM_WHY_SKIPPED;
	return own->is_mild ? SLURM_WHY_DENIED : SLURM_WHY_NOTHING;
}

void slurm_reason_make(
	const struct slurm_finding *finding,
	const char *silence,
	char text[static SLURM_REASON_MAX + 1]
) {
	char whole[sizeof(SLURM_PREFIX) + sizeof(finding->reason) + sizeof(finding->evidence) + 4];
	char end[sizeof(((struct slurm_node *)0)->silence) + 16] = "";
	size_t length, length_max;

	if (silence[0] != '\0')
		snprintf(end, sizeof(end), "; its agent: %s", silence);
	length_max = SLURM_REASON_MAX - strlen(end);
	snprintf(whole, sizeof(whole), SLURM_PREFIX "%s: %s", finding->reason, finding->evidence);
	length = strlen(whole);
	if (length > length_max) {
		length = length_max;
		while (length > sizeof(SLURM_PREFIX) && whole[length] != ' ')
			length--;
	}
	memcpy(text, whole, length);
	memcpy(text + length, end, strlen(end) + 1);
	// Slurm's parser interprets quotes and line ends, and sinfo prints bytes unescaped.
	for (char *at = text; *at != '\0'; at++) {
		if (strchr("\"'`\\", *at) != NULL)
			*at = ' ';
		else if (*at < ' ' || *at > '~')
			*at = '?';
	}
	// Slurm drops trailing blanks, and the reason is compared with Slurm's text later.
	length = strlen(text);
	while (length > 0 && text[length - 1] == ' ')
		length--;
	text[length] = '\0';
}

// Return the value after "KEY=" at the start of a word, up to the next blank, or NULL.
static const char *line_find_value(const char *line, const char *key, size_t *ret_length) {
	size_t key_length = strlen(key);

	for (const char *at = line; (at = strstr(at, key)) != NULL; at += key_length) {
		if (at != line && at[-1] != ' ')
			continue;
		*ret_length = strcspn(at + key_length, " \r\n");
		return at + key_length;
	}
	return NULL;
}

// Return true at the end of the line, or before a field that Slurm prints after a reason. Any other
// text belongs to the reason.
static bool text_begins_field(const char *text) {
	static const char *const fields[] = {
		"Comment=",	    "Extra=",		"InstanceId=",	       "InstanceType=",
		"ReservationName=", "TLSCertTokenSet=", "TLSCertLastRenewal=", "Topology=",
	};

	text += strspn(text, " ");
	if (text[0] == '\0' || text[0] == '\r' || text[0] == '\n')
		return true;
	for (size_t n = 0; n < sizeof(fields) / sizeof(fields[0]); n++) {
		if (strncmp(text, fields[n], strlen(fields[n])) == 0)
			return true;
	}
	return false;
}

// Parse "user@2026-11-24T01:20:11]", as printed by a scontrol that runs in UTC. Returns the time in
// seconds, or -1.
static int64_t stamp_parse(const char *text, size_t *ret_user, const char **ret_end) {
	size_t user = strcspn(text, "@] \r\n");
	struct tm parts = {0};
	const char *end;

	if (user == 0 || text[user] != '@')
		return -1;
	end = strptime(text + user + 1, "%Y-%m-%dT%H:%M:%S", &parts);
	if (end == NULL || *end != ']')
		return -1;
	*ret_user = user;
	*ret_end = end + 1;
	return (int64_t)timegm(&parts);
}

void slurm_node_set_stamp(const char *user, size_t length, int64_t at_s, struct slurm_node *node) {
	if (at_s > 0 && length > 0 && length <= USER_MAX)
		snprintf(
			node->stamp, sizeof(node->stamp), "%.*s@%lld", (int)length, user,
			(long long)at_s
		);
}

static void reason_set_ambiguous(struct slurm_node *node) {
	node->stamp[0] = '\0';
	snprintf(node->reason, sizeof(node->reason), "ambiguous");
}

// Parse "Reason=any words [user@time]", optionally followed by other fields. Without a stamp the
// end of the reason is unknown, so the reason is not ours. With two stamps or two reasons one of
// them is forged or pasted, so the reason is marked as ambiguous.
static void node_parse_reason(const char *line, struct slurm_node *node) {
	const char *reason, *at;
	size_t length, end;
	bool any = false;

	reason = line_find_value(line, "Reason=", &length);
	if (reason == NULL)
		return;
	if (line_find_value(reason, "Reason=", &length) != NULL) {
		reason_set_ambiguous(node);
		return;
	}
	end = strcspn(reason, "\r\n");
	length = end;
	for (at = reason; (at = strstr(at, " [")) != NULL && at < reason + end; at++) {
		const char *behind;
		size_t user;
		int64_t at_s = stamp_parse(at + 2, &user, &behind);

		if (at_s < 0)
			continue;
		if (any) {
			reason_set_ambiguous(node);
			return;
		}
		any = true;
		if (!text_begins_field(behind))
			continue;
		slurm_node_set_stamp(at + 2, user, at_s, node);
		length = (size_t)(at - reason);
	}
	while (length > 0 && reason[length - 1] == ' ')
		length--;
	snprintf(node->reason, sizeof(node->reason), "%.*s", (int)length, reason);
}

struct word {
	const char *name;
	bool drain, down, reboots, powers;
};

// Base states, and the flags after '+'. An unknown word makes the whole state unread, and the node
// is left alone.
static const struct word words[] = {
	{"IDLE", false, false, false, false},
	{"ALLOCATED", false, false, false, false},
	{"MIXED", false, false, false, false},
	{"COMPLETING", false, false, false, false},
	{"RESERVED", false, false, false, false},
	{"PLANNED", false, false, false, false},
	{"BLOCKED", false, false, false, false},
	{"CLOUD", false, false, false, false},
	{"DYNAMIC_NORM", false, false, false, false},
	{"DYNAMIC_FUTURE", false, false, false, false},
	{"PERFCTRS", false, false, false, false},
	{"DRAIN", true, false, false, false},
	{"DRAINING", true, false, false, false},
	{"DRAINED", true, false, false, false},
	{"MAINT", false, false, false, false},
	{"MAINTENANCE", false, false, false, false},
	{"DOWN", false, true, false, false},
	{"ERROR", false, true, false, false},
	{"FAIL", false, true, false, false},
	{"FAILING", false, true, false, false},
	{"FUTURE", false, true, false, false},
	{"UNKNOWN", false, true, false, false},
	{"NO_RESPOND", false, true, false, false},
	{"NOT_RESPONDING", false, true, false, false},
	{"POWERED_DOWN", false, true, false, true},
	{"POWERING_DOWN", false, true, false, true},
	{"POWERING_UP", false, true, false, true},
	{"POWER_DOWN", false, true, false, true},
	{"POWER_UP", false, true, false, true},
	{"REBOOT", false, true, true, false},
	{"REBOOT_ISSUED", false, true, true, false},
	{"REBOOT_REQUESTED", false, false, true, false},
	{"INVALID", false, true, false, false},
	{"INVALID_REG", false, true, false, false},
	{"INVAL", false, true, false, false},
};

// Parse a state such as "IDLE+DRAIN*". Marks: '*' not responding, '~' powered off, '%' powering
// off, '#' powering on, '@' and '^' rebooting. Other marks have no effect.
void slurm_node_parse_state(const char *state, size_t length, struct slurm_node *node) {
	node->known = length > 0;
	while (length > 0) {
		size_t word = 0, marks = 0;
		bool is_known = false;

		while (word < length && strchr("+*~#!%$@^-", state[word]) == NULL)
			word++;
		while (word + marks < length && state[word + marks] != '+') {
			char mark = state[word + marks++];

			node->down |= strchr("*~#%", mark) != NULL;
			node->reboots |= mark == '@' || mark == '^';
			node->powers |= strchr("~#%", mark) != NULL;
		}
		for (size_t n = 0; n < sizeof(words) / sizeof(words[0]) && !is_known; n++) {
			if (strlen(words[n].name) != word ||
			    strncasecmp(state, words[n].name, word) != 0)
				continue;
			is_known = true;
			node->drain |= words[n].drain;
			node->down |= words[n].down;
			node->reboots |= words[n].reboots;
			node->powers |= words[n].powers;
			node->starts |= strcmp(words[n].name, "UNKNOWN") == 0;
		}
		node->known &= is_known;
		state += word + marks;
		length -= word + marks;
		if (length > 0) {
			state++;
			length--;
			node->known &= length > 0;
		}
	}
}

bool slurm_node_parse(const char *line, struct slurm_node *ret_node) {
	struct slurm_node node = {.known = false};
	const char *name, *state;
	size_t length;

	name = line_find_value(line, "NodeName=", &length);
	if (name == NULL || length == 0 || length > SLURM_NODE_MAX)
		return false;
	memcpy(node.name, name, length);
	state = line_find_value(line, "State=", &length);
	if (state != NULL)
		slurm_node_parse_state(state, length, &node);
	node_parse_reason(line, &node);
	*ret_node = node;
	return true;
}
