// SPDX-License-Identifier: BSD-3-Clause
// tocsin(1), from the table of commands: what help says, as a page.
#pragma once

#include <stdio.h>

void man_print(FILE *out);
