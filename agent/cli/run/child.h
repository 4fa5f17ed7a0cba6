// SPDX-License-Identifier: BSD-3-Clause
// Runs a command as a child and passes on its signals, streams, terminal and exit status.
#pragma once

// Run `path` with these arguments until it ends, then end this process with the same status or
// signal. Returns only if the command cannot be run: -errno.
int child_run(const char *path, char *const *words);
