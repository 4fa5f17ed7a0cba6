// SPDX-License-Identifier: BSD-3-Clause
// Text handling of checks: commands, program output, reasons. Pure; all input is untrusted.
#include "checks/builtin.h"
#include "checks/check.h"

#include <lib/escape.h>
#include <lib/parse.h>
#include <lib/show.h>

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LINE_CHARACTERS 80
#define BLANKS " \t\r\f\v"

// Return whether a backslash escapes the next byte.
static bool backslash_escapes(char quote, char next) {
	if (quote == '"')
		return next == '"' || next == '\\';
	return quote == '\0' && next != '\0';
}

// Copy one word from *from to *to; the two may overlap. Returns false if a quote is not closed.
static bool copy_command_word(const char **from, char **to) {
	const char *at = *from;
	char *out = *to;
	char quote = '\0';

	for (; *at != '\0' && (quote != '\0' || strchr(BLANKS, *at) == NULL); at++) {
		if (*at == quote) {
			quote = '\0';
		} else if (quote == '\0' && (*at == '\'' || *at == '"')) {
			quote = *at;
		} else if (*at == '\\' && backslash_escapes(quote, at[1])) {
			*out++ = *++at;
		} else {
			*out++ = *at;
		}
	}
	*from = at;
	*to = out;
	return quote == '\0';
}

int check_command_split(
	char *command, char *words[static SPAWN_ARGUMENTS_MAX + 1], const char **ret_why
) {
	const char *at = command + strspn(command, BLANKS);
	char *out = command;
	size_t count = 0;

	while (*at != '\0') {
		if (count == SPAWN_ARGUMENTS_MAX) {
			*ret_why = "has too many words";
			return -E2BIG;
		}
		words[count++] = out;
		if (!copy_command_word(&at, &out)) {
			*ret_why = "has an unterminated quote";
			return -EINVAL;
		}
		at += strspn(at, BLANKS); // skip blanks before the terminator overwrites them
		*out++ = '\0';
	}
	words[count] = NULL;
	if (count > 0 && words[0][0] != '\0')
		return 0;
	*ret_why = "names no program";
	return -EINVAL;
}

int check_command_validate(const char *text, size_t length, struct parse_error *error) {
	char copy[CHECKS_COMMAND_MAX + 1], *words[SPAWN_ARGUMENTS_MAX + 1];
	const char *why;

	if (length > CHECKS_COMMAND_MAX)
		return 0; // the bounds of the key report this error
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (check_command_split(copy, words, &why) != 0)
		return parse_fail(error, -EINVAL, text, length, "%s", why);
	// PATH is not searched, because it depends on the user who started the agent.
	if (words[0][0] != '/')
		return parse_fail(
			error, -EINVAL, text, length,
			"does not begin with an absolute path, such as /usr/lib/checks/disk"
		);
	return 0;
}

// Append the name in CamelCase to the prefix. Returns false if no character of the name could be
// used.
static bool reason_add_camel_case(const char *name, const char *prefix, char *reason, size_t size) {
	size_t before = (size_t)snprintf(reason, size, "%s", prefix), used = before;
	bool begins = true;

	for (; *name != '\0'; name++) {
		bool letter = isalnum((unsigned char)*name) != 0;
		bool capital = begins && *name >= 'a' && *name <= 'z';

		if (letter && used + 1 < size)
			reason[used++] = capital ? (char)(*name - 'a' + 'A') : *name;
		begins = !letter;
	}
	reason[used] = '\0';
	return used > before;
}

int check_reasons_build(const char *name, struct check_reasons *ret_reasons) {
	struct check_reasons reasons;

	if (!reason_add_camel_case(name, "Check", reasons.bad, sizeof(reasons.bad)) ||
	    !reason_add_camel_case(
		    name, "CheckUnknown", reasons.unknown, sizeof(reasons.unknown)
	    ) ||
	    !reason_add_camel_case(name, "CheckStuck", reasons.stuck, sizeof(reasons.stuck)))
		return -EINVAL;
	*ret_reasons = reasons;
	return 0;
}

static bool reason_is_in(const char *reason, const struct check_reasons *reasons) {
	return strcmp(reason, reasons->bad) == 0 || strcmp(reason, reasons->unknown) == 0 ||
	       strcmp(reason, reasons->stuck) == 0;
}

bool check_reasons_clash(const struct check_reasons *a, const struct check_reasons *b) {
	return reason_is_in(a->bad, b) || reason_is_in(a->unknown, b) || reason_is_in(a->stuck, b);
}

bool check_reasons_clash_with_builtin(const struct check_reasons *reasons) {
	for (uint32_t n = 0; n < BUILTIN_CHECK_COUNT; n++) {
		struct check_reasons builtin;

		builtin_check_reasons((enum builtin_check)n, &builtin);
		if (check_reasons_clash(reasons, &builtin))
			return true;
	}
	return false;
}

// Return the first line that is not blank, trimmed, without performance data in Nagios' convention.
static const char *first_nonblank_line(
	const char *bytes, size_t size, enum check_convention convention, size_t *ret_size
) {
	while (size > 0) {
		const char *end = memchr(bytes, '\n', size);
		size_t length = end != NULL ? (size_t)(end - bytes) : size;
		const char *pipe = convention == CHECK_NAGIOS ? memchr(bytes, '|', length) : NULL;
		size_t used = pipe != NULL ? (size_t)(pipe - bytes) : length;
		size_t skipped = 0;

		while (skipped < used && strchr(BLANKS, bytes[skipped]) != NULL &&
		       bytes[skipped] != '\0')
			skipped++;
		while (used > skipped && bytes[used - 1] != '\0' &&
		       strchr(BLANKS, bytes[used - 1]) != NULL)
			used--;
		if (used > skipped) {
			*ret_size = used - skipped;
			return bytes + skipped;
		}
		if (end == NULL)
			break;
		size -= length + 1;
		bytes = end + 1;
	}
	return NULL;
}

bool check_first_line(
	const char *bytes,
	size_t size,
	enum check_convention convention,
	char line[static VERDICT_EVIDENCE_MAX + 1]
) {
	size_t length = 0, used = 0, characters = 0;
	const char *text = first_nonblank_line(bytes, size, convention, &length);
	struct escape_unit unit;

	if (text == NULL)
		return false;
	for (size_t at = 0; at < length; at += unit.taken_bytes) {
		escape_next(text + at, length - at, &unit);
		// Quotes are kept, and a tab becomes a blank; log messages escape both.
		if (text[at] == '"' || text[at] == '\t') {
			unit.text[0] = text[at] == '"' ? '"' : ' ';
			unit.text_size = 1;
		}
		// An unchanged character counts as one, whatever its size in bytes.
		characters += unit.text_size == unit.taken_bytes ? 1 : unit.text_size;
		if (characters > LINE_CHARACTERS || used + unit.text_size > VERDICT_EVIDENCE_MAX)
			break;
		memcpy(line + used, unit.text, unit.text_size);
		used += unit.text_size;
	}
	line[used] = '\0';
	return true;
}

// Return the level of an exit status. The evidence is the program's first line, from stdout or
// stderr. An exit status that the convention does not define is added.
static enum check_level judge_exit(
	const struct spawn_result *result,
	enum check_convention convention,
	char evidence[static VERDICT_EVIDENCE_MAX + 1]
) {
	bool known = result->status <= (convention == CHECK_NPD ? 1 : 3);
	char line[VERDICT_EVIDENCE_MAX + 1];

	if (!check_first_line(result->out.bytes, result->out.size, convention, line) &&
	    !check_first_line(result->err.bytes, result->err.size, CHECK_NPD, line))
		snprintf(
			evidence, VERDICT_EVIDENCE_MAX + 1, "exit status %d, no output",
			result->status
		);
	else if (known)
		memcpy(evidence, line, sizeof(line));
	else
		snprintf(
			evidence, VERDICT_EVIDENCE_MAX + 1, "exit status %d: %.*s", result->status,
			VERDICT_EVIDENCE_MAX - 20, line
		);
	if (result->status == 0)
		return CHECK_OK;
	if (result->status == 1)
		return convention == CHECK_NPD ? CHECK_CRITICAL : CHECK_WARNING;
	return result->status == 2 && convention != CHECK_NPD ? CHECK_CRITICAL : CHECK_UNKNOWN;
}

enum check_level check_judge(
	const struct spawn_result *result,
	enum check_convention convention,
	uint64_t timeout_ns,
	char evidence[static VERDICT_EVIDENCE_MAX + 1]
) {
	size_t size = VERDICT_EVIDENCE_MAX + 1;
	const char *name;
	char timeout[SHOW_BYTES];

	switch (result->end) {
	case SPAWN_EXITED:
		return judge_exit(result, convention, evidence);
	case SPAWN_SIGNALLED:
		name = sigabbrev_np(result->status);
		snprintf(
			evidence, size, "ended by signal %d%s%s", result->status,
			name != NULL ? ", SIG" : "", name != NULL ? name : ""
		);
		break;
	case SPAWN_TIMED_OUT:
		show_duration(timeout_ns, timeout);
		snprintf(evidence, size, "timed out after %s", timeout);
		break;
	case SPAWN_NOT_STARTED:
		if (result->status == SPAWN_REFUSED)
			snprintf(
				evidence, size, "could not run: %.*s", (int)result->err.size,
				result->err.bytes
			);
		else
			snprintf(
				evidence, size, "not started: %s%s",
				spawn_failure_text(result->status),
				result->status == -ENOENT
					? ": the program, or the interpreter in its first line"
					: ""
			);
		break;
	case SPAWN_LOST:
		if (result->status == 0)
			snprintf(evidence, size, "the spawn helper has ended; restart the agent");
		else
			snprintf(
				evidence, size, "tocsin-root.service %s: see its log",
				result->status == -ETIMEDOUT ? "does not answer"
							     : "ended the connection"
			);
		break;
	}
	return CHECK_UNKNOWN;
}
