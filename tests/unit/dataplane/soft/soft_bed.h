// SPDX-License-Identifier: BSD-3-Clause
// Two devices of one process on the memory wire, a connected queue pair, and a clock that the test
// advances. All calls use verbs_calls_soft or libibverbs' inline functions.
#pragma once

#include <dataplane/soft.h>
#include <support/cmocka.h>

#define BED_BYTES 65536
#define BED_RIGHTS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct bed_end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *bytes;
};

struct bed {
	struct clock clock;
	bool live; // set before bed_make(): real clock and engines
	struct ibv_device **devices;
	struct bed_end ends[2];
};

extern struct bed bed;

// Setup and teardown of a test. Teardown closes everything and fails if a close fails.
int bed_make(void **state);
int bed_end(void **state);
// Add and open two devices, without any object on them.
int bed_make_bare(void **state);

struct soft_config bed_config(uint32_t n);
struct ibv_qp_init_attr bed_qp_attr(const struct bed_end *end);
// Move a queue pair to INIT, RTR and RTS.
int bed_to_init(struct ibv_qp *qp);
struct ibv_qp_attr bed_rtr_attr(const struct bed_end *peer, uint32_t qp_number);
struct ibv_qp_attr bed_rts_attr(void);
extern const int bed_rtr_mask, bed_rts_mask;
void bed_connect(struct bed_end *a, struct ibv_qp *qp_a, struct bed_end *b, struct ibv_qp *qp_b);

// Run turns of both devices, and advance the clock if nothing moves, until nothing is due within
// `within_ns`.
void bed_run(uint64_t within_ns);
// Run the bed and return one completion; the test fails if there is none.
struct ibv_wc bed_wait(struct bed_end *end);
bool bed_is_quiet(struct bed_end *end);
