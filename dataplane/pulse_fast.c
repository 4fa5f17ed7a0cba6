// SPDX-License-Identifier: BSD-3-Clause
#include "pulse_impl.h"

#include <endian.h>

void pulse_beat_worker(struct pulse *pulse, uint32_t worker) {
	_Atomic uint64_t *word;
	uint64_t beats;

	if (worker >= PULSE_WORKERS_MAX)
		return;
	word = &pulse->worker_beats[worker];
	beats = le64toh(atomic_load_explicit(word, memory_order_relaxed));
	atomic_store_explicit(word, htole64(beats + 1), memory_order_relaxed);
}

// Relaxed: the device that wrote them is done, as its completion says.
static uint64_t word_of(const _Atomic uint64_t *word) {
	return le64toh(atomic_load_explicit(word, memory_order_relaxed));
}

bool pulse_glance(
	const void *bytes, uint64_t name, uint64_t *ret_incarnation, uint64_t *ret_beats
) {
	const struct pulse *pulse = bytes;

	if (word_of(&pulse->magic) != PULSE_MAGIC || word_of(&pulse->layout) != PULSE_LAYOUT ||
	    word_of(&pulse->name) != name || word_of(&pulse->worker_count) > PULSE_WORKERS_MAX ||
	    word_of(&pulse->incarnation) == 0)
		return false;
	*ret_incarnation = word_of(&pulse->incarnation);
	*ret_beats = word_of(&pulse->beats);
	return true;
}

uint64_t pulse_glance_beats(const void *bytes) {
	return word_of(bytes);
}
