// SPDX-License-Identifier: BSD-3-Clause
// What EAL leaves in the file system.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// "tocsin-NAME", what is not a letter, digit, dot or dash replaced.
void eal_directory_prefix(const char *name, char *prefix, size_t size);
// Removes the files in the directory and itself; what is left of a foreign kind stays.
void eal_directory_remove(const char *path);
// Whether a huge page of any size is free, by the files under this directory
// (/sys/kernel/mm/hugepages).
bool eal_directory_has_huge_page(const char *path);
