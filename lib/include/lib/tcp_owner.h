// SPDX-License-Identifier: BSD-3-Clause
// Which user is at the other end of a TCP connection within this machine, by the kernel's word
// (sock_diag(7)). For fairness between users, not for what they may do: a process that passes its
// socket on keeps its name on it.
#pragma once

#include <lib/sockaddr.h>

#include <stdint.h>

// A descriptor to ask with, kept open. -errno: this kernel does not tell.
int tcp_owner_open(int *ret_fd);
// From the end that is `theirs` in its own view. The kernel answers within the call.
// -ENOENT: it is gone, or in another network namespace; or what else the kernel says.
int tcp_owner_find(
	int fd, const struct sock_addr *theirs, const struct sock_addr *ours, uint32_t *ret_uid
);
// 0: somebody listens at that address of ours, whatever a firewall makes of connects to it.
// -ENOENT: nobody does; a kernel that does not know its sockets says so of each.
int tcp_owner_listens(int fd, const struct sock_addr *at);
