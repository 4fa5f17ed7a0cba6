// SPDX-License-Identifier: BSD-3-Clause
// The part of WHY that comes from the store of verdicts; nothing where there is none.
#pragma once

#include "client/session.h"

void why_put_evidence(struct session *session, const struct ras_peer *peer, json_t *object);
