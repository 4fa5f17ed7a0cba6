// SPDX-License-Identifier: BSD-3-Clause
// The life of a port, and its caller's side. Control makes and frees it; the caller has the pool.
#include "lane/lane_port_impl.h"
#include "memory/near_ring.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>
#include <string.h>

static size_t pool_bytes(const struct lane_port *port) {
	return port->op_max * sizeof(port->pool[0]);
}

static int pool_create(struct lane_port *port) {
	port->pool = near_alloc(port->near, pool_bytes(port));
	if (port->pool == NULL)
		return -ENOMEM;
	memset(port->pool, 0, pool_bytes(port));
	for (uint32_t n = 0; n < port->op_max; n++) {
		port->pool[n].next_free = port->free;
		port->free = &port->pool[n];
	}
	return 0;
}

// The worker's thread, outside of the step.
static void port_notify(void *ctx) {
	struct lane_port *port = ctx;

	if (!port->ended)
		return;
	port->ended = false;
	doorbell_ring(&port->bell);
}

int lane_port_create(const struct lane_port_config *config, struct lane_port **ret_port) {
	struct lane_port *port;
	struct near near;
	uint32_t places;
	int err = -ENOMEM;

	if (config->op_max == 0 || config->op_max > LANE_PORT_OPS_MAX)
		return -EINVAL;
	near = worker_near(config->worker);
	port = near_alloc(near, sizeof(*port));
	if (port == NULL)
		return -ENOMEM;
	memset(port, 0, sizeof(*port));
	port->near = near;
	port->lane = config->lane;
	port->worker = config->worker;
	port->op_max = config->op_max;
	port->bell.fd = -1;
	port->poll = (struct worker_poll){
		.poll = lane_port_step,
		.ctx = port,
		.fd = -1,
		.notify = port_notify,
	};
	places = rte_align32pow2(port->op_max + 1);
	port->in = near_ring_create(near, "port", places, sizeof(struct port_batch));
	port->out = near_ring_create(near, "port", places, sizeof(void *));
	if (port->in != NULL && port->out != NULL)
		err = doorbell_init(&port->bell);
	if (err == 0)
		err = pool_create(port);
	if (err != 0) {
		lane_port_destroy(port);
		return err;
	}
	doorbell_arm(&port->bell); // the first end is rung for
	*ret_port = port;
	return 0;
}

struct lane_port *lane_port_destroy(struct lane_port *port) {
	if (port == NULL)
		return NULL;
	must(port->taken == 0 && port->under_way == 0);
	doorbell_fini(&port->bell);
	near_free(port->near, port->pool, pool_bytes(port));
	near_ring_destroy(port->near, port->in, sizeof(struct port_batch));
	near_ring_destroy(port->near, port->out, sizeof(void *));
	near_free(port->near, port, sizeof(*port));
	return NULL;
}

static int port_ask(struct lane_port *port, enum lane_request request) {
	const struct worker_record record = {.kind = request, .words = {worker_word(port)}};

	return worker_post(port->worker, &record);
}

int lane_port_attach(struct lane_port *port) {
	return port_ask(port, LANE_REQUEST_PORT_ATTACH);
}

int lane_port_detach(struct lane_port *port) {
	return port_ask(port, LANE_REQUEST_PORT_DETACH);
}

struct op *lane_port_take(struct lane_port *port) {
	struct port_op *taken = port->free;

	if (taken == NULL)
		return NULL;
	port->free = taken->next_free;
	port->taken++;
	memset(taken, 0, sizeof(*taken));
	taken->port = port;
	return &taken->op;
}

void lane_port_give(struct lane_port *port, struct op *op) {
	struct port_op *given = container_of(op, struct port_op, op);

	must(given->port == port && port->taken > 0);
	port->taken--;
	given->next_free = port->free;
	port->free = given;
}

int lane_port_submit(struct lane_port *port, struct op **ops, uint32_t count) {
	struct port_batch batch = {.first = count > 0 ? ops[0] : NULL, .count = count};

	if (count == 0 || count > LANE_PORT_BATCH_MAX)
		return -EINVAL;
	for (uint32_t n = 0; n < count; n++)
		ops[n]->next = n + 1 < count ? ops[n + 1] : NULL;
	// There is room: batches do not outnumber operations.
	must(rte_ring_sp_enqueue_elem(port->in, &batch, sizeof(batch)) == 0);
	worker_wake(port->worker);
	return 0;
}

static uint32_t take_ends(struct lane_port *port, struct op **ops, uint32_t count) {
	return rte_ring_sc_dequeue_burst_elem(port->out, ops, sizeof(struct op *), count, NULL);
}

uint32_t lane_port_ends(struct lane_port *port, struct op **ops, uint32_t count) {
	uint32_t taken;

	doorbell_disarm(&port->bell);
	taken = take_ends(port, ops, count);
	if (taken == count)
		return taken;
	// Arm, and look once more.
	doorbell_arm(&port->bell);
	return taken + take_ends(port, ops + taken, count - taken);
}

int lane_port_fd(const struct lane_port *port) {
	return port->bell.fd;
}
