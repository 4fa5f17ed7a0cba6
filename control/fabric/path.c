// SPDX-License-Identifier: BSD-3-Clause
// Publishes paths to workers: a path appears when its pair enters the lane, and is withdrawn before
// the pair leaves.
#include "fabric/inside.h"
#include "fabric/probing.h"

#include <lib/container.h>
#include <lib/must.h>
#include <lib/rcu_thread.h>

#include <errno.h>
#include <sys/epoll.h>

#define PUBLISH_RETRY_NS (5 * RAS_NS_PER_MS)

static bool pair_is_leaving(const struct fabric_pair *fabric_pair) {
	return fabric_pair->stage == FABRIC_PAIR_LEAVING ||
	       fabric_pair->stage == FABRIC_PAIR_DRAINING || fabric_pair->stage == FABRIC_PAIR_OUT;
}

// Clear the paths that could not be cleared earlier for lack of memory.
static int clear_leaving_paths(struct fabric *fabric) {
	for (struct fabric_pair *fabric_pair = fabric->fabric_pairs; fabric_pair != NULL;
	     fabric_pair = fabric_pair->next) {
		if (!pair_is_leaving(fabric_pair) || fabric_pair->path == FABRIC_PATH_NONE)
			continue;
		if (path_table_clear(fabric->config.paths, fabric_pair->path) != 0)
			return -ENOMEM;
		fabric_pair->path = FABRIC_PATH_NONE;
		fabric->counters.paths--;
	}
	return 0;
}

// Publish all changes so far. Without memory, or if readers hold too many versions, try again
// later.
static void publish_changes(struct fabric *fabric) {
	uint64_t version = 0;
	int err = clear_leaving_paths(fabric);

	if (err == 0) {
		// The control thread is a registered RCU reader. It is online only during this
		// call.
		rcu_thread_online(loop_clock_ns(fabric->loop));
		err = path_table_publish(fabric->config.paths, &version);
		rcu_thread_offline();
		if (err == 0)
			fabric->counters.paths_published++;
		else
			fabric->counters.paths_refused++;
	}
	if (err != 0) {
		must(loop_timer_set(
			     fabric->loop, &fabric->publish_retry,
			     loop_now_ns(fabric->loop) + PUBLISH_RETRY_NS
		     ) == 0);
		return;
	}
	for (struct fabric_pair *fabric_pair = fabric->fabric_pairs; fabric_pair != NULL;
	     fabric_pair = fabric_pair->next) {
		if (pair_is_leaving(fabric_pair) && fabric_pair->version == UINT64_MAX)
			fabric_pair->version = version;
	}
	// The caller may be the pairing, so the pairs are advanced in a deferred job.
	loop_defer(fabric->loop, &fabric->advance_fabric_pairs);
}

static void publish_retry(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	publish_changes(container_of(timer, struct fabric, publish_retry));
}

static void advance_fabric_pairs(struct loop_job *job) {
	struct fabric *fabric = container_of(job, struct fabric, advance_fabric_pairs);

	fabric_pairs_advance(fabric, path_table_oldest_in_use(fabric->config.paths));
}

static void on_table_settled(struct loop_source *source, uint32_t events) {
	struct fabric *fabric = container_of(source, struct fabric, settled);

	(void)events;
	fabric_pairs_advance(fabric, path_table_oldest_in_use(fabric->config.paths));
}

int path_publish(struct fabric_pair *fabric_pair) {
	struct fabric *fabric = fabric_pair->fabric;
	const struct pairing_end *theirs = &fabric_pair->theirs;
	struct path_row row = {
		.peer = fabric_pair->peer,
		.incarnation = ras_incarnation(theirs->start, 0),
		.lane = fabric_pair->nic->parts.lane,
		.remote_address = theirs->pulse.address,
		.remote_key = theirs->pulse.key,
		.remote_length = theirs->pulse.layout == PULSE_LAYOUT ? PULSE_BYTES : 0,
		.pair = pair_slot(fabric_pair->pair),
		.generation = fabric_pair->generation,
		.flow_label = fabric_pair->flow_label,
		.peer_slot = RAS_NO_SLOT, // for an unknown peer
		.traffic_class = theirs->traffic_class,
		.in_process = theirs->responder == DEVICE_RESPONDER_IN_PROCESS,
	};
	struct ras_peer peer;
	uint32_t slot = 0;
	int err;

	if (ras_peer_find(overlay_ras(fabric->overlay), fabric_pair->peer, &peer) == 0)
		row.peer_slot = peer.slot;
	while (slot < PATH_TABLE_ROWS_MAX && path_table_next_row(fabric->config.paths, slot) != NULL
	)
		slot++;
	if (slot == PATH_TABLE_ROWS_MAX)
		return -ENOSPC;
	err = path_table_set(fabric->config.paths, slot, &row);
	if (err != 0)
		return err;
	fabric_pair->path = slot;
	fabric->counters.paths++;
	publish_changes(fabric);
	probing_pass_soon(fabric);
	return 0;
}

void path_withdraw(struct fabric_pair *fabric_pair) {
	fabric_pair->version = fabric_pair->path == FABRIC_PATH_NONE ? 0 : UINT64_MAX;
	probing_pair_withdrawn(fabric_pair->fabric, fabric_pair);
	publish_changes(fabric_pair->fabric);
}

void paths_init(struct fabric *fabric) {
	fabric->publish_retry.expired = publish_retry;
	fabric->advance_fabric_pairs.run = advance_fabric_pairs;
	fabric->settled = (struct loop_source){
		.fd = path_table_fd(fabric->config.paths),
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = on_table_settled,
	};
}

int paths_start(struct fabric *fabric) {
	return loop_add(fabric->loop, &fabric->settled);
}

void paths_stop(struct fabric *fabric) {
	loop_remove(&fabric->settled);
	loop_timer_cancel(fabric->loop, &fabric->publish_retry);
	loop_undefer(fabric->loop, &fabric->advance_fabric_pairs);
}
