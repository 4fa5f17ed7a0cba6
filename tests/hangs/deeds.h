// SPDX-License-Identifier: BSD-3-Clause
// Deeds: what one rank of the corpus does outside of the communication library.
#pragma once

// Create the file that $CORPUS_MARK names, unless it exists: from now on the program is odd or
// hangs.
void deed_mark(void);

// Return the duration of a healthy deed in seconds: $CORPUS_SECONDS, or 30.
unsigned int deed_seconds(void);

// Do the deed of this name, after deed_mark(). A healthy deed returns; a deed that hangs never
// does. Returns 0, or -ENOENT if there is no such deed.
int deed_do(const char *name);

// Compute, without a system call that blocks.
void deed_compute(double seconds);
