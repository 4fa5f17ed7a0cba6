// SPDX-License-Identifier: BSD-3-Clause
// Words between blanks, on one line: what the kernel's small files and those of the state directory
// are made of. Pure; the text is from outside.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The next word of the line, and *at behind it; false: there is none, or for the others it is none
// such or does not fit, and nothing is taken.
bool field_next(const char **at, const char **ret_word, size_t *ret_size);
bool field_is(const char **at, const char *word);
bool field_text(const char **at, char *text, size_t size);
bool field_u64(const char **at, uint64_t max, uint64_t *ret_value);

// "100", "2.5": thousandths, up to 99999.999; no sign. False: it is none.
bool fixed_parse(const char *text, size_t length, uint32_t *ret_thousandths);
