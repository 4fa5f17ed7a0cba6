// SPDX-License-Identifier: BSD-3-Clause
// WHY of a job or a communicator.
#pragma once

struct session;

// Asks all nodes for their communicators, and tells of those that are called so. The session was
// told if it may not ask.
void why_comm(struct session *session, const char *word);
