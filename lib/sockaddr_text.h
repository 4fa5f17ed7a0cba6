// SPDX-License-Identifier: BSD-3-Clause
// Helpers shared by address parsing and name resolution. Private to lib.
#pragma once

#include <lib/sockaddr.h>

// Read a number of decimal digits only, such as a port or prefix length. Returns 0, -EINVAL or
// -ERANGE.
int endpoint_text_read_number(const char *text, size_t length, uint32_t max, uint32_t *ret_value);

// A split host:port; points into the original text.
struct endpoint_text {
	const char *host;
	size_t host_length;
	bool bracketed;
	uint16_t port;
};

// Split an endpoint and read its port. Errors: see sock_addr_parse().
int endpoint_text_split(
	const char *text,
	size_t length,
	int32_t default_port,
	struct parse_error *error,
	struct endpoint_text *ret_endpoint
);

// Read the host as a numeric address. Returns 0 or -EINVAL (not numeric; no error text is set).
// Returns -ENODEV or -EADDRNOTAVAIL if the scope does not exist or does not fit the address.
int endpoint_text_read_host(const struct endpoint_text *endpoint, struct sock_addr *ret_addr);

// Format the error text for a result of endpoint_text_read_host(). Returns the errno for the caller
// of the parser.
int endpoint_text_fail(struct parse_error *error, int err, const char *text, size_t length);
