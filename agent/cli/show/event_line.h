// SPDX-License-Identifier: BSD-3-Clause
// Events of the overlay as the agent tells them in JSON, a line each.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define EVENT_LINE_BYTES 2300 // of a line, escaped

// The columns' names: NUMBER TIME EVENT NODE DETAIL.
extern const char event_line_head[];

// One row, fit for a terminal: of at most 100 columns, unless it is to be whole.
void event_line_format(const json_t *event, bool whole, char line[static EVENT_LINE_BYTES]);
// With all that was said of it: what has no room in the row stands below.
void event_line_print(const json_t *event, bool whole, bool colour, FILE *stream);
// What was said of it in words, which a column would cut; "" for most.
const char *event_line_words(const json_t *event);

int64_t event_line_sequence(const json_t *event);

// Whether somebody who looks at the whole would want to see it: not the daily life of links.
bool event_line_matters(const json_t *event);
