// SPDX-License-Identifier: BSD-3-Clause
// Events of the overlay, received as JSON, printed one per line.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define EVENT_LINE_BYTES 2300 // maximum of an escaped line

// Column heads: NUMBER TIME EVENT NODE DETAIL.
extern const char event_line_head[];

// Format one row, escaped for a terminal; at most 100 columns unless `whole` is true.
void event_line_format(const json_t *event, bool whole, char line[static EVENT_LINE_BYTES]);
// Print a row with its full text; text that does not fit into the row follows below.
void event_line_print(const json_t *event, bool whole, bool colour, FILE *stream);

int64_t event_line_sequence(const json_t *event);

// Return true if the event matters for an overview; routine events of links do not.
bool event_line_matters(const json_t *event);
