// SPDX-License-Identifier: BSD-3-Clause
// The reasons there are, and what each means: docs/verdicts.md has the same table
// (tests/house/verdicts_test.py compares them).
#pragma once

#include <stdint.h>

struct verdict_text_reason {
	const char *name;
	const char *verdict; // that it comes with
	const char *meaning; // one sentence
};

extern const struct verdict_text_reason verdict_text_reasons[];
extern const uint32_t verdict_text_reason_count;
