// SPDX-License-Identifier: BSD-3-Clause
// Where the time of a thread goes in the software device: counters between its stages.
//
// The program is linked so that calls from one file of the device to another, at the borders of
// its stages, come by soft_stages_wrap.c (the linker's --wrap). The device's own code is the
// product's, as it is. A stage's time is its own: without the stages that it calls.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum stage {
	STAGE_PROGRAM,
	STAGE_RECEIVE,
	STAGE_CHECK,
	STAGE_TRANSPORT,
	STAGE_BUILD,
	STAGE_SEND,
	STAGE_VERBS,
	STAGES,
};

struct stages {
	bool on; // of this thread
	enum stage now;
	uint64_t last;
	uint64_t ticks[STAGES];
	uint64_t entered[STAGES], called[STAGES]; // times it was, and that it called another one
};

extern _Thread_local struct stages stages;

// An interval that long is none of the stage's: somebody else had the processor.
#define STAGE_TICKS_MAX 500000

// Not before what came before it is done: what overlaps is counted where it began.
static inline uint64_t stage_ticks(void) {
#ifdef __x86_64__
	__builtin_ia32_lfence();
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
#error "a counter of the processor is needed"
#endif
}

static inline void stage_charge(void) {
	uint64_t ticks = stage_ticks(), passed = ticks - stages.last;

	if (passed < STAGE_TICKS_MAX)
		stages.ticks[stages.now] += passed;
	stages.last = ticks;
}

// Returns the stage to go back to.
static inline enum stage stage_enter(enum stage stage) {
	enum stage before = stages.now;

	if (!stages.on)
		return before;
	stage_charge();
	stages.called[before]++;
	stages.entered[stage]++;
	stages.now = stage;
	return before;
}

static inline void stage_leave(enum stage before) {
	if (!stages.on)
		return;
	stage_charge();
	stages.now = before;
}

// Of this thread, from nothing.
void stages_begin(void);
void stages_end(void);

// The calls of a wire that is there go by the counters, too.
struct soft_wire;
void stages_wire(struct soft_wire *wire);
