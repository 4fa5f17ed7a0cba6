// SPDX-License-Identifier: BSD-3-Clause
// How one thread wakes another that sleeps on an eventfd, and writes to it only if it sleeps.
//
// The work itself lies elsewhere, in a ring or a flag. The sleeper arms the bell, looks for work
// once more, and only then blocks; who brings work puts it there first, then rings:
//
//	sleeper				bringer
//	  armed = 1			  put work
//	  fence (seq_cst)		  fence (seq_cst)
//	  look for work: none		  armed?
//	  block				    yes: write to the eventfd
//
// Whichever fence comes first in their one order, either the sleeper's look sees the work or the
// bringer sees the bell armed: a wake is never lost. One bringer of several writes.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct doorbell {
	int fd;			// to be polled for reading by the sleeper
	_Atomic uint32_t armed; // sleeper and bringers: rw
};

// 0 or -errno of eventfd().
int doorbell_init(struct doorbell *bell);
// Nobody sleeps or rings any more. A bell of fd -1 is fine.
void doorbell_fini(struct doorbell *bell);

// The sleeper, before its last look; and when it is awake again.
void doorbell_arm(struct doorbell *bell);
// Also takes back what was rung. A ring of the same moment may still come: a wake for nothing.
void doorbell_disarm(struct doorbell *bell);

// After the work was put. True if somebody was woken.
bool doorbell_ring(struct doorbell *bell);
