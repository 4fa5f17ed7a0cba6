// SPDX-License-Identifier: BSD-3-Clause
// Prefetch of what the next input will touch, see ras_prefetch_frame(). Nothing here changes state;
// only timing depends on it.
#include "core/core.h"

#define LINE_BYTES 64

static void cache_prefetch(const void *object, size_t size) {
	for (size_t at = 0; at < size; at += LINE_BYTES)
		__builtin_prefetch((const char *)object + at);
}

// Prefetch the fields of the instance that every input reads or counts.
static void instance_prefetch(const struct ras *ras) {
	cache_prefetch(ras, offsetof(struct ras, ops));
	__builtin_prefetch(&ras->counters);
	__builtin_prefetch(&ras->peers.digest);
}

void ras_prefetch_frame(const struct ras *ras, uint32_t handle, uint32_t step) {
	uint32_t index = handle & ((1u << CONN_INDEX_BITS) - 1);
	const struct conn *conn;

	if (step == 0) {
		instance_prefetch(ras);
		return;
	}
	if (index >= ras->conns.count)
		return;
	if (step == 1) {
		__builtin_prefetch(&ras->conns.table[index]);
		relay_prefetch(ras);
		__builtin_prefetch(ras->collective);
		return;
	}
	conn = ras->conns.table[index];
	if (conn == NULL)
		return;
	if (step == 2)
		cache_prefetch(conn, sizeof(*conn));
	else if (conn->link != NULL)
		cache_prefetch(conn->link, offsetof(struct link, rtt));
}

void ras_prefetch_tick(const struct ras *ras, uint32_t step) {
	if (step == 0) {
		instance_prefetch(ras);
	} else if (step == 1) {
		cache_prefetch(ras->links.table, ras->links.count * sizeof(struct link *));
		relay_prefetch(ras);
		__builtin_prefetch(ras->collective);
	} else if (step == 2) {
		for (uint32_t n = 0; n < ras->links.count; n++)
			__builtin_prefetch(ras->links.table[n]);
	}
}
