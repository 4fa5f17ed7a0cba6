// SPDX-License-Identifier: BSD-3-Clause
// Exit status of tocsin-perf.
#pragma once

enum {
	EXIT_DONE,
	// A threshold fails, B is slower, a direction of a mesh stands out, or a figure differs.
	EXIT_EXCEEDED,
	EXIT_USAGE,
	EXIT_UNDECIDED,
	EXIT_FAILED,
};
