// SPDX-License-Identifier: BSD-3-Clause
// Well-formed UTF-8 by RFC 3629: no overlong form, no surrogate, nothing past U+10FFFF.
#pragma once

#include <stddef.h>

// Return the size of the first character of a text, of which size >= 1 bytes are readable; 0 if it
// is malformed. NUL is a normal character. Any thread.
size_t utf8_character_size(const void *text, size_t size);
