// SPDX-License-Identifier: BSD-3-Clause
// Networks in CIDR notation.
#include "sockaddr_text.h"

#include <lib/cidr.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint32_t family_bits(uint8_t family) {
	return family == SOCK_ADDR_V4 ? 32 : 128;
}

static int cidr_read_address(const char *text, size_t length, struct cidr *ret_cidr) {
	char host[INET6_ADDRSTRLEN];
	struct cidr cidr = {0};

	if (length >= sizeof(host) || memchr(text, '\0', length) != NULL)
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, cidr.address) == 1)
		cidr.family = SOCK_ADDR_V4;
	else if (inet_pton(AF_INET6, host, cidr.address) == 1)
		cidr.family = SOCK_ADDR_V6;
	else
		return -EINVAL;
	*ret_cidr = cidr;
	return 0;
}

int cidr_parse(const char *text, size_t length, struct parse_error *error, struct cidr *ret_cidr) {
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const char *slash = memrchr(text, '/', length);
	char block[CIDR_TEXT_BYTES];
	bool has_host_bits = false;
	struct cidr cidr;
	uint32_t bits;
	int err;

	if (slash == NULL || cidr_read_address(text, (size_t)(slash - text), &cidr) != 0)
		return parse_fail(
			error, -EINVAL, text, length,
			"is not an address block such as 10.0.0.0/8 or 2001:db8::/32"
		);
	err = endpoint_text_read_number(
		slash + 1, (size_t)(text + length - slash) - 1, family_bits(cidr.family), &bits
	);
	if (err != 0)
		return parse_fail(
			error, err, text, length, "has no valid prefix length: 0 to %u is allowed",
			family_bits(cidr.family)
		);
	cidr.bits = (uint8_t)bits;
	for (uint32_t bit = bits; bit < 128; bit++) {
		uint8_t mask = (uint8_t)(0x80U >> bit % 8);

		has_host_bits |= (cidr.address[bit / 8] & mask) != 0;
		cidr.address[bit / 8] &= (uint8_t)~mask;
	}
	if (has_host_bits) {
		cidr_format(&cidr, block);
		return parse_fail(
			error, -EINVAL, text, length,
			"has bits set beyond the prefix: the block is %s", block
		);
	}
	if (cidr.family == SOCK_ADDR_V6 && cidr.bits >= 8 * sizeof(mapped) &&
	    memcmp(cidr.address, mapped, sizeof(mapped)) == 0) {
		cidr.family = SOCK_ADDR_V4;
		cidr.bits = (uint8_t)(cidr.bits - 8 * sizeof(mapped));
		memcpy(cidr.address, cidr.address + sizeof(mapped), 4);
		memset(cidr.address + 4, 0, sizeof(cidr.address) - 4);
	}
	*ret_cidr = cidr;
	return 0;
}

void cidr_format(const struct cidr *cidr, char text[static CIDR_TEXT_BYTES]) {
	size_t used;

	inet_ntop(
		cidr->family == SOCK_ADDR_V4 ? AF_INET : AF_INET6, cidr->address, text,
		CIDR_TEXT_BYTES
	);
	used = strlen(text);
	snprintf(text + used, CIDR_TEXT_BYTES - used, "/%u", cidr->bits);
}

bool cidr_contains(const struct cidr *cidr, const struct sock_addr *addr) {
	struct sock_addr first = {.family = cidr->family, .scope_id = addr->scope_id};

	memcpy(first.address, cidr->address, sizeof(first.address));
	return sock_addr_same_prefix(&first, addr, cidr->bits);
}
