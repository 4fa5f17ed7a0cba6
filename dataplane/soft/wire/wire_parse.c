// SPDX-License-Identifier: BSD-3-Clause
// Parses the name of a wire, and its address.
#include "wire/wire_devargs.h"

#include <dataplane/soft.h>

#include <errno.h>
#include <string.h>

static bool text_equals_word(const char *text, size_t length, const char *word) {
	return length == strlen(word) && memcmp(text, word, length) == 0;
}

int soft_wire_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	enum soft_wire_kind *ret_kind,
	char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
) {
	size_t prefix = strlen(WIRE_DPDK_PREFIX);
	int err;

	if (length >= prefix && memcmp(text, WIRE_DPDK_PREFIX, prefix) == 0) {
		err = wire_devargs_parse(text, length, ret_error, ret_args);
		if (err == 0)
			*ret_kind = SOFT_WIRE_DPDK;
		return err;
	}
	if (!text_equals_word(text, length, "udp") && !text_equals_word(text, length, "memory"))
		return parse_fail(
			ret_error, -EINVAL, text, length, "is not a wire; use udp or dpdk:DEVARGS"
		);
	*ret_kind = text[0] == 'u' ? SOFT_WIRE_UDP : SOFT_WIRE_MEMORY;
	ret_args[0] = '\0';
	return 0;
}

// Return true for multicast and IPv4 broadcast: a socket can bind to them but not send from them.
static bool address_is_group(const struct sock_addr *address) {
	static const uint8_t broadcast[4] = {255, 255, 255, 255};

	if (address->family == SOCK_ADDR_V6)
		return address->address[0] == 0xff;
	return (address->address[0] & 0xf0) == 0xe0 ||
	       memcmp(address->address, broadcast, sizeof(broadcast)) == 0;
}

int soft_address_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	struct sock_addr *ret_address
) {
	struct sock_addr address;
	int err = sock_addr_parse_host(text, length, ret_error, &address);

	if (err != 0)
		return err;
	if (sock_addr_is_any(&address))
		return parse_fail(
			ret_error, -EINVAL, text, length,
			"is the wildcard address; give the address of one interface"
		);
	if (address_is_group(&address))
		return parse_fail(
			ret_error, -EINVAL, text, length,
			"is a multicast or broadcast address; give the address of one interface"
		);
	*ret_address = address;
	return 0;
}
