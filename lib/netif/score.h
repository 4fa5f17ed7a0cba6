// SPDX-License-Identifier: BSD-3-Clause
// How good a candidate is; private to lib/netif.
#pragma once

#include <lib/netif/tocsin.h>

// Fills judgement->score from its candidate, which has an address, and from judgement->item.
void score_candidate(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_judgement *judgement
);

// For qsort_r over positions in judgements: the better one first. A total order.
struct score_order {
	const struct netif_table *table;
	const struct netif_judgement *judgements;
};
int score_compare(const void *left, const void *right, void *order);
