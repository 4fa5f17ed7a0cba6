// SPDX-License-Identifier: BSD-3-Clause
// Whom to join through: addresses, hostlists, names and files, turned into addresses.
//
// The resolver may take its time, so it has a thread of its own; what it found comes back through
// the loop. A pass is made at the start and whenever one is asked for; files are read anew in each.
#pragma once

#include <lib/sockaddr.h>

#include <stddef.h>
#include <stdint.h>

struct join_list;
struct loop;

struct join_list_ops {
	// On the loop's thread. What was found in one pass, without repetitions, in a canonical
	// order; failures are how many names and files could not be used, error the first such.
	void (*resolved
	)(void *ctx,
	  const struct sock_addr *seeds,
	  uint32_t count,
	  uint32_t failures,
	  const char *error);
	void *ctx;
};

// Items between commas: "10.0.0.1", "10.0.0.1:28030", "[::1]:5", "login1",
// "node[001-128,200]:28030", "/etc/tocsin/seeds" (a file of such items, # begins a comment).
// The text is checked (join_list_check()) and copied. At most RAS_SEEDS_MAX addresses are used.
// -ENOMEM, or what the thread or eventfd say.
int join_list_create(
	struct loop *loop,
	const char *text,
	uint16_t default_port,
	enum sock_addr_family prefer,
	const struct join_list_ops *ops,
	struct join_list **ret_list
);
struct join_list *join_list_destroy(struct join_list *list);

// Another pass, unless one is under way.
void join_list_refresh(struct join_list *list);

// Whether a text is well-formed, as a check of configuration: config_check_fn.
struct parse_error;
int join_list_check(const char *text, size_t length, struct parse_error *error);
