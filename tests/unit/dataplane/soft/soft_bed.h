// SPDX-License-Identifier: BSD-3-Clause
// Two devices of one process on the memory wire, a connected pair of queues, and a clock that is
// turned by hand. Everything goes through verbs_calls_soft and libibverbs' inline calls.
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
	bool live; // set before bed_make(): the processor's clock, and engines
	struct ibv_device **devices;
	struct bed_end ends[2];
};

extern struct bed bed;

// Setup and teardown of tests. Everything is closed again, or the test fails.
int bed_make(void **state);
int bed_end(void **state);
// Two devices are added and opened, and nothing is made on them.
int bed_make_bare(void **state);

struct soft_config bed_config(uint32_t n);
struct ibv_qp_init_attr bed_qp_attr(const struct bed_end *end);
// To INIT, RTR and RTS; psn: of what `from` receives.
int bed_to_init(struct ibv_qp *qp);
struct ibv_qp_attr bed_rtr_attr(const struct bed_end *peer, uint32_t qp_number);
struct ibv_qp_attr bed_rts_attr(void);
extern const int bed_rtr_mask, bed_rts_mask;
void bed_connect(struct bed_end *a, struct ibv_qp *qp_a, struct bed_end *b, struct ibv_qp *qp_b);

// Turns both devices, and the clock where nothing moves, until nothing is due within `within_ns`.
void bed_run(uint64_t within_ns);
// Polls one completion after bed_run(); fails without.
struct ibv_wc bed_wait(struct bed_end *end);
bool bed_is_quiet(struct bed_end *end);
