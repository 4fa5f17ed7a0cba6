// SPDX-License-Identifier: BSD-3-Clause
// Makes room when there are too many clients: ends a client of the user that has the most.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct client_server;

// places beyond clients_max for privileged clients
#define RESERVED_CLIENTS 4

// Make room for one more client of this user. Ends a client of the user with the most clients: an
// idle one if possible, the longest idle first. A client that monitors, or is being answered, is
// ended only for a user with clearly fewer clients. Privileged clients are never ended, unless more
// are connected than have reserved places; then an idle one may be. Returns false if no client was
// ended; the new client must be rejected.
bool room_make_for_user(struct client_server *server, uint32_t uid);
