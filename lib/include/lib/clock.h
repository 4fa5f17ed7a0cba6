// SPDX-License-Identifier: BSD-3-Clause
// Monotonic time in nanoseconds, from the kernel, from the processor's counter, or from a test.
//
// A component receives a struct clock and reads it. The source is chosen once, by the program. All
// three sources count from the origin of CLOCK_MONOTONIC; a fake clock starts where the test says.
// A TSC reading costs one RDTSC. The TSC clock has its own rate, so it drifts from CLOCK_MONOTONIC
// by clock_error_ppb() plus the slew of NTP. Compare its readings only with its own readings.
//
// A resynchronized clock is the exception. Its only reader calls clock_resync() at least once per
// CLOCK_RESYNC_INTERVAL_NS. The clock then differs from CLOCK_MONOTONIC by at most
// CLOCK_RESYNC_BOUND_NS plus a thousandth of the time since the last call. This holds while the
// kernel slews by at most 500 ppm, as NTP does. chrony may slew by 8 %; the second term is then an
// eighth of that time. Within this bound, readings can be compared with CLOCK_MONOTONIC.
//
// Any thread may read. One thread initializes and advances, before or between readings. A
// resynchronized clock belongs to one thread.
#pragma once

#include <lib/clock_scale.h>
#include <lib/deadline.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum clock_source {
	CLOCK_SOURCE_MONOTONIC, // clock_gettime(CLOCK_MONOTONIC)
	CLOCK_SOURCE_TSC,	// the processor's counter: the TSC on x86, the virtual timer on ARM
	CLOCK_SOURCE_FAKE,	// advanced by a test
};

#define CLOCK_RESYNC_INTERVAL_NS UINT64_C(10000000)
#define CLOCK_RESYNC_BOUND_NS UINT64_C(5000)

// Resynchronization state of a clock: last comparison, and the base of its rate.
struct clock_resync_state {
	uint64_t ticks, ns;
	uint64_t rate_ticks, rate_ns;
	uint64_t off_ns_max; // largest deviation found, ns
};

struct clock {
	enum clock_source source;	// private, like all fields
	struct clock_scale scale;	// TSC source only
	struct clock_resync_state kept; // TSC source only
	_Atomic uint64_t fake_ns;	// fake source only; test thread: rw, others: ro
	const char *reason;
};

// Facts about the TSC of this machine, input of clock_tsc_objection().
struct clock_tsc_facts {
	bool readable;	// x86-64 with TSC in CPUID, or 64-bit ARM
	bool invariant; // constant rate through every power state (CPUID 8000_0007h EDX bit 8)
	char kernel_sources[128]; // names of the kernel's clock sources; empty if unknown
	char kernel_current[32];  // name of the clock source in use; empty if unknown
};

void clock_init_monotonic(struct clock *clock);

// Initialize a TSC clock. Calibrates the TSC against CLOCK_MONOTONIC_RAW to within
// CLOCK_SCALE_ERROR_PPB_MAX, which takes 10 to 200 ms. If the TSC is unreliable or the machine too
// noisy, the clock uses CLOCK_MONOTONIC. clock_reason() then gives the cause. Cannot fail.
void clock_init_tsc(struct clock *clock);

// Like clock_init_tsc(), with facts from the caller. Tests use it to check the fallback.
void clock_init_tsc_from_facts(struct clock *clock, const struct clock_tsc_facts *facts);

// Return the reason why the TSC is unusable, or NULL if it can be used.
const char *clock_tsc_objection(const struct clock_tsc_facts *facts);

// Initialize a clock for clock_resync(). Uses the TSC if it is also the kernel's clock source, else
// CLOCK_MONOTONIC. Another thread may resynchronize its own copy of the clock.
void clock_init_resynced(struct clock *clock);
void clock_init_resynced_from_facts(struct clock *clock, const struct clock_tsc_facts *facts);

enum clock_resync {
	CLOCK_RESYNC_DONE,
	CLOCK_RESYNC_INTERRUPTED, // interrupted at each try, clock unchanged; call again soon
	CLOCK_RESYNC_JUMPED,	  // the TSC jumped; the clock uses CLOCK_MONOTONIC from now on
};

// Compare a TSC clock with CLOCK_MONOTONIC and correct it. A clock that is behind jumps forward; a
// clock that is ahead stands still until the time is reached. The clock goes back only after a jump
// ahead, which a suspended or migrated machine may cause. Other sources need no correction. Must be
// called by the reading thread. Takes about 200 ns, without a system call if the TSC is the
// kernel's clock source.
enum clock_resync clock_resync(struct clock *clock);

// Like clock_resync(), with a given sample of CLOCK_MONOTONIC. Pure.
enum clock_resync clock_resync_at(struct clock *clock, const struct clock_sample *sample);

// Return the largest deviation that clock_resync() has found since the clock was initialized.
uint64_t clock_resync_deviation_ns(const struct clock *clock);

void clock_init_fake(struct clock *clock, uint64_t start_ns);

// Advance a fake clock. The release store pairs with the acquire of a reading: a thread that reads
// the new time also sees what the test prepared before.
void clock_advance(struct clock *clock, uint64_t by_ns);

enum clock_source clock_source(const struct clock *clock);

// Return the name of the source: "monotonic", "tsc" or "fake".
const char *clock_source_name(enum clock_source source);

// Return why this source was chosen, as static text for a log line.
const char *clock_reason(const struct clock *clock);

// Return the bound of the rate error against CLOCK_MONOTONIC_RAW; 0 unless the source is the TSC.
uint32_t clock_error_ppb(const struct clock *clock);

// Read CLOCK_MONOTONIC, whatever source the program's clock uses. A vDSO call: no system call if
// the kernel has a readable counter.
uint64_t clock_monotonic_ns(void);

// Private: read a source other than the TSC.
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

// Read the clock. Hot path. A TSC reading is not ordered against the instructions around it:
// out-of-order execution may shift it by some nanoseconds.
static inline uint64_t clock_now_ns(const struct clock *clock) {
	if (CLOCK_HAS_TICKS && __builtin_expect(clock->source == CLOCK_SOURCE_TSC, 1))
		return clock_scale_ns(&clock->scale, clock_ticks());
	return clock_now_other_ns(clock);
}
