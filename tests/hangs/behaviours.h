// SPDX-License-Identifier: BSD-3-Clause
// Behaviours of one rank of the corpus outside of the communication library.
#pragma once

// Create the file that $CORPUS_MARK names, unless the file exists. It marks the time from which the
// program is odd or hangs.
void behaviour_mark(void);

// Return the duration of a healthy behaviour in seconds: $CORPUS_SECONDS, or 30.
unsigned int behaviour_seconds(void);

// Call behaviour_mark(), then run the behaviour of this name. A healthy behaviour returns; one that
// hangs never does. Returns 0, or -ENOENT if the name is unknown.
int behaviour_run(const char *name);

// Compute, without a system call that blocks.
void behaviour_compute(double seconds);
