// SPDX-License-Identifier: BSD-3-Clause
// The hot functions of the pulse page.
#include "probe/pulse_impl.h"

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

// Relaxed: the completion shows that the device has finished writing. Words are addressed by
// offset, because the buffer holds only a head and need not be aligned like struct pulse.
static uint64_t word_at(const void *bytes, size_t place_bytes) {
	const _Atomic uint64_t *word = (const void *)((const uint8_t *)bytes + place_bytes);

	return le64toh(atomic_load_explicit(word, memory_order_relaxed));
}

#define WORD(bytes, member) word_at(bytes, offsetof(struct pulse, member))

bool pulse_parse_head(
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

uint32_t
pulse_find_hung_workers(const void *bytes, struct pulse_workers *seen, uint32_t *ret_count) {
	uint32_t count = (uint32_t)WORD(bytes, worker_count), hung = 0;
	uint32_t beats = (uint32_t)WORD(bytes, beats);
	// After a restart of the agent the state is reset.
	bool anew = !seen->begun || (int32_t)(beats - seen->beats) < 0;

	count = count < PULSE_WORKERS_MAX ? count : PULSE_WORKERS_MAX;
	for (uint32_t n = 0; n < count; n++) {
		size_t place = offsetof(struct pulse, worker_beats) + n * sizeof(uint64_t);
		uint32_t word = (uint32_t)word_at(bytes, place);

		if (anew || word != seen->words[n] || word == 0) {
			seen->words[n] = word;
			seen->at[n] = beats;
		} else if (beats - seen->at[n] >= PULSE_WORKER_HUNG_BEATS) {
			hung |= UINT32_C(1) << n;
		}
	}
	seen->beats = beats;
	seen->begun = true;
	*ret_count = count;
	return hung;
}

uint64_t pulse_read_wait(const void *bytes) {
	return WORD(bytes, wait_ns);
}

uint64_t pulse_read_beats(const void *bytes) {
	return word_at(bytes, 0);
}
