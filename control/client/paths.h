// SPDX-License-Identifier: BSD-3-Clause
// What PATHS, MATRIX and PATH share: rows of paths, and one end of a path with all that it knows.
#pragma once

#include "client/session.h"

#include <ras/payload.h>
#include <verdict/observation.h>

// As it was seen; what others say may be no kind at all.
enum observation_kind paths_kind(const struct ras_path_row *row);
// Whether `a` is worse to look at: by what it was seen as, then by what makes that worse.
bool paths_is_worse(const struct ras_merged_path *a, const struct ras_merged_path *b);

json_t *paths_row_json(struct session *session, const struct ras_merged_path *path);

// This node's paths to a peer with all that is remembered of them: an object, and an array "paths"
// in it.
json_t *paths_end_json(struct session *session, const struct ras_peer *peer);
