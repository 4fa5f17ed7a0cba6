// SPDX-License-Identifier: BSD-3-Clause
// GIDs: interpretation of their addresses, and choice of a port's GID for pairs. Pure functions.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stdint.h>

#define GID_TEXT_MAX 45 // longest output of inet_ntop(), without the NUL

enum gid_scope {
	// IPv4 (including loopback and private networks), and IPv6 except link-local
	GID_SCOPE_GLOBAL,
	GID_SCOPE_LINK, // fe80::/10, 169.254.0.0/16
	GID_SCOPE_NONE, // no host address: unspecified, IPv6 loopback, multicast, broadcast
};

bool gid_is_zero(const union ibv_gid *gid);
// Return true for an IPv4-mapped address; RoCE v2 sends such packets as IPv4.
bool gid_is_ipv4(const union ibv_gid *gid);
// Return true for 127.0.0.0/8. Only software devices of one host have such addresses, and they
// reach only each other.
bool gid_is_loopback(const union ibv_gid *gid);
enum gid_scope gid_scope(const union ibv_gid *gid);
// Write "10.0.0.1" or "fe80::1" to text and return it.
const char *gid_format(const union ibv_gid *gid, char text[static GID_TEXT_MAX + 1]);

// Return "InfiniBand", "RoCE v1", "RoCE v2" or "unknown".
const char *gid_type_name(uint32_t type);

// Choose among the RoCE v2 entries of `port`: global before link-local, and IPv4 before IPv6 if
// both are global. Among equal entries prefer the address `before`, which keeps it when indexes
// move, else the lowest index. Returns NULL if no entry is usable.
const struct ibv_gid_entry *gid_choose(
	const struct ibv_gid_entry *entries,
	uint32_t count,
	uint8_t port,
	const union ibv_gid *before
);
// Return the entry with this index, or NULL if the table has none.
const struct ibv_gid_entry *
gid_entry_at(const struct ibv_gid_entry *entries, uint32_t count, uint8_t port, uint32_t index);
