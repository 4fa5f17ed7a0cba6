// SPDX-License-Identifier: BSD-3-Clause
// Paths that this agent reads, in a hash table by subject.
#include "exchange_parts.h"

#include <errno.h>
#include <string.h>

#define BUCKETS_FIRST 16

static uint32_t subject_bucket(const struct observation_exchange *exchange, uint64_t subject) {
	return (uint32_t)((subject * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
	       (exchange->bucket_count - 1);
}

struct own_path *
own_path_find(struct observation_exchange *exchange, const struct observation *observation) {
	uint32_t at;

	if (exchange->bucket_count == 0)
		return NULL;
	at = exchange->buckets[subject_bucket(exchange, observation->subject)];
	for (; at != 0; at = exchange->paths[at - 1].next) {
		struct own_path *path = &exchange->paths[at - 1];

		if (path->observation.subject == observation->subject &&
		    strcmp(path->observation.device, observation->device) == 0 &&
		    strcmp(path->observation.peer_device, observation->peer_device) == 0)
			return path;
	}
	return NULL;
}

static void own_paths_rehash(struct observation_exchange *exchange) {
	memset(exchange->buckets, 0, exchange->bucket_count * sizeof(*exchange->buckets));
	for (uint32_t n = 0; n < exchange->path_count; n++) {
		uint32_t bucket = subject_bucket(exchange, exchange->paths[n].observation.subject);

		exchange->paths[n].next = exchange->buckets[bucket];
		exchange->buckets[bucket] = n + 1;
	}
}

int own_path_add(
	struct observation_exchange *exchange,
	const struct observation *observation,
	struct own_path **ret_path
) {
	uint32_t buckets = exchange->bucket_count > 0 ? 2 * exchange->bucket_count : BUCKETS_FIRST;
	struct own_path *path;
	uint32_t bucket;
	int err;

	err = array_grow(
		&exchange->memory, (void **)&exchange->paths, &exchange->path_capacity,
		exchange->path_count + 1, sizeof(*exchange->paths)
	);
	if (err != 0)
		return err;
	if (exchange->path_count >= exchange->bucket_count) {
		uint32_t *made =
			exchange->memory.allocate(exchange->memory.ctx, buckets * sizeof(*made));

		if (made == NULL)
			return -ENOMEM;
		array_release(
			&exchange->memory, exchange->buckets, exchange->bucket_count, sizeof(*made)
		);
		exchange->buckets = made;
		exchange->bucket_count = buckets;
		own_paths_rehash(exchange);
	}
	bucket = subject_bucket(exchange, observation->subject);
	path = &exchange->paths[exchange->path_count];
	*path = (struct own_path
	){.observation = *observation, .due_ns = RAS_NEVER, .next = exchange->buckets[bucket]};
	exchange->buckets[bucket] = ++exchange->path_count;
	*ret_path = path;
	return 0;
}

uint32_t own_paths_bucket(const struct observation_exchange *exchange, uint64_t subject) {
	return exchange->bucket_count > 0 ? exchange->buckets[subject_bucket(exchange, subject)]
					  : 0;
}

static void own_path_drop(struct observation_exchange *exchange, uint32_t at) {
	exchange->paths[at] = exchange->paths[--exchange->path_count];
}

void observation_exchange_forget(struct observation_exchange *exchange, uint64_t subject) {
	bool gone = false;

	for (uint32_t n = exchange->path_count; n-- > 0;) {
		if (exchange->paths[n].observation.subject != subject)
			continue;
		own_path_drop(exchange, n);
		gone = true;
	}
	if (gone)
		own_paths_rehash(exchange);
}

void own_paths_expire(struct observation_exchange *exchange, uint64_t now_ns) {
	bool gone = false;

	for (uint32_t n = exchange->path_count; n-- > 0;) {
		const struct own_path *path = &exchange->paths[n];

		if (now_ns < path->seen_ns + OWN_PATH_KEEP_NS || path->due_ns != RAS_NEVER ||
		    (own_path_reported_fault(path) && now_ns < path->told_ns + OWN_FAULT_KEEP_NS))
			continue;
		own_path_drop(exchange, n);
		gone = true;
	}
	if (gone)
		own_paths_rehash(exchange);
}
