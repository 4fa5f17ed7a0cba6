// SPDX-License-Identifier: BSD-3-Clause
// Tests of which processor wakes the sleeper when the cost of a block is measured. The time itself
// is not tested.
#include <dataplane/block_cost.h>
#include <lib/cpu_set.h>
#include <support/cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t helper_cpus; // bit mask of processors on which the helper slept

// Replaces libc's function; only the helper sleeps.
int clock_nanosleep(
	clockid_t clock, int flags, const struct timespec *request, struct timespec *remain
) {
	atomic_fetch_or(&helper_cpus, UINT64_C(1) << (sched_getcpu() & 63));
	return (int)syscall(SYS_clock_nanosleep, clock, flags, request, remain);
}

struct sleeper {
	struct cpu_set one;
	uint64_t block_ns;
	int err;
};

// A thread bound like a worker; the main thread stays unbound.
static void *sleeper_run(void *argument) {
	struct sleeper *sleeper = argument;

	sleeper->err = cpu_set_bind_thread(&sleeper->one);
	if (sleeper->err == 0)
		sleeper->err = block_cost_measure(&sleeper->block_ns);
	return NULL;
}

static void sleeper_bound_to_a_processor_is_woken_from_another(void **state) {
	struct sleeper sleeper = {.err = -1};
	struct cpu_set allowed;
	pthread_t thread;

	(void)state;
	assert_int_equal(cpu_set_get_allowed(&allowed), 0);
	if (cpu_set_count(&allowed) < 2)
		skip(); // no other processor could wake it
	for (uint32_t cpu = cpu_set_next(&allowed, 0); cpu < CPU_SET_CPUS_MAX;
	     cpu = cpu_set_next(&allowed, cpu + 1)) {
		sleeper = (struct sleeper){.err = -1};
		cpu_set_add(&sleeper.one, cpu);
		helper_cpus = 0;
		assert_int_equal(pthread_create(&thread, NULL, sleeper_run, &sleeper), 0);
		pthread_join(thread, NULL);
		assert_int_equal(sleeper.err, 0);
		assert_true(sleeper.block_ns > 0);
		assert_int_not_equal(helper_cpus, 0);
		assert_int_equal(helper_cpus & (UINT64_C(1) << (cpu & 63)), 0);
	}
}

UNIT_GROUP(block_cost) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeper_bound_to_a_processor_is_woken_from_another),
	};

	return cmocka_run_group_tests_name("block_cost", tests, NULL, NULL);
}
