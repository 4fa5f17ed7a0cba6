// SPDX-License-Identifier: BSD-3-Clause
// Shared by the agent and its root helper: the socket and the names of programs.
#pragma once

#define ROOT_HELPER_SOCKET "/run/tocsin-root.sock" // ListenSequentialPacket= of tocsin-root.socket
#define ROOT_HELPER_WEBHOOK "health webhook"
// The program of [check NAME] is "check NAME".
