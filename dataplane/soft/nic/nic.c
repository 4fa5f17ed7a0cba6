// SPDX-License-Identifier: BSD-3-Clause
// Advances a device in bounded turns: received frames, timers, and packets to send. The holder of
// the device's lock runs them.
#include "nic/nic.h"

#include "transport/qp.h"

#include <lib/must.h>

#include <sys/random.h>

// Packets that one queue pair may send before the next one, and all of them in one turn.
#define QP_BUDGET 32
#define NIC_BUDGET 128
// Consecutive turns that postpone due timers because frames came. After a long pause the answer may
// wait behind other frames, and need not be requested again.
#define NIC_PUT_OFF 8

// getrandom() returns up to 256 bytes at once and is not interrupted.
uint64_t nic_random(struct soft_nic *nic) {
	if (!nic->random_kernel)
		return splitmix_next(&nic->random); // for tests that need reproducible numbers
	if (nic->random_left == 0) {
		must(getrandom(nic->random_pool, sizeof(nic->random_pool), 0) ==
		     sizeof(nic->random_pool));
		nic->random_left = NIC_RANDOM_BATCH;
	}
	return nic->random_pool[--nic->random_left];
}

void qp_unlist(struct soft_qp *qp) {
	struct soft_nic *nic = qp->nic;

	if (qp->is_ready)
		TAILQ_REMOVE(&nic->ready, qp, ready_entry);
	else if (qp->ack_is_deferred)
		TAILQ_REMOVE(&nic->lazy, qp, ready_entry);
	qp->is_ready = qp->ack_is_deferred = qp->ack_now = false;
	qp_set_timer(qp, NIC_NEVER);
}

void qp_mark_ready(struct soft_qp *qp) {
	if (qp->is_ready)
		return;
	if (qp->ack_is_deferred)
		TAILQ_REMOVE(&qp->nic->lazy, qp, ready_entry);
	qp->ack_is_deferred = false;
	qp->is_ready = true;
	TAILQ_INSERT_TAIL(&qp->nic->ready, qp, ready_entry);
}

// due_ns of the device only decreases here; nic_run_timers() recomputes it.
void qp_set_timer(struct soft_qp *qp, uint64_t due_ns) {
	struct soft_nic *nic = qp->nic;
	bool timed = due_ns != NIC_NEVER;

	if (timed && !qp->is_timed)
		TAILQ_INSERT_TAIL(&nic->timed, qp, timed_entry);
	else if (!timed && qp->is_timed)
		TAILQ_REMOVE(&nic->timed, qp, timed_entry);
	qp->is_timed = timed;
	qp->due_ns = due_ns;
	if (due_ns < nic->due_ns)
		nic->due_ns = due_ns;
}

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
	if (nic->cq_overran)
		nic_fail_overrun_pairs(nic);
	return received > 0 || nic->counters.packets_sent != sent;
}

void nic_push(struct soft_nic *nic) {
	nic->now_ns = clock_now_ns(nic->clock);
	nic_transmit(nic, true);
	if (nic->cq_overran)
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
