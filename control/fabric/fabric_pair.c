// SPDX-License-Identifier: BSD-3-Clause
// Pairs between the pairing (decides), the keeper (creates and destroys them) and the lane (uses
// them). Pairing operations never call back into the pairing: answers come from keepers, workers
// and deferred jobs.
#include "fabric/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>

#define CAUSE_BYTES 192
#define CUT_OFF_RETRY_NS RAS_NS_PER_SEC

// Arguments and results of a driver call. The keeper owns them until the call has ended.
struct fabric_pair_work {
	struct pair_config config;
	struct pair *pair;
	bool made; // created by this call, and not taken over yet
	struct device_endpoint endpoint;
	struct device_endpoint theirs;
	uint32_t flow_label;
	char reason[DEVICE_REASON_MAX + 1];
};

struct fabric_pair *fabric_pair_find(const struct fabric *fabric, uint32_t generation) {
	struct fabric_pair *fabric_pair = fabric->fabric_pairs;

	while (fabric_pair != NULL && fabric_pair->generation != generation)
		fabric_pair = fabric_pair->next;
	return fabric_pair;
}

// Find a pair in the list. Skip pairs that are being destroyed: their memory may be freed and
// reused.
struct fabric_pair *fabric_pair_find_by_pair(const struct fabric *fabric, const struct pair *pair) {
	struct fabric_pair *fabric_pair = fabric->fabric_pairs;

	while (fabric_pair != NULL &&
	       (fabric_pair->pair != pair || fabric_pair->stage == FABRIC_PAIR_DESTROYING))
		fabric_pair = fabric_pair->next;
	return fabric_pair;
}

static void fabric_pair_cancel_calls(struct fabric_pair *fabric_pair) {
	keeper_cancel(&fabric_pair->job);
	keeper_cancel(&fabric_pair->fail);
	keeper_cancel(&fabric_pair->cut);
	loop_timer_cancel(fabric_pair->fabric->loop, &fabric_pair->cut_off_retry);
}

static void fabric_pair_free(struct fabric_pair *fabric_pair) {
	struct fabric *fabric = fabric_pair->fabric;
	struct nic *nic = fabric_pair->nic;
	struct fabric_pair **at = &fabric->fabric_pairs;

	while (*at != fabric_pair)
		at = &(*at)->next;
	*at = fabric_pair->next;
	fabric_pair_cancel_calls(fabric_pair);
	free(fabric_pair);
	fabric->counters.pairs--;
	if (nic->lost || fabric->stopping)
		nic_close(nic);
}

// On the keeper.

static int pair_work_create(void *arg) {
	struct fabric_pair_work *work = arg;
	int err = pair_create(&work->config, &work->endpoint, &work->pair);

	work->made = err == 0;
	return err;
}

static int pair_work_connect(void *arg) {
	struct fabric_pair_work *work = arg;

	return pair_connect(work->pair, &work->theirs, work->flow_label, work->reason);
}

static int pair_work_fail(void *arg) {
	return pair_fail(((struct fabric_pair_work *)arg)->pair);
}

static int pair_work_cut_off(void *arg) {
	return pair_destroy_qp(((struct fabric_pair_work *)arg)->pair);
}

static int pair_work_destroy(void *arg) {
	return pair_destroy(((struct fabric_pair_work *)arg)->pair);
}

// Free the work on the keeper, and destroy a pair that nobody took over.
static void pair_work_drop(void *arg) {
	struct fabric_pair_work *work = arg;

	if (work->made)
		(void)pair_destroy(work->pair);
	free(work);
}

// Run a call on the keeper of the pair's device, with a copy of *filled.
static int fabric_pair_call(
	struct fabric_pair *fabric_pair,
	int (*call)(void *),
	struct keeper_request *request,
	const struct fabric_pair_work *filled
) {
	struct keeper_call job = {.call = call, .drop = pair_work_drop};
	struct fabric_pair_work *work = malloc(sizeof(*work));
	int err;

	if (work == NULL)
		return -ENOMEM;
	*work = *filled;
	work->pair = fabric_pair->pair;
	job.arg = work;
	err = keeper_run(fabric_pair->nic->keeper, &job, request);
	if (err != 0)
		free(work);
	return err;
}

// Making and connecting.

static void on_pair_created(struct keeper_request *request, void *arg, int result) {
	struct fabric_pair *fabric_pair = container_of(request, struct fabric_pair, job);
	struct fabric *fabric = fabric_pair->fabric;
	struct fabric_pair_work *work = arg;
	uint32_t generation = fabric_pair->generation;

	if (result == 0) {
		fabric_pair->pair = work->pair;
		fabric_pair->stage = FABRIC_PAIR_MADE;
		work->made = false;
	} else {
		fabric_pair_free(fabric_pair);
	}
	pairing_created(
		fabric->pairing, fabric_clock_ns(fabric), generation, result, &work->endpoint
	);
}

static int op_create(void *ctx, const struct pairing_key *key, uint32_t generation, uint32_t psn) {
	struct fabric *fabric = ctx;
	struct nic *nic = &fabric->nics[key->device];
	struct fabric_pair_work work = {0};
	struct fabric_pair *fabric_pair;
	int err;

	if (!nic->open || !nic->attached || nic->lost)
		return -ENODEV;
	fabric_pair = calloc(1, sizeof(*fabric_pair));
	if (fabric_pair == NULL)
		return -ENOMEM;
	*fabric_pair = (struct fabric_pair){
		.fabric = fabric,
		.nic = nic,
		.generation = generation,
		.peer = key->peer,
		.path = FABRIC_PATH_NONE,
		.job = {.ended = on_pair_created},
	};
	work.config = (struct pair_config){
		.lane = nic->parts.lane,
		.generation = generation,
		.psn = psn,
		.inline_bytes = PAIR_INLINE_BYTES,
	};
	err = fabric_pair_call(fabric_pair, pair_work_create, &fabric_pair->job, &work);
	if (err != 0) {
		free(fabric_pair);
		return err;
	}
	fabric_pair->next = fabric->fabric_pairs;
	fabric->fabric_pairs = fabric_pair;
	fabric->counters.pairs++;
	return 0;
}

static void on_pair_connected(struct keeper_request *request, void *arg, int result) {
	struct fabric_pair *fabric_pair = container_of(request, struct fabric_pair, job);
	struct fabric_pair_work *work = arg;

	fabric_pair->stage = result == 0 ? FABRIC_PAIR_CONNECTED : FABRIC_PAIR_MADE;
	pairing_connected(
		fabric_pair->fabric->pairing, fabric_clock_ns(fabric_pair->fabric),
		fabric_pair->generation, result, work->reason[0] != '\0' ? work->reason : NULL
	);
}

static int
op_connect(void *ctx, uint32_t generation, const struct pairing_end *theirs, uint32_t flow_label) {
	struct fabric_pair *fabric_pair = fabric_pair_find(ctx, generation);
	struct fabric_pair_work work = {.theirs = theirs->endpoint, .flow_label = flow_label};
	int err;

	must(fabric_pair != NULL && fabric_pair->stage == FABRIC_PAIR_MADE);
	fabric_pair->job.ended = on_pair_connected;
	err = fabric_pair_call(fabric_pair, pair_work_connect, &fabric_pair->job, &work);
	if (err != 0)
		return err;
	fabric_pair->theirs = *theirs;
	fabric_pair->flow_label = flow_label;
	fabric_pair->stage = FABRIC_PAIR_CONNECTING;
	return 0;
}

// In the lane.

static int op_hand_over(void *ctx, uint32_t generation) {
	struct fabric_pair *fabric_pair = fabric_pair_find(ctx, generation);
	struct worker_record record = {.kind = LANE_REQUEST_ADD};
	int err;

	must(fabric_pair != NULL && fabric_pair->stage == FABRIC_PAIR_CONNECTED);
	err = path_publish(fabric_pair);
	if (err != 0)
		return err;
	record.words[0] = (uintptr_t)fabric_pair->nic->parts.lane;
	record.words[1] = (uintptr_t)fabric_pair->pair;
	fabric_post(fabric_pair->fabric, fabric_pair->nic->worker, &record);
	fabric_pair->stage = FABRIC_PAIR_IN_LANE;
	return 0;
}

static int op_drain(void *ctx, uint32_t generation, const struct pairing_failure *failure) {
	struct fabric_pair *fabric_pair = fabric_pair_find(ctx, generation);

	must(fabric_pair != NULL && fabric_pair->stage == FABRIC_PAIR_IN_LANE);
	fabric_pair->drain_err = failure->err != 0 ? failure->err : -ECANCELED;
	fabric_pair->stage = FABRIC_PAIR_LEAVING;
	path_withdraw(fabric_pair);
	return 0;
}

// Ignore the result, because the lane reports what follows.
static void on_pair_fail_ended(struct keeper_request *request, void *arg, int result) {
	(void)request;
	(void)arg;
	(void)result;
}

// Log that the queue pair could not be destroyed, and try again later.
static void fabric_pair_cut_failed(struct fabric_pair *fabric_pair, int err) {
	struct loop *loop = fabric_pair->fabric->loop;

	fabric_pair->cut_off = false;
	log_event(
		LOG_LEVEL_ERROR, "rdma_pair_held", log_str("device", fabric_pair->nic->config.name),
		log_u64("generation", fabric_pair->generation), log_errno("error", err)
	);
	must(loop_timer_set(
		     loop, &fabric_pair->cut_off_retry, loop_now_ns(loop) + CUT_OFF_RETRY_NS
	     ) == 0);
}

static void cut_off_retry(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	fabric_pair_stuck(container_of(timer, struct fabric_pair, cut_off_retry));
}

static void on_pair_cut_off(struct keeper_request *request, void *arg, int result) {
	struct fabric_pair *fabric_pair = container_of(request, struct fabric_pair, cut);
	struct worker_record record = {.kind = LANE_REQUEST_QP_DESTROYED};

	(void)arg;
	if (fabric_pair->stage != FABRIC_PAIR_DRAINING)
		return; // the lane drained it meanwhile, and it may be destroyed already
	if (result != 0) {
		fabric_pair_cut_failed(fabric_pair, result);
		return;
	}
	record.words[0] = (uintptr_t)fabric_pair->nic->parts.lane;
	record.words[1] = pair_slot(fabric_pair->pair);
	record.words[2] = fabric_pair->generation;
	fabric_post(fabric_pair->fabric, fabric_pair->nic->worker, &record);
}

void fabric_pairs_cut_off(const struct nic *nic) {
	for (struct fabric_pair *fabric_pair = nic->fabric->fabric_pairs; fabric_pair != NULL;
	     fabric_pair = fabric_pair->next) {
		if (fabric_pair->nic == nic && fabric_pair->stage == FABRIC_PAIR_DRAINING &&
		    fabric_pair->broken)
			fabric_pair_stuck(fabric_pair);
	}
}

void fabric_pair_failed(struct fabric_pair *fabric_pair, int err, enum ibv_wc_status status) {
	struct fabric *fabric = fabric_pair->fabric;
	struct op_cause cause = {.err = err, .status = status};
	struct fabric_pair_work work = {0};
	char text[CAUSE_BYTES];
	bool told = fabric_pair->stage != FABRIC_PAIR_IN_LANE;

	if (fabric_pair->stage == FABRIC_PAIR_IN_LANE) {
		fabric_pair->stage = FABRIC_PAIR_DRAINING;
		path_withdraw(fabric_pair);
	}
	fabric_pair->stage = FABRIC_PAIR_DRAINING;
	fabric_pair->broken = true;
	fabric_pair->fail.ended = on_pair_fail_ended;
	// If the keeper has no room, the lane later reports the pair as stuck, and it is cut off.
	if (fabric_pair->nic->lost)
		fabric_pair_stuck(fabric_pair);
	else
		(void)fabric_pair_call(fabric_pair, pair_work_fail, &fabric_pair->fail, &work);
	if (told)
		return; // the pairing itself requested the drain
	op_cause_format(&cause, text, sizeof(text));
	pairing_broken(
		fabric->pairing, fabric_clock_ns(fabric), fabric_pair->generation, err, text
	);
}

// Destroy the queue pair of a pair that does not drain. The lane may report a pair that is already
// being cut off. A pair that has drained since may be gone before the keeper runs the call, so it
// is skipped.
void fabric_pair_stuck(struct fabric_pair *fabric_pair) {
	struct fabric_pair_work work = {0};
	int err;

	if (fabric_pair->cut_off || fabric_pair->stage != FABRIC_PAIR_DRAINING)
		return;
	fabric_pair->cut_off = true;
	fabric_pair->cut.ended = on_pair_cut_off;
	fabric_pair->cut_off_retry.expired = cut_off_retry;
	err = fabric_pair_call(fabric_pair, pair_work_cut_off, &fabric_pair->cut, &work);
	if (err != 0)
		fabric_pair_cut_failed(fabric_pair, err);
}

void fabric_pair_drained(struct fabric_pair *fabric_pair) {
	fabric_pair->drained = true;
	fabric_pair->stage = FABRIC_PAIR_OUT;
	loop_defer(fabric_pair->fabric->loop, &fabric_pair->fabric->advance_fabric_pairs);
}

// Returns true if it called the pairing, which may change the list of pairs.
static bool fabric_pair_advance(struct fabric_pair *fabric_pair, uint64_t version) {
	struct fabric *fabric = fabric_pair->fabric;
	char text[CAUSE_BYTES];

	if (fabric_pair->version > version)
		return false;
	if (fabric_pair->stage == FABRIC_PAIR_LEAVING) {
		struct worker_record record = {
			.kind = LANE_REQUEST_FAIL,
			.words =
				{(uintptr_t)fabric_pair->nic->parts.lane,
				 pair_slot(fabric_pair->pair), fabric_pair->generation,
				 (uint64_t)(int64_t)fabric_pair->drain_err},
		};

		fabric_post(fabric, fabric_pair->nic->worker, &record);
		fabric_pair->stage = FABRIC_PAIR_DRAINING;
		return false;
	}
	if (fabric_pair->stage != FABRIC_PAIR_OUT || !fabric_pair->drained)
		return false;
	fabric_pair->drained = false; // reported only once
	op_cause_format(pair_cause(fabric_pair->pair), text, sizeof(text));
	pairing_drained(
		fabric->pairing, fabric_clock_ns(fabric), fabric_pair->generation,
		fabric_pair->broken ? text : NULL
	);
	return true;
}

void fabric_pairs_advance(struct fabric *fabric, uint64_t version) {
	struct fabric_pair *fabric_pair = fabric->fabric_pairs;

	while (fabric_pair != NULL)
		fabric_pair = fabric_pair_advance(fabric_pair, version) ? fabric->fabric_pairs
									: fabric_pair->next;
}

// Destroying.

static void on_pair_destroyed(struct keeper_request *request, void *arg, int result) {
	struct fabric_pair *fabric_pair = container_of(request, struct fabric_pair, job);
	struct fabric *fabric = fabric_pair->fabric;
	uint32_t generation = fabric_pair->generation;

	(void)arg;
	if (result == 0)
		fabric_pair_free(fabric_pair);
	else
		fabric_pair->stage = FABRIC_PAIR_OUT;
	pairing_destroyed(fabric->pairing, fabric_clock_ns(fabric), generation, result);
	fabric_check_stopped(fabric);
}

static int op_destroy(void *ctx, uint32_t generation) {
	struct fabric_pair *fabric_pair = fabric_pair_find(ctx, generation);
	struct fabric_pair_work work = {0};
	int err;

	must(fabric_pair != NULL && fabric_pair->stage != FABRIC_PAIR_IN_LANE &&
	     fabric_pair->stage != FABRIC_PAIR_LEAVING);
	fabric_pair->job.ended = on_pair_destroyed;
	err = fabric_pair_call(fabric_pair, pair_work_destroy, &fabric_pair->job, &work);
	if (err == 0)
		fabric_pair->stage = FABRIC_PAIR_DESTROYING;
	return err;
}

// The remaining pairing operations.

static int
op_send(void *ctx, uint64_t peer, uint64_t start, const void *bytes, size_t size, uint32_t tag) {
	struct fabric *fabric = ctx;
	struct overlay_port_message message = {
		.node = peer,
		.bytes = bytes,
		.size = size,
		.life_ns = FABRIC_MESSAGE_LIFE_NS,
		.tag = tag,
	};
	int err;

	(void)start; // the relay addresses the start counter in its own table, or drops it
	err = overlay_port_send(&fabric->port, &message);
	if (err != 0)
		fabric->counters.messages_lost++;
	return err;
}

static int op_peer(void *ctx, uint64_t id, uint64_t *ret_start) {
	const struct fabric *fabric = ctx;
	struct ras_peer peer;

	if (ras_peer_find(overlay_ras(fabric->overlay), id, &peer) != 0)
		return -ENOENT;
	if (peer.state == RAS_DEAD || peer.state == RAS_LEFT)
		return -EHOSTDOWN;
	*ret_start = ras_incarnation_start(peer.incarnation);
	return 0;
}

static int op_check(
	void *ctx,
	uint32_t device,
	const struct device_endpoint *theirs,
	char ret_reason[static DEVICE_REASON_MAX + 1]
) {
	const struct fabric *fabric = ctx;
	const struct nic *nic = &fabric->nics[device];

	// A closed device has no facts. Whether it reaches the peer shows when it connects.
	if (!nic->open)
		return 0;
	return device_endpoint_check(&nic->parts.facts, theirs, ret_reason);
}

static void op_wake(void *ctx, uint64_t at_ns) {
	struct fabric *fabric = ctx;

	if (at_ns == PAIRING_NEVER)
		loop_timer_cancel(fabric->loop, &fabric->wake);
	else
		must(loop_timer_set(fabric->loop, &fabric->wake, at_ns) == 0);
}

static void op_changed(void *ctx, const struct pairing_key *key, enum pairing_state state) {
	struct fabric *fabric = ctx;
	struct pairing_view view;
	struct ras_peer peer;
	bool known = ras_peer_find(overlay_ras(fabric->overlay), key->peer, &peer) == 0;
	bool failed = state == PAIRING_FAILED;

	if (state == PAIRING_PENDING || state == PAIRING_DRAINING ||
	    !pairing_find(fabric->pairing, key, &view))
		return;
	log_event(
		failed ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "rdma_pair",
		log_str("state", pairing_state_name(state)),
		log_bytes(
			"peer", known ? peer.record->name : "?",
			known ? peer.record->name_length : 1
		),
		log_str("device", fabric->nics[key->device].config.name),
		log_str("peer_device", key->peer_device), log_u64("generation", view.generation),
		log_str("reason", failed ? pairing_reason_name(view.failure.reason) : "none"),
		log_str("text", failed ? view.failure.text : ""), log_u64("untold", view.untold)
	);
}

const struct pairing_ops fabric_pairing_ops = {
	.create = op_create,
	.connect = op_connect,
	.hand_over = op_hand_over,
	.drain = op_drain,
	.destroy = op_destroy,
	.send = op_send,
	.peer = op_peer,
	.check = op_check,
	.wake = op_wake,
	.changed = op_changed,
};

// Remaining pairs are left behind with their devices. Pairs in a lane are not touched.
void fabric_pairs_fini(struct fabric *fabric) {
	while (fabric->fabric_pairs != NULL) {
		struct fabric_pair *fabric_pair = fabric->fabric_pairs;

		fabric->fabric_pairs = fabric_pair->next;
		fabric->counters.left_behind++;
		fabric_pair_cancel_calls(fabric_pair);
		free(fabric_pair);
	}
}
