// SPDX-License-Identifier: BSD-3-Clause
// Well-formed UTF-8 by RFC 3629: no overlong form, no surrogate, nothing past U+10FFFF.
#pragma once

#include <stddef.h>

// Bytes of the character that text begins with, of which size >= 1 bytes are readable; 0 if there
// is none. NUL is a character like any other. Any thread.
size_t utf8_character_size(const void *text, size_t size);
