// SPDX-License-Identifier: BSD-3-Clause
// Page of a comparison of idle policies: latency against processor time.
#pragma once

#include "run/why.h"

struct json_t;

// Write the page of a JSON object of POLICIES_JSON_SCHEMA, new or verified. "-" is standard output.
int page_policies(const struct json_t *root, const char *path, struct lab_why *why);
