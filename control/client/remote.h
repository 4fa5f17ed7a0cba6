// SPDX-License-Identifier: BSD-3-Clause
// Calls from other nodes, answered by the same commands. The line is "text|json timeout command".
#pragma once

#include "client/session.h"

struct served;

// Write the line for another node: this session's settings and a command, NUL-terminated.
void remote_line_format(const struct session *session, const char *command, struct text *line);
// Return why a call to another node failed, as a phrase after the node's name. `err` may be any
// value that the other side sends.
const char *node_call_error_text(int err);
// End all calls in progress.
void remote_stop(struct client_server *server);
