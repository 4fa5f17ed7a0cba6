// SPDX-License-Identifier: BSD-3-Clause
// Opens the socket of the HTTP server, and recognizes clients of this machine.
#include "feeds/http/http_listen.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <ifaddrs.h>
#include <stddef.h>
#include <sys/socket.h>

#define BACKLOG 64
// A client that does not read holds this much of kernel memory, not the megabytes that the kernel
// would grow to.
#define SEND_BUFFER_BYTES (128 * 1024)

int http_listen(const struct sock_addr *address, int *ret_fd) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(address, &storage);
	const int on = 1, send_bytes = SEND_BUFFER_BYTES;
	scoped_fd int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
		return neg_errno();
	if (storage.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0)
		return neg_errno();
	// Connections inherit the size.
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) != 0)
		return neg_errno();
	if (bind(fd, (const struct sockaddr *)&storage, length) != 0 || listen(fd, BACKLOG) != 0)
		return neg_errno();
	*ret_fd = scoped_release_fd(&fd);
	return 0;
}

// Return whether an address belongs to this machine. A local client of any of this machine's
// addresses, such as a liveness probe, has that address as its source. getifaddrs() runs only for
// clients that no rule allows.
bool http_address_is_local(const struct sock_addr *addr) {
	struct sock_addr host, wanted = sock_addr_ip_only(addr);
	struct ifaddrs *all;
	bool found = false;

	if (sock_addr_is_loopback(addr))
		return true;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
		socklen_t length = sizeof(struct sockaddr_in6);

		if (one->ifa_addr == NULL)
			continue;
		if (one->ifa_addr->sa_family == AF_INET)
			length = sizeof(struct sockaddr_in);
		if (sock_addr_from_sockaddr(one->ifa_addr, length, &host) != 0)
			continue;
		host = sock_addr_ip_only(&host);
		found = sock_addr_equal(&host, &wanted);
	}
	freeifaddrs(all);
	return found;
}
