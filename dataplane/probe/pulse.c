// SPDX-License-Identifier: BSD-3-Clause
// The pulse page that peers read by RDMA.
#include "probe/pulse_impl.h"

#include <lib/wire.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void word_set(_Atomic uint64_t *word, uint64_t value) {
	atomic_store_explicit(word, htole64(value), memory_order_relaxed);
}

int pulse_create(uint64_t name, uint32_t worker_count, struct pulse **ret_pulse) {
	struct pulse *pulse = aligned_alloc(alignof(struct pulse), sizeof(*pulse));

	if (pulse == NULL)
		return -ENOMEM;
	memset(pulse, 0, sizeof(*pulse));
	word_set(&pulse->magic, PULSE_MAGIC);
	word_set(&pulse->layout, PULSE_LAYOUT);
	word_set(&pulse->name, name);
	word_set(
		&pulse->worker_count,
		worker_count < PULSE_WORKERS_MAX ? worker_count : PULSE_WORKERS_MAX
	);
	*ret_pulse = pulse;
	return 0;
}

struct pulse *pulse_destroy(struct pulse *pulse) {
	free(pulse);
	return NULL;
}

void *pulse_memory(struct pulse *pulse) {
	return pulse;
}

void pulse_beat(struct pulse *pulse, uint64_t incarnation, uint64_t now_ns) {
	uint64_t beats = le64toh(atomic_load_explicit(&pulse->beats, memory_order_relaxed));

	word_set(&pulse->incarnation, incarnation);
	word_set(&pulse->now_ns, now_ns);
	word_set(&pulse->beats, beats + 1);
}

void pulse_set_wait(struct pulse *pulse, uint64_t wait_ns) {
	word_set(&pulse->wait_ns, wait_ns);
}
