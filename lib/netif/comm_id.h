// SPDX-License-Identifier: BSD-3-Clause
// NCCL_COMM_ID: where the root of a communicator listens; private to lib/netif.
#pragma once

#include <lib/netif/table.h>

// Reads HOST, HOST:PORT, [IPV6], [IPV6%LINK]:PORT as NCCL does; the port plays no part in
// selection.
// Returns NULL and sets *ret_peer, or says in half a sentence what is wrong with it: a constant.
const char *
comm_id_parse(const struct netif_table *table, const char *text, struct sock_addr *ret_peer);
