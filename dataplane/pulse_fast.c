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
