// SPDX-License-Identifier: BSD-3-Clause
// EAL starts only once per process, so each test starts it in a child. The child reports failures
// on stderr.
#include "dpdk/eal_directory.h"

#include <dataplane/dpdk.h>
#include <dataplane/eal.h>
#include <lib/cpu_set.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Check in a child process, where a cmocka assertion would jump into the parent's tests.
#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

static char name[32];

static struct eal_config config_of(void) {
	return (struct eal_config
	){.name = name, .memory = EAL_MEMORY_PLAIN, .memory_mib = 8, .log = NULL};
}

static void in_child(void (*work)(void)) {
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		snprintf(name, sizeof(name), "test%d", getpid());
		work();
		exit(0); // NOLINT(concurrency-mt-unsafe): exit() runs the leak check
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool exists(const char *path) {
	return access(path, F_OK) == 0;
}

static void keeps_affinity(void) {
	struct eal_config config = config_of();
	struct cpu_set before, after;
	struct eal_facts facts;

	CHECK(cpu_set_get_allowed(&before) == 0);
	CHECK(eal_start(&config, &facts) == 0);
	CHECK(eal_is_running());
	CHECK(cpu_set_get_allowed(&after) == 0);
	CHECK(memcmp(&before, &after, sizeof(before)) == 0);
	eal_stop();
	CHECK(!eal_is_running());
}

static void start_leaves_the_affinity_of_the_caller_alone(void **state) {
	(void)state;
	in_child(keeps_affinity);
}

static bool process_has_mapping(const char *text) {
	char line[PATH_MAX + 128];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	CHECK(maps != NULL);
	while (!found && fgets(line, sizeof(line), maps) != NULL)
		found = strstr(line, text) != NULL;
	fclose(maps);
	return found;
}

static void starts_without_plugins(void) {
	struct eal_config config = config_of();
	struct eal_facts facts;

	CHECK(eal_start(&config, &facts) == 0);
	CHECK(!process_has_mapping("/dpdk/pmds-"));
	eal_stop();
}

// With a shared DPDK library, every driver plugin of the distribution would cost memory in each
// agent.
static void start_without_a_dpdk_wire_loads_no_driver_plugin(void **state) {
	(void)state;
	in_child(starts_without_plugins);
}

static void starts_where_it_may_run(void) {
	struct eal_config config = config_of();
	struct cpu_set allowed, last = {{0}};
	struct eal_facts facts;
	uint32_t cpu = 0;

	// Bind to the last allowed processor, which may differ from processor 0.
	CHECK(cpu_set_get_allowed(&allowed) == 0);
	for (uint32_t n = 0; n < CPU_SET_CPUS_MAX; n = cpu_set_next(&allowed, n + 1))
		cpu = cpu_set_has(&allowed, n) ? n : cpu;
	cpu_set_add(&last, cpu);
	CHECK(cpu_set_bind_thread(&last) == 0);
	CHECK(eal_start(&config, &facts) == 0);
	eal_stop();
}

static void it_starts_on_the_processors_that_are_allowed(void **state) {
	(void)state;
	in_child(starts_where_it_may_run);
}

static void starts_twice(void) {
	struct eal_config config = config_of();
	struct eal_facts facts, untouched = {.start_ns = 77};

	CHECK(eal_start(&config, &facts) == 0);
	CHECK(eal_start(&config, &untouched) == -EALREADY);
	CHECK(untouched.start_ns == 77);
	eal_stop();
	CHECK(eal_start(&config, &untouched) == -EALREADY);
	eal_stop();
}

static void second_start_is_refused_also_after_a_stop(void **state) {
	(void)state;
	in_child(starts_twice);
}

static void has_telemetry(void) {
	struct eal_config config = config_of();
	struct eal_facts facts;
	char path[PATH_MAX];

	CHECK(eal_start(&config, &facts) == 0);
	CHECK(!facts.huge_pages);
	CHECK(facts.start_ns > 0);
	CHECK(strncmp(facts.file_prefix, "tocsin-test", 11) == 0);
	snprintf(path, sizeof(path), "%s/dpdk_telemetry.v2", facts.runtime_dir);
	CHECK(exists(path));
	eal_stop();
	CHECK(!exists(facts.runtime_dir));
}

static void telemetry_listens_and_its_directory_is_gone_at_the_end(void **state) {
	(void)state;
	in_child(has_telemetry);
}

static void leaves(void) {
	struct eal_config config = config_of();
	struct eal_facts facts;
	struct rte_ring *ring;
	void *got = NULL;

	eal_remove_directory(); // no effect before the start
	CHECK(eal_start(&config, &facts) == 0);
	ring = rte_ring_create("left", 64, SOCKET_ID_ANY, 0);
	CHECK(ring != NULL);
	eal_remove_directory();
	CHECK(!exists(facts.runtime_dir));
	CHECK(eal_is_running());
	CHECK(rte_ring_enqueue(ring, ring) == 0);
	CHECK(rte_ring_dequeue(ring, &got) == 0 && got == ring);
}

static void left_as_it_is_its_directory_is_gone_and_its_memory_is_not(void **state) {
	(void)state;
	in_child(leaves);
}

static _Atomic uint32_t lines, bad_lines;

static void count_line(uint32_t level, const char *line, size_t length) {
	atomic_fetch_add(&lines, 1);
	if (level == 0 || level > 8 || length == 0 || memchr(line, '\n', length) != NULL)
		atomic_fetch_add(&bad_lines, 1);
}

static void says_why(void) {
	struct eal_config config = config_of();
	struct eal_facts facts;

	config.log = count_line;
	config.memory_mib = 100000000; // more than the machine has
	CHECK(eal_start(&config, &facts) < 0);
	CHECK(!eal_is_running());
	CHECK(!exists(rte_eal_get_runtime_dir()));
	CHECK(atomic_load(&lines) > 0);
	CHECK(atomic_load(&bad_lines) == 0);
	eal_stop();
}

static void start_that_fails_says_why_in_our_log_line_by_line(void **state) {
	(void)state;
	in_child(says_why);
}

static void *worker_run(void *argument) {
	int *err = argument;
	struct cpu_set before, after;

	*err = cpu_set_get_allowed(&before);
	if (*err == 0)
		*err = eal_thread_register();
	if (*err == 0 && (rte_lcore_id() == LCORE_ID_ANY || cpu_set_get_allowed(&after) != 0 ||
			  memcmp(&before, &after, sizeof(before)) != 0))
		*err = -EINVAL;
	if (*err == 0)
		eal_thread_unregister();
	return NULL;
}

static void registers(void) {
	struct eal_config config = config_of();
	struct eal_facts facts;
	pthread_t thread;
	int err = 1;

	CHECK(eal_start(&config, &facts) == 0);
	CHECK(pthread_create(&thread, NULL, worker_run, &err) == 0);
	pthread_join(thread, NULL);
	CHECK(err == 0);
	eal_stop();
}

static void thread_of_ours_registers_and_is_not_pinned_by_it(void **state) {
	(void)state;
	in_child(registers);
}

static void prefix_is_made_of_harmless_characters(void **state) {
	static const char *const cases[][2] = {
		{"n1", "tocsin-n1"},
		{"node-1.rack", "tocsin-node-1.rack"},
		{"../../etc", "tocsin-.._.._etc"},
		{"a%b c\n", "tocsin-a_b_c_"},
	};
	char prefix[32];

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		eal_directory_prefix(cases[n][0], prefix, sizeof(prefix));
		assert_string_equal(prefix, cases[n][1]);
	}
	eal_directory_prefix("a-name-that-is-longer-than-the-room", prefix, sizeof(prefix));
	assert_int_equal(strlen(prefix), sizeof(prefix) - 1);
}

static void write_file(const char *path, const char *text) {
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void huge_pages_count_only_if_one_is_free(void **state) {
	char root[] = "/tmp/tocsin-eal-XXXXXX";
	char size[64], file[96];

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_false(eal_directory_has_huge_page("/nowhere"));
	assert_false(eal_directory_has_huge_page(root));
	snprintf(size, sizeof(size), "%s/hugepages-2048kB", root);
	snprintf(file, sizeof(file), "%s/free_hugepages", size);
	assert_int_equal(mkdir(size, 0700), 0);
	assert_false(eal_directory_has_huge_page(root));
	write_file(file, "0\n");
	assert_false(eal_directory_has_huge_page(root));
	write_file(file, "12\n");
	assert_true(eal_directory_has_huge_page(root));
	eal_directory_remove(root); // keeps files that are not EAL's
	assert_true(exists(file));
	eal_directory_remove(size);
	eal_directory_remove(root);
	assert_false(exists(root));
}

UNIT_GROUP(eal) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_leaves_the_affinity_of_the_caller_alone),
		cmocka_unit_test(start_without_a_dpdk_wire_loads_no_driver_plugin),
		cmocka_unit_test(it_starts_on_the_processors_that_are_allowed),
		cmocka_unit_test(second_start_is_refused_also_after_a_stop),
		cmocka_unit_test(telemetry_listens_and_its_directory_is_gone_at_the_end),
		cmocka_unit_test(left_as_it_is_its_directory_is_gone_and_its_memory_is_not),
		cmocka_unit_test(start_that_fails_says_why_in_our_log_line_by_line),
		cmocka_unit_test(thread_of_ours_registers_and_is_not_pinned_by_it),
		cmocka_unit_test(prefix_is_made_of_harmless_characters),
		cmocka_unit_test(huge_pages_count_only_if_one_is_free),
	};

	return cmocka_run_group_tests_name("eal", tests, NULL, NULL);
}
