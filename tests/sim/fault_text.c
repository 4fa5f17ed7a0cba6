// SPDX-License-Identifier: BSD-3-Clause
// Faults as text, so that a run that fails can be repeated from a command line.
#include "fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FAULT_TIME_MAX_NS (UINT64_C(30) * 24 * 3600 * 1000000000)

enum fault_subject {
	SUBJECT_NONE,
	SUBJECT_NODE,
	SUBJECT_FIRST, // the first node of an island; node 1 if none is named
};

struct fault_word {
	const char *name;
	enum fault_subject node;
	bool duration_needed;
	uint32_t value_max; // 0: the fault takes no value
};

static const struct fault_word fault_words[FAULT_KIND_COUNT] = {
	[FAULT_KILL] = {"kill", SUBJECT_NODE, false, 0},
	[FAULT_FORGET] = {"forget", SUBJECT_NODE, false, 0},
	[FAULT_LEAVE] = {"leave", SUBJECT_NODE, false, 0},
	[FAULT_START] = {"start", SUBJECT_NODE, false, 0},
	[FAULT_FREEZE] = {"freeze", SUBJECT_NODE, true, 0},
	[FAULT_STOP] = {"stop", SUBJECT_NODE, true, 0},
	[FAULT_HOST] = {"host", SUBJECT_NODE, false, 0},
	[FAULT_DEAF] = {"deaf", SUBJECT_NODE, true, 0},
	[FAULT_MUTE] = {"mute", SUBJECT_NODE, true, 0},
	[FAULT_SPLIT] = {"split", SUBJECT_FIRST, true, 99},
	[FAULT_FENCE] = {"fence", SUBJECT_FIRST, true, 99},
	// The value is the other node; checked separately.
	[FAULT_CUT] = {"cut", SUBJECT_NODE, true, UINT32_MAX},
	[FAULT_SLOW] = {"slow", SUBJECT_NODE, true, 10000},
	[FAULT_REJECT] = {"reject", SUBJECT_NODE, true, 0},
	[FAULT_RESET] = {"reset", SUBJECT_NODE, false, 0},
	[FAULT_LEAP] = {"leap", SUBJECT_NODE, false, 3600000},
	[FAULT_STALL] = {"stall", SUBJECT_NONE, true, 1000000},
	[FAULT_LOSS] = {"loss", SUBJECT_NODE, true, 90},
	[FAULT_STALE] = {"stale", SUBJECT_NODE, true, 0},
	[FAULT_MOVE] = {"move", SUBJECT_NODE, true, 0},
	[FAULT_SWAP] = {"swap", SUBJECT_NODE, true, UINT32_MAX}, // as with cut
	[FAULT_CLONE] = {"clone", SUBJECT_NODE, true, UINT32_MAX},
	[FAULT_WRONG] = {"wrong", SUBJECT_NODE, true, UINT32_MAX},
	[FAULT_ONEWAY] = {"oneway", SUBJECT_NODE, true, UINT32_MAX},
	[FAULT_LAG] = {"lag", SUBJECT_NODE, true, 900},
	[FAULT_LOSSIN] = {"lossin", SUBJECT_NODE, true, 90},
	[FAULT_LOSSOUT] = {"lossout", SUBJECT_NODE, true, 90},
	[FAULT_FABRIC] = {"fabric", SUBJECT_NODE, true, 0},
};

bool fault_names_another(enum fault_kind kind) {
	return kind == FAULT_CUT || kind == FAULT_SWAP || kind == FAULT_CLONE ||
	       kind == FAULT_WRONG || kind == FAULT_ONEWAY;
}

const char *fault_name(enum fault_kind kind) {
	return kind < FAULT_KIND_COUNT ? fault_words[kind].name : "?";
}

void fault_format(const struct fault *fault, char text[static FAULT_TEXT_BYTES]) {
	const struct fault_word *word = &fault_words[fault->kind];
	char at[PARSE_TEXT_BYTES];
	char duration[PARSE_TEXT_BYTES];
	uint32_t value = fault->value + fault_names_another(fault->kind);
	size_t used;

	format_duration_ns(fault->at_ns, at);
	format_duration_ns(fault->duration_ns, duration);
	used = (size_t)snprintf(text, FAULT_TEXT_BYTES, "%s", word->name);
	if (word->node == SUBJECT_NODE || (word->node == SUBJECT_FIRST && fault->node > 0))
		used += (size_t
		)snprintf(text + used, FAULT_TEXT_BYTES - used, ":%u", fault->node + 1);
	if (word->value_max > 0)
		used += (size_t)snprintf(text + used, FAULT_TEXT_BYTES - used, "/%u", value);
	used += (size_t)snprintf(text + used, FAULT_TEXT_BYTES - used, "@%s", at);
	if (fault->duration_ns > 0)
		snprintf(text + used, FAULT_TEXT_BYTES - used, "+%s", duration);
}

static int fault_parse_kind(
	const char *text, size_t length, struct parse_error *error, enum fault_kind *ret_kind
) {
	char known[PARSE_ERROR_BYTES] = "";
	size_t used = 0;

	for (uint32_t n = 0; n < FAULT_KIND_COUNT; n++) {
		const char *name = fault_words[n].name;

		if (strlen(name) == length && memcmp(name, text, length) == 0) {
			*ret_kind = (enum fault_kind)n;
			return 0;
		}
		used += (size_t)snprintf(known + used, sizeof(known) - used, " %s", name);
	}
	return parse_fail(error, -EINVAL, text, length, "is no fault; there are:%s", known);
}

// Return the length of the text up to the first stop character or the end.
static size_t fault_part(const char *text, size_t length, const char *stops) {
	size_t used = 0;

	while (used < length && strchr(stops, text[used]) == NULL)
		used++;
	return used;
}

// Parse the node and the value, which precede the time.
static int fault_parse_subject(
	const char *text,
	size_t length,
	uint32_t nodes,
	struct parse_error *error,
	struct fault *fault
) {
	const struct fault_word *word = &fault_words[fault->kind];
	bool named = length > 0 && text[0] == ':';
	uint64_t number;
	size_t part;
	int err;

	if (word->node != SUBJECT_FIRST && named != (word->node == SUBJECT_NODE))
		return parse_fail(
			error, -EINVAL, text, length,
			!named ? "needs a node, as in %s:1" : "takes no node: %s", word->name
		);
	if (named) {
		part = fault_part(text + 1, length - 1, "/");
		err = parse_u64(text + 1, part, 1, nodes, error, &number);
		if (err != 0)
			return err;
		fault->node = (uint32_t)number - 1;
		text += part + 1;
		length -= part + 1;
	}
	if ((word->value_max > 0) != (length > 0))
		return parse_fail(
			error, -EINVAL, text, length,
			word->value_max > 0 ? "needs a value behind a slash: %s"
					    : "takes no value: %s",
			word->name
		);
	if (length == 0)
		return 0;
	err = parse_u64(
		text + 1, length - 1, 1, fault_names_another(fault->kind) ? nodes : word->value_max,
		error, &number
	);
	if (err != 0)
		return err;
	fault->value = (uint32_t)number - fault_names_another(fault->kind);
	return 0;
}

static int fault_parse(
	const char *text,
	size_t length,
	uint32_t nodes,
	struct parse_error *error,
	struct fault *fault
) {
	size_t subject = fault_part(text, length, "@");
	size_t kind = fault_part(text, subject, ":/");
	const char *time = text + subject + 1;
	size_t time_length, at_length;
	int err;

	memset(fault, 0, sizeof(*fault));
	err = fault_parse_kind(text, kind, error, &fault->kind);
	if (err == 0)
		err = fault_parse_subject(text + kind, subject - kind, nodes, error, fault);
	if (err != 0)
		return err;
	if (subject == length)
		return parse_fail(error, -EINVAL, text, length, "needs a time, as in kill:1@5s");
	time_length = length - subject - 1;
	at_length = fault_part(time, time_length, "+");
	err = parse_duration_ns(time, at_length, 0, FAULT_TIME_MAX_NS, error, &fault->at_ns);
	if (err != 0)
		return err;
	if (at_length < time_length)
		return parse_duration_ns(
			time + at_length + 1, time_length - at_length - 1, 1, FAULT_TIME_MAX_NS,
			error, &fault->duration_ns
		);
	if (fault_words[fault->kind].duration_needed)
		return parse_fail(error, -EINVAL, text, length, "needs a duration, as in @5s+10s");
	return 0;
}

int faults_parse(
	const char *text,
	uint32_t nodes,
	struct fault *ret_faults,
	uint32_t count_max,
	uint32_t *ret_count,
	struct parse_error *error
) {
	size_t left = strlen(text);
	uint32_t count = 0;

	for (;;) {
		size_t part = fault_part(text, left, ",");
		int err;

		if (count == count_max)
			return parse_fail(
				error, -E2BIG, text, left, "is too much: %u faults at most",
				count_max
			);
		err = fault_parse(text, part, nodes, error, &ret_faults[count]);
		if (err != 0)
			return err;
		count++;
		if (part == left)
			break;
		text += part + 1;
		left -= part + 1;
	}
	*ret_count = count;
	return 0;
}
