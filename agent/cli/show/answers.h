// SPDX-License-Identifier: BSD-3-Clause
// What each command prints of its answer.
#pragma once

#include "show/page.h"

show_fn show_checks, show_conns, show_links, show_peers, show_ping, show_rdma_ping;
