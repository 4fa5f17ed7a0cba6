// SPDX-License-Identifier: BSD-3-Clause
// The addresses to join through. Resolves the configured addresses, hostlists, names and files.
//
// Resolving may take long, so it runs in a separate thread. Results arrive through the loop. One
// pass runs at start and one after each request; every pass reads the files again.
#pragma once

#include <lib/sockaddr.h>

#include <stddef.h>
#include <stdint.h>

struct join_list;
struct loop;

struct join_list_ops {
	// Receives the addresses of one pass, without duplicates and in a canonical order.
	// `failures` counts the names and files that could not be used, and `error` is the first of
	// them. Called on the loop's thread.
	void (*resolved
	)(void *ctx,
	  const struct sock_addr *seeds,
	  uint32_t count,
	  uint32_t failures,
	  const char *error);
	void *ctx;
};

// Create a list. `text` has items between commas: "10.0.0.1", "10.0.0.1:28030", "[::1]:5",
// "login1", "node[001-128,200]:28030", "/etc/tocsin/seeds" (a file of such items; # begins a
// comment). The text is checked (join_list_check()) and copied. At most RAS_SEEDS_MAX addresses are
// used. Returns 0, -ENOMEM, or the error of the thread or of eventfd.
int join_list_create(
	struct loop *loop,
	const char *text,
	uint16_t default_port,
	enum sock_addr_family prefer,
	const struct join_list_ops *ops,
	struct join_list **ret_list
);
struct join_list *join_list_destroy(struct join_list *list);

// Start another pass, unless one is running.
void join_list_refresh(struct join_list *list);

// Check whether a text is well-formed. The signature is config_check_fn, for checks of the
// configuration.
struct parse_error;
int join_list_check(const char *text, size_t length, struct parse_error *error);
