// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "client/session.h"

// Answer WHY about a time in the past, if a time follows the node. Returns false if none does.
bool why_at(struct session *session, const char *rest);
