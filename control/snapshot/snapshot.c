// SPDX-License-Identifier: BSD-3-Clause
// Publishes snapshots through one pointer that the control thread swaps. A reader that was online
// at the swap may hold the old snapshot until its next quiescent state. No other reader can hold
// it.
#include <control/snapshot.h>
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct version {
	struct snapshot snapshot; // the part that readers see
	struct snapshots *owner;
	struct rcu_head rcu;
};

struct snapshots {
	struct version *current;  // control thread: read and write; readers: read, by RCU
	_Atomic uint32_t waiting; // retired versions; written by control thread and reclaimer
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

// Step 3: free a version, on the reclaimer's thread. Relaxed order suffices here and below, because
// the counter only limits memory.
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
	// Step 1: swap. Step 2: wait until no reader can hold the old version (call_rcu). Step 3:
	// free_version().
	stale = rcu_xchg_pointer(&snapshots->current, fresh);
	atomic_fetch_add_explicit(&snapshots->waiting, 1, memory_order_relaxed);
	urcu_qsbr_call_rcu(&stale->rcu, free_version);
	return 0;
}

const struct snapshot *snapshots_current(const struct snapshots *snapshots) {
	return &rcu_dereference(snapshots->current)->snapshot;
}
