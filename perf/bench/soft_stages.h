// SPDX-License-Identifier: BSD-3-Clause
// Time per stage of a thread in the software device, measured by counters between the stages.
//
// The linker's --wrap redirects calls between the files of the device at the borders of stages to
// soft_stages_wrap.c. The device's code itself is the product's code, unchanged. The time of a
// stage excludes the stages that it calls.
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
	bool on; // counting in this thread
	enum stage now;
	uint64_t last;
	uint64_t ticks[STAGES];
	uint64_t entered[STAGES], called[STAGES]; // number of entries, and of calls to other stages
};

extern _Thread_local struct stages stages;

// A longer interval is ignored: another thread had the processor.
#define STAGE_TICKS_MAX 500000

// Read the counter after all earlier instructions are complete. So overlapping work is charged to
// the stage that started it.
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

// Enter a stage. Returns the previous stage, for stage_leave().
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

// Start counting in this thread, from zero.
void stages_begin(void);
void stages_end(void);

// Count the calls of an existing wire, too.
struct soft_wire;
void stages_wrap_wire(struct soft_wire *wire);
