// SPDX-License-Identifier: BSD-3-Clause
// Functions shared by PATHS, MATRIX and PATH: rows of paths, and all data of one end of a path.
#pragma once

#include "client/session.h"

#include <ras/payload.h>
#include <verdict/observation.h>

// Return the observation of a path row. Rows of other agents may hold an invalid value, which
// counts as OBSERVATION_NO_PAIR.
enum observation_kind path_row_kind(const struct ras_path_row *row);
// Return whether path `a` is worse than path `b`: first by observation, then by its severity.
bool paths_is_worse(const struct ras_merged_path *a, const struct ras_merged_path *b);

// Returns the row as JSON. `port_congestion` may be NULL: the port is of another node.
json_t *paths_row_json(
	struct session *session, const struct ras_merged_path *path, const char *port_congestion
);

// Return this node's paths to a peer with all their data: an object with an array "paths".
json_t *paths_end_json(struct session *session, const struct ras_peer *peer);
