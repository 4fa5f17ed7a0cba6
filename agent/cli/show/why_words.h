// SPDX-License-Identifier: BSD-3-Clause
// Parts of the page of `tocsin why` that explain a node's state.
#pragma once

#include "show/page.h"

void why_print_meaning(struct page *page, const json_t *why);
void why_print_future(struct page *page, const json_t *why);

// why_has_verdict() returns true if the store of verdicts has a verdict on the node.
// why_observations() returns the array of observations, or NULL.
bool why_has_verdict(const json_t *why);
const json_t *why_observations(const json_t *why);
