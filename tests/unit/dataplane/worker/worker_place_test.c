// SPDX-License-Identifier: BSD-3-Clause
// Tests of the worker's processor, its name, and its locked memory.
#include "dataplane/worker/worker_bed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void worker_is_pinned_where_it_was_told_and_says_so(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct cpu_set allowed, expected = {{0}}, after;
	struct worker_facts facts = {.tid = 0};
	struct worker *worker;
	char path[64], name[32];
	FILE *file;

	(void)state;
	assert_int_equal(cpu_set_get_allowed(&allowed), 0);
	config.cpu = cpu_set_next(&allowed, 0);
	config.idle.block_ns = 0;
	cpu_set_add(&expected, config.cpu);
	worker = started(&config, &facts);
	assert_memory_equal(&facts.affinity, &expected, sizeof(expected));
	assert_true(facts.block_ns > 0);
	assert_false(facts.eal);
	assert_true(facts.tid > 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", facts.tid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(name, sizeof(name), file));
	fclose(file);
	assert_string_equal(name, "worker-1\n");
	assert_int_equal(cpu_set_get_allowed(&after), 0);
	assert_memory_equal(&after, &allowed, sizeof(allowed));
	worker_destroy(worker);
}

static void processor_that_is_not_allowed_is_refused(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct worker_facts facts = {.tid = 77};
	struct worker *worker;

	(void)state;
	config.cpu = CPU_SET_CPUS_MAX - 1;
	assert_int_equal(worker_create(&config, &worker), 0);
	assert_int_equal(worker_start(worker, &facts), -EINVAL);
	assert_int_equal(facts.tid, 77);
	worker_destroy(worker);
}

// With sanitizers, locking memory reports success but locks nothing.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static uint64_t locked_kib(void) {
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long long kib = UINT64_MAX;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "VmLck:", 6) == 0)
			kib = strtoull(line + 6, NULL, 10);
	}
	fclose(file);
	return kib;
}

// Return the error of locking memory in a process with this limit and without privileges.
static int lock_error_at(uint64_t limit) {
	const struct rlimit limits = {limit, limit};
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		bool ready = setrlimit(RLIMIT_MEMLOCK, &limits) == 0 &&
			     (geteuid() != 0 || setuid(65534) == 0);

		_exit(ready ? -worker_lock_memory() : 255);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void memory_is_locked_whole_and_also_what_comes_later(void **state) {
	const size_t size = 1 << 20;
	uint64_t before = locked_kib();
	void *later;

	(void)state;
	assert_int_equal(before, 0);
	if (worker_lock_memory() != 0)
		skip(); // the user has no permission
	before = locked_kib();
	assert_true(before > 0);
	later = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(later, MAP_FAILED);
	assert_true(locked_kib() >= before + size / 1024);
	assert_int_equal(munlockall(), 0);
	munmap(later, size);
}

static void memory_that_may_not_be_locked_is_told(void **state) {
	(void)state;
	assert_int_equal(lock_error_at(0), -EPERM);
	assert_int_equal(lock_error_at(65536), -ENOMEM);
}
#endif

UNIT_GROUP(worker_place) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_is_pinned_where_it_was_told_and_says_so),
		cmocka_unit_test(processor_that_is_not_allowed_is_refused),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(memory_is_locked_whole_and_also_what_comes_later),
		cmocka_unit_test(memory_that_may_not_be_locked_is_told),
#endif
	};

	clock_init_monotonic(&monotonic);
	return cmocka_run_group_tests_name("worker_place", tests, NULL, NULL);
}
