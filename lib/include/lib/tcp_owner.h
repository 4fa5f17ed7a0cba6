// SPDX-License-Identifier: BSD-3-Clause
// The user at the other end of a local TCP connection, from sock_diag(7). Use this for fairness
// between users, not for access control: a process that passes on its socket remains the owner.
#pragma once

#include <lib/sockaddr.h>

#include <stdint.h>

// Open a descriptor for the queries below. Returns 0, or -errno if the kernel does not support
// sock_diag.
int tcp_owner_open(int *ret_fd);
// Find the user of the socket with local address `theirs` and peer address `ours`. The kernel
// answers within the call. Returns 0, -ENOENT (socket closed, or in another network namespace), or
// another error of the kernel.
int tcp_owner_find(
	int fd, const struct sock_addr *theirs, const struct sock_addr *ours, uint32_t *ret_uid
);
// Check if a socket listens at a local address, whatever a firewall does to connections. Returns 0,
// or -ENOENT if none does. A kernel without sock_diag for TCP also returns -ENOENT.
int tcp_owner_check_listener(int fd, const struct sock_addr *at);
