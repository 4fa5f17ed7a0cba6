// SPDX-License-Identifier: BSD-3-Clause
// The rules `nccl`: the same choice as NCCL's socket code of 2016-19, with its oddities.
//
//	1. NCCL_SOCKET_IFNAME of two characters or more: names that match it. If none does,
//	   nothing is chosen, and the next steps are skipped.
//	2. names that begin with ib
//	3. NCCL_COMM_ID of two characters or more: the first address whose subnet contains it,
//	   with any family and name
//	4. any name but docker... and lo...   5. docker...   6. lo...
//
// The first step that finds an address wins. Names are those of getifaddrs(3), where an alias has
// its own name. Only the first address of each name is used, and at most 16 addresses. No other
// property of a link matters.
#pragma once

#include <lib/netif/choice.h>

#define NETIF_NCCL_INTERFACES_MAX NETIF_CHOSEN_MAX

struct netif_nccl_settings {
	struct netif_setting ifname;
	struct netif_setting family; // AF_INET or AF_INET6; other values are ignored
	struct netif_setting comm_id;
};

// Choose addresses. If comm_id has a host name, this call may wait for DNS, so a thread that must
// not block must not call it. An ignored setting adds a note. Returns 0, with chosen_count 0 if
// nothing matches, or -ENOMEM.
int netif_choose_nccl(
	const struct netif_table *table,
	const struct netif_nccl_settings *settings,
	struct netif_choice **ret_choice
);
