// SPDX-License-Identifier: BSD-3-Clause
// The page of policies: latency against processor time, one picture.
#pragma once

#include "why.h"

struct json_t;

// Of a file of POLICIES_JSON_SCHEMA, written by us or verified. "-" is standard output.
int page_policies(const struct json_t *root, const char *path, struct lab_why *why);
