// SPDX-License-Identifier: BSD-3-Clause
// Wires inside one process. A hub finds the wire of an address, and frames are copied into its
// ring.
//
// The hub's lock guards the hub and all rings. It is taken last: senders hold it together with the
// lock of their device. A device owns its wire. Destroying a wire removes it from the hub, so no
// sender reaches it later.
#include "nic/nic.h"
#include "nic/wire.h"

#include <lib/error.h>
#include <lib/must.h>

#include <errno.h>
#include <poll.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_FRAMES 1024 // a power of two
#define MEMORY_MTU 4096
// Payload of the smallest MTU; each frame uses one slot regardless of its size
#define MEMORY_PAYLOAD_MIN 256
#define MEMORY_ADDRESSES_MAX 4096
#define NS_PER_S UINT64_C(1000000000)

static_assert((MEMORY_FRAMES & (MEMORY_FRAMES - 1)) == 0, "head and tail run on");

struct memory_frame {
	uint32_t size;
	alignas(8) uint8_t bytes[FRAME_BYTES_MAX];
};

struct memory_wire {
	struct soft_wire wire;
	struct soft_counters *counters;
	struct memory_frame *frames; // a ring; the hub's lock guards all fields below
	uint32_t head, tail;	     // free-running
	uint32_t taken;		     // frames from head on that the receiver uses
	bool sleeps;		     // the engine is in wait()
	int arrived;		     // an eventfd that ends the sleep
	LIST_ENTRY(memory_wire) entry;
	alignas(8) uint8_t out[FRAME_BYTES_MAX]; // frame taken by the sender
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, memory_wire) wires;
} hub = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct memory_wire *memory_of(struct soft_wire *wire) {
	return (struct memory_wire *)wire;
}

static struct memory_wire *hub_find(const union ibv_gid *gid) {
	struct memory_wire *wire;

	LIST_FOREACH(wire, &hub.wires, entry) {
		if (memcmp(wire->wire.gid.raw, gid->raw, sizeof(gid->raw)) == 0)
			return wire;
	}
	return NULL;
}

static uint8_t *memory_take(struct soft_wire *wire) {
	return memory_of(wire)->out;
}

static void memory_give(struct soft_wire *wire, uint32_t size) {
	struct memory_wire *from = memory_of(wire);
	struct memory_frame *frame;
	struct memory_wire *to;
	union ibv_gid gid;
	bool delivered;

	must(size > 0 && size <= FRAME_BYTES_MAX);
	pthread_mutex_lock(&hub.lock);
	to = frame_read_destination(from->out, size, &gid) ? hub_find(&gid) : NULL;
	delivered = to != NULL && to->tail - to->head != MEMORY_FRAMES;
	if (delivered) {
		frame = &to->frames[to->tail % MEMORY_FRAMES];
		memcpy(frame->bytes, from->out, size);
		frame->size = size;
		to->tail++;
		if (to->sleeps) {
			to->sleeps = false;
			must(eventfd_write(to->arrived, 1) == 0);
		}
	}
	pthread_mutex_unlock(&hub.lock);
	if (!delivered)
		counter_add(&from->counters->send_failed, 1);
}

static void memory_flush(struct soft_wire *wire) {
	(void)wire;
}

static uint32_t memory_receive(
	struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns
) {
	struct memory_wire *to = memory_of(wire);
	uint32_t count;

	(void)now_ns;
	pthread_mutex_lock(&hub.lock);
	to->head += to->taken;
	count = to->tail - to->head;
	if (count > max)
		count = max;
	to->taken = count;
	pthread_mutex_unlock(&hub.lock);
	for (uint32_t i = 0; i < count; i++) {
		struct memory_frame *frame = &to->frames[(to->head + i) % MEMORY_FRAMES];

		ret_frames[i] = (struct wire_frame){
			.bytes = frame->bytes,
			.size = frame->size,
			.id_known = true,
		};
	}
	return count;
}

static uint64_t memory_due(const struct soft_wire *wire) {
	(void)wire;
	return NIC_NEVER;
}

static void memory_wait(struct soft_wire *wire, int doorbell, uint64_t timeout_ns) {
	struct memory_wire *to = memory_of(wire);
	struct pollfd fds[] = {
		{.fd = to->arrived, .events = POLLIN},
		{.fd = doorbell, .events = POLLIN},
	};
	const struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};
	eventfd_t count;
	bool sleeps;

	// Sleep only if no frame is there; the next sender wakes the engine.
	pthread_mutex_lock(&hub.lock);
	to->sleeps = to->tail - to->head == to->taken;
	sleeps = to->sleeps;
	pthread_mutex_unlock(&hub.lock);
	if (!sleeps)
		return;
	(void)ppoll(fds, 2, timeout_ns == NIC_NEVER ? NULL : &timeout, NULL);
	pthread_mutex_lock(&hub.lock);
	to->sleeps = false;
	(void)eventfd_read(to->arrived, &count);
	pthread_mutex_unlock(&hub.lock);
}

static void memory_destroy(struct soft_wire *wire) {
	struct memory_wire *memory = memory_of(wire);

	pthread_mutex_lock(&hub.lock);
	if (memory->entry.le_prev != NULL)
		LIST_REMOVE(memory, entry);
	pthread_mutex_unlock(&hub.lock);
	if (memory->arrived >= 0)
		close(memory->arrived);
	free(memory->frames);
	free(memory);
}

static const struct wire_calls memory_calls = {
	.name = "memory",
	.take = memory_take,
	.give = memory_give,
	.flush = memory_flush,
	.receive = memory_receive,
	.due = memory_due,
	.wait = memory_wait,
	.destroy = memory_destroy,
};

static int hub_add(struct memory_wire *memory, bool address_any) {
	struct sock_addr *address = &memory->wire.address;
	int err = 0;

	pthread_mutex_lock(&hub.lock);
	if (address_any)
		*address = (struct sock_addr){.address = {127, 64}, .family = SOCK_ADDR_V4};
	memory->wire.gid = wire_gid(address);
	// Choose the first free address of 127.64.0.1 … 127.64.15.255.
	for (uint32_t n = 1; address_any && n < MEMORY_ADDRESSES_MAX; n++) {
		address->address[2] = (uint8_t)(n >> 8);
		address->address[3] = (uint8_t)n;
		memory->wire.gid = wire_gid(address);
		if (hub_find(&memory->wire.gid) == NULL)
			break;
	}
	address->port = SOFT_UDP_PORT;
	if (hub_find(&memory->wire.gid) != NULL)
		err = -EADDRINUSE;
	else
		LIST_INSERT_HEAD(&hub.wires, memory, entry);
	pthread_mutex_unlock(&hub.lock);
	return err;
}

static int format_create_error(
	int err, char ret_reason[static SOFT_REASON_MAX + 1], const struct sock_addr *address
) {
	char text[SOCK_ADDR_TEXT_BYTES];

	sock_addr_format_host(address, text);
	if (err == -EADDRINUSE)
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"%s is held by another device of this process", text
		);
	else if (err == -EINVAL)
		snprintf(ret_reason, SOFT_REASON_MAX + 1, "the memory wire needs an address");
	else
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1, "cannot create the memory wire of %s: %s",
			text, strerrordesc_np(-err)
		);
	return err;
}

int wire_memory_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	struct memory_wire *memory;
	int err;

	if (!config->address_any && config->address.family == SOCK_ADDR_NONE)
		return format_create_error(-EINVAL, ret_reason, &config->address);
	memory = calloc(1, sizeof(*memory));
	if (memory == NULL)
		return format_create_error(-ENOMEM, ret_reason, &config->address);
	memory->wire = (struct soft_wire){
		.calls = &memory_calls,
		.address = config->address,
		.mtu = MEMORY_MTU,
		.window_bytes = MEMORY_FRAMES * MEMORY_PAYLOAD_MIN,
	};
	memory->counters = config->counters;
	memory->arrived = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = memory->arrived < 0 ? neg_errno() : 0;
	memory->frames = calloc(MEMORY_FRAMES, sizeof(*memory->frames));
	if (err == 0 && memory->frames == NULL)
		err = -ENOMEM;
	if (err == 0)
		err = hub_add(memory, config->address_any);
	if (err != 0) {
		memory_destroy(&memory->wire);
		return format_create_error(err, ret_reason, &config->address);
	}
	*ret_wire = &memory->wire;
	return 0;
}
