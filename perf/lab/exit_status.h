// SPDX-License-Identifier: BSD-3-Clause
// What tocsin-perf ends with.
#pragma once

enum {
	EXIT_DONE,
	EXIT_PASSED, // a threshold; something is slower; a figure differs
	EXIT_USAGE,
	EXIT_UNDECIDED,
	EXIT_FAILED,
};
