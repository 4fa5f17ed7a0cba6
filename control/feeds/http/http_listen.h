// SPDX-License-Identifier: BSD-3-Clause
// The listening socket of the HTTP server, and which clients are of this machine.
#pragma once

#include <lib/sockaddr.h>

#include <stdbool.h>

// Open a listening socket. Returns 0 or -errno.
int http_listen(const struct sock_addr *address, int *ret_fd);
// Return whether an address belongs to this machine.
bool http_address_is_local(const struct sock_addr *addr);
