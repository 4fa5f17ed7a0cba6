// SPDX-License-Identifier: BSD-3-Clause
// NCCL_COMM_ID: the address on which the root of a communicator listens; private to lib/netif.
#pragma once

#include <lib/netif/table.h>

// Parse HOST, HOST:PORT, [IPV6], [IPV6%LINK]:PORT as NCCL does; the port does not affect the
// choice. Returns NULL and sets *ret_peer, or returns a constant text that describes the error.
const char *
comm_id_parse(const struct netif_table *table, const char *text, struct sock_addr *ret_peer);
