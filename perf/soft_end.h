// SPDX-License-Identifier: BSD-3-Clause
// One end of a reliable connection: of the software device, or of one of the system's.
#pragma once

#include "soft.h"

#define END_AREA_BYTES (4 << 20)
#define END_DEPTH 128

struct end_about { // told to the other end
	union ibv_gid gid;
	uint64_t address;
	uint32_t queue_pair, key;
	enum ibv_mtu mtu;
};

struct end {
	const struct verbs_calls *calls;
	struct soft_why *why;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *area;
	uint8_t gid_index;
	struct end_about mine, theirs;
	uint32_t out; // posted and not complete
};

// The software device of a setup. Before any is opened.
int end_add_device(
	const struct soft_setup *setup, uint32_t number, struct soft_why *why, const char **ret_name
);
// calls and why are set; up to what the other end must be told.
int end_open(struct end *end, const char *name);
int end_make_qp(struct end *end, struct ibv_qp **ret_qp);
// What the other end told is there. The queue pair may be any.
int end_connect(struct end *end, struct ibv_qp *qp, uint8_t timeout);

// A write from one place of the area here to one of the area there.
int end_post(struct end *end, uint32_t from, uint32_t to, uint32_t size);
int end_reap(struct end *end);
int end_drain(struct end *end);
