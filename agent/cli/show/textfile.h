// SPDX-License-Identifier: BSD-3-Clause
// Health of nodes as a file for node_exporter's textfile collector.
#pragma once

#include <jansson.h>

// Replace `file` atomically by the metrics of `health`, an answer of HEALTH, or NULL if no agent
// answered. Returns 0, or -errno after an error message on stderr; the old file then stays.
int textfile_write(const char *file, const json_t *health);
