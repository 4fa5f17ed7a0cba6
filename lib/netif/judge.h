// SPDX-License-Identifier: BSD-3-Clause
// What both rule sets need to build a choice and its complaints; private to lib/netif.
#pragma once

#include <lib/netif/choice.h>

// One judgement for each address in kernel order, then one for each link without any, which is
// settled already; the rest read as NETIF_TAKEN. 0 or -ENOMEM.
int choice_create(const struct netif_table *table, struct netif_choice **ret_choice);

// Adds a sentence, cut to its place; beyond NETIF_NOTES_MAX it is left out.
__attribute__((format(printf, 2, 3))) void
choice_note(struct netif_choice *choice, const char *format, ...);

// Fills *error (may be NULL) and returns err.
__attribute__((format(printf, 3, 4))) int
netif_fail(struct netif_error *error, int err, const char *format, ...);

// As netif_fail, with what the machine has below the sentence, see netif_error_list().
__attribute__((format(printf, 4, 5))) int netif_fail_listing(
	struct netif_error *error, int err, const struct netif_table *table, const char *format, ...
);
