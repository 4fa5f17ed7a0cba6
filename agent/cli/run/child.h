// SPDX-License-Identifier: BSD-3-Clause
// A command as a child that is as good as this process itself: its signals, streams, terminal and
// end are the command's.
#pragma once

// Runs `path` with these words to its end and then ends this process the same way: with its status,
// or by its signal. Returns what kept it from running: -errno.
int child_run(const char *path, char *const *words);
