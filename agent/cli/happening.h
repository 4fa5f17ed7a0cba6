// SPDX-License-Identifier: BSD-3-Clause
// Events of the overlay as the agent tells them in JSON, a line each.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

#define HAPPENING_BYTES 1100 // of a line, escaped

// The columns' names: NUMBER TIME EVENT NODE DETAIL.
extern const char happening_head[];

// One row, at most 100 columns, fit for a terminal.
void happening_line(const json_t *event, char line[static HAPPENING_BYTES]);

const char *happening_name(const json_t *event);
int64_t happening_sequence(const json_t *event);

// Whether somebody who looks at the whole would want to see it: not the daily life of links.
bool happening_matters(const json_t *event);
