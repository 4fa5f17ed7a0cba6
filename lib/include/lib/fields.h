// SPDX-License-Identifier: BSD-3-Clause
// Fields between blanks on one line, as in small kernel files and the files of the state directory.
// Pure; the text is untrusted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Read the next field of the line and move *at past it. Returns false, with *at unchanged, if there
// is no field. The variants below also return false if the field differs from `word` or does not
// fit. So does field_read_u64() if the field is no number of at most `max`.
bool field_next(const char **at, const char **ret_word, size_t *ret_size);
bool field_match_word(const char **at, const char *word);
bool field_read_text(const char **at, char *text, size_t size);
bool field_read_u64(const char **at, uint64_t max, uint64_t *ret_value);

// Parse a decimal such as "100" or "2.5" into thousandths, up to 99999.999, without sign. Returns
// false if the text is malformed.
bool thousandths_parse(const char *text, size_t length, uint32_t *ret_thousandths);
