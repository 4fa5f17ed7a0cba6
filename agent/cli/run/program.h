// SPDX-License-Identifier: BSD-3-Clause
// How a program was linked.
#pragma once

// Return why no library can be preloaded before the program's MPI, or NULL if nothing prevents it.
const char *program_no_preload_reason(const char *path);
