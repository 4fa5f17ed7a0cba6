// SPDX-License-Identifier: BSD-3-Clause
// Where clients are accepted, and who they are.
#pragma once

#include "client/server.h"

// -errno, and in words what failed.
int listen_tcp(struct client_server *server, char detail[static CLIENT_DETAIL_BYTES]);
int listen_local(struct client_server *server, char detail[static CLIENT_DETAIL_BYTES]);
// Both, if there are, and the socket's file if it is still ours.
void listen_stop(struct client_server *server);
