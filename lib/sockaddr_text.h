// SPDX-License-Identifier: BSD-3-Clause
// What reading an address and resolving a name share. Private to lib.
#pragma once

#include <lib/sockaddr.h>

// Decimal digits and nothing else, as ports and prefix lengths are written. Returns 0, -EINVAL or
// -ERANGE.
int endpoint_text_read_number(const char *text, size_t length, uint32_t max, uint32_t *ret_value);

// host:port taken apart; points into the text it was made from.
struct endpoint_text {
	const char *host;
	size_t host_length;
	bool bracketed;
	uint16_t port;
};

// Everything of sock_addr_parse but the host. Same errors.
int endpoint_text_split(
	const char *text,
	size_t length,
	int32_t default_port,
	struct parse_error *error,
	struct endpoint_text *ret_endpoint
);

// The host as a numeric address. Returns 0, -EINVAL if it is none (and sets no error), or -ENODEV
// or -EADDRNOTAVAIL for a scope that does not exist or does not belong to that address.
int endpoint_text_read_host(const struct endpoint_text *endpoint, struct sock_addr *ret_addr);

// Puts the sentence for what endpoint_text_read_host returned into *error and returns the
// errno for the caller of the parser.
int endpoint_text_fail(struct parse_error *error, int err, const char *text, size_t length);
