// SPDX-License-Identifier: BSD-3-Clause
// What this node's ports count of congestion, beside what is told of paths and nodes.
#pragma once

#include "client/session.h"

// An array of ports; `device` as paths name it ("mlx5_0", "mlx5_0:2"), or NULL: all.
json_t *congestion_json(const struct session *session, const char *device);
// Of one device, as paths name it: "quiet", "congested", ...
const char *congestion_word(const struct session *session, const char *device);

// The part of WHY: ports of the node that is asked.
void why_put_congestion(const struct session *session, json_t *object);
