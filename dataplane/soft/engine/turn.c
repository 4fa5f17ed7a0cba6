// SPDX-License-Identifier: BSD-3-Clause
// Advances a device in bounded turns: received frames, timers, and packets to send. The holder of
// the device's lock runs them.
#include "engine/engine.h"
#include "engine/port_watch.h"
#include "transport/qp.h"

// Packets that one queue pair may send before the next one, and all of them in one turn.
#define QP_BUDGET 32
#define NIC_BUDGET 128
// Consecutive turns that postpone due timers because frames came. After a long pause the answer may
// wait behind other frames, and need not be requested again.
#define NIC_PUT_OFF 8

// Run due timers. A queue pair leaves the list while its timer runs and may be appended again. The
// loop ends at the original last entry, so each is visited once.
static void nic_run_timers(struct soft_nic *nic, uint32_t received) {
	struct soft_qp *last = TAILQ_LAST(&nic->timed, qp_list);
	struct soft_qp *qp = TAILQ_FIRST(&nic->timed), *next;

	if (nic->now_ns < nic->due_ns)
		return;
	if (received > 0 && nic->timers_postponed < NIC_PUT_OFF) {
		nic->timers_postponed++;
		return;
	}
	nic->timers_postponed = 0;
	nic->due_ns = NIC_NEVER;
	for (; qp != NULL; qp = next) {
		next = qp == last ? NULL : TAILQ_NEXT(qp, timed_entry);
		if (qp->due_ns <= nic->now_ns) {
			qp_set_timer(qp, NIC_NEVER);
			requester_run_timers(qp);
			qp_set_timer(qp, requester_next_timer_ns(qp));
		} else if (qp->due_ns < nic->due_ns) {
			nic->due_ns = qp->due_ns;
		}
	}
}

// Requests go first: an acknowledgement that leaves in the same flush then costs them nothing.
static void qp_transmit(struct soft_qp *qp, bool defer_acks) {
	uint64_t sent = qp->nic->counters.packets_sent;
	bool more;

	if (qp->verbs.state == IBV_QPS_ERR)
		return;
	more = requester_transmit(qp, QP_BUDGET);
	if (qp->nic->counters.packets_sent != sent)
		ack_rule_note_sent_packet(&qp->responder.ack_rule);
	more |= responder_transmit(qp, QP_BUDGET, defer_acks && !qp->ack_now);
	if (qp->verbs.state == IBV_QPS_ERR)
		return;
	qp_set_timer(qp, requester_next_timer_ns(qp));
	if (more) {
		qp_mark_ready(qp);
		return;
	}
	qp->ack_now = false;
	if (qp->responder.ack_due && !qp->is_ready && !qp->ack_is_deferred) {
		qp->ack_is_deferred = true;
		TAILQ_INSERT_TAIL(&qp->nic->lazy, qp, ready_entry);
	}
}

static void nic_transmit(struct soft_nic *nic, bool defer_acks) {
	uint64_t end = nic->counters.packets_sent + NIC_BUDGET;
	struct soft_qp *qp;

	nic->wire_full = false;
	for (uint32_t n = 0; n < NIC_BUDGET && nic->counters.packets_sent < end; n++) {
		qp = TAILQ_FIRST(&nic->ready);
		if (qp == NULL || nic->wire_full)
			break;
		TAILQ_REMOVE(&nic->ready, qp, ready_entry);
		qp->is_ready = false;
		qp_transmit(qp, defer_acks);
	}
	nic->wire->calls->flush(nic->wire);
}

// End the delay of acknowledgements from the turn before, unless one is held for a ping-pong. This
// comes before receiving: a queue pair that receives a frame becomes ready again and would wait
// once more.
static void nic_release_acks(struct soft_nic *nic, bool may_hold) {
	struct soft_qp *qp, *next;

	for (qp = TAILQ_FIRST(&nic->lazy); qp != NULL; qp = next) {
		next = TAILQ_NEXT(qp, ready_entry);
		if (may_hold && ack_rule_is_held(&qp->responder.ack_rule, nic->now_ns))
			continue;
		qp->ack_now = true;
		qp_mark_ready(qp);
	}
}

// Move queue pairs to ERR whose completions were lost; otherwise they would go on unnoticed.
// Flushing may overrun another completion queue, which has queue pairs of its own.
static void nic_fail_overrun_pairs(struct soft_nic *nic) {
	while (nic->cq_overran) {
		nic->cq_overran = false;
		for (uint32_t n = 0; n < nic->qp_capacity; n++) {
			struct soft_qp *qp = nic->qps[n];

			if (qp == NULL || (!qp->send_cq->overrun && !qp->receive_cq->overrun))
				continue;
			// A queue pair in another state is found at its next completion, which sets
			// cq_overran again.
			if (qp->verbs.state == IBV_QPS_RTR || qp->verbs.state == IBV_QPS_RTS ||
			    qp->verbs.state == IBV_QPS_SQD)
				qp_raise_fatal(qp, IBV_EVENT_QP_FATAL);
		}
	}
}

// A turn without a frame defers nothing: waiting has brought nothing that should go first.
bool nic_turn(struct soft_nic *nic, bool defer_acks) {
	uint64_t sent = nic->counters.packets_sent;
	struct wire_frame frames[WIRE_BATCH];
	uint32_t received;

	nic->now_ns = clock_now_ns(nic->clock);
	nic_release_acks(nic, defer_acks);
	received = nic->wire->calls->receive(nic->wire, frames, WIRE_BATCH, nic->now_ns);
	for (uint32_t n = 0; n < received; n++)
		nic_frame(nic, &frames[n]);
	if (nic->wire->port != nic->wire_port) {
		nic->wire_port = nic->wire->port;
		nic_port_report_locked(nic, nic->wire_port);
	}
	nic_run_timers(nic, received);
	nic_transmit(nic, defer_acks && received > 0);
	nic_fail_overrun_pairs(nic);
	return received > 0 || nic->counters.packets_sent != sent;
}

void nic_push(struct soft_nic *nic) {
	nic->now_ns = clock_now_ns(nic->clock);
	nic_transmit(nic, true);
	nic_fail_overrun_pairs(nic);
}

static uint64_t nic_next_timer_ns(const struct soft_nic *nic) {
	uint64_t wire_ns = nic->wire->calls->due(nic->wire);

	if (!TAILQ_EMPTY(&nic->ready))
		return 0;
	return wire_ns < nic->due_ns ? wire_ns : nic->due_ns;
}

uint64_t nic_next_turn_ns(const struct soft_nic *nic) {
	return TAILQ_EMPTY(&nic->lazy) ? nic_next_timer_ns(nic) : 0;
}

void nic_unlock_and_ring(struct soft_nic *nic) {
	struct engine *engine = nic->engine;

	if (engine != NULL) {
		uint64_t due_ns = nic_next_timer_ns(nic);

		if (!TAILQ_EMPTY(&nic->lazy) && nic->now_ns + NIC_LAZY_NS < due_ns)
			due_ns = nic->now_ns + NIC_LAZY_NS;
		if (due_ns >= nic->engine_next_wake_ns)
			engine = NULL;
		else
			nic->engine_next_wake_ns = 0;
	}
	nic_unlock(nic);
	if (engine != NULL)
		engine_note_work_left(engine);
}
