// SPDX-License-Identifier: BSD-3-Clause
// Time in nanoseconds that only goes forward: the kernel's, the processor's, or a test's.
//
// A component is handed a struct clock and asks it; which one it is, is decided once, at the
// top. All three count from the same origin as CLOCK_MONOTONIC (the fake one from where the
// test says). The TSC clock reads in the time of one RDTSC, but keeps its own rate: it drifts
// from CLOCK_MONOTONIC by up to clock_error_ppb() and what NTP slews, so its readings are
// compared with its own readings only.
//
// Unless it is kept: whoever alone reads it calls clock_keep() at least each CLOCK_KEEP_NS while it
// reads. Then it differs from CLOCK_MONOTONIC by at most CLOCK_KEPT_NS and a thousandth of the time
// since the last call, while the kernel slews by 500 ppm or less, as NTP does; chrony may ask for
// 8 %, then it is by an eighth of that time. The time of one is compared with that of the other
// within this bound.
//
// Reading is for any thread; init and advance are for one, before or between readings. A clock that
// is kept is one thread's.
#pragma once

#include <lib/clock_scale.h>
#include <lib/deadline.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum clock_source {
	CLOCK_SOURCE_MONOTONIC, // clock_gettime(CLOCK_MONOTONIC)
	CLOCK_SOURCE_TSC,  // the processor's counter: its time stamps, on ARM the virtual timer
	CLOCK_SOURCE_FAKE, // moved by hand
};

#define CLOCK_KEEP_NS UINT64_C(10000000)
#define CLOCK_KEPT_NS UINT64_C(5000)

// Of a clock that is kept: where it was last compared, and from where its rate is taken.
struct clock_kept {
	uint64_t ticks, ns;
	uint64_t rate_ticks, rate_ns;
	uint64_t off_ns_max; // the most that it was found off
};

struct clock {
	enum clock_source source; // private, as all fields
	struct clock_scale scale; // of the TSC source
	struct clock_kept kept;	  // likewise
	_Atomic uint64_t fake_ns; // of the fake source; test thread: rw, others: ro
	const char *reason;
};

// What speaks for or against the TSC on this machine.
struct clock_tsc_facts {
	bool readable;	// an x86-64, with TSC in CPUID; an ARM of 64 bits
	bool invariant; // constant rate through every power state (CPUID 8000_0007h EDX bit 8)
	char kernel_sources[128]; // what the kernel offers, by name; empty if it does not say
	char kernel_current[32];  // which of them it uses; likewise
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

// The same where the kernel itself counts time by the TSC, else the monotonic one: for a clock
// that is kept. A copy of it may be kept by another thread.
void clock_init_kept(struct clock *clock);
void clock_init_kept_given(struct clock *clock, const struct clock_tsc_facts *facts);

enum clock_keep {
	CLOCK_KEEP_DONE,
	CLOCK_KEEP_UNSEEN, // interrupted at each try: as before, and worth another call soon
	CLOCK_KEEP_JUMPED, // the TSC did not go on as time did: from now on it is the monotonic one
};

// Compares a TSC clock with CLOCK_MONOTONIC, and puts it right: what it is behind is left out, for
// as long as it is ahead it stands. It goes back only when it jumped ahead, as it may behind a
// suspension of the machine or a move to another. Other clocks are as they should be. The thread
// that reads it; some 200 ns, no system call where the TSC is the kernel's clock source.
enum clock_keep clock_keep(struct clock *clock);

// The same with a sample of CLOCK_MONOTONIC; pure.
enum clock_keep clock_keep_at(struct clock *clock, const struct clock_sample *sample);

// The most that clock_keep() found it off since it was made.
uint64_t clock_kept_off_ns(const struct clock *clock);

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

#if defined(__x86_64__)
#define CLOCK_HAS_TICKS 1
#define CLOCK_TICKS_KERNEL_NAME "tsc"
static inline uint64_t clock_ticks(void) {
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define CLOCK_HAS_TICKS 1
#define CLOCK_TICKS_KERNEL_NAME "arch_sys_counter"
static inline uint64_t clock_ticks(void) {
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#else
#define CLOCK_HAS_TICKS 0
#define CLOCK_TICKS_KERNEL_NAME "tsc"
static inline uint64_t clock_ticks(void) {
	return 0;
}
#endif

// Hot. Not ordered against the instructions around it: out-of-order execution may move a TSC
// reading by some nanoseconds either way.
static inline uint64_t clock_now_ns(const struct clock *clock) {
	if (CLOCK_HAS_TICKS && __builtin_expect(clock->source == CLOCK_SOURCE_TSC, 1))
		return clock_scale_ns(&clock->scale, clock_ticks());
	return clock_now_other_ns(clock);
}
