// SPDX-License-Identifier: BSD-3-Clause
// One end of a reliable connection, on a software device or a device of the system.
#pragma once

#include "soft.h"

#define END_AREA_BYTES (4 << 20)
#define END_DEPTH 128

struct end_info { // sent to the other end
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
	struct end_info mine, theirs;
	uint32_t out; // outstanding writes
};

// Add the software device of a setup. Must be called before any device is opened.
int end_add_device(
	const struct soft_setup *setup, uint32_t number, struct soft_why *why, const char **ret_name
);
// Open a device and fill in end->mine. The caller has set calls and why.
int end_open(struct end *end, const char *name);
int end_make_qp(struct end *end, struct ibv_qp **ret_qp);
// Connect any queue pair of the end. The caller has set end->theirs.
int end_connect(struct end *end, struct ibv_qp *qp, uint8_t timeout);

// Post a write from an offset of the local area to an offset of the remote area.
int end_post(struct end *end, uint32_t from, uint32_t to, uint32_t size);
int end_reap(struct end *end);
int end_drain(struct end *end);
