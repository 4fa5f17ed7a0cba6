// SPDX-License-Identifier: BSD-3-Clause
// Questions of other nodes, answered by the same commands: "text|json timeout command".
#pragma once

#include "client/session.h"

struct served;

// A session's own settings and a command, terminated, as another node reads it.
void remote_line(const struct session *session, const char *command, struct text *line);
// Why a question to another node came to nothing, as what is said of it; err may be anything that
// the other says.
const char *node_call_words(int err);
// Every question under way is ended.
void remote_stop(struct client_server *server);
