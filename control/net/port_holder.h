// SPDX-License-Identifier: BSD-3-Clause
// Who listens on a port that we may not have. Reads /proc, at start only.
#pragma once

#include <lib/sockaddr.h>

#define PORT_HOLDER_TEXT_BYTES 64

// "tocsind (pid 4711)". False if nobody is found: without privileges other users' processes are
// not to be seen, nor are those of another container.
bool port_holder_find(const struct sock_addr *address, char text[static PORT_HOLDER_TEXT_BYTES]);
