// SPDX-License-Identifier: BSD-3-Clause
// The clock: CLOCK_MONOTONIC, the calibrated TSC, or a fake clock for tests.
#include <lib/clock.h>
#include <lib/clock_scale.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#define KERNEL_CLOCKS_PATH "/sys/devices/system/clocksource/clocksource0/"
// Number of readings per sample. The tightest one is used, so an interrupt in one of them does no
// harm.
#define SAMPLE_TRIES 64
#define KEEP_TRIES 3
#define CALIBRATION_NS_MIN 10000000L
#define CALIBRATION_NS_MAX 100000000L

static struct clock_sample sample_once(clockid_t id) {
	struct clock_sample sample;
	struct timespec now;

	sample.ticks_before = clock_ticks();
	must(clock_gettime(id, &now) == 0);
	sample.ticks_after = clock_ticks();
	sample.ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return sample;
}

static struct clock_sample sample_tightest(clockid_t id, int tries) {
	struct clock_sample best = sample_once(id);

	for (int n = 1; n < tries; n++) {
		struct clock_sample sample = sample_once(id);

		if (sample.ticks_after - sample.ticks_before < best.ticks_after - best.ticks_before)
			best = sample;
	}
	return best;
}

// Calibrate the TSC. Returns NULL with the scale set, or the reason for failure. The rate comes
// from the raw clock, because a slew in progress would stay in the rate for ever. The origin comes
// from CLOCK_MONOTONIC.
static const char *scale_calibrate(struct clock_scale *ret_scale) {
	struct clock_sample first = sample_tightest(CLOCK_MONOTONIC_RAW, SAMPLE_TRIES);
	struct clock_sample last, origin;
	int err = -EAGAIN;

	for (long wait_ns = CALIBRATION_NS_MIN; wait_ns <= CALIBRATION_NS_MAX && err == -EAGAIN;
	     wait_ns *= 2) {
		// A signal may cut the sleep short: the elapsed time is measured, not assumed.
		nanosleep(&(struct timespec){.tv_nsec = wait_ns}, NULL);
		last = sample_tightest(CLOCK_MONOTONIC_RAW, SAMPLE_TRIES);
		err = clock_scale_init(ret_scale, &first, &last);
	}
	if (err == -EAGAIN)
		return "the machine is too noisy to calibrate the TSC";
	if (err != 0)
		return "the TSC does not advance at a plausible rate";
	origin = sample_tightest(CLOCK_MONOTONIC, SAMPLE_TRIES);
	ret_scale->ticks_base = clock_sample_ticks(&origin);
	ret_scale->ns_base = origin.ns;
	return NULL;
}

// Read the first line of a file. The line is empty if the file is missing; a container may hide it.
static void read_first_line(const char *path, char *line, size_t size) {
	scoped_file FILE *file = fopen(path, "re");
	size_t length = file != NULL ? fread(line, 1, size - 1, file) : 0;

	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

static void facts_read(struct clock_tsc_facts *ret_facts) {
	memset(ret_facts, 0, sizeof(*ret_facts));
#if defined(__x86_64__)
	unsigned int eax, ebx, ecx, edx;

	ret_facts->readable = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (edx & 1U << 4) != 0;
	ret_facts->invariant =
		__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & 1U << 8) != 0;
#elif defined(__aarch64__)
	// The ARM architecture guarantees both; the kernel lets programs read the counter.
	ret_facts->readable = ret_facts->invariant = true;
#endif
	read_first_line(
		KERNEL_CLOCKS_PATH "available_clocksource", ret_facts->kernel_sources,
		sizeof(ret_facts->kernel_sources)
	);
	read_first_line(
		KERNEL_CLOCKS_PATH "current_clocksource", ret_facts->kernel_current,
		sizeof(ret_facts->kernel_current)
	);
}

static bool word_in_list(const char *word, const char *list) {
	size_t length = strlen(word);

	for (const char *at = list; *at != '\0'; at += strcspn(at, " \n")) {
		at += strspn(at, " \n");
		if (strcspn(at, " \n") == length && memcmp(at, word, length) == 0)
			return true;
	}
	return false;
}

const char *clock_tsc_objection(const struct clock_tsc_facts *facts) {
	if (!facts->readable)
		return "this processor has no TSC to read";
	if (!facts->invariant)
		return "the TSC is not invariant by CPUID";
	// The kernel removes the TSC from this list when processors disagree.
	if (facts->kernel_sources[0] != '\0' &&
	    !word_in_list(CLOCK_TICKS_KERNEL_NAME, facts->kernel_sources))
		return "the kernel does not offer the TSC as a clock source";
	return NULL;
}

static void clock_init(struct clock *clock, enum clock_source source, const char *reason) {
	memset(clock, 0, sizeof(*clock));
	clock->source = source;
	clock->reason = reason;
}

void clock_init_monotonic(struct clock *clock) {
	clock_init(clock, CLOCK_SOURCE_MONOTONIC, "requested");
}

void clock_init_tsc_from_facts(struct clock *clock, const struct clock_tsc_facts *facts) {
	const char *objection = clock_tsc_objection(facts);
	struct clock_scale scale;

	if (objection == NULL)
		objection = scale_calibrate(&scale);
	if (objection != NULL) {
		clock_init(clock, CLOCK_SOURCE_MONOTONIC, objection);
		return;
	}
	clock_init(clock, CLOCK_SOURCE_TSC, "invariant TSC, calibrated");
	clock->scale = scale;
	clock->kept = (struct clock_resync_state){
		.ticks = scale.ticks_base,
		.ns = scale.ns_base,
		.rate_ticks = scale.ticks_base,
		.rate_ns = scale.ns_base,
	};
}

void clock_init_tsc(struct clock *clock) {
	struct clock_tsc_facts facts;

	facts_read(&facts);
	clock_init_tsc_from_facts(clock, &facts);
}

// The kernel's watchdog then monitors the TSC, and CLOCK_MONOTONIC counts the same ticks.
void clock_init_resynced_from_facts(struct clock *clock, const struct clock_tsc_facts *facts) {
	const char *objection = clock_tsc_objection(facts);

	if (objection == NULL && facts->kernel_current[0] == '\0')
		objection = "the clock source of the kernel is unknown";
	else if (objection == NULL && strcmp(facts->kernel_current, CLOCK_TICKS_KERNEL_NAME) != 0)
		objection = "the TSC is not the kernel's clock source";
	if (objection != NULL)
		clock_init(clock, CLOCK_SOURCE_MONOTONIC, objection);
	else
		clock_init_tsc_from_facts(clock, facts);
}

void clock_init_resynced(struct clock *clock) {
	struct clock_tsc_facts facts;

	facts_read(&facts);
	clock_init_resynced_from_facts(clock, &facts);
}

enum clock_resync clock_resync(struct clock *clock) {
	struct clock_sample sample;

	if (clock->source != CLOCK_SOURCE_TSC)
		return CLOCK_RESYNC_DONE;
	sample = sample_tightest(CLOCK_MONOTONIC, KEEP_TRIES);
	return clock_resync_at(clock, &sample);
}

void clock_init_fake(struct clock *clock, uint64_t start_ns) {
	clock_init(clock, CLOCK_SOURCE_FAKE, "moved by hand");
	atomic_store_explicit(&clock->fake_ns, start_ns, memory_order_release);
}

void clock_advance(struct clock *clock, uint64_t by_ns) {
	uint64_t now_ns;

	must(clock->source == CLOCK_SOURCE_FAKE);
	now_ns = atomic_load_explicit(&clock->fake_ns, memory_order_relaxed);
	must(by_ns <= UINT64_MAX - now_ns);
	atomic_store_explicit(&clock->fake_ns, now_ns + by_ns, memory_order_release);
}

enum clock_source clock_source(const struct clock *clock) {
	return clock->source;
}

const char *clock_source_name(enum clock_source source) {
	static const char *const names[] = {
		[CLOCK_SOURCE_MONOTONIC] = "monotonic",
		[CLOCK_SOURCE_TSC] = "tsc",
		[CLOCK_SOURCE_FAKE] = "fake",
	};

	must((unsigned int)source < sizeof(names) / sizeof(names[0]));
	return names[source];
}

const char *clock_reason(const struct clock *clock) {
	return clock->reason;
}

uint32_t clock_error_ppb(const struct clock *clock) {
	return clock->source == CLOCK_SOURCE_TSC ? clock->scale.error_ppb : 0;
}

#define NS_PER_S 1000000000ULL

// Return half of both brackets, plus the nanosecond to which clock readings are rounded.
static uint64_t rate_error_ppb(
	const struct clock_sample *first,
	const struct clock_sample *last,
	uint64_t ticks,
	uint64_t ns
) {
	unsigned __int128 widths = (unsigned __int128)(first->ticks_after - first->ticks_before) +
				   (last->ticks_after - last->ticks_before);
	unsigned __int128 error_ppb = widths * NS_PER_S / 2 / ticks + NS_PER_S / ns + 2;

	return error_ppb > UINT64_MAX ? UINT64_MAX : (uint64_t)error_ppb;
}

int clock_scale_init(
	struct clock_scale *ret_scale,
	const struct clock_sample *first,
	const struct clock_sample *last
) {
	unsigned __int128 hz;
	uint64_t ticks, ns, error_ppb;

	if (first->ticks_after < first->ticks_before || last->ticks_after < last->ticks_before ||
	    last->ticks_before <= first->ticks_after || last->ns <= first->ns)
		return -EINVAL;
	ticks = clock_sample_ticks(last) - clock_sample_ticks(first);
	ns = last->ns - first->ns;
	hz = (unsigned __int128)ticks * NS_PER_S / ns;
	if (hz < CLOCK_SCALE_HZ_MIN || hz > CLOCK_SCALE_HZ_MAX)
		return -ERANGE;
	error_ppb = rate_error_ppb(first, last, ticks, ns);
	if (error_ppb > CLOCK_SCALE_ERROR_PPB_MAX)
		return -EAGAIN;
	ret_scale->ticks_base = clock_sample_ticks(last);
	ret_scale->ns_base = last->ns;
	ret_scale->multiplier = (uint64_t)(((unsigned __int128)ns << CLOCK_SCALE_SHIFT) / ticks);
	ret_scale->error_ppb = (uint32_t)error_ppb;
	return 0;
}
