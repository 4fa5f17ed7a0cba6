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

// Relaxed: the device that wrote them is done, as its completion says. By its place, since what was
// read is a head at any address of words, and no struct pulse, which begins a page.
static uint64_t word_at(const void *bytes, size_t place_bytes) {
	const _Atomic uint64_t *word = (const void *)((const uint8_t *)bytes + place_bytes);

	return le64toh(atomic_load_explicit(word, memory_order_relaxed));
}

#define WORD(bytes, member) word_at(bytes, offsetof(struct pulse, member))

bool pulse_glance(
	const void *bytes, uint64_t name, uint64_t *ret_incarnation, uint64_t *ret_beats
) {
	if (WORD(bytes, magic) != PULSE_MAGIC || WORD(bytes, layout) != PULSE_LAYOUT ||
	    WORD(bytes, name) != name || WORD(bytes, worker_count) > PULSE_WORKERS_MAX ||
	    WORD(bytes, incarnation) == 0)
		return false;
	*ret_incarnation = WORD(bytes, incarnation);
	*ret_beats = WORD(bytes, beats);
	return true;
}

uint64_t pulse_glance_beats(const void *bytes) {
	return word_at(bytes, 0);
}
