// SPDX-License-Identifier: BSD-3-Clause
// A run's page: what the table says, and pictures of what was kept.
#pragma once

#include "result.h"
#include "why.h"

struct json_t;

// Of a run that was just measured. "-" is standard output.
int page_run(const struct lab_run *run, const char *path, struct lab_why *why);
// Of a file's run, verified.
int page_run_json(const struct json_t *root, const char *path, struct lab_why *why);
