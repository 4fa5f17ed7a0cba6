// SPDX-License-Identifier: BSD-3-Clause
// Tests of losses, refusals and timeouts: what is sent again, how often, and the final result.
#include "dataplane/soft/transport/requester_bed.h"

#define MTU BED_MTU
#define TIMEOUT_NS (UINT64_C(4096) << 10)
#define COUNTER(name) bed->nic.counters.name

static void a_refusal_ends_the_request_with_its_status(void **state) {
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} cases[] = {
		{PACKET_SYNDROME_NAK_INVALID, IBV_WC_REM_INV_REQ_ERR},
		{PACKET_SYNDROME_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{PACKET_SYNDROME_NAK_OPERATION, IBV_WC_REM_OP_ERR},
	};
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases) * COUNT_OF(opcodes); n++) {
		bed_start(PSN_MASK, MTU);
		bed_post_flags(IBV_WR_SEND, 0, 8, 0);
		bed_post_flags(opcodes[n % COUNT_OF(opcodes)], 0, 8, 0);
		bed_post_flags(IBV_WR_SEND, 0, 8, 0);
		bed_transmit();
		bed_syndrome(0, cases[n / COUNT_OF(opcodes)].syndrome);
		assert_int_equal(bed_wc(cases[n / COUNT_OF(opcodes)].status)->wr_id, 3 * n + 2);
		assert_int_equal(bed_wc(IBV_WC_WR_FLUSH_ERR)->wr_id, 3 * n + 3);
		bed_no_wc();
		assert_int_equal(bed->qp.verbs.state, IBV_QPS_ERR);
		assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
	}
	assert_int_equal(COUNTER(naks_received), COUNT_OF(cases) * COUNT_OF(opcodes));
}

static void a_refusal_past_a_missing_answer_waits_for_that_answer(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_READ, 0, 8);
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	bed_syndrome(1001, PACKET_SYNDROME_NAK_ACCESS);
	bed_no_wc();
	assert_int_equal(bed_transmit(), 2);
	bed_read_answer(PACKET_READ_ONLY, 1000, 1, 8);
	bed_syndrome(1001, PACKET_SYNDROME_NAK_ACCESS);
	bed_wc(IBV_WC_SUCCESS);
	bed_wc(IBV_WC_REM_ACCESS_ERR);
}

// Three messages of 10 packets each. In each round another packet is lost once.
static void sending_goes_on_where_one_was_missed(void **state) {
	(void)state;
	for (uint32_t lost = 0; lost < 30; lost++) {
		uint32_t psn = PSN_MASK - 14;

		bed_start(psn, MTU);
		bed->sent_count = bed->seen = 0;
		for (uint32_t n = 0; n < 3; n++)
			bed_post(IBV_WR_RDMA_WRITE, n * 10 * MTU, 10 * MTU);
		assert_int_equal(bed_transmit(), 30);
		bed_syndrome(psn + lost, PACKET_SYNDROME_NAK_SEQUENCE);
		bed_wcs(lost / 10, IBV_WC_SUCCESS);
		bed_no_wc();
		assert_int_equal(bed_transmit(), 30 - lost);
		for (uint32_t n = lost; n < 30; n++) {
			const struct bed_packet *again = &bed->sent[30 + n - lost];

			assert_int_equal(again->packet.psn, psn_add(psn, n));
			assert_int_equal(again->packet.opcode, bed->sent[n].packet.opcode);
			assert_int_equal(again->packet.length, bed->sent[n].packet.length);
			assert_memory_equal(again->payload, bed->sent[n].payload, MTU);
		}
		bed_ack(psn + 29);
		bed_wcs(3 - lost / 10, IBV_WC_SUCCESS);
		bed_no_wc();
	}
	assert_int_equal(COUNTER(retransmitted), 30 * 31 / 2);
}

static void what_was_answered_before_it_went_back_is_not_sent_again(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 20 * MTU);
	bed_transmit();
	bed_timeout();
	assert_true(requester_transmit(&bed->qp, 5));
	bed_ack(1014);
	bed->seen = bed->sent_count;
	assert_int_equal(bed_transmit(), 5);
	bed_sent_as(PACKET_WRITE_MIDDLE, 1015);
	bed_timeout();
	bed_ack(1019);
	assert_int_equal(bed_transmit(), 0);
	bed_wc(IBV_WC_SUCCESS);
	assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
}

// A read of 20 packets is requested in pieces of 16. After a lost answer the next answer arrives
// out of sequence.
static void a_read_goes_on_where_an_answer_was_lost(void **state) {
	(void)state;
	for (uint32_t lost = 0; lost < 19; lost++) {
		uint32_t piece_end = lost < 16 ? 16 : 20;
		const struct packet *packet;

		bed_start(1000, MTU);
		bed->sent_count = bed->seen = 0;
		memset(bed->memory, 0, BED_MEMORY);
		bed_post(IBV_WR_RDMA_READ, 0, 20 * MTU);
		assert_int_equal(bed_transmit(), 2);
		for (uint32_t n = 0; n < 20; n++) {
			if (n != lost)
				bed_read_answer(
					n % 16 == 0	     ? PACKET_READ_FIRST
					: n == 15 || n == 19 ? PACKET_READ_LAST
							     : PACKET_READ_MIDDLE,
					1000 + n, (uint8_t)(n + 1), MTU
				);
		}
		bed_no_wc();
		bed->seen = bed->sent_count;
		assert_int_equal(bed_transmit(), lost < 16 ? 2 : 1);
		packet = &bed_sent_as(PACKET_READ_REQUEST, 1000 + lost)->packet;
		assert_int_equal(packet->address, BED_REMOTE + lost * MTU);
		assert_int_equal(packet->length, (piece_end - lost) * MTU);
		for (uint32_t n = lost; n < 20; n++) {
			bool first = n == lost || n == 16;
			bool last = n == 15 || n == 19;

			bed_read_answer(
				first && last ? PACKET_READ_ONLY
				: first	      ? PACKET_READ_FIRST
				: last	      ? PACKET_READ_LAST
					      : PACKET_READ_MIDDLE,
				1000 + n, (uint8_t)(n + 1), MTU
			);
		}
		bed_wc(IBV_WC_SUCCESS);
		for (uint32_t n = 0; n < 20 * MTU; n++)
			assert_int_equal(bed->memory[n], n / MTU + 1);
	}
}

// The kernel's Soft-RoCE answers like this.
static void a_resumed_read_may_be_answered_from_its_middle_on(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_READ, 0, 4 * MTU);
	bed_transmit();
	bed_read_answer(PACKET_READ_FIRST, 1000, 1, MTU);
	bed_timeout();
	bed_transmit();
	bed_read_answer(PACKET_READ_MIDDLE, 1001, 1, MTU);
	bed_read_answer(PACKET_READ_MIDDLE, 1002, 1, MTU);
	bed_timeout();
	bed_transmit();
	bed_read_answer(PACKET_READ_LAST, 1003, 1, MTU);
	bed_wc(IBV_WC_SUCCESS);
}

static void an_answer_that_is_lost_again_is_asked_for_again_when_they_begin_anew(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_READ, 0, 8 * MTU);
	bed_transmit();
	bed_read_answer(PACKET_READ_MIDDLE, 1002, 1, MTU);
	assert_int_equal(bed_transmit(), 1);
	// These answers to the first request were already in flight.
	for (uint32_t n = 3; n < 8; n++)
		bed_read_answer(n == 7 ? PACKET_READ_LAST : PACKET_READ_MIDDLE, 1000 + n, 1, MTU);
	assert_int_equal(bed_transmit(), 0);
	// These answer the second request; its first answer is lost again.
	bed_read_answer(PACKET_READ_MIDDLE, 1001, 1, MTU);
	assert_int_equal(bed_transmit(), 1);
	for (uint32_t n = 0; n < 8; n++)
		bed_read_answer(
			n == 0	 ? PACKET_READ_FIRST
			: n == 7 ? PACKET_READ_LAST
				 : PACKET_READ_MIDDLE,
			1000 + n, 1, MTU
		);
	bed_wc(IBV_WC_SUCCESS);
	bed_no_wc();
}

static void the_same_refusal_twice_sends_once_if_nothing_went_out_between(void **state) {
	(void)state;
	bed->qp.attr.retry_cnt = 0;
	bed_start(1000, MTU);
	bed_post(IBV_WR_RDMA_WRITE, 0, 4 * MTU);
	bed_transmit();
	for (uint32_t n = 0; n < 100; n++)
		bed_syndrome(1001, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_int_equal(bed_transmit(), 3);
	bed_no_wc();
}

// When frames overtake each other, the peer sends many sequence NAKs in one round trip.
static void being_told_that_one_is_missing_takes_nothing_off_the_retries(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 4 * MTU);
	for (uint32_t round = 0; round < 1000; round++) {
		assert_int_equal(bed_transmit(), 4);
		bed_syndrome(1000, PACKET_SYNDROME_NAK_SEQUENCE);
	}
	bed_no_wc();
	bed_transmit();
	bed_ack(1003);
	bed_wc(IBV_WC_SUCCESS);
}

// When packets overtake each other, the peer sends a sequence NAK for each of them.
static void it_goes_back_at_most_once_in_the_time_an_answer_takes(void **state) {
	uint32_t sent;

	(void)state;
	bed->qp.attr.timeout = 20;
	bed_start(0, MTU);
	for (uint32_t psn = 0; psn < 50; psn++) {
		bed_post_flags(IBV_WR_SEND, 0, 8, 0);
		bed_transmit();
		bed_advance(20000);
		bed_ack(psn);
	}
	bed_post(IBV_WR_RDMA_WRITE, 0, 40 * MTU);
	bed_transmit();
	sent = bed->sent_count;
	for (uint32_t n = 0; n < 30; n++) {
		bed_advance(100);
		bed_syndrome(60 + n, PACKET_SYNDROME_NAK_SEQUENCE);
		bed_transmit();
	}
	assert_int_equal(bed->sent_count - sent, 30);
	bed_advance(20000);
	bed_syndrome(89, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_int_equal(bed_transmit(), 1);
	bed_ack(89);
	bed_wc(IBV_WC_SUCCESS);
}

static void going_back_without_progress_ends_after_the_retries(void **state) {
	uint64_t began_ns = bed->nic.now_ns;

	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 4 * MTU);
	bed_post(IBV_WR_SEND, 0, 4);
	while (bed->errors == 0) {
		bed_transmit();
		bed_syndrome(1000, PACKET_SYNDROME_NAK_SEQUENCE);
		bed_transmit();
		bed_advance(TIMEOUT_NS / 16);
		assert_true(bed->nic.now_ns - began_ns <= 4 * TIMEOUT_NS);
	}
	assert_int_equal(bed->nic.now_ns - began_ns, 4 * TIMEOUT_NS);
	bed_wc(IBV_WC_RETRY_EXC_ERR);
	bed_wc(IBV_WC_WR_FLUSH_ERR);
	bed_no_wc();
}

static void silence_is_answered_by_sending_again_until_the_retries_are_spent(void **state) {
	static const uint8_t counts[] = {0, 1, 3, 7};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(counts); n++) {
		bed->qp.attr.retry_cnt = counts[n];
		bed_start(1000, MTU);
		bed_post(IBV_WR_RDMA_WRITE, 0, 3 * MTU);
		bed_post(IBV_WR_SEND, 0, 8);
		bed_transmit();
		for (uint32_t round = 0; round < counts[n]; round++) {
			bed_advance(TIMEOUT_NS - 1);
			assert_int_equal(bed_transmit(), 0);
			bed_advance(1);
			assert_int_equal(bed_transmit(), 4);
			bed_no_wc();
		}
		bed_timeout();
		bed_wc(IBV_WC_RETRY_EXC_ERR);
		bed_wc(IBV_WC_WR_FLUSH_ERR);
		bed_no_wc();
		assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
	}
	assert_int_equal(COUNTER(timeouts), 0 + 1 + 3 + 7 + 4);
}

// On a busy machine the requester itself may run late.
static void a_timeout_that_we_ourselves_slept_through_is_not_the_peers(void **state) {
	static const uint64_t late_ns = 30000000;

	(void)state;
	bed->qp.attr.retry_cnt = 0;
	bed_start(1000, MTU);
	bed_post(IBV_WR_RDMA_WRITE, 0, 3 * MTU);
	bed_transmit();
	for (uint32_t round = 0; round < 30; round++) {
		bed_advance(TIMEOUT_NS + late_ns);
		assert_int_equal(bed_transmit(), 3);
		bed_no_wc();
	}
	// Progress resets the count of late timeouts.
	bed_ack(1000);
	for (uint32_t round = 0; round < 30; round++) {
		bed_advance(TIMEOUT_NS + late_ns);
		assert_int_equal(bed_transmit(), 2);
	}
	bed_no_wc();
	bed_timeout();
	bed_wc(IBV_WC_RETRY_EXC_ERR);
}

static void one_who_is_always_away_gives_up_in_the_end(void **state) {
	uint32_t rounds = 0;

	(void)state;
	bed_post(IBV_WR_SEND, 0, 8);
	for (; bed->errors == 0; rounds++) {
		bed_transmit();
		bed_advance(10 * TIMEOUT_NS);
		assert_true(rounds < 100);
	}
	assert_int_equal(COUNTER(timeouts), rounds);
	bed_wc(IBV_WC_RETRY_EXC_ERR);
}

static void retries_begin_anew_with_every_progress(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 32 * MTU);
	for (uint32_t n = 0; n < 31; n++) {
		bed_transmit();
		for (uint32_t round = 0; round < 3; round++) {
			bed_timeout();
			bed_transmit();
		}
		bed_ack(1000 + n);
	}
	bed_no_wc();
	assert_int_equal(bed->errors, 0);
}

static void progress_puts_the_timeout_off(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 8 * MTU);
	bed_transmit();
	for (uint32_t n = 0; n < 7; n++) {
		bed_advance(TIMEOUT_NS - 1);
		bed_ack(1000 + n);
	}
	assert_int_equal(COUNTER(timeouts), 0);
	assert_int_equal(bed_transmit(), 0);
	bed_advance(TIMEOUT_NS);
	assert_int_equal(COUNTER(timeouts), 1);
	assert_int_equal(bed_transmit(), 1);
}

static void the_timeout_is_a_power_of_two_and_zero_is_never(void **state) {
	(void)state;
	for (uint8_t timeout = 0; timeout < 32; timeout++) {
		bed->qp.attr.timeout = timeout;
		bed_start(1000, MTU);
		bed_post(IBV_WR_SEND, 0, 8);
		bed_transmit();
		assert_int_equal(
			bed->qp.requester.timeout_ns,
			timeout == 0 ? NIC_NEVER : bed->nic.now_ns + (UINT64_C(4096) << timeout)
		);
		assert_int_equal(requester_next_timer_ns(&bed->qp) == NIC_NEVER, timeout == 0);
	}
}

static void a_peer_that_is_not_ready_is_waited_for_as_long_as_it_says(void **state) {
	(void)state;
	for (uint8_t code = 0; code < 32; code++) {
		uint64_t due_ns = bed->nic.now_ns + packet_rnr_delay_ns(code);

		bed_start(1000, MTU);
		bed->sent_count = bed->seen = 0;
		bed_post(IBV_WR_SEND, 0, 8);
		bed_post(IBV_WR_SEND, 0, 2 * MTU);
		bed_transmit();
		bed_syndrome(1001, (uint8_t)(PACKET_SYNDROME_RNR | code));
		bed_wc(IBV_WC_SUCCESS);
		assert_int_equal(requester_next_timer_ns(&bed->qp), due_ns);
		assert_int_equal(bed_transmit(), 0);
		bed_advance(packet_rnr_delay_ns(code) - 1);
		assert_int_equal(bed_transmit(), 0);
		bed_advance(1);
		assert_true(bed->qp.is_ready);
		bed->seen = bed->sent_count;
		assert_int_equal(bed_transmit(), 2);
		bed_sent_as(PACKET_SEND_FIRST, 1001);
		bed_ack(1002);
		bed_wc(IBV_WC_SUCCESS);
	}
	assert_int_equal(COUNTER(rnr_naks_received), 32);
	assert_int_equal(COUNTER(timeouts), 0);
}

static void the_peer_is_asked_as_often_as_rnr_retry_says(void **state) {
	(void)state;
	for (uint8_t count = 0; count < 8; count++) {
		uint32_t rounds = count == 7 ? 100 : count;

		bed->qp.attr.rnr_retry = count;
		bed_start(1000, MTU);
		bed_post(IBV_WR_SEND, 0, 8);
		for (uint32_t n = 0; n < rounds; n++) {
			assert_int_equal(bed_transmit(), 1);
			bed_syndrome(1000, PACKET_SYNDROME_RNR | 1);
			bed_due();
		}
		assert_int_equal(bed_transmit(), 1);
		bed_no_wc();
		bed_syndrome(1000, PACKET_SYNDROME_RNR | 1);
		if (count < 7)
			bed_wc(IBV_WC_RNR_RETRY_EXC_ERR);
		bed_no_wc();
	}
}

static void not_being_ready_takes_nothing_off_the_retries(void **state) {
	(void)state;
	bed->qp.attr.rnr_retry = 7;
	bed_start(1000, MTU);
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	for (uint32_t n = 0; n < 20; n++) {
		bed_timeout();
		bed_transmit();
		bed_syndrome(1000, PACKET_SYNDROME_RNR | 1);
		bed_due();
		bed_transmit();
	}
	assert_int_equal(bed->errors, 0);
	bed_ack(1000);
	bed_wc(IBV_WC_SUCCESS);
}

static void said_twice_not_ready_counts_once(void **state) {
	(void)state;
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	for (uint32_t n = 0; n < 10; n++)
		bed_syndrome(1000, PACKET_SYNDROME_RNR | 5);
	bed_no_wc();
	bed_due();
	assert_int_equal(bed_transmit(), 1);
	// The peer became ready after all.
	bed_syndrome(1000, PACKET_SYNDROME_RNR | 5);
	bed_ack(1000);
	bed_wc(IBV_WC_SUCCESS);
	bed_post(IBV_WR_SEND, 0, 8);
	assert_int_equal(bed_transmit(), 1);
}

static void while_it_waits_nothing_is_overdue(void **state) {
	(void)state;
	bed->qp.attr.timeout = 1;
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	bed_syndrome(1000, PACKET_SYNDROME_RNR | 31);
	bed_due();
	assert_int_equal(COUNTER(timeouts), 0);
	assert_int_equal(bed_transmit(), 1);
	bed_due();
	assert_int_equal(COUNTER(timeouts), 1);
}

static void silence_is_asked_about_long_before_it_is_overdue(void **state) {
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const uint8_t first[] = {PACKET_WRITE_FIRST, PACKET_READ_REQUEST, PACKET_FETCH_ADD};

	(void)state;
	bed->qp.attr.timeout = 14;
	for (size_t n = 0; n < COUNT_OF(opcodes); n++) {
		uint32_t length = opcodes[n] == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 3 * MTU;
		uint64_t begin_ns = bed->nic.now_ns;

		bed_start(1000, MTU);
		bed->sent_count = bed->seen = 0;
		bed_post(opcodes[n], 64, length);
		bed_post(IBV_WR_SEND, 64, 8);
		bed_transmit();
		bed->seen = bed->sent_count;
		bed_due();
		assert_true(bed->nic.now_ns - begin_ns <= 100000);
		assert_true(bed_sent_as(first[n], 1000)->packet.ack_request);
		assert_memory_equal(
			bed->sent[0].payload, bed->sent[bed->seen - 1].payload, bed->sent[0].size
		);
		bed_sent_nothing();
		// Nothing else is sent again, and the timeout is unchanged.
		assert_int_equal(bed_transmit(), 0);
		assert_int_equal(bed->qp.requester.timeout_ns, begin_ns + (UINT64_C(4096) << 14));
		assert_in_range(bed_timeout(), 5, 16);
	}
	assert_int_equal(COUNTER(timeouts), COUNT_OF(opcodes));
	bed_no_wc();
}

// Advance by `ns`, running each timer when it is due.
static void pass(uint64_t ns) {
	uint64_t end_ns = bed->nic.now_ns + ns;

	while (requester_next_timer_ns(&bed->qp) < end_ns)
		bed_due();
	bed_advance(end_ns - bed->nic.now_ns);
}

static void how_soon_it_asks_follows_what_answers_take(void **state) {
	static const uint64_t waits_ns[] = {1000, 20000, 1000000, 20000};

	(void)state;
	bed->qp.attr.timeout = 20;
	bed_start(0, MTU);
	for (uint32_t psn = 0; psn < 4000; psn++) {
		uint64_t wait_ns = waits_ns[psn / 1000];

		bed->sent_count = 0;
		bed_post_flags(IBV_WR_SEND, 0, 8, 0);
		bed_transmit();
		pass(wait_ns);
		bed_ack(psn);
		if (psn % 1000 == 999)
			assert_in_range(
				bed->qp.requester.wait_ns, wait_ns * 8 / 10, wait_ns * 12 / 10
			);
	}
	assert_in_range(COUNTER(probes), 1, 40);
}

static void asking_takes_nothing_off_the_retries_and_helps(void **state) {
	(void)state;
	bed->qp.attr.retry_cnt = 0;
	bed->qp.attr.timeout = 20;
	bed_start(1000, MTU);
	bed_post(IBV_WR_RDMA_WRITE, 0, 20 * MTU);
	bed_post(IBV_WR_RDMA_READ, 0, 8);
	bed_transmit();
	for (uint32_t n = 0; n < 20; n++) {
		bed_due();
		assert_int_equal(COUNTER(probes), n + 1);
		bed_ack(1000 + n);
	}
	bed_wc(IBV_WC_SUCCESS);
	bed_due();
	bed_read_answer(PACKET_READ_ONLY, 1020, 1, 8);
	bed_wc(IBV_WC_SUCCESS);
	assert_int_equal(bed->errors, 0);
	assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
}

static void asking_from_memory_that_is_gone_or_on_a_full_wire_asks_nothing(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 2 * MTU);
	bed_transmit();
	bed->seen = bed->sent_count;
	bed->room = 0;
	bed_due();
	bed->room = UINT32_MAX;
	region_remove(&bed->nic, &bed->mr);
	bed_due();
	bed_sent_nothing();
	bed_no_wc();
	assert_int_equal(region_add(&bed->nic, &bed->mr), 0);
	bed_ack(1001);
	bed_wc(IBV_WC_SUCCESS);
}

// The memory of the second request is deregistered while the answer to both requests is in flight.
static void a_late_answer_ends_well_what_could_not_be_sent_again(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 8);
	bed_post(IBV_WR_RDMA_WRITE, 8, 8);
	assert_int_equal(bed_transmit(), 2);
	bed->room = 0;
	bed_timeout();
	bed->room = 1;
	(void)requester_transmit(&bed->qp, 100); // sends the first one again, which fills the wire
	region_remove(&bed->nic, &bed->mr);
	bed->room = UINT32_MAX;
	bed_transmit();
	bed_no_wc();
	bed_ack(1001);
	bed_wcs(2, IBV_WC_SUCCESS);
	bed_no_wc();
	assert_int_equal(bed->qp.verbs.state, IBV_QPS_RTS);
	assert_int_equal(region_add(&bed->nic, &bed->mr), 0);
}

static void losses_while_the_wire_is_full_are_made_good_later(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 10 * MTU);
	bed_transmit();
	bed->room = 0;
	bed_syndrome(1003, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_true(requester_transmit(&bed->qp, 100));
	bed->room = UINT32_MAX;
	assert_int_equal(bed_transmit(), 7);
	assert_true(requester_next_timer_ns(&bed->qp) != NIC_NEVER);
	bed_ack(1009);
	bed_wc(IBV_WC_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_open, bed_close)

UNIT_GROUP(soft_requester_retry) {
	const struct CMUnitTest tests[] = {
		TEST(a_refusal_ends_the_request_with_its_status),
		TEST(a_refusal_past_a_missing_answer_waits_for_that_answer),
		TEST(sending_goes_on_where_one_was_missed),
		TEST(what_was_answered_before_it_went_back_is_not_sent_again),
		TEST(a_read_goes_on_where_an_answer_was_lost),
		TEST(a_resumed_read_may_be_answered_from_its_middle_on),
		TEST(an_answer_that_is_lost_again_is_asked_for_again_when_they_begin_anew),
		TEST(the_same_refusal_twice_sends_once_if_nothing_went_out_between),
		TEST(being_told_that_one_is_missing_takes_nothing_off_the_retries),
		TEST(it_goes_back_at_most_once_in_the_time_an_answer_takes),
		TEST(going_back_without_progress_ends_after_the_retries),
		TEST(silence_is_answered_by_sending_again_until_the_retries_are_spent),
		TEST(a_timeout_that_we_ourselves_slept_through_is_not_the_peers),
		TEST(one_who_is_always_away_gives_up_in_the_end),
		TEST(retries_begin_anew_with_every_progress),
		TEST(progress_puts_the_timeout_off),
		TEST(the_timeout_is_a_power_of_two_and_zero_is_never),
		TEST(a_peer_that_is_not_ready_is_waited_for_as_long_as_it_says),
		TEST(the_peer_is_asked_as_often_as_rnr_retry_says),
		TEST(not_being_ready_takes_nothing_off_the_retries),
		TEST(said_twice_not_ready_counts_once),
		TEST(while_it_waits_nothing_is_overdue),
		TEST(silence_is_asked_about_long_before_it_is_overdue),
		TEST(how_soon_it_asks_follows_what_answers_take),
		TEST(asking_takes_nothing_off_the_retries_and_helps),
		TEST(asking_from_memory_that_is_gone_or_on_a_full_wire_asks_nothing),
		TEST(a_late_answer_ends_well_what_could_not_be_sent_again),
		TEST(losses_while_the_wire_is_full_are_made_good_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
