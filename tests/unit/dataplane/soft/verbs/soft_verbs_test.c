// SPDX-License-Identifier: BSD-3-Clause
// Tests of every operation from end to end, through the call table and the inline calls.
#include "dataplane/soft/soft_bed.h"

#include <support/cases.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

static struct bed_end *const here = &bed.ends[0], *const there = &bed.ends[1];

static void fill(void) {
	for (uint32_t n = 0; n < BED_BYTES; n++) {
		here->bytes[n] = (uint8_t)(n * 7 + 1);
		there->bytes[n] = (uint8_t)(n * 5 + 3);
	}
}

static struct ibv_sge piece(const struct bed_end *end, uint32_t offset, uint32_t length) {
	return (struct ibv_sge
	){.addr = (uintptr_t)end->bytes + offset, .length = length, .lkey = end->mr->lkey};
}

static void post(struct ibv_send_wr *wr) {
	struct ibv_send_wr *bad = NULL;

	wr->send_flags |= IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(here->qp, wr, &bad), 0);
}

static void post_receive(uint64_t id, struct ibv_sge *sges, int count) {
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sges, .num_sge = count}, *bad = NULL;

	assert_int_equal(ibv_post_recv(there->qp, &wr, &bad), 0);
}

static struct ibv_wc done(struct bed_end *end, enum ibv_wc_opcode opcode, uint64_t id) {
	struct ibv_wc wc = bed_wait(end);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
	return wc;
}

static const uint32_t lengths[] = {0, 1, 3, 8, 1023, 1024, 1025, 4096, 20000, 32768};

static void writes_of_any_length_arrive(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		struct ibv_sge sge = piece(here, 100, lengths[n]);
		struct ibv_send_wr wr = {
			.wr_id = n,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = {(uintptr_t)there->bytes + 300, there->mr->rkey},
		};

		fill();
		post(&wr);
		done(here, IBV_WC_RDMA_WRITE, n);
		assert_memory_equal(there->bytes + 300, here->bytes + 100, lengths[n]);
		assert_int_equal(there->bytes[299], (uint8_t)(299 * 5 + 3));
		assert_int_equal(
			there->bytes[300 + lengths[n]], (uint8_t)((300 + lengths[n]) * 5 + 3)
		);
	}
	assert_true(bed_is_quiet(there));
}

static void reads_of_any_length_arrive(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		struct ibv_sge sge = piece(here, 100, lengths[n]);
		struct ibv_send_wr wr = {
			.wr_id = n,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.wr.rdma = {(uintptr_t)there->bytes + 300, there->mr->rkey},
		};

		fill();
		post(&wr);
		done(here, IBV_WC_RDMA_READ, n);
		assert_memory_equal(there->bytes + 300, here->bytes + 100, lengths[n]);
		assert_int_equal(here->bytes[99], (uint8_t)(99 * 7 + 1));
		assert_int_equal(
			here->bytes[100 + lengths[n]], (uint8_t)((100 + lengths[n]) * 7 + 1)
		);
	}
}

static void sends_fill_the_pieces_of_a_receive(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		struct ibv_sge from[3] = {
			piece(here, 10, lengths[n] / 2),
			piece(here, 0, 0),
			piece(here, 40000, lengths[n] - lengths[n] / 2),
		};
		struct ibv_sge to[2] = {piece(there, 5000, 40000), piece(there, 100, 100)};
		struct ibv_send_wr wr = {
			.wr_id = n,
			.sg_list = from,
			.num_sge = 3,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = htobe32(0x12345678),
		};
		struct ibv_wc wc;

		fill();
		post_receive(n + 50, to, 2);
		post(&wr);
		done(here, IBV_WC_SEND, n);
		wc = done(there, IBV_WC_RECV, n + 50);
		assert_int_equal(wc.byte_len, lengths[n]);
		assert_true((wc.wc_flags & IBV_WC_WITH_IMM) != 0);
		assert_int_equal(wc.imm_data, htobe32(0x12345678));
		assert_memory_equal(there->bytes + 5000, here->bytes + 10, lengths[n] / 2);
		assert_memory_equal(
			there->bytes + 5000 + lengths[n] / 2, here->bytes + 40000,
			lengths[n] - lengths[n] / 2
		);
	}
}

static void a_write_with_immediate_takes_a_receive(void **state) {
	struct ibv_sge sge = piece(here, 0, 3000);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = 77,
		.wr.rdma = {(uintptr_t)there->bytes, there->mr->rkey},
	};
	struct ibv_wc wc;

	(void)state;
	fill();
	post_receive(2, NULL, 0);
	post(&wr);
	done(here, IBV_WC_RDMA_WRITE, 1);
	wc = done(there, IBV_WC_RECV_RDMA_WITH_IMM, 2);
	assert_int_equal(wc.imm_data, 77);
	assert_int_equal(wc.byte_len, 3000);
	assert_memory_equal(there->bytes, here->bytes, 3000);
}

static void inline_bytes_are_taken_at_once(void **state) {
	uint8_t own[64];
	struct ibv_sge sge = {.addr = (uintptr_t)own, .length = sizeof(own)};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
		.wr.rdma = {(uintptr_t)there->bytes, there->mr->rkey},
	};

	(void)state;
	memset(own, 0x5a, sizeof(own));
	post(&wr);
	memset(own, 0, sizeof(own));
	done(here, IBV_WC_RDMA_WRITE, 1);
	memset(own, 0x5a, sizeof(own));
	assert_memory_equal(there->bytes, own, sizeof(own));
}

static uint64_t word(const struct bed_end *end, uint32_t offset) {
	uint64_t value;

	memcpy(&value, end->bytes + offset, sizeof(value));
	return value;
}

static void word_set(struct bed_end *end, uint32_t offset, uint64_t value) {
	memcpy(end->bytes + offset, &value, sizeof(value));
}

static void atomics_return_what_was_there(void **state) {
	static const struct {
		enum ibv_wr_opcode opcode;
		enum ibv_wc_opcode done;
		uint64_t before, compare_add, swap, after;
	} cases[] = {
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 40, 2, 0, 42},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, UINT64_MAX, 2, 0, 1},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 7, 7, 9, 9},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 7, 8, 9, 7},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct ibv_sge sge = piece(here, 0, 8);
		struct ibv_send_wr wr = {
			.wr_id = n,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = cases[n].opcode,
			.wr.atomic =
				{(uintptr_t)there->bytes + 64, cases[n].compare_add, cases[n].swap,
				 there->mr->rkey},
		};

		word_set(there, 64, cases[n].before);
		post(&wr);
		done(here, cases[n].done, n);
		assert_int_equal(word(here, 0), cases[n].before);
		assert_int_equal(word(there, 64), cases[n].after);
	}
}

static void a_wrong_key_ends_both_queue_pairs(void **state) {
	struct ibv_sge sge = piece(here, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)there->bytes, there->mr->rkey ^ 1},
	};
	struct ibv_sge to = piece(there, 0, 8);
	struct ibv_async_event event;
	struct ibv_wc wc;

	(void)state;
	fill();
	post_receive(9, &to, 1);
	post(&wr);
	wc = bed_wait(here);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(there->bytes[0], 3);
	assert_int_equal(here->qp->state, IBV_QPS_ERR);
	assert_int_equal(there->qp->state, IBV_QPS_ERR);
	wc = bed_wait(there);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 9);
	for (;;) {
		assert_int_equal(verbs_calls_soft.get_async_event(there->context, &event), 0);
		verbs_calls_soft.ack_async_event(&event);
		if (event.event_type == IBV_EVENT_QP_ACCESS_ERR)
			break;
	}
	assert_ptr_equal(event.element.qp, there->qp);
}

UNIT_GROUP(soft_verbs) {
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	const struct CMUnitTest tests[] = {
		BED(writes_of_any_length_arrive),
		BED(reads_of_any_length_arrive),
		BED(sends_fill_the_pieces_of_a_receive),
		BED(a_write_with_immediate_takes_a_receive),
		BED(inline_bytes_are_taken_at_once),
		BED(atomics_return_what_was_there),
		BED(a_wrong_key_ends_both_queue_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
