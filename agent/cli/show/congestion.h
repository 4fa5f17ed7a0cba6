// SPDX-License-Identifier: BSD-3-Clause
// What ports count of congestion, in words and as marks.
#pragma once

#include "show/page.h"

#define CONGESTION_WORDS_BYTES 512

// One port: what moves now.
void congestion_words(const json_t *port, char words[static CONGESTION_WORDS_BYTES]);
// Behind a word of a table, of a row with "port_congestion": "" where nothing moves.
const char *congestion_mark(const json_t *row);
// What the marks mean, below a table that has some.
extern const char congestion_legend[];
