// SPDX-License-Identifier: BSD-3-Clause
// Wakes a thread that sleeps on an eventfd, and writes to the eventfd only if the thread sleeps.
//
// The work itself is stored elsewhere, in a ring or a flag. The sleeper arms the bell, checks once
// more for work, and only then blocks. A producer stores its work first, then rings:
//
//	sleeper				producer
//	  armed = 1			  store work
//	  fence (seq_cst)		  fence (seq_cst)
//	  check for work: none		  armed?
//	  block				    yes: write to the eventfd
//
// The two fences have one total order. Either the sleeper's last check sees the work, or the
// producer sees the armed bell: no wake-up is lost. If several producers ring, one of them writes.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct doorbell {
	int fd;			// the sleeper polls it for reading
	_Atomic uint32_t armed; // read and written by sleeper and producers
};

// Returns 0 or -errno of eventfd().
int doorbell_init(struct doorbell *bell);
// Close the bell, which no thread uses any more. A bell with fd -1 is fine.
void doorbell_close(struct doorbell *bell);

// Arm the bell. The sleeper calls this before its last check for work.
void doorbell_arm(struct doorbell *bell);
// Disarm the bell and clear a pending ring. The sleeper calls this after waking up. A concurrent
// ring may still arrive later and cause one spurious wake-up.
void doorbell_disarm(struct doorbell *bell);

// Ring the bell after the work was stored. Returns true if it woke the sleeper.
bool doorbell_ring(struct doorbell *bell);
