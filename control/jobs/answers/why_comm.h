// SPDX-License-Identifier: BSD-3-Clause
// WHY for a job or a communicator.
#pragma once

struct session;

// Ask all nodes for their communicators and describe those that match `word`. If the session may
// not ask, it gets an error message.
void why_comm(struct session *session, const char *word);
