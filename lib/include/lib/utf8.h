// SPDX-License-Identifier: BSD-3-Clause
// Well-formed UTF-8 by RFC 3629: no overlong form, no surrogate, nothing past U+10FFFF.
#pragma once

#include <stddef.h>

// Return the size of the first character of a text, of which size >= 1 bytes are readable; 0 if it
// is malformed. NUL is a normal character. Any thread.
size_t utf8_character_size(const void *text, size_t size);

// Return the columns of a terminal that the first character takes: 2 if it is wide (East Asian, or
// an emoji), 0 if it combines with the one before it, else 1. A malformed byte counts as 1.
size_t utf8_character_columns(const void *text, size_t size);
// Return the columns of a terminated text.
size_t utf8_text_columns(const char *text);
