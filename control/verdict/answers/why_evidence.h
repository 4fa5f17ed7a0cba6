// SPDX-License-Identifier: BSD-3-Clause
// The verdict section of WHY. Adds nothing if there is no verdict.
#pragma once

#include "client/session.h"

void why_put_evidence(struct session *session, const struct ras_peer *peer, json_t *object);
