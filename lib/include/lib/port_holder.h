// SPDX-License-Identifier: BSD-3-Clause
// Who has a port that we may not have. Reads /proc, at start only; any thread.
#pragma once

#include <lib/sockaddr.h>

enum port_protocol {
	PORT_TCP, // who listens
	PORT_UDP, // who is bound
};

enum port_holder_kind {
	PORT_HOLDER_NONE,    // it is free, by now
	PORT_HOLDER_PROCESS, // command and pid say which
	PORT_HOLDER_UNSEEN,  // none of those whose files we may see
	PORT_HOLDER_KERNEL, // we may see them all, and it is none: the kernel, or another container
};

struct port_holder {
	enum port_holder_kind kind;
	uint32_t pid;
	char command[32];
};

void port_holder_find(
	enum port_protocol protocol, const struct sock_addr *address, struct port_holder *ret_holder
);

// "tocsind, process 4711", "a process of another user", "no process that can be seen", "nobody".
#define PORT_HOLDER_TEXT_BYTES 64
void port_holder_format(const struct port_holder *holder, char text[static PORT_HOLDER_TEXT_BYTES]);
