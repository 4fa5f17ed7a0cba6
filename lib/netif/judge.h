// SPDX-License-Identifier: BSD-3-Clause
// Helpers of both rule sets to build a choice and its error texts; private to lib/netif.
#pragma once

#include <lib/netif/choice.h>

// Create a choice with one judgement per address in kernel order, then one per link without
// address. The latter already have their reason; all others start as NETIF_TAKEN. Returns 0 or
// -ENOMEM.
int choice_create(const struct netif_table *table, struct netif_choice **ret_choice);

// Add a note, truncated to NETIF_NOTE_BYTES; notes beyond NETIF_NOTES_MAX are dropped.
__attribute__((format(printf, 2, 3))) void
choice_note(struct netif_choice *choice, const char *format, ...);

// Fill *error (may be NULL) and return err.
__attribute__((format(printf, 3, 4))) int
netif_fail(struct netif_error *error, int err, const char *format, ...);

// Like netif_fail(), and append a list of the machine's interfaces; see netif_error_list().
__attribute__((format(printf, 4, 5))) int netif_fail_listing(
	struct netif_error *error, int err, const struct netif_table *table, const char *format, ...
);
