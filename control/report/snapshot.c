// SPDX-License-Identifier: BSD-3-Clause
// One pointer that the control thread swaps. Who could still hold what was behind it: readers that
// were online at the swap, until they are quiescent; nobody else keeps one.
#include <control/snapshot.h>
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct version {
	struct snapshot snapshot; // what readers see
	struct snapshots *owner;
	struct rcu_head rcu;
};

struct snapshots {
	struct version *current;  // control: rw, readers: ro, by RCU
	_Atomic uint32_t waiting; // control and reclaimer: rw
};

static struct version *version_create(struct snapshots *owner, const struct snapshot *snapshot) {
	struct version *version = calloc(1, sizeof(*version));

	if (version == NULL)
		return NULL;
	version->snapshot = *snapshot;
	version->owner = owner;
	return version;
}

int snapshots_create(struct snapshots **ret_snapshots) {
	const struct snapshot empty = {.at_ns = 0};
	struct snapshots *snapshots = calloc(1, sizeof(*snapshots));

	if (snapshots == NULL)
		return -ENOMEM;
	snapshots->current = version_create(snapshots, &empty);
	if (snapshots->current == NULL) {
		free(snapshots);
		return -ENOMEM;
	}
	*ret_snapshots = snapshots;
	return 0;
}

struct snapshots *snapshots_destroy(struct snapshots *snapshots) {
	if (snapshots == NULL)
		return NULL;
	rcu_reclaimer_drain();
	free(snapshots->current);
	free(snapshots);
	return NULL;
}

// 3. free: on the reclaimer's thread. Relaxed, here and below: a number that bounds memory.
static void free_version(struct rcu_head *head) {
	struct version *version = caa_container_of(head, struct version, rcu);

	atomic_fetch_sub_explicit(&version->owner->waiting, 1, memory_order_relaxed);
	free(version);
}

int snapshots_publish(struct snapshots *snapshots, const struct snapshot *snapshot) {
	struct version *fresh, *stale;

	if (atomic_load_explicit(&snapshots->waiting, memory_order_relaxed) >=
	    SNAPSHOTS_WAITING_MAX)
		return -EAGAIN;
	fresh = version_create(snapshots, snapshot);
	if (fresh == NULL)
		return -ENOMEM;
	// 1. swap   2. wait until nobody can hold the old one (call_rcu)   3. free_version()
	stale = rcu_xchg_pointer(&snapshots->current, fresh);
	atomic_fetch_add_explicit(&snapshots->waiting, 1, memory_order_relaxed);
	urcu_qsbr_call_rcu(&stale->rcu, free_version);
	return 0;
}

const struct snapshot *snapshots_current(const struct snapshots *snapshots) {
	return &rcu_dereference(snapshots->current)->snapshot;
}
