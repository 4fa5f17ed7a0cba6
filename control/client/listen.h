// SPDX-License-Identifier: BSD-3-Clause
// Listening sockets for clients, and the identification of clients.
#pragma once

#include "client/server.h"

// Start listening. Returns 0, or -errno with an explanation in `detail`.
int listen_tcp(struct client_server *server, char detail[static CLIENT_DETAIL_BYTES]);
int listen_local(struct client_server *server, char detail[static CLIENT_DETAIL_BYTES]);
// Close both listeners. The socket's file is removed if it still belongs to this agent.
void listen_stop(struct client_server *server);
