// SPDX-License-Identifier: BSD-3-Clause
// The hot calls behind libibverbs' inline functions. They return a positive errno or a count. Any
// thread.
#include "transport/qp.h"
#include "verbs/verbs_soft.h"

#include <errno.h>
#include <sched.h>

// Return true if callers drive the device. A test with its own clock drives it by soft_turn().
static bool nic_is_caller_driven(const struct soft_nic *nic) {
	return nic->config.clock == NULL;
}

// Post requests up to the first refused one; accepted ones are sent at once.
static int hot_post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
	struct soft_qp *qp = soft_qp_of(verbs);
	struct soft_nic *nic = qp->nic;
	int err;

	nic_lock(nic);
	err = qp_accepts_posts(qp) ? 0 : -EINVAL;
	for (; wr != NULL && err == 0; wr = err == 0 ? wr->next : wr)
		err = requester_post(qp, wr);
	if (err != 0)
		*bad = wr;
	if (nic_is_caller_driven(nic)) {
		nic_push(nic);
		if (nic->engine != NULL)
			engine_note_caller_turn(nic->engine);
	}
	nic_unlock_and_ring(nic);
	return -err;
}

static int hot_post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
	struct soft_qp *qp = soft_qp_of(verbs);
	struct soft_nic *nic = qp->nic;
	int err = 0;

	nic_lock(nic);
	for (; wr != NULL && err == 0; wr = err == 0 ? wr->next : wr)
		err = responder_post(qp, wr);
	if (err != 0)
		*bad = wr;
	nic_unlock(nic);
	return -err;
}

// Destination of polled completions.
struct poll_destination {
	struct ibv_wc *wcs;
	struct soft_stamp *stamps; // NULL: not wanted
	uint32_t max;
};

// Drive the device in a poll that found nothing; the poll takes frames without waking the engine.
// Acknowledgements may wait, because the program will probably post an answer next.
static uint32_t nic_poll_turn(
	struct soft_nic *nic, struct soft_cq *cq, const struct poll_destination *poll_destination
) {
	struct engine *engine = nic->engine;
	uint32_t count;

	(void)nic_turn(nic, true);
	count = cq_pop(cq, poll_destination->wcs, poll_destination->stamps, poll_destination->max);
	if (engine != NULL)
		engine_note_caller_turn(engine);
	return count;
}

static uint32_t poll_driving(
	struct soft_nic *nic, struct soft_cq *cq, const struct poll_destination *poll_destination
) {
	uint32_t count = nic_poll_turn(nic, cq, poll_destination);
	bool yields = count == 0 && yield_rule_should_yield(&nic->yield, nic->now_ns);
	uint64_t from_ns, to_ns;

	if (count > 0)
		yield_rule_note_found(&nic->yield, nic->now_ns);
	nic_unlock_and_ring(nic);
	if (!yields)
		return count;

	// Yield without the lock, so that other threads do not wait for it. Then poll once more to
	// judge the yield.
	from_ns = clock_now_ns(nic->clock);
	sched_yield();
	to_ns = clock_now_ns(nic->clock);
	nic_lock(nic);
	count = nic_poll_turn(nic, cq, poll_destination);
	yield_rule_note_yield(&nic->yield, from_ns, to_ns, count > 0);
	nic_unlock_and_ring(nic);
	return count;
}

static uint32_t
cq_poll_or_drive(struct soft_cq *cq, const struct poll_destination *poll_destination) {
	struct soft_nic *nic = cq->nic;
	uint64_t now_ns;
	uint32_t count;

	nic_lock(nic);
	count = cq_pop(cq, poll_destination->wcs, poll_destination->stamps, poll_destination->max);
	if (count == 0 && nic_is_caller_driven(nic))
		return poll_driving(nic, cq, poll_destination);
	// The engine's turn found the completion; the time of that turn is before this poll.
	now_ns = nic->yield.vain > 0 ? clock_now_ns(nic->clock) : nic->now_ns;
	yield_rule_note_found(&nic->yield, now_ns);
	nic_unlock(nic);
	return count;
}

static int hot_poll_cq(struct ibv_cq *verbs, int entries, struct ibv_wc *wcs) {
	const struct poll_destination poll_destination = {.wcs = wcs, .max = (uint32_t)entries};

	if (entries <= 0)
		return entries == 0 ? 0 : -EINVAL;
	return (int)cq_poll_or_drive(soft_cq_of(verbs), &poll_destination);
}

bool soft_poll_one(struct soft_cq *cq, struct soft_completion *ret_completion) {
	const struct poll_destination poll_destination = {
		.wcs = &ret_completion->wc,
		.stamps = &ret_completion->stamp,
		.max = 1,
	};

	return cq_poll_or_drive(cq, &poll_destination) == 1;
}

// Arm the queue. The program may be about to sleep, so the engine must watch, unless there is no
// channel.
static int hot_req_notify_cq(struct ibv_cq *verbs, int solicited_only) {
	struct soft_cq *cq = soft_cq_of(verbs);
	struct soft_nic *nic = cq->nic;
	struct engine *engine;

	nic_lock(nic);
	cq_arm(cq, solicited_only != 0);
	engine = verbs->channel != NULL ? nic->engine : NULL;
	nic_unlock_and_ring(nic);
	if (engine != NULL)
		engine_note_cq_armed(engine);
	return 0;
}

void soft_set_hot_calls(struct ibv_context_ops *ops) {
	ops->post_send = hot_post_send;
	ops->post_recv = hot_post_recv;
	ops->post_srq_recv = srq_post_recv;
	ops->poll_cq = hot_poll_cq;
	ops->req_notify_cq = hot_req_notify_cq;
}
