// SPDX-License-Identifier: BSD-3-Clause
// Who goes when more clients come than may be connected: one of the user that has the most.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct client_server;

// Beyond clients_max, for those who may put things right.
#define RESERVED_CLIENTS 4

// A place for one more of this user. Ends who has been idle longest among the clients of whoever
// has the most; one that monitors or is being answered only for a user with clearly fewer. Clients
// that may give orders are nobody's to end, but for idle ones when more of them are connected than
// have places of their own. false: there is none to end, the newcomer has to go.
bool room_make(struct client_server *server, uint32_t uid);
