// SPDX-License-Identifier: BSD-3-Clause
// The fabric of programmable devices: setup by the test, faults, counters, violations.
#include "fake_verbs_impl.h"

#include <lib/must.h>

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fake_fabric fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fake_break(const char *format, ...) {
	va_list arguments;
	char text[sizeof(fake.broken)];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "fake verbs: %s\n", text);
	if (fake.broken[0] == '\0')
		memcpy(fake.broken, text, sizeof(text));
}

void fake_verbs_init(const struct clock *clock) {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	must(fake.device_count == 0);
	fake = (struct fake_fabric){.clock = clock, .lock = lock, .epoch = 1};
}

void fake_verbs_share(void) {
	fake.shared = true;
}

void fake_verbs_far(fake_far_fn *far) {
	fake.far = far;
}

void fake_verbs_light(void) {
	must(fake.clock == NULL);
	fake.light = true;
}

const char *fake_verbs_broken(void) {
	return fake.broken[0] != '\0' ? fake.broken : NULL;
}

void fake_verbs_forgive(void) {
	fake.broken[0] = '\0';
}

static void device_free(struct fake_device *device) {
	free(device->private->mrs);
	free(device->private->mr_variants);
	free(device->private->qps);
	free(device->private);
	free(device);
}

const char *fake_verbs_fini(void) {
	static char told[sizeof(fake.broken)];
	struct fake_alive alive = fake_verbs_alive();

	if (alive.lists + alive.contexts + alive.pds + alive.mrs + alive.channels + alive.cqs +
		    alive.qps + alive.completion_events + alive.async_events >
	    0)
		fake_break(
			"alive at the end: %u lists, %u contexts, %u domains, %u regions, "
			"%u channels, %u completion queues, %u queue pairs, "
			"%u events not acknowledged",
			alive.lists, alive.contexts, alive.pds, alive.mrs, alive.channels,
			alive.cqs, alive.qps, alive.completion_events + alive.async_events
		);
	fake_buried_free();
	for (uint32_t n = 0; n < fake.device_count; n++)
		device_free(fake.devices[n]);
	fake.device_count = 0;
	memcpy(told, fake.broken, sizeof(told));
	return told[0] != '\0' ? told : NULL;
}

static void alive_add(struct fake_alive *sum, const struct fake_alive *alive) {
	sum->contexts += alive->contexts;
	sum->pds += alive->pds;
	sum->mrs += alive->mrs;
	sum->channels += alive->channels;
	sum->cqs += alive->cqs;
	sum->qps += alive->qps;
	sum->completion_events += alive->completion_events;
	sum->async_events += alive->async_events;
}

struct fake_alive fake_verbs_alive(void) {
	struct fake_alive sum = {.lists = fake.lists};

	for (uint32_t n = 0; n < fake.device_count; n++) {
		for (struct fake_context *context = fake.devices[n]->private->contexts;
		     context != NULL; context = context->next)
			alive_add(&sum, &context->alive);
	}
	return sum;
}

// Devices.

static void port_fill(struct fake_port *port, uint32_t number, uint32_t place) {
	static const uint32_t types[] = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};

	port->attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = FAKE_GIDS_MAX,
		.max_msg_sz = UINT32_C(1) << 30,
		.pkey_tbl_len = 1,
		.active_width = 2,
		.active_speed = 32,
		.phys_state = 5,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	port->pkeys[0] = 0xffff;
	port->gid_count = 4;
	for (uint32_t n = 0; n < port->gid_count; n++) {
		struct ibv_gid_entry *entry = &port->gids[n];

		*entry = (struct ibv_gid_entry
		){.gid_index = n, .port_num = number, .gid_type = types[n % 2]};
		if (n < 2) {
			entry->gid.raw[0] = 0xfe;
			entry->gid.raw[1] = 0x80;
		} else {
			entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
			entry->gid.raw[12] = 10;
		}
		entry->gid.raw[14] = (uint8_t)(number - 1);
		entry->gid.raw[15] = (uint8_t)(place + 1);
	}
}

static void device_fill(struct fake_device *device, uint32_t place) {
	device->attr = (struct ibv_device_attr){
		.fw_ver = "1.0",
		.node_guid = htobe64(UINT64_C(0x0200000000000000) + place + 1),
		.sys_image_guid = htobe64(UINT64_C(0x0200000000000000) + place + 1),
		.max_mr_size = UINT64_C(1) << 40,
		.page_size_cap = 4096,
		.vendor_id = 0xfa6e,
		.max_qp = 8192,
		.max_qp_wr = 16384,
		.max_sge = 4,
		.max_sge_rd = 4,
		.max_cq = 1024,
		.max_cqe = 1 << 20,
		.max_mr = 1 << 20,
		.max_pd = 64,
		.max_qp_rd_atom = 16,
		.max_res_rd_atom = 16 * 8192,
		.max_qp_init_rd_atom = 16,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	for (uint32_t n = 0; n < FAKE_PORTS_MAX; n++)
		port_fill(&device->ports[n], n + 1, place);
}

struct fake_device *fake_device_add(const char *name) {
	struct fake_device *device = calloc(1, sizeof(*device));

	must(device != NULL && fake.device_count < FAKE_DEVICES_MAX);
	device->private = calloc(1, sizeof(*device->private));
	must(device->private != NULL);
	device->verbs.node_type = IBV_NODE_CA;
	device->verbs.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->verbs.name, sizeof(device->verbs.name), "%s", name);
	snprintf(
		device->verbs.dev_name, sizeof(device->verbs.dev_name), "uverbs%u",
		fake.device_count
	);
	device_fill(device, fake.device_count);
	fake.devices[fake.device_count++] = device;
	return device;
}

void fake_device_infiniband(struct fake_device *device, uint16_t lid) {
	struct fake_port *port = &device->ports[0];

	port->attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
	port->attr.lid = lid;
	port->attr.sm_lid = 1;
	port->gid_count = 1;
	port->gids[0] = (struct ibv_gid_entry){.port_num = 1, .gid_type = IBV_GID_TYPE_IB};
	port->gids[0].gid.global.subnet_prefix = htobe64(UINT64_C(0xfe80000000000000));
	port->gids[0].gid.global.interface_id = device->attr.node_guid;
}

struct fake_device *fake_device_of(const struct ibv_context *context) {
	return ((const struct fake_context *)context)->device;
}

void fake_device_cut(struct fake_device *device, bool cut) {
	fake_lock();
	device->private->cut = cut;
	fake.epoch++;
	fake_run_locked();
	fake_unlock();
}

void fake_device_unplug(struct fake_device *device, bool unplugged) {
	fake_lock();
	device->private->unplugged = unplugged;
	fake.epoch++;
	fake_run_locked();
	fake_unlock();
}

// Events.

static void event_put(struct fake_context *context, const struct ibv_async_event *verbs) {
	struct fake_event *event = calloc(1, sizeof(*event));
	struct fake_event **last = &context->events;
	uint64_t one = 1;

	must(event != NULL);
	event->verbs = *verbs;
	while (*last != NULL)
		last = &(*last)->next;
	*last = event;
	must(write(context->verbs.async_fd, &one, sizeof(one)) == sizeof(one));
}

void fake_device_event(struct fake_device *device, enum ibv_event_type type, uint8_t port) {
	struct ibv_async_event event = {.element.port_num = port, .event_type = type};

	fake_lock();
	for (struct fake_context *context = device->private->contexts; context != NULL;
	     context = context->next)
		event_put(context, &event);
	fake_unlock();
}

void fake_qp_event(struct ibv_qp *qp, enum ibv_event_type type) {
	struct ibv_async_event event = {.element.qp = qp, .event_type = type};

	fake_lock();
	event_put((struct fake_context *)qp->context, &event);
	fake_unlock();
}

void fake_cq_event(struct ibv_cq *cq, enum ibv_event_type type) {
	struct ibv_async_event event = {.element.cq = cq, .event_type = type};

	fake_lock();
	event_put((struct fake_context *)cq->context, &event);
	fake_unlock();
}

// Faults.

void fake_verbs_fail(enum fake_call call, uint32_t nth, uint32_t times, int err) {
	must(fake.fault_count < FAKE_FAULTS_MAX && nth > 0 && err < 0);
	fake.faults[fake.fault_count++] =
		(struct fake_fault){.call = call, .nth = nth, .times = times, .err = err};
}

void fake_verbs_fail_no_more(void) {
	fake.fault_count = 0;
}

uint64_t fake_verbs_calls_made(enum fake_call call) {
	uint64_t sum = 0;

	if (call < FAKE_CALL_COUNT)
		return fake.calls[call];
	for (uint32_t n = 0; n <= FAKE_DESTROY_QP; n++)
		sum += fake.calls[n];
	return sum;
}

void fake_verbs_on_call(void (*hook)(void *ctx, enum fake_call call), void *ctx) {
	fake.hook = hook;
	fake.hook_ctx = ctx;
}

int fake_fault(enum fake_call call) {
	int err = 0;

	fake.calls[call]++;
	for (uint32_t n = 0; n < fake.fault_count; n++) {
		struct fake_fault *fault = &fake.faults[n];

		if (fault->times == 0 || (fault->call != call &&
					  (fault->call != FAKE_ANY_COLD || call > FAKE_DESTROY_QP)))
			continue;
		if (fault->nth > 1) {
			fault->nth--;
			continue;
		}
		fault->times--;
		err = fault->err;
	}
	return err;
}

// Memory.

void fake_verbs_forbid(const void *address, size_t length) {
	uintptr_t from = (uintptr_t)address;

	fake_lock();
	must(fake.forbidden_count < FAKE_FORBIDDEN_MAX);
	fake.forbidden[fake.forbidden_count++] = (struct fake_range){from, from + length};
	fake_unlock();
}

void fake_verbs_allow(const void *address, size_t length) {
	uintptr_t from = (uintptr_t)address;

	fake_lock();
	for (uint32_t n = 0; n < fake.forbidden_count; n++) {
		if (fake.forbidden[n].from != from || fake.forbidden[n].to != from + length)
			continue;
		fake.forbidden[n] = fake.forbidden[--fake.forbidden_count];
		break;
	}
	fake_unlock();
}

void fake_touch(const uint8_t *bytes, uint64_t length) {
	struct fake_range touched = {(uintptr_t)bytes, (uintptr_t)bytes + length};

	for (uint32_t n = 0; n < fake.forbidden_count; n++) {
		const struct fake_range *range = &fake.forbidden[n];

		if (touched.from < range->to && range->from < touched.to)
			fake_break(
				"%llu bytes at %p were touched after they were given back",
				(unsigned long long)length, (const void *)bytes
			);
	}
	if (fake.clock != NULL)
		fake.accesses[fake.access_count++ % FAKE_ACCESSES_MAX] = touched;
}

uint32_t fake_verbs_touches(const void *address, size_t length) {
	uintptr_t from = (uintptr_t)address;
	uint32_t count = 0;

	fake_lock();
	for (uint64_t n = 0; n < fake.access_count && n < FAKE_ACCESSES_MAX; n++)
		count += fake.accesses[n].from < from + length && from < fake.accesses[n].to;
	fake_unlock();
	return count;
}

// Time.

void fake_verbs_run(void) {
	fake_lock();
	fake_run_locked();
	fake_unlock();
}

// Queue pairs.

void fake_qp_error(struct ibv_qp *verbs, uint32_t nth, enum ibv_wc_status status, uint32_t vendor) {
	struct fake_qp *qp = fake_qp_of(verbs);

	fake_lock();
	must(qp->error_count < FAKE_ERRORS_MAX && nth > 0 && status != IBV_WC_SUCCESS);
	qp->errors[qp->error_count++] =
		(struct fake_error){qp->sends_tried + nth - 1, status, vendor};
	fake_unlock();
}

void fake_qp_receive_error(struct ibv_qp *qp, enum ibv_wc_status status, uint32_t vendor) {
	fake_lock();
	fake_qp_of(qp)->receive_error = (struct fake_error){0, status, vendor};
	fake_unlock();
}

void fake_qp_delay(struct ibv_qp *qp, uint64_t delay_ns) {
	fake_lock();
	fake_qp_of(qp)->delay_ns = delay_ns;
	fake_unlock();
}

void fake_qp_lose(struct ibv_qp *qp, uint32_t permille, uint64_t again_ns) {
	fake_lock();
	fake_qp_of(qp)->lost_permille = permille;
	fake_qp_of(qp)->again_ns = again_ns;
	fake_unlock();
}

void fake_qp_hold(struct ibv_qp *qp) {
	fake_lock();
	fake_qp_of(qp)->held = true;
	fake_qp_of(qp)->let_go = 0;
	fake_unlock();
}

void fake_qp_let_go(struct ibv_qp *verbs, uint32_t count) {
	struct fake_qp *qp = fake_qp_of(verbs);

	fake_lock();
	if (count == UINT32_MAX)
		qp->held = false;
	else
		qp->let_go += count;
	fake_run_locked();
	fake_unlock();
}

void fake_qp_let_go_after(struct ibv_qp *verbs, struct clock *clock, uint64_t stopped_ns) {
	fake_lock();
	clock_advance(clock, stopped_ns);
	fake_qp_of(verbs)->held = false;
	fake_run_locked();
	fake_unlock();
}

void fake_qp_flush_at_most(struct ibv_qp *qp, uint32_t count) {
	fake_lock();
	fake_qp_of(qp)->flush_left = count;
	fake_unlock();
}

void fake_qp_break(struct ibv_qp *qp) {
	fake_lock();
	fake_qp_to_error(fake_qp_of(qp));
	fake_run_locked();
	fake_unlock();
}

uint32_t fake_qp_posted(const struct ibv_qp *verbs) {
	const struct fake_qp *qp = fake_qp_of(verbs);
	uint32_t count;

	fake_lock();
	count = qp->sends_posted - qp->sends_done + qp->receives_posted - qp->receives_done;
	fake_unlock();
	return count;
}

enum ibv_qp_state fake_qp_state(const struct ibv_qp *qp) {
	enum ibv_qp_state state;

	fake_lock();
	state = fake_qp_of(qp)->attr.qp_state;
	fake_unlock();
	return state;
}

struct ibv_qp *fake_qp_find(const struct fake_device *device, uint32_t queue_number) {
	struct fake_qp *qp;

	fake_lock();
	qp = fake_qp_by_number(device, queue_number);
	fake_unlock();
	return qp != NULL ? &qp->verbs : NULL;
}
