// SPDX-License-Identifier: BSD-3-Clause
// Congestion counters of ports, in words and as marks in tables.
#pragma once

#include "show/page.h"

#define CONGESTION_WORDS_BYTES 512

// Describe what currently moves at one port.
void congestion_words(const json_t *port, char words[static CONGESTION_WORDS_BYTES]);
// Return the mark to append to a cell of a row with "port_congestion"; "" if nothing moves.
const char *congestion_mark(const json_t *row);
// Legend of the marks, printed below a table that contains some.
extern const char congestion_legend[];
