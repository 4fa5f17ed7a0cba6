// SPDX-License-Identifier: BSD-3-Clause
// Handles late or missing answers and RNR: sending goes back.
//
// It always goes back to the oldest unacknowledged PSN. Only a timeout consumes a retry, and the
// timeout runs from the latest progress. Reordered packets make the peer report the same gap many
// times. Such reports must not end the connection, but must not continue without limit either.
#include "transport/requester_impl.h"

#define WINDOW_LEAST 2
#define TIMEOUT_UNIT_NS UINT64_C(4096)
#define RNR_RETRY_ENDLESS 7
// First probe after this multiple of the usual answer time; each further interval is twice as long.
#define PROBE_WAITS 4
#define PROBE_LEAST_NS UINT64_C(50000)
#define PROBES_MAX 16
// A timeout noticed this much late, and late by an eighth of itself, indicates a pause of this
// process. With more spinning threads than processors, pauses are as long as timeouts. The device
// itself may be late by two ticks (NIC_LAZY_NS). Up to PAUSES_MAX in a row do not count against the
// peer.
#define PAUSE_NS UINT64_C(4000000)
#define PAUSES_MAX 32

static uint64_t timeout_interval_ns(const struct soft_qp *qp) {
	return TIMEOUT_UNIT_NS << (qp->attr.timeout & 31);
}

static uint64_t probe_interval_ns(const struct requester *requester) {
	return (requester->wait_ns * PROBE_WAITS + PROBE_LEAST_NS) << requester->probes;
}

void requester_start_timers(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;
	uint64_t timeout_ns = timeout_interval_ns(qp);
	uint64_t probe_ns = probe_interval_ns(requester);

	if (qp->attr.timeout == 0)
		return;
	requester->timeout_ns = qp->nic->now_ns + timeout_ns;
	requester->probe_ns = probe_ns < timeout_ns ? qp->nic->now_ns + probe_ns : NIC_NEVER;
}

void requester_stop_timers(struct requester *requester) {
	requester->timeout_ns = NIC_NEVER;
	requester->probe_ns = NIC_NEVER;
}

// Update the usual answer time. It follows longer times faster than shorter ones, because an early
// probe wastes a packet. After a probe the time counts from the probe: the wait before may have
// been caused by a loss. On a slow path the doubled intervals become long enough to learn from.
void requester_learn_answer_time(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;
	uint64_t wait_ns = qp->nic->now_ns - requester->timed_ns;
	bool probed = requester->probes > 0;

	requester->probes = 0;
	if (requester->timed_ns == 0 || psn_diff(requester->acked_psn, requester->timed_psn) < 0)
		return;
	requester->timed_ns = 0;
	if (wait_ns > requester->wait_ns)
		requester->wait_ns += (wait_ns - requester->wait_ns) / 4;
	else if (probed) // the probe may have been too early
		requester->wait_ns += requester->wait_ns / 8;
	else
		requester->wait_ns -= (requester->wait_ns - wait_ns) / 16;
}

// Shrink the window once for all packets in flight at the loss.
static void shrink_window(struct requester *requester) {
	uint32_t smaller = requester->window * 3 / 4;

	if (psn_diff(requester->acked_psn, requester->recover_psn) < 0)
		return;
	requester->recover_psn = requester->high_psn;
	requester->window_acked = 0;
	if (smaller >= WINDOW_LEAST)
		requester->window = smaller;
}

static void sending_go_back(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;

	requester->next = requester->head;
	requester->next_psn = requester->acked_psn;
	requester->reads_out = 0;
	requester->stuck = IBV_WC_SUCCESS;
	requester->timed_ns = 0;
	qp_mark_ready(qp);
}

void requester_go_back(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;

	if (requester->next_psn == requester->acked_psn)
		return; // nothing was sent since sending went back
	// Reordered packets cause several equal NAKs. One that arrives within a quarter of the
	// usual wait after the last rewind answers packets sent before the rewind. If a
	// retransmitted packet is lost too, the next probe packet detects it.
	if (qp->nic->now_ns - requester->rewound_ns < requester->wait_ns / 4)
		return;
	requester->rewound_ns = qp->nic->now_ns;
	shrink_window(requester);
	sending_go_back(qp);
}

// Answers after the missing one were caused by packets sent before going back. When their PSNs
// restart, they answer packets sent since, so the missing packet was lost again.
void requester_handle_gap(struct soft_qp *qp, uint32_t psn) {
	struct requester *requester = &qp->requester;
	bool again = !requester->lost || psn_diff(psn, requester->lost_psn) <= 0;

	requester->lost = true;
	requester->lost_psn = psn;
	if (again)
		requester_go_back(qp);
}

void requester_handle_rnr(struct soft_qp *qp, uint8_t syndrome) {
	struct requester *requester = &qp->requester;

	if (requester->rnr_ns != 0)
		return; // duplicate of an RNR NAK that is already being waited for
	if (qp->attr.rnr_retry != RNR_RETRY_ENDLESS) {
		if (requester->rnr_retries == 0) {
			requester_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		requester->rnr_retries--;
	}
	requester->retries = qp->attr.retry_cnt;
	requester_stop_timers(requester);
	requester->rnr_ns = qp->nic->now_ns + packet_rnr_delay_ns(syndrome);
	sending_go_back(qp);
}

uint64_t requester_next_timer_ns(const struct soft_qp *qp) {
	const struct requester *requester = &qp->requester;
	uint64_t due_ns = requester->timeout_ns;

	if (requester->probe_ns < due_ns)
		due_ns = requester->probe_ns;
	if (requester->rnr_ns != 0 && requester->rnr_ns < due_ns)
		due_ns = requester->rnr_ns;
	return due_ns;
}

// A late timeout means that this process was paused. The peer may have answered in time or lacked a
// processor too, so the retransmission gets a whole new period and costs no retry.
static void handle_timeout(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;
	uint64_t late_ns = qp->nic->now_ns - requester->timeout_ns;
	bool paused = late_ns >= PAUSE_NS && late_ns >= timeout_interval_ns(qp) / 8 &&
		      requester->pauses < PAUSES_MAX;

	counter_add(&qp->nic->counters.timeouts, 1);
	requester_stop_timers(requester);
	if (paused) {
		requester->pauses++;
	} else {
		shrink_window(requester);
		if (requester->retries == 0) {
			requester_fail(qp, IBV_WC_RETRY_EXC_ERR);
			return;
		}
		requester->retries--;
	}
	sending_go_back(qp);
}

void requester_run_timers(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;
	uint64_t now_ns = qp->nic->now_ns;

	if (requester->rnr_ns != 0 && now_ns >= requester->rnr_ns) {
		requester->rnr_ns = 0;
		qp_mark_ready(qp);
	}
	if (now_ns >= requester->timeout_ns) {
		handle_timeout(qp);
	} else if (now_ns >= requester->probe_ns) {
		counter_add(&qp->nic->counters.probes, 1);
		if (requester->probes < PROBES_MAX)
			requester->probes++;
		if (requester->timed_ns != 0)
			requester->timed_ns = now_ns;
		requester->probe_ns = now_ns + probe_interval_ns(requester);
		requester_probe(qp);
	}
}
