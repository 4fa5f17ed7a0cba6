// SPDX-License-Identifier: BSD-3-Clause
// The units of numbers in JSON: a kind of quantity has one unit, which the end of its key names.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool key_has_ending(const char *key, const char *ending) {
	size_t length = strlen(key), ending_length = strlen(ending);

	return length >= ending_length && strcmp(key + length - ending_length, ending) == 0;
}

// Return whether a key names a unit that no answer has: durations are in nanoseconds, sizes in
// bytes, shares in thousandths, speeds of links in megabits per second. A rate ends in _per_s.
static inline bool key_has_foreign_unit(const char *key) {
	static const char *const endings[] = {
		"_s",  "_ms",  "_us",  "_sec",	"_seconds", "_minutes", "_kib",
		"_kb", "_mib", "_mtu", "_gbps", "_percent", "_ratio",
	};

	if (key_has_ending(key, "_per_s") || strcmp(key, "per_s") == 0)
		return false;
	for (size_t n = 0; n < sizeof(endings) / sizeof(endings[0]); n++) {
		if (key_has_ending(key, endings[n]) || strcmp(key, endings[n] + 1) == 0)
			return true;
	}
	return false;
}
