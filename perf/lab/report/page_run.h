// SPDX-License-Identifier: BSD-3-Clause
// Page of a run: the figures of the table, and charts of the stored samples.
#pragma once

#include "run/result.h"
#include "run/why.h"

struct json_t;

// Write the page of a new run; "-" is standard output.
int page_run(const struct lab_run *run, const char *path, struct lab_why *why);
// Write the page of a verified JSON file.
int page_run_json(const struct json_t *root, const char *path, struct lab_why *why);
