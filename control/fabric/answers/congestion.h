// SPDX-License-Identifier: BSD-3-Clause
// JSON for the congestion counters of this node's ports.
#pragma once

#include "client/session.h"

// Return an array of ports. `device` selects a rail name ("mlx5_0", "mlx5_0:2"); NULL: all ports.
json_t *congestion_json(const struct session *session, const char *device);
// Return the congestion level of a rail: "quiet", "congested", ...
const char *rail_congestion_name(const struct session *session, const char *device);
