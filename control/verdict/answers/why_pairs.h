// SPDX-License-Identifier: BSD-3-Clause
// The section of WHY about this agent's RDMA pairs with a node.
#pragma once

#include "client/session.h"

void why_put_pairs(struct session *session, const struct ras_peer *peer, json_t *object);
