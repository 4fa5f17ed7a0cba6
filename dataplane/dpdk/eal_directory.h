// SPDX-License-Identifier: BSD-3-Clause
// The files that EAL leaves in the file system.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Write "tocsin-NAME"; characters other than letters, digits, dots and dashes are replaced.
void eal_directory_prefix(const char *name, char *prefix, size_t size);
// Remove the directory and its files; subdirectories stay.
void eal_directory_remove(const char *path);
// Return true if a huge page of any size is free, according to this directory
// (/sys/kernel/mm/hugepages).
bool eal_directory_has_huge_page(const char *path);
