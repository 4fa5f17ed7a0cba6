// SPDX-License-Identifier: BSD-3-Clause
// Run tocsin-perf again, as a child process.
#pragma once

#include "run/why.h"

// Run this program with the arguments `words` (argv, ended by NULL) and wait for its exit. The
// child's standard output is dropped. When signal_fd becomes readable, the child gets SIGTERM, so
// that it saves its result. Set *ret_status as a shell does. Returns 0, or -errno with the reason
// in `why`.
int again_run_child(char *const *words, int signal_fd, int *ret_status, struct lab_why *why);
