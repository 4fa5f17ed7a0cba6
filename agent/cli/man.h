// SPDX-License-Identifier: BSD-3-Clause
// tocsin(1), the manual page, generated from the table of commands.
#pragma once

#include <stdio.h>

void man_print(FILE *out);
