// SPDX-License-Identifier: BSD-3-Clause
// Starts a device with its first context and stops it after the last one. Cold.
#include "engine/engine.h"
#include "engine/port_watch.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct clock process_clock;

static void process_clock_init(void) {
	clock_init_tsc(&process_clock);
}

// Calibration takes up to 200 ms. It happens once per process and its children, and not before a
// device is opened.
void soft_clock_prepare(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, process_clock_init);
}

static int wire_create(
	struct soft_nic *nic,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	const struct soft_config *config = &nic->config;
	const struct wire_config of_wire = {
		.address = config->address,
		.address_any = config->address_any,
		.args = config->wire_args,
		.counters = &nic->counters,
	};

	switch (config->wire) {
	case SOFT_WIRE_UDP:
		return wire_udp_create(&of_wire, ret_reason, ret_wire);
	case SOFT_WIRE_DPDK:
		return wire_dpdk_create(&of_wire, ret_reason, ret_wire);
	case SOFT_WIRE_MEMORY:
		return wire_memory_create(&of_wire, ret_reason, ret_wire);
	}
	return -EINVAL;
}

// Bring the device up. The lock protects fields that other threads read; no thread drives the
// device yet.
static int nic_bring_up(struct soft_nic *nic, char reason[static SOFT_REASON_MAX + 1]) {
	struct soft_wire *inner = NULL;
	struct soft_wire *wire = NULL;
	struct engine *engine = NULL;
	int err = wire_create(nic, reason, &inner);

	if (err != 0)
		return err;
	nic_lock(nic);
	if (nic->config.clock == NULL)
		soft_clock_prepare();
	nic->clock = nic->config.clock != NULL ? nic->config.clock : &process_clock;
	nic->now_ns = clock_now_ns(nic->clock);
	err = wire_faults_create(inner, &nic->config.faults, &nic->counters, nic->clock, &wire);
	if (err != 0) {
		wire_destroy(inner);
		nic_unlock(nic);
		return err;
	}
	nic->wire = wire;
	nic->port = nic->wire_port = wire->port;
	nic->due_ns = NIC_NEVER;
	nic->engine_next_wake_ns = 0;
	nic_unlock(nic);
	if (nic->config.clock == NULL)
		err = engine_start(nic, &engine);
	nic_lock(nic);
	nic->engine = engine;
	if (err != 0)
		nic->wire = wire_destroy(nic->wire);
	nic_unlock(nic);
	if (err == 0)
		nic->port_watch = port_watch_start(nic);
	return err;
}

// Lock nic_add_context() and nic_remove_context(), with cancellation disabled. They contain
// cancellation points; a cancelled thread would keep the lock and leave a half-built device.
static int nic_lifecycle_lock(struct soft_nic *nic) {
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&nic->life);
	return cancel_state;
}

static void nic_life_unlock(struct soft_nic *nic, int cancel_state) {
	pthread_mutex_unlock(&nic->life);
	pthread_setcancelstate(cancel_state, NULL);
}

int nic_add_context(struct soft_nic *nic) {
	int cancel_state = nic_lifecycle_lock(nic);
	char reason[SOFT_REASON_MAX + 1] = "";
	int err = 0;

	if (nic->contexts == 0)
		err = nic_bring_up(nic, reason);
	if (err == 0)
		nic->contexts++;
	nic_lock(nic);
	memcpy(nic->reason, reason, sizeof(reason));
	nic_unlock(nic);
	nic_life_unlock(nic, cancel_state);
	return err;
}

// The engine may be waiting on the wire; the fault wrapper allows that.
int nic_set_faults(struct soft_nic *nic, const struct soft_faults *faults) {
	int err = 0;

	nic_lock(nic);
	if (nic->wire != NULL)
		err = wire_faults_change(&nic->wire, faults, &nic->counters, nic->clock);
	if (err == 0)
		nic->config.faults = *faults;
	nic_unlock(nic);
	return err;
}

void nic_remove_context(struct soft_nic *nic) {
	int cancel_state = nic_lifecycle_lock(nic);

	if (nic->contexts == 1) {
		nic->port_watch = port_watch_stop(nic->port_watch);
		engine_stop(nic->engine);
		nic_lock(nic);
		must(nic->qp_count == 0 && nic->regions.count == 0);
		nic->engine = NULL;
		nic->wire = wire_destroy(nic->wire);
		free(nic->qps);
		free(nic->qp_salts);
		nic->qps = NULL;
		nic->qp_salts = NULL;
		nic->qp_capacity = nic->qp_next = 0;
		nic_unlock(nic);
	}
	nic->contexts--;
	nic_life_unlock(nic, cancel_state);
}
