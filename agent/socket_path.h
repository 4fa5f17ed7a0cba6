// SPDX-License-Identifier: BSD-3-Clause
// Path of the Unix socket for clients. [client] socket has precedence, then the runtime directory
// made by systemd. Otherwise root uses /run/tocsin, and other users a directory below
// XDG_RUNTIME_DIR.
#pragma once

#include "agent.h"

#define SOCKET_PATH_BYTES 128

// Return the path. Returns 0, or -ENOENT with a hint in ret_detail if the environment gives no
// directory.
int socket_path_find(
	const struct agent_settings *settings,
	char ret_path[static SOCKET_PATH_BYTES],
	char ret_detail[static AGENT_DETAIL_BYTES]
);
// Return the path and create its directory if the agent owns it. Returns 0, or -errno with a
// message in ret_detail.
int socket_path_make(
	const struct agent_settings *settings,
	char ret_path[static SOCKET_PATH_BYTES],
	char ret_detail[static AGENT_DETAIL_BYTES]
);
// Return true if a missing directory of the socket is created at the start.
bool socket_path_is_made(const struct agent_settings *settings);
