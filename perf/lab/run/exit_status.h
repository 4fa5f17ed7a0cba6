// SPDX-License-Identifier: BSD-3-Clause
// Exit status of tocsin-perf.
#pragma once

enum {
	EXIT_DONE,
	EXIT_EXCEEDED, // a threshold was exceeded, a comparison is slower, or a figure differs
	EXIT_USAGE,
	EXIT_UNDECIDED,
	EXIT_FAILED,
};
