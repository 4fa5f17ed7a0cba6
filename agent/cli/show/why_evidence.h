// SPDX-License-Identifier: BSD-3-Clause
// The part of the page of `tocsin why` that the store of verdicts knows.
#pragma once

#include "show/page.h"

// The verdict, who saw what, what the node says of itself, and verdicts before. Nothing where
// there never was one.
void why_say_evidence(struct page *page, const json_t *why);
