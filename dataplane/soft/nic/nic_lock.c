// SPDX-License-Identifier: BSD-3-Clause
// Waits for the lock of a device while another thread holds it.
#include "nic/nic.h"

// About ten microseconds.
#define LOCK_TRIES 64

static void cpu_relax(void) {
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

// Spin, then block. Callers that spin in poll_cq retake the lock at once, so the tries have varying
// distances. They are few enough not to disturb the holder.
void nic_lock_contended(struct soft_nic *nic) {
	for (uint32_t tries = 0; tries < LOCK_TRIES; tries++) {
		for (uint32_t n = 0; n < 4 + tries % 8; n++)
			cpu_relax();
		if (pthread_mutex_trylock(&nic->lock) == 0)
			return;
	}
	pthread_mutex_lock(&nic->lock);
}
