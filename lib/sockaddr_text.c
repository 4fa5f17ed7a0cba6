// SPDX-License-Identifier: BSD-3-Clause
// Parsing and formatting of socket addresses.
#include "sockaddr_text.h"

#include <lib/must.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define PORT_MAX 65535

// Copy text into a C string. Returns false if it does not fit or contains a NUL, which would hide
// the rest.
static bool copy_string(char *buffer, size_t size, const char *text, size_t length) {
	if (length >= size || memchr(text, '\0', length) != NULL)
		return false;
	memcpy(buffer, text, length);
	buffer[length] = '\0';
	return true;
}

int endpoint_text_read_number(const char *text, size_t length, uint32_t max, uint32_t *ret_value) {
	uint64_t value = 0;

	if (length == 0)
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		// Once too large, the value stays; the rest is only checked for digits.
		if (value <= max)
			value = 10 * value + (uint64_t)(text[i] - '0');
	}
	if (value > max)
		return -ERANGE;
	*ret_value = (uint32_t)value;
	return 0;
}

// Split host and port. *ret_port_text is NULL without a port. Without brackets, one colon separates
// host and port; several colons belong to a bare IPv6 address.
static int split_host(
	const char *text,
	size_t length,
	struct parse_error *error,
	struct endpoint_text *endpoint,
	const char **ret_port_text
) {
	const char *end = text + length;
	const char *behind;

	endpoint->bracketed = length > 0 && text[0] == '[';
	if (endpoint->bracketed) {
		behind = memchr(text, ']', length);
		if (behind == NULL)
			return parse_fail(error, -EINVAL, text, length, "has no closing ]");
		endpoint->host = text + 1;
		endpoint->host_length = (size_t)(behind - text) - 1;
		behind++;
		if (behind < end && *behind != ':')
			return parse_fail(
				error, -EINVAL, text, length,
				"has something other than :PORT after the ]"
			);
	} else {
		behind = memchr(text, ':', length);
		if (behind == NULL || memchr(behind + 1, ':', (size_t)(end - behind) - 1) != NULL)
			behind = end;
		endpoint->host = text;
		endpoint->host_length = (size_t)(behind - text);
	}
	*ret_port_text = behind < end ? behind + 1 : NULL;
	return 0;
}

int endpoint_text_split(
	const char *text,
	size_t length,
	int32_t default_port,
	struct parse_error *error,
	struct endpoint_text *ret_endpoint
) {
	struct endpoint_text endpoint = {0};
	const char *port_text = NULL;
	uint32_t port = (uint32_t)default_port;
	int err;

	must(default_port >= SOCK_ADDR_PORT_NEEDED && default_port <= PORT_MAX);
	err = split_host(text, length, error, &endpoint, &port_text);
	if (err != 0)
		return err;
	if (endpoint.host_length == 0)
		return parse_fail(
			error, -EINVAL, text, length, "has no host: %s is needed",
			default_port == SOCK_ADDR_PORT_NEEDED ? "HOST:PORT" : "HOST[:PORT]"
		);
	if (port_text == NULL && default_port == SOCK_ADDR_PORT_NEEDED)
		return parse_fail(
			error, -EINVAL, text, length,
			"has no port: HOST:PORT is needed, with an IPv6 address in brackets"
		);
	if (port_text != NULL)
		err = endpoint_text_read_number(
			port_text, (size_t)(text + length - port_text), PORT_MAX, &port
		);
	if (err != 0)
		return parse_fail(
			error, err, text, length, "has no valid port: 0 to %d is allowed", PORT_MAX
		);
	endpoint.port = (uint16_t)port;
	*ret_endpoint = endpoint;
	return 0;
}

int endpoint_text_read_host(const struct endpoint_text *endpoint, struct sock_addr *ret_addr) {
	const char *percent = memchr(endpoint->host, '%', endpoint->host_length);
	size_t length = endpoint->host_length;
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(endpoint->port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
	char host[INET6_ADDRSTRLEN], scope[IF_NAMESIZE], found[IF_NAMESIZE];
	struct sock_addr addr;
	size_t scope_length;
	uint64_t index;
	int err;

	if (percent != NULL)
		length = (size_t)(percent - endpoint->host);
	if (!copy_string(host, sizeof(host), endpoint->host, length))
		return -EINVAL;
	if (!endpoint->bracketed && percent == NULL && inet_pton(AF_INET, host, &in.sin_addr) == 1)
		return sock_addr_from_sockaddr((struct sockaddr *)&in, sizeof(in), ret_addr);
	if (inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
		return -EINVAL;
	if (percent != NULL) {
		// The scope is an interface name, or an index, which is printed if the name is
		// unknown.
		scope_length = endpoint->host_length - length - 1;
		if (!copy_string(scope, sizeof(scope), percent + 1, scope_length) ||
		    scope_length == 0)
			return -ENODEV;
		index = if_nametoindex(scope);
		if (index == 0 &&
		    (parse_u64(percent + 1, scope_length, 1, UINT32_MAX, NULL, &index) != 0 ||
		     if_indextoname((uint32_t)index, found) == NULL))
			return -ENODEV;
		in6.sin6_scope_id = (uint32_t)index;
	}
	err = sock_addr_from_sockaddr((struct sockaddr *)&in6, sizeof(in6), &addr);
	if (err != 0)
		return err;
	if (percent != NULL && addr.scope_id == 0)
		return -EADDRNOTAVAIL;
	*ret_addr = addr;
	return 0;
}

int endpoint_text_fail(struct parse_error *error, int err, const char *text, size_t length) {
	switch (err) {
	case -ENODEV:
		return parse_fail(
			error, -ENODEV, text, length,
			"names an interface after the %% that does not exist on this machine"
		);
	case -EADDRNOTAVAIL:
		return parse_fail(
			error, -EINVAL, text, length,
			"has a %% scope, which only a link-local address can have"
		);
	default:
		return parse_fail(
			error, -EINVAL, text, length,
			"is not an address such as 192.0.2.1, 2001:db8::1 or fe80::1%%eth0"
		);
	}
}

int sock_addr_parse(
	const char *text,
	size_t length,
	int32_t default_port,
	struct parse_error *error,
	struct sock_addr *ret_addr
) {
	struct endpoint_text endpoint;
	int err;

	err = endpoint_text_split(text, length, default_port, error, &endpoint);
	if (err != 0)
		return err;
	err = endpoint_text_read_host(&endpoint, ret_addr);
	return err == 0 ? 0 : endpoint_text_fail(error, err, text, length);
}

int sock_addr_parse_host(
	const char *text, size_t length, struct parse_error *error, struct sock_addr *ret_addr
) {
	const struct endpoint_text endpoint = {.host = text, .host_length = length};
	int err = endpoint_text_read_host(&endpoint, ret_addr);

	return err == 0 ? 0 : endpoint_text_fail(error, err, text, length);
}

void sock_addr_format_host(const struct sock_addr *addr, char text[static SOCK_ADDR_TEXT_BYTES]) {
	char name[IF_NAMESIZE];
	size_t used;

	if (addr->family == SOCK_ADDR_NONE) {
		memcpy(text, "none", sizeof("none"));
		return;
	}
	inet_ntop(
		addr->family == SOCK_ADDR_V4 ? AF_INET : AF_INET6, addr->address, text,
		SOCK_ADDR_TEXT_BYTES
	);
	if (addr->scope_id == 0)
		return;
	used = strlen(text);
	if (if_indextoname(addr->scope_id, name) != NULL)
		snprintf(text + used, SOCK_ADDR_TEXT_BYTES - used, "%%%s", name);
	else
		snprintf(text + used, SOCK_ADDR_TEXT_BYTES - used, "%%%u", addr->scope_id);
}

void sock_addr_format(const struct sock_addr *addr, char text[static SOCK_ADDR_TEXT_BYTES]) {
	bool bracketed = addr->family == SOCK_ADDR_V6;
	char host[SOCK_ADDR_TEXT_BYTES];
	int n;

	sock_addr_format_host(addr, host);
	if (addr->family == SOCK_ADDR_NONE)
		n = snprintf(text, SOCK_ADDR_TEXT_BYTES, "%s", host);
	else
		n = snprintf(
			text, SOCK_ADDR_TEXT_BYTES, bracketed ? "[%s]:%u" : "%s:%u", host,
			addr->port
		);
	must(n > 0 && n < SOCK_ADDR_TEXT_BYTES);
}
