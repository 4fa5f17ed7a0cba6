// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes CPU sets. An accepted set must survive formatting and parsing, and a truncated text must
// end in dots.
#include <lib/cpu_set.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct cpu_set allowed = {{0xff}};
	char text[CPU_SET_TEXT_BYTES];
	char shortened[16];
	struct parse_error error;
	struct cpu_set set;
	struct cpu_set back;

	if (cpu_set_parse((const char *)data, size, &error, &set) != 0)
		return 0;
	cpu_set_format(&set, text, sizeof(text));
	must(cpu_set_parse(text, strlen(text), NULL, &back) == 0);
	must(memcmp(&set, &back, sizeof(set)) == 0);
	cpu_set_format(&set, shortened, sizeof(shortened));
	must(strcmp(shortened, text) == 0 || strstr(shortened, "...") != NULL);
	must((cpu_set_parse_allowed(text, strlen(text), &allowed, &error, &back) == 0) ==
	     (cpu_set_next(&set, 8) == CPU_SET_CPUS_MAX));
	return 0;
}
