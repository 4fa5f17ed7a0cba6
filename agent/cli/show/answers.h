// SPDX-License-Identifier: BSD-3-Clause
// Functions that print the answers of the commands.
#pragma once

#include "show/page.h"

show_fn show_all_comms, show_checks, show_comms, show_conns, show_health, show_history;
show_fn show_links, show_maintenance, show_pairs, show_path, show_paths, show_peers;
show_fn show_peers_keys, show_peers_versions, show_ping, show_rdma_ping, show_why, show_why_at,
	show_why_comms;

// Text for an agent without RDMA devices.
extern const char no_device_words[];
