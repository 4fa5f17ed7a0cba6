// SPDX-License-Identifier: BSD-3-Clause
// Tests every RC operation between two devices, in both directions, and checks the data.
//
//     soft-rxe-operations DEVICE GID-INDEX PORT whole|lossy [PEER]
//
// Without PEER it listens, else it connects. Both ends execute the same steps, and the last line
// gives their number. The first failure ends both processes. With packet loss, the steps that end
// in a NAK are skipped: the NAK is sent only once, and afterwards the queue pair does not respond.
#include "ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
// Offsets in the memory of each end.
#define SOURCE_AT 64
#define TARGET_AT ((2U << 20) + 64)
#define GUARD_BYTES 64
#define GUARD 0xee
#define IMMEDIATE 0x89abcdef

static struct end end;
static uint32_t steps;

static uint8_t pattern(uint32_t seed, uint32_t at) {
	return (uint8_t)((seed * 2654435761U ^ at * 40503U ^ at >> 8) >> 3);
}

static void fill_source(uint32_t size) {
	for (uint32_t n = 0; n < size; n++)
		end.memory[SOURCE_AT + n] = pattern(steps, n);
}

static void clear_target(uint32_t size) {
	memset(end.memory + TARGET_AT - GUARD_BYTES, GUARD, size + 2 * GUARD_BYTES);
}

static void expect_target(uint32_t size) {
	const uint8_t *target = end.memory + TARGET_AT;

	for (uint32_t n = 0; n < size; n++) {
		if (target[n] != pattern(steps, n))
			fail("byte %u of %u is %02x instead of %02x", n, size, target[n],
			     pattern(steps, n));
	}
	for (uint32_t n = 0; n < GUARD_BYTES; n++) {
		if (target[size + n] != GUARD || target[-1 - (int)n] != GUARD)
			fail("written to outside, %u bytes away", n);
	}
}

// Split a range into up to three pieces, the first of which is small and odd.
static int pieces(uint32_t at, uint32_t size, struct ibv_sge *ret_sges) {
	const uint32_t sizes[SGES_MAX] = {
		size < 3 ? size : 3, size < 3 ? 0 : (size - 3) / 2,
		size < 3 ? 0 : size - 3 - (size - 3) / 2};
	int count = 0;

	for (uint32_t n = 0; n < SGES_MAX; n++) {
		if (sizes[n] > 0)
			ret_sges[count++] = (struct ibv_sge
			){(uintptr_t)end.memory + at, sizes[n], end.mr->lkey};
		at += sizes[n];
	}
	return count;
}

static void post(struct ibv_send_wr *wr) {
	struct ibv_send_wr *bad;

	check(ibv_post_send(end.qp, wr, &bad) == 0);
}

static void post_receive(uint64_t id, uint32_t at, uint32_t size) {
	struct ibv_sge sges[SGES_MAX];
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sges, .num_sge = pieces(at, size, sges)};
	struct ibv_recv_wr *bad;

	check(ibv_post_recv(end.qp, &wr, &bad) == 0);
}

static struct ibv_send_wr
request(enum ibv_wr_opcode opcode, struct ibv_sge *sges, uint32_t at, uint32_t size) {
	return (struct ibv_send_wr){
		.wr_id = steps,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = sges,
		.num_sge = pieces(at, size, sges),
		.imm_data = htobe32(IMMEDIATE),
		.wr.rdma = {.remote_addr = end.peer.address + TARGET_AT, .rkey = end.peer.key},
	};
}

struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
	bool received, immediate;
};

static const struct operation operations[] = {
	{"write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, false},
	{"write with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, true},
	{"send", IBV_WR_SEND, IBV_WC_SEND, true, false},
	{"send with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, true},
	{"read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, false},
};

static void begin(const char *name, bool requester, uint32_t size) {
	snprintf(
		present, sizeof(present), "step %u, %s of %u bytes, %s", ++steps, name, size,
		requester ? "requested here" : "requested there"
	);
}

static void expect_receive(const struct operation *operation, uint32_t size) {
	const bool write = operation->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	const struct ibv_wc wc =
		end_success(&end, steps, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);

	check(wc.byte_len == size);
	check(((wc.wc_flags & IBV_WC_WITH_IMM) != 0) == operation->immediate);
	check(!operation->immediate || wc.imm_data == htobe32(IMMEDIATE));
	check(wc.qp_num == end.qp->qp_num);
}

static void step_operation(const struct operation *operation, bool requester, uint32_t size) {
	const bool read = operation->opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sges[SGES_MAX];
	struct ibv_send_wr wr;

	begin(operation->name, requester, size);
	fill_source(size);
	clear_target(size);
	if (!requester && operation->received)
		post_receive(steps, TARGET_AT, size);
	end_meet(&end);
	if (requester) {
		wr = request(operation->opcode, sges, read ? TARGET_AT : SOURCE_AT, size);
		if (read)
			wr.wr.rdma.remote_addr = end.peer.address + SOURCE_AT;
		if (!read && size <= 64)
			wr.send_flags |= IBV_SEND_INLINE;
		post(&wr);
		end_success(&end, steps, operation->done);
	} else if (operation->received) {
		expect_receive(operation, size);
	}
	end_meet(&end);
	if (requester == read)
		expect_target(size);
}

static uint64_t number_at(uint32_t at) {
	uint64_t number;

	memcpy(&number, end.memory + at, sizeof(number));
	return number;
}

static void step_atomics(bool requester) {
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		enum ibv_wc_opcode done;
		uint64_t before, compare_add, swap, after;
	} cases[] = {
		{"fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, UINT64_MAX - 2,
		 0x100000005, 0, 0x100000002},
		{"compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP,
		 0x8899aabbccddeeff, 0x8899aabbccddeeff, 0x0123456789abcdef, 0x0123456789abcdef},
		{"compare and not swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 7, 8, 9, 7},
	};
	struct ibv_sge sges[SGES_MAX];

	for (size_t n = 0; n < COUNT(cases); n++) {
		begin(cases[n].name, requester, 8);
		clear_target(8);
		memcpy(end.memory + SOURCE_AT, &cases[n].before, 8);
		end_meet(&end);
		if (requester) {
			struct ibv_send_wr wr = request(cases[n].opcode, sges, TARGET_AT, 8);

			wr.num_sge = 1;
			sges[0].length = 8;
			wr.wr.atomic.remote_addr = end.peer.address + SOURCE_AT;
			wr.wr.atomic.rkey = end.peer.key;
			wr.wr.atomic.compare_add = cases[n].compare_add;
			wr.wr.atomic.swap = cases[n].swap;
			post(&wr);
			end_success(&end, steps, cases[n].done);
		}
		end_meet(&end);
		check(!requester || number_at(TARGET_AT) == cases[n].before);
		check(requester || number_at(SOURCE_AT) == cases[n].after);
	}
}

// Fill the queue with writes of every size up to two packets and a bit, the last one signalled.
static void step_many_writes(bool requester) {
	const uint32_t most = end.mtu * 2 + 3, total = most * 100;
	struct ibv_sge sges[SGES_MAX];
	uint32_t at = 0;

	begin("many writes", requester, total);
	fill_source(total);
	clear_target(total);
	end_meet(&end);
	for (uint32_t n = 0; requester && at < total; n++) {
		const uint32_t left = total - at;
		const uint32_t want = n % 7 == 0 ? n : most - n % 50;
		const uint32_t size = want < left ? want : left;
		struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, sges, SOURCE_AT + at, size);

		wr.wr.rdma.remote_addr += at;
		at += size;
		if (at < total)
			wr.send_flags = 0;
		post(&wr);
	}
	if (requester)
		end_success(&end, steps, IBV_WC_RDMA_WRITE);
	end_meet(&end);
	if (!requester)
		expect_target(total);
}

// Post more reads than may be in progress at once.
static void step_many_reads(bool requester) {
	const uint32_t size = end.mtu * 2 + 1, count = 3 * READS_MAX;
	struct ibv_sge sges[SGES_MAX];

	begin("many reads", requester, size * count);
	fill_source(size * count);
	clear_target(size * count);
	end_meet(&end);
	for (uint32_t n = 0; requester && n < count; n++) {
		struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, sges, TARGET_AT + n * size, size);

		wr.wr_id = n;
		wr.wr.rdma.remote_addr = end.peer.address + SOURCE_AT + n * size;
		post(&wr);
	}
	for (uint32_t n = 0; requester && n < count; n++)
		end_success(&end, n, IBV_WC_RDMA_READ);
	end_meet(&end);
	if (requester)
		expect_target(size * count);
}

static void step_many_atomics(bool requester) {
	const uint64_t zero = 0;
	const uint32_t count = 3 * READS_MAX;
	struct ibv_sge sges[SGES_MAX];

	begin("many additions", requester, 8 * count);
	memcpy(end.memory + SOURCE_AT, &zero, 8);
	end_meet(&end);
	for (uint32_t n = 0; requester && n < count; n++) {
		struct ibv_send_wr wr =
			request(IBV_WR_ATOMIC_FETCH_AND_ADD, sges, TARGET_AT + 8 * n, 8);

		wr.wr_id = n;
		wr.num_sge = 1;
		sges[0].length = 8;
		wr.wr.atomic.remote_addr = end.peer.address + SOURCE_AT;
		wr.wr.atomic.rkey = end.peer.key;
		wr.wr.atomic.compare_add = 3;
		post(&wr);
	}
	for (uint32_t n = 0; requester && n < count; n++) {
		end_success(&end, n, IBV_WC_FETCH_ADD);
		check(number_at(TARGET_AT + 8 * n) == 3 * n);
	}
	end_meet(&end);
	check(requester || number_at(SOURCE_AT) == 3 * count);
}

// A read returns what an earlier write wrote, and a later send announces both.
static void step_mixture(bool requester) {
	const uint32_t size = end.mtu * 3 + 1, back_at = TARGET_AT + (1U << 20);
	struct ibv_sge sges[SGES_MAX];
	struct ibv_send_wr wr;

	begin("write, read and send", requester, size);
	fill_source(size);
	clear_target(size);
	memset(end.memory + back_at, 0, size);
	if (!requester)
		post_receive(steps, back_at, size);
	end_meet(&end);
	if (requester) {
		wr = request(IBV_WR_RDMA_WRITE, sges, SOURCE_AT, size);
		post(&wr);
		wr = request(IBV_WR_RDMA_READ, sges, back_at, size);
		post(&wr);
		wr = request(IBV_WR_SEND, sges, back_at, size);
		wr.send_flags |= IBV_SEND_FENCE | IBV_SEND_SOLICITED;
		post(&wr);
		end_success(&end, steps, IBV_WC_RDMA_WRITE);
		end_success(&end, steps, IBV_WC_RDMA_READ);
		end_success(&end, steps, IBV_WC_SEND);
	} else {
		check(end_success(&end, steps, IBV_WC_RECV).byte_len == size);
		expect_target(size);
		check(memcmp(end.memory + TARGET_AT, end.memory + back_at, size) == 0);
	}
	end_meet(&end);
}

// Send before a receive is posted: the responder answers with RNR NAK.
static void step_put_off(bool requester) {
	const uint32_t size = 100, count = 8;
	struct ibv_sge sges[SGES_MAX];

	begin("sends that are put off", requester, size * count);
	fill_source(size * count);
	clear_target(size * count);
	end_meet(&end);
	for (uint32_t n = 0; requester && n < count; n++) {
		struct ibv_send_wr wr = request(IBV_WR_SEND, sges, SOURCE_AT + n * size, size);

		wr.wr_id = n;
		post(&wr);
	}
	end_meet(&end);
	for (uint32_t n = 0; n < count; n++) {
		if (requester) {
			end_success(&end, n, IBV_WC_SEND);
		} else {
			post_receive(n, TARGET_AT + n * size, size);
			check(end_success(&end, n, IBV_WC_RECV).byte_len == size);
		}
	}
	end_meet(&end);
	if (!requester)
		expect_target(size * count);
}

// One rejected request. It moves both queue pairs to the error state; a new pair works.
struct refusal {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t key_bits, offset, size, receive_size;
	// Status at requester and responder; the kernel's device reports the second one, if it is
	// set.
	enum ibv_wc_status status[2], receive_status[2];
};

static void ended(const struct ibv_wc *wc, const enum ibv_wc_status allowed[2]) {
	if (wc->status == IBV_WC_SUCCESS || (wc->status != allowed[0] && wc->status != allowed[1]))
		fail("request %lu ended with %s", wc->wr_id, ibv_wc_status_str(wc->status));
}

static const enum ibv_wc_status flushed[2] = {IBV_WC_WR_FLUSH_ERR};

static void refused(const struct refusal *refusal) {
	struct ibv_sge sges[SGES_MAX];
	struct ibv_send_wr wr = request(refusal->opcode, sges, SOURCE_AT, refusal->size);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = end.peer.address + refusal->offset;
	wr.wr.rdma.rkey = end.peer.key ^ refusal->key_bits;
	post(&wr);
	wr = request(IBV_WR_RDMA_WRITE, sges, SOURCE_AT, 4);
	post(&wr);
	wc = end_completion(&end);
	ended(&wc, refusal->status);
	wc = end_completion(&end);
	ended(&wc, flushed);
}

static void step_refusals(bool requester) {
	static const struct refusal refusals[] = {
		{"write with a wrong key",
		 IBV_WR_RDMA_WRITE,
		 0x10,
		 TARGET_AT,
		 100,
		 0,
		 {IBV_WC_REM_ACCESS_ERR},
		 {IBV_WC_WR_FLUSH_ERR}},
		{"read with a wrong key",
		 IBV_WR_RDMA_READ,
		 0x10,
		 TARGET_AT,
		 100,
		 0,
		 {IBV_WC_REM_ACCESS_ERR},
		 {IBV_WC_WR_FLUSH_ERR}},
		{"write over the end",
		 IBV_WR_RDMA_WRITE,
		 0,
		 MEMORY_BYTES - 50,
		 100,
		 0,
		 {IBV_WC_REM_ACCESS_ERR},
		 {IBV_WC_WR_FLUSH_ERR}},
		{"read over the end",
		 IBV_WR_RDMA_READ,
		 0,
		 MEMORY_BYTES - 50,
		 100,
		 0,
		 {IBV_WC_REM_ACCESS_ERR},
		 {IBV_WC_WR_FLUSH_ERR}},
		{"send longer than there is room",
		 IBV_WR_SEND,
		 0,
		 0,
		 100,
		 99,
		 {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR},
		 {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR}},
	};
	struct ibv_wc wc;

	for (size_t n = 0; n < COUNT(refusals); n++) {
		const struct refusal *refusal = &refusals[n];

		begin(refusal->name, requester, refusal->size);
		if (!requester)
			post_receive(steps, TARGET_AT, refusal->receive_size);
		end_meet(&end);
		if (requester) {
			refused(refusal);
		} else {
			wc = end_completion(&end);
			ended(&wc, refusal->receive_status);
		}
		end_meet(&end);
		end_connect(&end);
		step_operation(&operations[0], requester, 1000);
	}
}

static void direction(bool requester, bool lossy) {
	const uint32_t mtu = end.mtu;
	const uint32_t sizes[] = {
		0,   1,	      2,       3,	4,	 5,	      64,	    65,	   mtu - 1,
		mtu, mtu + 1, mtu + 2, mtu * 2, mtu * 3, mtu * 3 + 3, mtu * 16 + 1, 100001};

	for (size_t n = 0; n < COUNT(sizes); n++) {
		for (size_t kind = 0; kind < COUNT(operations); kind++)
			step_operation(&operations[kind], requester, sizes[n]);
	}
	step_operation(&operations[0], requester, 1U << 20);
	step_operation(&operations[4], requester, 1U << 20);
	step_atomics(requester);
	step_many_writes(requester);
	step_many_reads(requester);
	step_many_atomics(requester);
	step_mixture(requester);
	step_put_off(requester);
	if (!lossy)
		step_refusals(requester);
}

int main(int argc, char **argv) {
	bool lossy;

	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: %s DEVICE GID-INDEX PORT whole|lossy [PEER]\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	lossy = strcmp(argv[4], "lossy") == 0;
	end_open(
		&end, argv[1], (uint8_t)strtoul(argv[2], NULL, 10),
		(uint16_t)strtoul(argv[3], NULL, 10), argv[5]
	);
	end_connect(&end);
	direction(!end.listened, lossy);
	direction(end.listened, lossy);
	end_close(&end);
	printf("%u steps with MTU %u\n", steps, end.mtu);
	return 0;
}
