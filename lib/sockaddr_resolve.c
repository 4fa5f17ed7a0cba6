// SPDX-License-Identifier: BSD-3-Clause
// Resolution of host names.
#include "hostlist_item.h"
#include "sockaddr_text.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <netdb.h>
#include <string.h>

#define HOST_NAME_LENGTH_MAX 253 // RFC 1035, as text without the dot of the root

static bool is_digit(char byte) {
	return byte >= '0' && byte <= '9';
}

static bool is_number(const char *label, size_t length) {
	bool hexadecimal = length > 1 && label[0] == '0' && (label[1] | 0x20) == 'x';

	for (size_t i = hexadecimal ? 2 : 0; i < length; i++) {
		char lower = (char)(label[i] | 0x20);

		if (!is_digit(label[i]) && !(hexadecimal && lower >= 'a' && lower <= 'f'))
			return false;
	}
	return true;
}

// Return true if the text may be a host name. A name whose last label is a number is a mistyped
// address (300.1.2.3, 10.1, 0x7f000001). No such top-level domain exists, and the resolver would
// read some of them as numbers.
static bool is_host_name(const char *name, size_t length) {
	const char *dot = memrchr(name, '.', length);
	const char *label = dot == NULL ? name : dot + 1;

	if (length == 0 || length > HOST_NAME_LENGTH_MAX || name[0] == '.' || name[0] == '-')
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!hostlist_is_name_byte(name[i]))
			return false;
	}
	return label == name + length || !is_number(label, (size_t)(name + length - label));
}

// Find the first usable address; of one family only, unless family is SOCK_ADDR_NONE.
static bool
find_usable(const struct addrinfo *list, enum sock_addr_family family, struct sock_addr *ret_addr) {
	struct sockaddr_storage storage;
	struct sock_addr addr;
	socklen_t length;

	for (const struct addrinfo *info = list; info != NULL; info = info->ai_next) {
		scoped_fd int fd = -1;

		if (sock_addr_from_sockaddr(info->ai_addr, info->ai_addrlen, &addr) != 0)
			continue;
		if (family != SOCK_ADDR_NONE && addr.family != family)
			continue;
		// An address is usable if a route exists. Connecting a datagram socket looks up a
		// route and sends nothing.
		length = sock_addr_to_sockaddr(&addr, &storage);
		fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&storage, length) == 0) {
			*ret_addr = addr;
			return true;
		}
	}
	return false;
}

static int resolver_errno(int code) {
	switch (code) {
	case EAI_NONAME:
	case EAI_NODATA:
		return -ENOENT;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return neg_errno();
	default:
		return -EIO;
	}
}

int sock_addr_resolve(
	const char *text,
	size_t length,
	int32_t default_port,
	enum sock_addr_family prefer,
	struct parse_error *error,
	struct sock_addr *ret_addr
) {
	static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct endpoint_text endpoint;
	struct addrinfo *list = NULL;
	char name[HOST_NAME_LENGTH_MAX + 1];
	bool found;
	int code;
	int err;

	err = endpoint_text_split(text, length, default_port, error, &endpoint);
	if (err != 0)
		return err;
	err = endpoint_text_read_host(&endpoint, ret_addr);
	if (err == 0)
		return 0;
	if (err != -EINVAL || endpoint.bracketed ||
	    !is_host_name(endpoint.host, endpoint.host_length))
		return endpoint_text_fail(error, err, text, length);

	memcpy(name, endpoint.host, endpoint.host_length);
	name[endpoint.host_length] = '\0';
	code = getaddrinfo(name, NULL, &hints, &list);
	if (code != 0) {
		err = resolver_errno(code);
		return parse_fail(
			error, err, text, length, "does not resolve: %s", gai_strerror(code)
		);
	}
	found = find_usable(list, prefer, ret_addr) ||
		(prefer != SOCK_ADDR_NONE && find_usable(list, SOCK_ADDR_NONE, ret_addr));
	freeaddrinfo(list);
	if (!found)
		return parse_fail(
			error, -ENETUNREACH, text, length,
			"resolves, but this machine has no route to any of its addresses"
		);
	ret_addr->port = endpoint.port;
	return 0;
}
