// SPDX-License-Identifier: BSD-3-Clause
// What a program file says of how it was linked.
#pragma once

// Why no library can stand before this program's MPI, in words; NULL: one can, as far as is seen.
const char *program_why_closed(const char *path);
