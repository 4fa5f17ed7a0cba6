// SPDX-License-Identifier: BSD-3-Clause
// GIDs: what an address in one says, and which of a port's is the one for pairs. Pure.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stdint.h>

#define GID_TEXT_MAX 45 // as inet_ntop() writes it, without the end

enum gid_scope {
	GID_SCOPE_GLOBAL, // IPv4 (also of loopback and private networks), and IPv6 but link-local
	GID_SCOPE_LINK,	  // fe80::/10, 169.254.0.0/16
	GID_SCOPE_NONE,	  // nobody's address: unspecified, loopback of IPv6, multicast, broadcast
};

bool gid_is_zero(const union ibv_gid *gid);
// An IPv4-mapped address: RoCE v2 sends such packets as IPv4.
bool gid_is_ipv4(const union ibv_gid *gid);
// 127.0.0.0/8: only software devices of one host have such, and reach each other alone.
bool gid_is_loopback(const union ibv_gid *gid);
enum gid_scope gid_scope(const union ibv_gid *gid);
// "10.0.0.1" or "fe80::1". Returns text.
const char *gid_format(const union ibv_gid *gid, char text[static GID_TEXT_MAX + 1]);

// "InfiniBand", "RoCE v1", "RoCE v2", "unknown".
const char *gid_type_name(uint32_t type);

// Of the entries of `port` those of RoCE v2: global before link-local, IPv4 before IPv6 if they are
// global; of equals `before` if it is among them, which keeps the address when indexes move, else
// the lowest index. NULL if none will do.
const struct ibv_gid_entry *gid_choose(
	const struct ibv_gid_entry *entries,
	uint32_t count,
	uint8_t port,
	const union ibv_gid *before
);
// The entry of an index, NULL if the table has none there.
const struct ibv_gid_entry *
gid_at(const struct ibv_gid_entry *entries, uint32_t count, uint8_t port, uint32_t index);
