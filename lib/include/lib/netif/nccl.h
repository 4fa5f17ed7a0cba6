// SPDX-License-Identifier: BSD-3-Clause
// The rules `nccl`: what NCCL's socket code of 2016-19 chooses, edges included.
//
//	1. NCCL_SOCKET_IFNAME of two characters or more: what it matches, or nothing
//	2. names that begin with ib
//	3. NCCL_COMM_ID of two characters or more: the first address in whose subnet it lies,
//	   whatever its family or name
//	4. any name but docker... and lo...   5. docker...   6. lo...
//
// The first step that finds any wins. Names are getifaddrs' (an alias is a name of its own), one
// address for each name, the first; sixteen at most. Nothing else of a link is looked at.
#pragma once

#include <lib/netif/choice.h>

#define NETIF_NCCL_INTERFACES_MAX NETIF_CHOSEN_MAX

struct netif_nccl_settings {
	struct netif_setting ifname;
	struct netif_setting family; // AF_INET or AF_INET6; anything else is passed over
	struct netif_setting comm_id;
};

// Resolves a host name in comm_id, and may then wait for DNS: not for a thread that must not.
// A setting that is passed over leaves a note. 0 (with chosen_count 0 when nothing matches) or
// -ENOMEM.
int netif_choose_nccl(
	const struct netif_table *table,
	const struct netif_nccl_settings *settings,
	struct netif_choice **ret_choice
);
