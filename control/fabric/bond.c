// SPDX-License-Identifier: BSD-3-Clause
// Pairs between the pairing, which decides, the keeper, which makes and destroys, and the lane,
// which uses them. The pairing is never called from inside its own operations: answers come from
// keepers, workers and deferred jobs.
#include "fabric/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAUSE_BYTES 192
#define CUT_AGAIN_NS RAS_NS_PER_SEC

// What a call into the driver needs and brings. The keeper's until it has ended.
struct bond_work {
	struct pair_config config;
	struct pair *pair;
	bool made; // by this work, and nobody took it yet
	struct device_endpoint endpoint;
	struct device_endpoint theirs;
	uint32_t flow_label;
	char reason[DEVICE_REASON_MAX + 1];
};

struct bond *bond_find(const struct fabric *fabric, uint32_t generation) {
	struct bond *bond = fabric->bonds;

	while (bond != NULL && bond->generation != generation)
		bond = bond->next;
	return bond;
}

// One that is being destroyed may be gone already, and its place be another's.
struct bond *bond_of(const struct fabric *fabric, const struct pair *pair) {
	struct bond *bond = fabric->bonds;

	while (bond != NULL && (bond->pair != pair || bond->stage == BOND_DESTROYING))
		bond = bond->next;
	return bond;
}

static void cancel_calls(struct bond *bond) {
	keeper_cancel(&bond->job);
	keeper_cancel(&bond->fail);
	keeper_cancel(&bond->cut);
	loop_timer_cancel(bond->fabric->loop, &bond->cut_again);
}

static void bond_free(struct bond *bond) {
	struct fabric *fabric = bond->fabric;
	struct nic *nic = bond->nic;
	struct bond **at = &fabric->bonds;

	while (*at != bond)
		at = &(*at)->next;
	*at = bond->next;
	cancel_calls(bond);
	free(bond);
	fabric->counters.pairs--;
	if (nic->lost || fabric->stopping)
		nic_close(nic);
}

static uint64_t now_of(const struct fabric *fabric) {
	return loop_clock_ns(fabric->loop);
}

// On the keeper.

static int work_make(void *arg) {
	struct bond_work *work = arg;
	int err = pair_create(&work->config, &work->endpoint, &work->pair);

	work->made = err == 0;
	return err;
}

static int work_connect(void *arg) {
	struct bond_work *work = arg;

	return pair_connect(work->pair, &work->theirs, work->flow_label, work->reason);
}

static int work_fail(void *arg) {
	return pair_fail(((struct bond_work *)arg)->pair);
}

static int work_cut(void *arg) {
	return pair_cut_off(((struct bond_work *)arg)->pair);
}

static int work_destroy(void *arg) {
	return pair_destroy(((struct bond_work *)arg)->pair);
}

// A pair that nobody waited for goes here, on the keeper.
static void work_drop(void *arg) {
	struct bond_work *work = arg;

	if (work->made)
		(void)pair_destroy(work->pair);
	free(work);
}

// Hands a call to the keeper of the bond's device. *ret_work may still be filled in.
static int bond_call(
	struct bond *bond,
	int (*call)(void *),
	struct keeper_request *request,
	const struct bond_work *filled
) {
	struct keeper_call job = {.call = call, .drop = work_drop};
	struct bond_work *work = malloc(sizeof(*work));
	int err;

	if (work == NULL)
		return -ENOMEM;
	*work = *filled;
	work->pair = bond->pair;
	job.arg = work;
	err = keeper_run(bond->nic->keeper, &job, request);
	if (err != 0)
		free(work);
	return err;
}

// Making and connecting.

static void ended_making(struct keeper_request *request, void *arg, int result) {
	struct bond *bond = container_of(request, struct bond, job);
	struct fabric *fabric = bond->fabric;
	struct bond_work *work = arg;
	uint32_t generation = bond->generation;

	if (result == 0) {
		bond->pair = work->pair;
		bond->stage = BOND_MADE;
		work->made = false;
	} else {
		bond_free(bond);
	}
	pairing_created(fabric->pairing, now_of(fabric), generation, result, &work->endpoint);
}

static int op_create(void *ctx, const struct pairing_key *key, uint32_t generation, uint32_t psn) {
	struct fabric *fabric = ctx;
	struct nic *nic = &fabric->nics[key->device];
	struct bond_work work = {0};
	struct bond *bond;
	int err;

	if (!nic->open || !nic->attached || nic->lost)
		return -ENODEV;
	bond = calloc(1, sizeof(*bond));
	if (bond == NULL)
		return -ENOMEM;
	*bond = (struct bond){
		.fabric = fabric,
		.nic = nic,
		.generation = generation,
		.peer = key->peer,
		.path = PATH_NONE,
		.job = {.ended = ended_making},
	};
	work.config = (struct pair_config){
		.lane = nic->parts.lane,
		.generation = generation,
		.psn = psn,
	};
	err = bond_call(bond, work_make, &bond->job, &work);
	if (err != 0) {
		free(bond);
		return err;
	}
	bond->next = fabric->bonds;
	fabric->bonds = bond;
	fabric->counters.pairs++;
	return 0;
}

static void ended_connecting(struct keeper_request *request, void *arg, int result) {
	struct bond *bond = container_of(request, struct bond, job);
	struct bond_work *work = arg;

	bond->stage = result == 0 ? BOND_CONNECTED : BOND_MADE;
	pairing_connected(
		bond->fabric->pairing, now_of(bond->fabric), bond->generation, result,
		work->reason[0] != '\0' ? work->reason : NULL
	);
}

static int
op_connect(void *ctx, uint32_t generation, const struct pairing_end *theirs, uint32_t flow_label) {
	struct bond *bond = bond_find(ctx, generation);
	struct bond_work work = {.theirs = theirs->endpoint, .flow_label = flow_label};
	int err;

	must(bond != NULL && bond->stage == BOND_MADE);
	bond->job.ended = ended_connecting;
	err = bond_call(bond, work_connect, &bond->job, &work);
	if (err != 0)
		return err;
	bond->theirs = *theirs;
	bond->flow_label = flow_label;
	bond->stage = BOND_CONNECTING;
	return 0;
}

// In the lane.

static void post_add(struct bond *bond) {
	struct worker_record record = {
		.kind = LANE_REQUEST_ADD,
		.words = {(uintptr_t)bond->nic->parts.lane, (uintptr_t)bond->pair},
	};

	fabric_post(bond->fabric, bond->nic->worker, &record);
}

static int op_hand_over(void *ctx, uint32_t generation) {
	struct bond *bond = bond_find(ctx, generation);
	int err;

	must(bond != NULL && bond->stage == BOND_CONNECTED);
	err = path_show(bond);
	if (err != 0)
		return err;
	post_add(bond);
	bond->stage = BOND_IN_LANE;
	return 0;
}

static int op_drain(void *ctx, uint32_t generation, const struct pairing_failure *failure) {
	struct bond *bond = bond_find(ctx, generation);

	must(bond != NULL && bond->stage == BOND_IN_LANE);
	bond->drain_err = failure->err != 0 ? failure->err : -ECANCELED;
	bond->stage = BOND_LEAVING;
	path_hide(bond);
	return 0;
}

// Nobody has to hear of it: what follows is told by the lane.
static void ended_quietly(struct keeper_request *request, void *arg, int result) {
	(void)request;
	(void)arg;
	(void)result;
}

// Nothing else can be done with it than to try again.
static void bond_held(struct bond *bond, int err) {
	struct loop *loop = bond->fabric->loop;

	bond->cut_off = false;
	log_event(
		LOG_LEVEL_ERROR, "rdma_pair_held", log_str("device", bond->nic->config.name),
		log_u64("generation", bond->generation), log_errno("error", err)
	);
	must(loop_timer_set(loop, &bond->cut_again, loop_now_ns(loop) + CUT_AGAIN_NS) == 0);
}

static void cut_again(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	bond_stuck(container_of(timer, struct bond, cut_again));
}

static void post_gone(struct bond *bond) {
	struct worker_record record = {
		.kind = LANE_REQUEST_GONE,
		.words =
			{(uintptr_t)bond->nic->parts.lane, pair_slot(bond->pair), bond->generation},
	};

	fabric_post(bond->fabric, bond->nic->worker, &record);
}

static void ended_cutting(struct keeper_request *request, void *arg, int result) {
	struct bond *bond = container_of(request, struct bond, cut);

	(void)arg;
	if (bond->stage != BOND_DRAINING)
		return; // the lane found it drained meanwhile, and it may be destroyed already
	if (result == 0)
		post_gone(bond);
	else
		bond_held(bond, result);
}

void bonds_cut_off(const struct nic *nic) {
	for (struct bond *bond = nic->fabric->bonds; bond != NULL; bond = bond->next) {
		if (bond->nic == nic && bond->stage == BOND_DRAINING && bond->broken)
			bond_stuck(bond);
	}
}

void bond_failed(struct bond *bond, int err, enum ibv_wc_status status) {
	struct fabric *fabric = bond->fabric;
	struct op_cause cause = {.err = err, .status = status};
	struct bond_work work = {0};
	char text[CAUSE_BYTES];
	bool told = bond->stage != BOND_IN_LANE;

	if (bond->stage == BOND_IN_LANE) {
		bond->stage = BOND_DRAINING;
		path_hide(bond);
	}
	bond->stage = BOND_DRAINING;
	bond->broken = true;
	bond->fail.ended = ended_quietly;
	// If the keeper has no room the lane finds it stuck, and it is cut off.
	if (bond->nic->lost)
		bond_stuck(bond);
	else
		(void)bond_call(bond, work_fail, &bond->fail, &work);
	if (told)
		return; // the pairing asked for it
	op_cause_format(&cause, text, sizeof(text));
	pairing_broken(fabric->pairing, now_of(fabric), bond->generation, err, text);
}

// The lane may find out that a pair is stuck that is being cut off already. One that drained since
// is destroyed: a call that came behind that in the keeper would find no pair.
void bond_stuck(struct bond *bond) {
	struct bond_work work = {0};
	int err;

	if (bond->cut_off || bond->stage != BOND_DRAINING)
		return;
	bond->cut_off = true;
	bond->cut.ended = ended_cutting;
	bond->cut_again.expired = cut_again;
	err = bond_call(bond, work_cut, &bond->cut, &work);
	if (err != 0)
		bond_held(bond, err);
}

void bond_drained(struct bond *bond) {
	bond->drained = true;
	bond->stage = BOND_OUT;
	loop_defer(bond->fabric->loop, &bond->fabric->look_bonds);
}

// True if it called the pairing, which may change the list of bonds.
static bool bond_settle(struct bond *bond, uint64_t version) {
	struct fabric *fabric = bond->fabric;
	char text[CAUSE_BYTES];

	if (bond->version > version)
		return false;
	if (bond->stage == BOND_LEAVING) {
		struct worker_record record = {
			.kind = LANE_REQUEST_FAIL,
			.words =
				{(uintptr_t)bond->nic->parts.lane, pair_slot(bond->pair),
				 bond->generation, (uint64_t)(int64_t)bond->drain_err},
		};

		fabric_post(fabric, bond->nic->worker, &record);
		bond->stage = BOND_DRAINING;
		return false;
	}
	if (bond->stage != BOND_OUT || !bond->drained)
		return false;
	bond->drained = false; // once
	op_cause_format(pair_cause(bond->pair), text, sizeof(text));
	pairing_drained(
		fabric->pairing, now_of(fabric), bond->generation, bond->broken ? text : NULL
	);
	return true;
}

void bonds_settled(struct fabric *fabric, uint64_t version) {
	struct bond *bond = fabric->bonds;

	while (bond != NULL)
		bond = bond_settle(bond, version) ? fabric->bonds : bond->next;
}

// Destroying.

static void ended_destroying(struct keeper_request *request, void *arg, int result) {
	struct bond *bond = container_of(request, struct bond, job);
	struct fabric *fabric = bond->fabric;
	uint32_t generation = bond->generation;

	(void)arg;
	if (result == 0)
		bond_free(bond);
	else
		bond->stage = BOND_OUT;
	pairing_destroyed(fabric->pairing, now_of(fabric), generation, result);
	fabric_look_stopped(fabric);
}

static int op_destroy(void *ctx, uint32_t generation) {
	struct bond *bond = bond_find(ctx, generation);
	struct bond_work work = {0};
	int err;

	must(bond != NULL && bond->stage != BOND_IN_LANE && bond->stage != BOND_LEAVING);
	bond->job.ended = ended_destroying;
	err = bond_call(bond, work_destroy, &bond->job, &work);
	if (err == 0)
		bond->stage = BOND_DESTROYING;
	return err;
}

// The rest of what the pairing asks for.

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

	(void)start; // the relay takes it to the start that our table holds, or nobody
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

	// Of one that is closed nothing is known: what it can reach is seen when it is connected.
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

// What is left now is left behind with its device: pairs in a lane are not touched.
void bonds_fini(struct fabric *fabric) {
	while (fabric->bonds != NULL) {
		struct bond *bond = fabric->bonds;

		fabric->bonds = bond->next;
		fabric->counters.left_behind++;
		cancel_calls(bond);
		free(bond);
	}
}
