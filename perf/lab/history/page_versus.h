// SPDX-License-Identifier: BSD-3-Clause
// HTML page of a comparison.
#pragma once

#include "history/versus.h"

// Write the page; "-" is standard output.
int page_versus(
	const struct versus *versus,
	const struct versus_values *values,
	const struct versus_result *result,
	const char *path,
	struct lab_why *why
);
