// SPDX-License-Identifier: BSD-3-Clause
// Where the Unix socket of clients is: [client] socket, or in the directory that systemd made for
// us; else in /run/tocsin for root, or below XDG_RUNTIME_DIR.
#pragma once

#include "agent.h"

#define SOCKET_PATH_BYTES 128

struct config;

// -ENOENT: no environment says where, with what would help.
int socket_path_find(
	const struct config *config,
	char ret_path[static SOCKET_PATH_BYTES],
	char ret_detail[static AGENT_DETAIL_BYTES]
);
// The same, and makes the directory if it is ours. -errno of that, in words.
int socket_path_make(
	const struct config *config,
	char ret_path[static SOCKET_PATH_BYTES],
	char ret_detail[static AGENT_DETAIL_BYTES]
);
// Whether the start makes the socket's directory where it is missing.
bool socket_path_is_made(const struct config *config);
