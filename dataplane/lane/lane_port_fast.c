// SPDX-License-Identifier: BSD-3-Clause
// What the worker does for a port in each step.
#include "lane/lane_impl.h"
#include "lane/lane_port_impl.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>

#define BATCHES_PER_STEP 8

// The ring has a place for every operation there is.
static void port_done(struct op *op) {
	struct lane_port *port = container_of(op, struct port_op, op)->port;
	int err = rte_ring_sp_enqueue_elem(port->out, &op, sizeof(void *));

	must_debug(err == 0);
	(void)err;
	port->under_way--;
	port->ended = true;
}

static void batch_submit(struct lane_port *port, const struct port_batch *batch) {
	struct op *ops[LANE_PORT_BATCH_MAX];
	struct op *op = batch->first;

	for (uint64_t n = 0; n < batch->count; n++) {
		ops[n] = op;
		op->done = port_done;
		op = op->next;
	}
	port->under_way += (uint32_t)batch->count;
	lane_submit(port->lane, ops, (uint32_t)batch->count);
}

bool lane_port_step(void *ctx, struct idle_found *found) {
	struct port_batch batches[BATCHES_PER_STEP];
	struct lane_port *port = ctx;
	uint32_t count;

	(void)found;
	count = rte_ring_sc_dequeue_burst_elem(
		port->in, batches, sizeof(batches[0]), BATCHES_PER_STEP, NULL
	);
	for (uint32_t n = 0; n < count; n++)
		batch_submit(port, &batches[n]);
	return count > 0;
}

void lane_port_request(struct worker *worker, const struct worker_record *record) {
	struct lane_port *port = worker_pointer(record->words[0]);
	struct worker_record event = {.words = {record->words[0]}};
	int err = -EBUSY;

	if (record->kind == LANE_REQUEST_PORT_ATTACH) {
		event.kind = LANE_EVENT_ATTACHED;
		err = worker_poll_add(worker, &port->poll);
	} else {
		event.kind = LANE_EVENT_DETACHED;
		if (port->under_way == 0 && rte_ring_count(port->in) == 0)
			err = worker_poll_remove(worker, port);
	}
	event.words[1] = (uint64_t)(int64_t)err;
	worker_event(worker, &event);
}
