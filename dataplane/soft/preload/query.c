// SPDX-License-Identifier: BSD-3-Clause
// Queries of an open device: its limits, port, GIDs and P_Keys.
#include "preload.h"

#include <endian.h>
#include <string.h>

#define GIDS_MAX 64

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
	if (!preload_owns_context(context))
		return REAL(ibv_query_device)(context, attr);
	return return_positive_errno(
		PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.query_device(context, attr))
	);
}

// Old entry point for programs built before the attributes grew; their struct ends before
// port_cap_flags2.
int ibv_query_port(
	struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat
) {
	struct ibv_port_attr attr;
	int err;

	if (!preload_owns_context(context))
		return REAL(ibv_query_port)(context, port, compat);
	err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.query_port(context, port, &attr));
	if (err == 0)
		memcpy(compat, &attr, offsetof(struct ibv_port_attr, port_cap_flags2));
	return return_positive_errno(err);
}

// Look up a GID. Returns -EINVAL (no such port or index) or -ENODATA (empty entry).
static int gid_find_entry(
	struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *ret_entry
) {
	struct ibv_gid_entry entries[GIDS_MAX];
	struct ibv_port_attr attr;
	uint32_t count;
	int err;

	if (preload_in_forked_child())
		return -EIO;
	if (port > UINT8_MAX)
		return -EINVAL;
	err = verbs_calls_soft.query_port(context, (uint8_t)port, &attr);
	if (err != 0)
		return err;
	if (index >= (uint32_t)attr.gid_tbl_len)
		return -EINVAL;
	err = verbs_calls_soft.query_gids(context, entries, GIDS_MAX, &count);
	if (err != 0)
		return err;
	for (uint32_t n = 0; n < count; n++) {
		if (entries[n].port_num == port && entries[n].gid_index == index) {
			*ret_entry = entries[n];
			return 0;
		}
	}
	return -ENODATA;
}

// An empty entry reads as zeros.
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid) {
	struct ibv_gid_entry entry = {0};
	int err;

	if (!preload_owns_context(context))
		return REAL(ibv_query_gid)(context, port, index, gid);
	err = index < 0 ? -EINVAL : gid_find_entry(context, port, (uint32_t)index, &entry);
	if (err != 0 && err != -ENODATA)
		return return_minus_one(err);
	*gid = entry.gid;
	return 0;
}

int _ibv_query_gid_ex(
	struct ibv_context *context,
	uint32_t port,
	uint32_t index,
	struct ibv_gid_entry *entry,
	uint32_t flags,
	size_t entry_bytes
) {
	struct ibv_gid_entry found;
	int err;

	if (!preload_owns_context(context))
		return REAL(_ibv_query_gid_ex)(context, port, index, entry, flags, entry_bytes);
	if (flags != 0)
		return return_positive_errno(-EOPNOTSUPP);
	if (entry_bytes < sizeof(found))
		return return_positive_errno(-EINVAL);
	err = gid_find_entry(context, port, index, &found);
	if (err == 0)
		*entry = found;
	return return_positive_errno(err);
}

// Return the number of entries, or -errno.
ssize_t _ibv_query_gid_table(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	size_t max_entries,
	uint32_t flags,
	size_t entry_bytes
) {
	uint32_t count;
	int err;

	if (!preload_owns_context(context))
		return REAL(_ibv_query_gid_table
		)(context, entries, max_entries, flags, entry_bytes);
	if (flags != 0)
		return -EOPNOTSUPP;
	if (entry_bytes != sizeof(*entries))
		return -EINVAL;
	if (max_entries > UINT32_MAX)
		max_entries = UINT32_MAX;
	err = PRELOAD_UNLESS_FORKED(
		-EIO, verbs_calls_soft.query_gids(context, entries, (uint32_t)max_entries, &count)
	);
	return err != 0 ? err : (ssize_t)count;
}

// Return the type as sysfs counts it: 0 is InfiniBand or RoCE v1, 1 is RoCE v2.
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type) {
	struct ibv_gid_entry entry;
	int err;

	if (!preload_owns_context(context))
		return REAL(ibv_query_gid_type)(context, port, index, type);
	err = gid_find_entry(context, port, index, &entry);
	if (err == 0)
		*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return return_minus_one(err);
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey) {
	uint16_t found;
	int err;

	if (!preload_owns_context(context))
		return REAL(ibv_query_pkey)(context, port, index, pkey);
	if (index < 0 || index > UINT16_MAX)
		return return_minus_one(-EINVAL);
	err = PRELOAD_UNLESS_FORKED(
		-EIO, verbs_calls_soft.query_pkey(context, port, (uint16_t)index, &found)
	);
	if (err == 0)
		*pkey = htobe16(found);
	return return_minus_one(err);
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey) {
	__be16 found;

	if (!preload_owns_context(context))
		return REAL(ibv_get_pkey_index)(context, port, pkey);
	for (int index = 0; ibv_query_pkey(context, port, index, &found) == 0; index++) {
		if (found == pkey)
			return index;
	}
	return -1;
}
