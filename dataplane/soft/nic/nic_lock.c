// SPDX-License-Identifier: BSD-3-Clause
// The lock of a device, where somebody else has it.
#include "nic/nic.h"

// About ten microseconds.
#define LOCK_TRIES 64

static void cpu_relax(void) {
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

// Callers that spin in poll_cq take the lock again at once: tries come at different distances, and
// not so many that its holder feels them.
void nic_lock_contended(struct soft_nic *nic) {
	for (uint32_t tries = 0; tries < LOCK_TRIES; tries++) {
		for (uint32_t n = 0; n < 4 + tries % 8; n++)
			cpu_relax();
		if (pthread_mutex_trylock(&nic->lock) == 0)
			return;
	}
	pthread_mutex_lock(&nic->lock);
}
