// SPDX-License-Identifier: BSD-3-Clause
// Examines GIDs and chooses one of a port's.
#include <dataplane/gid.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

bool gid_is_zero(const union ibv_gid *gid) {
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

bool gid_is_ipv4(const union ibv_gid *gid) {
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

bool gid_is_loopback(const union ibv_gid *gid) {
	return gid_is_ipv4(gid) && gid->raw[12] == 127;
}

enum gid_scope gid_scope(const union ibv_gid *gid) {
	const uint8_t *v4 = gid->raw + 12;
	struct in6_addr address;

	if (gid_is_ipv4(gid)) {
		if (v4[0] == 0 || v4[0] >= 224)
			return GID_SCOPE_NONE;
		return v4[0] == 169 && v4[1] == 254 ? GID_SCOPE_LINK : GID_SCOPE_GLOBAL;
	}
	memcpy(&address, gid->raw, sizeof(address));
	if (IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_IS_ADDR_LOOPBACK(&address) ||
	    IN6_IS_ADDR_MULTICAST(&address))
		return GID_SCOPE_NONE;
	return IN6_IS_ADDR_LINKLOCAL(&address) ? GID_SCOPE_LINK : GID_SCOPE_GLOBAL;
}

const char *gid_format(const union ibv_gid *gid, char text[static GID_TEXT_MAX + 1]) {
	if (gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid->raw + 12, text, GID_TEXT_MAX + 1);
	else
		inet_ntop(AF_INET6, gid->raw, text, GID_TEXT_MAX + 1);
	return text;
}

const char *gid_type_name(uint32_t type) {
	static const char *const names[] = {
		[IBV_GID_TYPE_IB] = "InfiniBand",
		[IBV_GID_TYPE_ROCE_V1] = "RoCE v1",
		[IBV_GID_TYPE_ROCE_V2] = "RoCE v2",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

// Rank a GID; the lowest rank wins. Nodes with addresses of both families must all choose the same
// one. Global addresses prefer IPv4; link-local ones prefer IPv6, which every port has
// automatically.
static int gid_rank(const union ibv_gid *gid) {
	bool is_global = gid_scope(gid) == GID_SCOPE_GLOBAL;

	return (is_global ? 0 : 2) + (gid_is_ipv4(gid) == is_global ? 0 : 1);
}

// Return true if `a` is preferred to `b`; both are of one port.
static bool gid_entry_is_better(
	const struct ibv_gid_entry *a, const struct ibv_gid_entry *b, const union ibv_gid *before
) {
	int rank_a = gid_rank(&a->gid), rank_b = gid_rank(&b->gid);
	bool was_a = memcmp(&a->gid, before, sizeof(*before)) == 0;
	bool was_b = memcmp(&b->gid, before, sizeof(*before)) == 0;

	if (rank_a != rank_b)
		return rank_a < rank_b;
	if (was_a != was_b)
		return was_a;
	return a->gid_index < b->gid_index;
}

const struct ibv_gid_entry *gid_choose(
	const struct ibv_gid_entry *entries,
	uint32_t count,
	uint8_t port,
	const union ibv_gid *before
) {
	const struct ibv_gid_entry *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct ibv_gid_entry *entry = &entries[i];

		if (entry->port_num != port || entry->gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    gid_scope(&entry->gid) == GID_SCOPE_NONE)
			continue;
		if (best == NULL || gid_entry_is_better(entry, best, before))
			best = entry;
	}
	return best;
}

const struct ibv_gid_entry *
gid_entry_at(const struct ibv_gid_entry *entries, uint32_t count, uint8_t port, uint32_t index) {
	for (uint32_t i = 0; i < count; i++) {
		if (entries[i].port_num == port && entries[i].gid_index == index)
			return &entries[i];
	}
	return NULL;
}
