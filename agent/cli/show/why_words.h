// SPDX-License-Identifier: BSD-3-Clause
// Parts of the page of `tocsin why`, from the facts of a node.
#pragma once

#include "show/page.h"

void why_say_meaning(struct page *page, const json_t *why);
void why_say_future(struct page *page, const json_t *why);

// Whether the store of verdicts holds one of the node, and what observers told of it.
bool why_has_verdict(const json_t *why);
const json_t *why_observations(const json_t *why);
