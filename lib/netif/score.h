// SPDX-License-Identifier: BSD-3-Clause
// Score of a candidate; private to lib/netif.
#pragma once

#include <lib/netif/tocsin.h>

// Fill judgement->score from judgement->item and the candidate, which must have an address.
void score_candidate(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_judgement *judgement
);

// Comparison for qsort_r() over positions in `judgements`: the better candidate first; a total
// order.
struct score_order {
	const struct netif_table *table;
	const struct netif_judgement *judgements;
};
int score_compare(const void *left, const void *right, void *order);
