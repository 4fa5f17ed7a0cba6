// SPDX-License-Identifier: BSD-3-Clause
// A wire that wraps another wire and applies network faults to its frames: loss, corruption,
// duplication, reordering, delay. Deterministic: the same frames, times and seed give the same
// faults.
//
// A frame passes the faults in that order. Frames that leave later are copied into a pool, which is
// allocated once. Delayed frames wait in a queue, because jitter must not reorder them: a cable
// does not either, and go-back-N would crawl. Reordered frames are held until a number of later
// frames passed, or for HOLD_NS. While the pool is full, the wire accepts no frames.
#include "nic/nic.h"
#include "nic/wire.h"

#include <lib/must.h>
#include <lib/splitmix.h>

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define POOL_FRAMES 2048
#define HELD_MAX 8   // frames held back at a time
#define BEHIND_MAX 8 // later frames that overtake one held frame
#define HOLD_NS UINT64_C(200000)
#define PPM UINT32_C(1000000)
#define COPIES_MAX 2

struct pool_frame {
	uint32_t size;
	alignas(8) uint8_t bytes[FRAME_BYTES_MAX];
};

struct delayed {
	uint64_t due_ns;
	uint32_t frame;
};

struct held {
	uint64_t due_ns;
	uint32_t behind; // frames that must still overtake it
	uint32_t frame;
};

struct faults_wire {
	struct soft_wire wire;
	struct soft_wire *inner; // owned
	struct soft_faults faults;
	union ibv_gid to; // GID of faults.to
	struct soft_counters *counters;
	const struct clock *clock;
	uint64_t random;
	uint64_t now_ns; // time of the present call
	uint8_t *out;	 // frame taken from the inner wire
	uint32_t delayed_first, delayed_count, held_count, free_count;
	struct held held[HELD_MAX];	     // oldest first
	struct delayed delayed[POOL_FRAMES]; // a ring that starts at delayed_first
	uint32_t free[POOL_FRAMES];	     // free indexes of the pool
	struct pool_frame pool[POOL_FRAMES]; // pages are only touched when used
};

static struct faults_wire *faults_of(struct soft_wire *wire) {
	return (struct faults_wire *)wire;
}

// Return a number in 0 … bound-1; the bias below bound / 2^32 does not matter here.
static uint32_t random_below(struct faults_wire *faults, uint32_t bound) {
	return (uint32_t)((splitmix_next(&faults->random) >> 32) * bound >> 32);
}

// Draw a number for every fault, even with chance 0, so that enabling one fault does not change
// other draws.
static bool fault_happens(struct faults_wire *faults, uint32_t ppm) {
	return random_below(faults, PPM) < ppm;
}

// Append a delayed frame; its time is not before that of frames already waiting.
static void delayed_push(struct faults_wire *faults, uint64_t due_ns, uint32_t frame) {
	uint32_t at = faults->delayed_first + faults->delayed_count;

	if (faults->delayed_count > 0) {
		const struct delayed *last = &faults->delayed[(at - 1) % POOL_FRAMES];

		due_ns = due_ns > last->due_ns ? due_ns : last->due_ns;
	}
	must(faults->delayed_count < POOL_FRAMES);
	faults->delayed[at % POOL_FRAMES] = (struct delayed){.due_ns = due_ns, .frame = frame};
	faults->delayed_count++;
}

static const struct delayed *delayed_next(const struct faults_wire *faults) {
	return faults->delayed_count > 0 ? &faults->delayed[faults->delayed_first] : NULL;
}

static uint32_t pool_take(struct faults_wire *faults, const uint8_t *bytes, uint32_t size) {
	uint32_t frame = faults->free[--faults->free_count];

	memcpy(faults->pool[frame].bytes, bytes, size);
	faults->pool[frame].size = size;
	return frame;
}

static void delay_frame(struct faults_wire *faults, uint32_t frame) {
	uint64_t jitter_ns = faults->faults.jitter_ns;
	uint64_t delay_ns = faults->faults.delay_ns - jitter_ns;

	if (jitter_ns > 0)
		delay_ns += splitmix_next(&faults->random) % (2 * jitter_ns + 1);
	counter_add(&faults->counters->fault_delayed, 1);
	delayed_push(faults, faults->now_ns + delay_ns, frame);
}

// Send a frame from the pool through the inner wire. Returns false if that wire is full.
static bool send_pooled(struct faults_wire *faults, uint32_t frame) {
	const struct pool_frame *from = &faults->pool[frame];
	uint8_t *out = faults->inner->calls->take(faults->inner);

	if (out == NULL)
		return false;
	memcpy(out, from->bytes, from->size);
	faults->inner->calls->give(faults->inner, from->size);
	faults->free[faults->free_count++] = frame;
	return true;
}

// Delay or send the held frames that are due, until the inner wire is full.
static void held_release_due(struct faults_wire *faults) {
	for (uint32_t at = 0; at < faults->held_count;) {
		const struct held *held = &faults->held[at];

		if (held->behind > 0 && held->due_ns > faults->now_ns) {
			at++;
			continue;
		}
		if (faults->faults.delay_ns > 0)
			delay_frame(faults, held->frame);
		else if (!send_pooled(faults, held->frame))
			return;
		faults->held_count--;
		memmove(&faults->held[at], &faults->held[at + 1],
			(faults->held_count - at) * sizeof(faults->held[0]));
	}
}

static void delayed_release_due(struct faults_wire *faults) {
	const struct delayed *next;

	while ((next = delayed_next(faults)) != NULL && next->due_ns <= faults->now_ns) {
		if (!send_pooled(faults, next->frame))
			return;
		faults->delayed_first = (faults->delayed_first + 1) % POOL_FRAMES;
		faults->delayed_count--;
	}
}

static uint8_t *faults_take(struct soft_wire *wire) {
	struct faults_wire *faults = faults_of(wire);

	if (faults->free_count < COPIES_MAX)
		return NULL;
	faults->out = faults->inner->calls->take(faults->inner);
	return faults->out;
}

// Flip one bit that the ICRC covers, from the BTH on. Earlier headers belong to the network, and a
// change there could reach other hosts. Byte 4 of the BTH is not covered.
static void frame_corrupt(struct faults_wire *faults, uint8_t *frame, uint32_t size) {
	uint32_t headers = frame_headers_bytes(frame[0] >> 4 == 4);
	uint32_t byte;

	if (size <= headers + PACKET_BTH_BYTES)
		return;
	byte = random_below(faults, size - headers - 1);
	if (byte >= 4)
		byte++;
	frame[headers + byte] ^= (uint8_t)(1U << random_below(faults, 8));
	counter_add(&faults->counters->fault_corrupted, 1);
}

// Store one copy of the taken frame if it leaves later. Returns false if it leaves at once; the
// caller then sends it.
static bool store_for_later(struct faults_wire *faults, uint32_t size) {
	bool reorder = fault_happens(faults, faults->faults.reorder_ppm);
	uint32_t behind = 1 + random_below(faults, BEHIND_MAX);

	if (reorder && faults->held_count < HELD_MAX) {
		faults->held[faults->held_count++] = (struct held){
			.due_ns = faults->now_ns + HOLD_NS,
			.behind = behind,
			.frame = pool_take(faults, faults->out, size),
		};
		counter_add(&faults->counters->fault_reordered, 1);
		return true;
	}
	for (uint32_t at = 0; at < faults->held_count; at++) {
		if (faults->held[at].behind > 0)
			faults->held[at].behind--;
	}
	if (faults->faults.delay_ns == 0)
		return false;
	delay_frame(faults, pool_take(faults, faults->out, size));
	return true;
}

static void give_with_faults(struct faults_wire *faults, uint32_t size) {
	bool lost = fault_happens(faults, faults->faults.loss_ppm);
	bool damaged = fault_happens(faults, faults->faults.corrupt_ppm);
	bool repeated = fault_happens(faults, faults->faults.duplicate_ppm);
	uint32_t at_once = 0, spare = 0;

	// Drawn only if requested, so that it does not change the other draws.
	if (size > SOFT_LARGE_BYTES && faults->faults.large_ppm > 0)
		lost |= fault_happens(faults, faults->faults.large_ppm);
	// A frame posted after a pause must not use the time of the previous turn.
	faults->now_ns = clock_now_ns(faults->clock);
	if (lost) {
		counter_add(&faults->counters->fault_lost, 1);
		return;
	}
	if (damaged)
		frame_corrupt(faults, faults->out, size);
	if (repeated)
		counter_add(&faults->counters->fault_duplicated, 1);
	for (uint32_t copy = 0; copy < (repeated ? 2 : 1); copy++)
		at_once += !store_for_later(faults, size);
	if (at_once == 0)
		return;
	// A second copy comes from the pool, when the inner wire accepts it.
	if (at_once == 2)
		spare = pool_take(faults, faults->out, size);
	faults->inner->calls->give(faults->inner, size);
	if (at_once == 2 && !send_pooled(faults, spare))
		delayed_push(faults, faults->now_ns, spare);
}

static void faults_give(struct soft_wire *wire, uint32_t size) {
	struct faults_wire *faults = faults_of(wire);
	bool affected = faults->faults.to.family == SOCK_ADDR_NONE;
	union ibv_gid gid;

	if (!affected && frame_read_destination(faults->out, size, &gid))
		affected = memcmp(gid.raw, faults->to.raw, sizeof(gid.raw)) == 0;
	if (affected)
		give_with_faults(faults, size);
	else
		faults->inner->calls->give(faults->inner, size);
	held_release_due(faults);
}

static void faults_flush(struct soft_wire *wire) {
	struct faults_wire *faults = faults_of(wire);

	faults->inner->calls->flush(faults->inner);
}

static uint32_t faults_receive(
	struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns
) {
	struct faults_wire *faults = faults_of(wire);
	uint32_t count;

	faults->now_ns = now_ns;
	held_release_due(faults);
	delayed_release_due(faults);
	faults->inner->calls->flush(faults->inner);
	count = faults->inner->calls->receive(faults->inner, ret_frames, max, now_ns);
	wire->port = faults->inner->port;
	return count;
}

static uint64_t faults_due(const struct soft_wire *wire) {
	const struct faults_wire *faults = (const struct faults_wire *)wire;
	const struct delayed *next = delayed_next(faults);
	uint64_t due_ns = faults->inner->calls->due(faults->inner);

	if (next != NULL && next->due_ns < due_ns)
		due_ns = next->due_ns;
	for (uint32_t at = 0; at < faults->held_count; at++) {
		if (faults->held[at].due_ns < due_ns)
			due_ns = faults->held[at].due_ns;
	}
	return due_ns;
}

static void faults_wait(struct soft_wire *wire, int doorbell, uint64_t timeout_ns) {
	struct faults_wire *faults = faults_of(wire);

	faults->inner->calls->wait(faults->inner, doorbell, timeout_ns);
}

static void faults_destroy(struct soft_wire *wire) {
	struct faults_wire *faults = faults_of(wire);

	// Frames that the program counts as sent must not be lost now: one may be the last
	// acknowledgement. Send at once as many as the wire accepts.
	faults->faults.delay_ns = 0;
	faults->now_ns = NIC_NEVER;
	held_release_due(faults);
	delayed_release_due(faults);
	faults->inner->calls->flush(faults->inner);
	wire_destroy(faults->inner);
	free(faults);
}

static const struct wire_calls faults_calls = {
	.name = "faults",
	.take = faults_take,
	.give = faults_give,
	.flush = faults_flush,
	.receive = faults_receive,
	.due = faults_due,
	.wait = faults_wait,
	.destroy = faults_destroy,
};

static void wrap_set_faults(struct faults_wire *wrap, const struct soft_faults *faults) {
	must(faults->jitter_ns <= faults->delay_ns);
	wrap->faults = *faults;
	wrap->to = wire_gid(&faults->to);
	// Mix in the address, so that devices with equal settings do not lose the same frames.
	wrap->random = faults->seed ^ sock_addr_digest(&wrap->inner->address);
}

int wire_faults_change(
	struct soft_wire **wire,
	const struct soft_faults *faults,
	struct soft_counters *counters,
	const struct clock *clock
) {
	if ((*wire)->calls != &faults_calls)
		return wire_faults_create(*wire, faults, counters, clock, wire);
	wrap_set_faults(faults_of(*wire), faults);
	return 0;
}

int wire_faults_create(
	struct soft_wire *inner,
	const struct soft_faults *faults,
	struct soft_counters *counters,
	const struct clock *clock,
	struct soft_wire **ret_wire
) {
	struct faults_wire *wrap;

	if (!faults->any) {
		*ret_wire = inner;
		return 0;
	}
	wrap = calloc(1, sizeof(*wrap));
	if (wrap == NULL)
		return -ENOMEM;
	wrap->wire = *inner;
	wrap->wire.calls = &faults_calls;
	wrap->wire.peer_sealed = false; // corruption must be detected, so frames need an ICRC
	wrap->inner = inner;
	wrap->counters = counters;
	wrap->clock = clock;
	wrap_set_faults(wrap, faults);
	wrap->free_count = POOL_FRAMES;
	for (uint32_t i = 0; i < POOL_FRAMES; i++)
		wrap->free[i] = POOL_FRAMES - 1 - i;
	*ret_wire = &wrap->wire;
	return 0;
}
