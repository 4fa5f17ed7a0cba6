// SPDX-License-Identifier: BSD-3-Clause
// Completion scripts for shells, generated from the table of commands.
#pragma once

#include <stdbool.h>
#include <stdio.h>

// Print the script for "bash" or "zsh". Returns false for another shell.
bool completion_print(const char *shell, FILE *out);
