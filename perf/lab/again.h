// SPDX-License-Identifier: BSD-3-Clause
// This program once more, as a process of its own.
#pragma once

#include "why.h"

// Runs it with these words (argv, ended by NULL) and waits for its end; what it prints on standard
// output is dropped. A signal that signal_fd tells of goes on to it, so that it keeps what it has.
// *ret_status as a shell has it. -errno with the reason.
int again_run(char *const *words, int signal_fd, int *ret_status, struct lab_why *why);
