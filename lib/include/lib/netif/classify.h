// SPDX-License-Identifier: BSD-3-Clause
// What each link is, from its facts. Names are never looked at.
#pragma once

#include <lib/netif/table.h>

// Sets class of every link. A bridge counts as one over hardware when one of its ports does.
void netif_classify(struct netif_table *table);
