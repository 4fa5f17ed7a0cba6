// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes addresses and address blocks. An accepted one must survive formatting and parsing.
#include <lib/cidr.h>
#include <lib/must.h>
#include <lib/sockaddr.h>
#include <support/fuzz.h>

#include <string.h>

static void check_address(const struct sock_addr *addr) {
	char text[SOCK_ADDR_TEXT_BYTES];
	struct sockaddr_storage storage;
	struct sock_addr back;
	socklen_t length;

	sock_addr_format(addr, text);
	must(sock_addr_parse(text, strlen(text), SOCK_ADDR_PORT_NEEDED, NULL, &back) == 0);
	must(sock_addr_equal(addr, &back));
	must(sock_addr_digest(addr) == sock_addr_digest(&back));
	length = sock_addr_to_sockaddr(addr, &storage);
	must(sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &back) == 0);
	must(memcmp(addr, &back, sizeof(back)) == 0);
}

static void check_block(const struct cidr *cidr) {
	struct sock_addr first = {.family = cidr->family};
	char text[CIDR_TEXT_BYTES];
	struct cidr back;

	memcpy(first.address, cidr->address, sizeof(first.address));
	must(cidr_contains(cidr, &first));
	cidr_format(cidr, text);
	must(cidr_parse(text, strlen(text), NULL, &back) == 0);
	must(memcmp(cidr, &back, sizeof(back)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *text = (const char *)data;
	struct parse_error error;
	struct sock_addr addr;
	struct cidr cidr;

	if (sock_addr_parse(text, size, SOCK_ADDR_PORT_NEEDED, &error, &addr) == 0)
		check_address(&addr);
	if (sock_addr_parse(text, size, 4850, &error, &addr) == 0)
		check_address(&addr);
	if (sock_addr_parse_host(text, size, &error, &addr) == 0)
		check_address(&addr);
	if (cidr_parse(text, size, &error, &cidr) == 0)
		check_block(&cidr);
	return 0;
}
