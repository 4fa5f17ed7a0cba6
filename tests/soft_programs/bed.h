// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs of a program that only knows libibverbs. With libtocsin-verbs.so preloaded, the
// program finds software devices. A failure fails the current test.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BED_GID_INDEX 0
#define BED_BYTES 65536
#define BED_DEPTH 128

// One open device with its objects.
struct bed_end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq; // NULL: each queue pair has its own queue
	struct ibv_mr *mr;
	uint8_t *memory; // BED_BYTES bytes
	union ibv_gid gid;
};

// Address of a queue pair; plain bytes, for pipes between processes.
struct bed_address {
	union ibv_gid gid;
	uint32_t qp_number;
	uint32_t rkey;
	uint64_t memory;
};

// Open the device with that name.
void bed_open(struct bed_end *end, const char *name);
void bed_close(struct bed_end *end);

struct ibv_qp *bed_qp(struct bed_end *end);
struct bed_address bed_address(const struct bed_end *end, const struct ibv_qp *qp);
void bed_connect(struct ibv_qp *qp, const struct bed_address *to);
// Create both ends of a connection.
void bed_pair(struct bed_end *a, struct ibv_qp **ret_a, struct bed_end *b, struct ibv_qp **ret_b);

// Return the next completion; waits in ibv_poll_cq().
struct ibv_wc bed_poll(struct ibv_cq *cq);

// One signalled request of one piece, from the start of the local memory to the same offset of the
// peer's.
struct bed_request {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	uint32_t offset, length; // piece of the local memory, bytes
	uint32_t immediate;
	uint64_t compare_add, swap;
	uint32_t rkey_error; // added to the rkey
	unsigned int flags;
};
void bed_post(
	const struct bed_end *end,
	struct ibv_qp *qp,
	const struct bed_address *to,
	const struct bed_request *request
);
void bed_receive(
	const struct bed_end *end,
	struct ibv_qp *qp,
	uint64_t wr_id,
	uint32_t offset,
	uint32_t length
);
