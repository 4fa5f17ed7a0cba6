// SPDX-License-Identifier: BSD-3-Clause
// Time in nanoseconds that only goes forward: the kernel's, the processor's, or a test's.
//
// A component is handed a struct clock and asks it; which one it is, is decided once, at the
// top. All three count from the same origin as CLOCK_MONOTONIC (the fake one from where the
// test says). The TSC clock reads in the time of one RDTSC, but keeps its own rate: it drifts
// from CLOCK_MONOTONIC by up to clock_error_ppb() and what NTP slews, so its readings are
// compared with its own readings only.
//
// Reading is for any thread; init and advance are for one, before or between readings.
#pragma once

#include <lib/clock_scale.h>
#include <lib/deadline.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum clock_source {
	CLOCK_SOURCE_MONOTONIC, // clock_gettime(CLOCK_MONOTONIC)
	CLOCK_SOURCE_TSC,	// the processor's time stamp counter
	CLOCK_SOURCE_FAKE,	// moved by hand
};

struct clock {
	enum clock_source source; // private, as all fields
	struct clock_scale scale; // of the TSC source
	_Atomic uint64_t fake_ns; // of the fake source; test thread: rw, others: ro
	const char *reason;
};

// What speaks for or against the TSC on this machine.
struct clock_tsc_facts {
	bool readable;	// an x86-64, with TSC in CPUID
	bool invariant; // constant rate through every power state (CPUID 8000_0007h EDX bit 8)
	char kernel_sources[128]; // what the kernel offers, by name; empty if it does not say
};

void clock_init_monotonic(struct clock *clock);

// Calibrates the TSC against CLOCK_MONOTONIC_RAW, which takes 10 to 200 ms, to within
// CLOCK_SCALE_ERROR_PPB_MAX. Where it is not to be trusted, or the machine is too noisy to
// calibrate it, the clock is the monotonic one and clock_reason() says why. Cannot fail.
void clock_init_tsc(struct clock *clock);

// The same on facts given by the caller: how the fall-back is tested.
void clock_init_tsc_given(struct clock *clock, const struct clock_tsc_facts *facts);

// NULL if the TSC may be used, else why not.
const char *clock_tsc_objection(const struct clock_tsc_facts *facts);

void clock_init_fake(struct clock *clock, uint64_t start_ns);

// Moves a fake clock. Release pairs with the acquire of a reading: who sees the new time sees
// what the test arranged before it.
void clock_advance(struct clock *clock, uint64_t by_ns);

enum clock_source clock_source(const struct clock *clock);

// Name of the source: "monotonic", "tsc", "fake".
const char *clock_source_name(enum clock_source source);

// Why this source, in words for a log line. Static text.
const char *clock_reason(const struct clock *clock);

// Bound on how far the rate is off against CLOCK_MONOTONIC_RAW; 0 but for the TSC.
uint32_t clock_error_ppb(const struct clock *clock);

// CLOCK_MONOTONIC, whatever clock is in use. A vDSO call: no system call where the kernel has
// a counter of its own to read.
uint64_t clock_monotonic_ns(void);

// Private: every source but the TSC.
uint64_t clock_now_other_ns(const struct clock *clock);

// Hot. Not ordered against the instructions around it: out-of-order execution may move a TSC
// reading by some nanoseconds either way.
static inline uint64_t clock_now_ns(const struct clock *clock) {
#ifdef __x86_64__
	if (__builtin_expect(clock->source == CLOCK_SOURCE_TSC, 1))
		return clock_scale_ns(&clock->scale, __builtin_ia32_rdtsc());
#endif
	return clock_now_other_ns(clock);
}
