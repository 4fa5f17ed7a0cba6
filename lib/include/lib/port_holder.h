// SPDX-License-Identifier: BSD-3-Clause
// Finds the process that occupies a port. Reads /proc; use it at start only. Any thread.
#pragma once

#include <lib/sockaddr.h>

enum port_protocol {
	PORT_TCP, // listening sockets
	PORT_UDP, // bound sockets
};

enum port_holder_kind {
	PORT_HOLDER_NONE,	 // the port is free by now
	PORT_HOLDER_PROCESS,	 // a process: see command and pid
	PORT_HOLDER_NOT_VISIBLE, // none of the visible processes; others are not visible
	// All processes are visible and none has it: the kernel, or another container.
	PORT_HOLDER_KERNEL,
};

struct port_holder {
	enum port_holder_kind kind;
	uint32_t pid;
	char command[32];
};

void port_holder_find(
	enum port_protocol protocol, const struct sock_addr *address, struct port_holder *ret_holder
);

// Format a holder: "tocsind, process 4711", "a process of another user", "the kernel or a process
// of another container", "no process: the port is free now".
#define PORT_HOLDER_TEXT_BYTES 64
void port_holder_format(const struct port_holder *holder, char text[static PORT_HOLDER_TEXT_BYTES]);
