// SPDX-License-Identifier: BSD-3-Clause
// Reasons of verdicts and their meanings. docs/verdicts.md has the same table;
// tests/house/verdicts_test.py compares the two.
#pragma once

#include <stdint.h>

struct verdict_text_reason {
	const char *name;
	const char *verdict; // the verdict that it belongs to
	const char *meaning; // one sentence
};

extern const struct verdict_text_reason verdict_text_reasons[];
extern const uint32_t verdict_text_reason_count;
