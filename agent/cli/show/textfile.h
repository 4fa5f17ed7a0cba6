// SPDX-License-Identifier: BSD-3-Clause
// What an agent said of nodes, as a file for node_exporter's textfile collector.
#pragma once

#include <jansson.h>

// health: an answer to HEALTH, NULL if no agent gave one. Whoever reads file sees the old one or
// the whole new one. 0, or -errno with what failed on stderr: the old one stays.
int textfile_write(const char *file, const json_t *health);
