// SPDX-License-Identifier: BSD-3-Clause
// The part of WHY that comes from the RDMA pairs of this agent.
#pragma once

#include "client/session.h"

void why_put_pairs(struct session *session, const struct ras_peer *peer, json_t *object);
