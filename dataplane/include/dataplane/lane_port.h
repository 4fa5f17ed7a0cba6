// SPDX-License-Identifier: BSD-3-Clause
// How another thread has operations done by a lane: a port, of one thread's own, with a ring for
// batches of operations on their way in, one for their ends, and a doorbell at either end.
//
// The operations are the port's: a pool of so many, which the caller takes and gives back, so that
// they cannot outnumber the places in the rings. The pool is a plain list and no rte_mempool: one
// thread takes and gives, EAL need not run, and a mempool costs a thread that EAL does not know
// 39 ns for both.
//
//	caller: take -> fill in -> submit ... ends -> give		worker: polls the port
#pragma once

#include <dataplane/lane.h>

#include <stdint.h>

#define LANE_PORT_OPS_MAX 65536
#define LANE_PORT_BATCH_MAX 32

struct lane_port;

struct lane_port_config {
	struct lane *lane; // both outlive it
	struct worker *worker;
	uint32_t op_max; // up to LANE_PORT_OPS_MAX
};

// Control. -EINVAL, -ENOMEM, -errno of its descriptor.
int lane_port_create(const struct lane_port_config *config, struct lane_port **ret_port);
// Control. The worker does not poll it any more, and all operations were given back. NULL is fine.
struct lane_port *lane_port_destroy(struct lane_port *port);

// What control asks of the worker, through lane_request(): 0, or -EAGAIN as worker_post(). Answered
// by LANE_EVENT_ATTACHED and LANE_EVENT_DETACHED, whose words[0] is the port; -EBUSY there while
// operations are under way.
int lane_port_attach(struct lane_port *port);
int lane_port_detach(struct lane_port *port);

// The caller's thread from here on.
//
// One to be filled in, all zero; NULL if all are taken. `done` is the port's.
struct op *lane_port_take(struct lane_port *port);
void lane_port_give(struct lane_port *port, struct op *op);
// As lane_submit(). -EINVAL: more than LANE_PORT_BATCH_MAX, or none.
int lane_port_submit(struct lane_port *port, struct op **ops, uint32_t count);
// Those that ended, up to `count`. When it returns less, lane_port_fd() turns readable with the
// next one.
uint32_t lane_port_ends(struct lane_port *port, struct op **ops, uint32_t count);
int lane_port_fd(const struct lane_port *port);
