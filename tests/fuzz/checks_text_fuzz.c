// SPDX-License-Identifier: BSD-3-Clause
// Untrusted input of checks: commands, names, output, rates, and the link book.
#include "checks/check.h"
#include "checks/links.h"

#include <lib/must.h>
#include <lib/utf8.h>
#include <support/fuzz.h>

#include <string.h>

static void split(const char *text) {
	char command[CHECKS_COMMAND_MAX + 1], *words[SPAWN_ARGUMENTS_MAX + 1];
	size_t size = strnlen(text, CHECKS_COMMAND_MAX);
	const char *why = NULL;
	size_t n = 0;

	memcpy(command, text, size);
	command[size] = '\0';
	if (check_command_split(command, words, &why) != 0) {
		must(why != NULL);
		return;
	}
	for (; words[n] != NULL; n++)
		must(words[n] >= command && words[n] + strlen(words[n]) <= command + size);
	must(n > 0 && n <= SPAWN_ARGUMENTS_MAX);
}

static void first_line(const char *bytes, size_t size, enum check_convention convention) {
	char line[VERDICT_EVIDENCE_MAX + 1];
	size_t length;

	if (!check_first_line(bytes, size, convention, line))
		return;
	length = strlen(line);
	must(length > 0 && length <= VERDICT_EVIDENCE_MAX);
	for (size_t at = 0; at < length;) {
		size_t width = utf8_character_size(line + at, length - at);

		must(width > 0 && (unsigned char)line[at] >= ' ' && line[at] != 0x7f);
		at += width;
	}
}

static void name(const char *text) {
	struct check_reasons reasons;

	if (check_reasons_build(text, &reasons) != 0)
		return;
	must(strlen(reasons.bad) <= VERDICT_REASON_MAX);
	must(check_reasons_clash(&reasons, &reasons));
	(void)check_reasons_clash_with_builtin(&reasons);
}

// Parse and format a link book. A second round must give the same text.
static void remember(const char *text) {
	static char first[LINK_BOOK_BYTES], second[LINK_BOOK_BYTES];
	static struct link_book book;
	static struct link_finding found[LINK_FINDING_COUNT];
	static const struct checks_builtin_settings settings;

	link_book_parse(&book, text, "boot-id");
	link_book_format(&book, first);
	link_book_parse(&book, first, "boot-id");
	link_book_format(&book, second);
	must(strcmp(first, second) == 0);
	link_judge(&book, NULL, 0, &settings, 1, found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static char text[8192];
	uint32_t mbps;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	split(text);
	first_line(text, size, CHECK_NAGIOS);
	first_line(text, size, CHECK_NPD);
	name(text);
	remember(text);
	if (checks_rate_parse(text, size, NULL, &mbps) == 0)
		must(mbps > 0);
	return 0;
}
