// SPDX-License-Identifier: BSD-3-Clause
// Part of the page of `tocsin why` that comes from the store of verdicts.
#pragma once

#include "show/page.h"

// Print the verdict, the observations, the node's statements and earlier verdicts. Prints nothing
// if the node never had a verdict.
void why_print_evidence(struct page *page, const json_t *why);
