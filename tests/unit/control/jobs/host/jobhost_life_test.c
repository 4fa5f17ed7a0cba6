// SPDX-License-Identifier: BSD-3-Clause
// Activities of a process, told from a made-up /proc and cgroup tree.
#include "jobs/host/life.h"

#include <support/cmocka.h>
#include <support/tree.h>

#include <errno.h>
#include <jobs/report.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define PID 100
#define LOOKS 11

// A tree in a directory of its own. Times are in clock ticks of 10 ms.
struct tree {
	char directory[32], proc[64], cgroup[64];
	struct life_roots roots;
	struct life *life;
	uint64_t now_ns;
	char state;
	uint64_t user, reaped, faults, block, queued_ns, switches;
};

__attribute__((format(printf, 3, 4))) static void
write_text(const char *root, const char *name, const char *format, ...) {
	char path[256];
	va_list arguments;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*at = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	va_start(arguments, format);
	vfprintf(file, format, arguments);
	va_end(arguments);
	fclose(file);
}

static void write_stat(
	const struct tree *tree, int pid, const char *name, char state, const uint64_t values[4]
) {
	char path[32];

	snprintf(path, sizeof(path), "%d/stat", pid);
	// Fields 3 to 52 of proc(5).
	write_text(
		tree->proc, path,
		"%d (%s) %c 1 1 1 0 -1 0 5 0 %llu 0 %llu 0 %llu 0 20 0 1 0 %d 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 0 0 0 0 0 0 %llu 0 0 0 0 0 0 0 0 0 0\n",
		pid, name, state, (unsigned long long)values[0], (unsigned long long)values[1],
		(unsigned long long)values[2], pid + 7, (unsigned long long)values[3]
	);
}

static void write_process(const struct tree *tree) {
	const uint64_t values[] = {tree->faults, tree->user, tree->reaped, tree->block};

	write_stat(tree, PID, "rank) S 1 (", tree->state, values);
	write_text(tree->proc, "100/schedstat", "5 %llu 9\n", (unsigned long long)tree->queued_ns);
	write_text(
		tree->proc, "100/status",
		"Name:\trank\nvoluntary_ctxt_switches:\t%llu\nnonvoluntary_ctxt_switches:\t3\n",
		(unsigned long long)tree->switches
	);
}

static void write_child(const struct tree *tree, int pid, const char *name, uint64_t user) {
	const uint64_t values[] = {0, user, 0, 0};

	write_stat(tree, pid, name, 'R', values);
}

static int setup(void **state) {
	struct tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	snprintf(tree->directory, sizeof(tree->directory), "/tmp/tocsin-life-XXXXXX");
	assert_non_null(mkdtemp(tree->directory));
	snprintf(tree->proc, sizeof(tree->proc), "%s/proc", tree->directory);
	snprintf(tree->cgroup, sizeof(tree->cgroup), "%s/cgroup", tree->directory);
	tree->roots = (struct life_roots){tree->proc, tree->cgroup};
	tree->life = life_create();
	assert_non_null(tree->life);
	tree->now_ns = 1000 * SECOND;
	tree->state = 'S';
	tree->switches = 40;
	write_process(tree);
	write_text(tree->proc, "sys/kernel/task_delayacct", "1\n");
	write_text(tree->proc, "100/task/100/children", "%s", "");
	write_text(tree->proc, "100/task/101/children", "%s", "");
	write_text(tree->proc, "100/cgroup", "0::/job/step\n");
	write_text(tree->cgroup, "job/cpu.stat", "usage_usec 1\nthrottled_usec 0\n");
	write_text(tree->cgroup, "job/step/cpu.stat", "usage_usec 1\n");
	write_text(tree->cgroup, "job/step/cgroup.events", "populated 1\nfrozen 0\n");
	*state = tree;
	return 0;
}

static int teardown(void **state) {
	struct tree *tree = *state;

	life_destroy(tree->life);
	assert_int_equal(tree_remove(tree->directory), 0);
	free(tree);
	return 0;
}

static void remove_file(const char *root, const char *name) {
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(unlink(path), 0);
}

static void look_once(struct tree *tree) {
	write_process(tree);
	life_look(tree->life, &tree->roots, PID, tree->now_ns);
	tree->now_ns += SECOND;
}

static struct ras_comm_doing doing_of(const struct tree *tree) {
	struct ras_comm_doing doing;

	life_summarise(tree->life, &doing);
	return doing;
}

static void a_sleeping_process_does_nothing_after_two_looks(void **state) {
	struct tree *tree = *state;
	struct ras_comm_doing doing;

	look_once(tree);
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_UNKNOWN);
	for (int n = 1; n < 30; n++) {
		tree->switches += 2;
		look_once(tree);
		doing = doing_of(tree);
		assert_int_equal(doing.activity, JOBS_DOES_NOTHING);
		assert_int_equal(doing.unread, 0);
		assert_int_equal(doing.span_ms, n < LOOKS ? n * 1000 : 10000);
		assert_int_equal(doing.amount, n < LOOKS ? n * 2 : 20);
	}
}

static void what_the_process_does_itself_is_told(void **state) {
	static const struct {
		uint64_t user, faults, block, queued_ns; // growth in a second
		char process;
		uint8_t activity;
		uint32_t amount;
	} rows[] = {
		{1, 0, 0, 0, 'S', JOBS_DOES_COMPUTE, 0},
		{0, 100, 0, 0, 'S', JOBS_DOES_PAGE, 1000},
		{0, 0, 50, 0, 'S', JOBS_DOES_DISK, 50},
		{0, 0, 0, 0, 'D', JOBS_DOES_DISK, 100},
		{0, 0, 0, SECOND / 4, 'R', JOBS_DOES_QUEUE, 25},
		{0, 0, 5, SECOND / 50, 'S', JOBS_DOES_NOTHING, 0},
	};
	struct tree *tree = *state;

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		life_destroy(tree->life);
		tree->life = life_create();
		tree->state = rows[n].process;
		for (int look = 0; look < LOOKS; look++) {
			look_once(tree);
			tree->user += rows[n].user;
			tree->faults += rows[n].faults;
			tree->block += rows[n].block;
			tree->queued_ns += rows[n].queued_ns;
		}
		assert_int_equal(doing_of(tree).activity, rows[n].activity);
		assert_int_equal(doing_of(tree).amount, rows[n].amount);
	}
}

// Make starts a shell, whose compilers come and go; another thread has started make.
static void a_child_of_a_child_that_computes_is_named(void **state) {
	struct tree *tree = *state;

	write_text(tree->proc, "100/task/101/children", "200 ");
	write_text(tree->proc, "200/task/200/children", "300 301 ");
	write_child(tree, 200, "make", 1);
	write_child(tree, 300, "sh", 0);
	for (int n = 0; n < 5; n++) {
		write_child(tree, 301, "cc1\n plus", 1000 + 90 * (uint64_t)n);
		look_once(tree);
	}
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_CHILD);
	assert_int_equal(doing_of(tree).amount, 301);
	assert_string_equal(doing_of(tree).name, "cc1\n plus");
	assert_int_equal(doing_of(tree).unread, 0);
}

static void the_time_of_children_that_were_reaped_counts(void **state) {
	struct tree *tree = *state;

	for (int n = 0; n < 5; n++) {
		tree->reaped += 90;
		look_once(tree);
	}
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_CHILD);
	assert_int_equal(doing_of(tree).amount, 0);
	// The end of a child moves its time to the parent, and is no work.
	write_text(tree->proc, "100/task/100/children", "200 ");
	write_child(tree, 200, "tar", 5000);
	for (int n = 0; n < LOOKS; n++)
		look_once(tree);
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_NOTHING);
	write_text(tree->proc, "100/task/100/children", "%s", "");
	remove_file(tree->proc, "200/stat");
	tree->reaped += 5000;
	look_once(tree);
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_NOTHING);
}

static void the_quota_of_any_level_counts(void **state) {
	static const char *const groups[] = {
		"0::/job/step\n", "1:cpuset:/\n3:cpu,cpuacct:/job\n0::/\n"};
	struct tree *tree = *state;

	for (size_t row = 0; row < 2; row++) {
		life_destroy(tree->life);
		tree->life = life_create();
		write_text(tree->proc, "100/cgroup", "%s", groups[row]);
		for (int n = 0; n < LOOKS; n++) {
			write_text(
				tree->cgroup, "job/cpu.stat",
				"usage_usec 1\nnr_throttled 5\nthrottled_usec %d\n", n * 930000
			);
			write_text(
				tree->cgroup, "cpu/job/cpu.stat",
				"nr_throttled 5\nthrottled_time %llu\n",
				(unsigned long long)n * 930000000
			);
			look_once(tree);
		}
		assert_int_equal(doing_of(tree).activity, JOBS_DOES_THROTTLE);
		assert_int_equal(doing_of(tree).amount, 93);
		assert_int_equal(doing_of(tree).unread, 0);
	}
}

static void a_frozen_cgroup_is_seen_in_both_versions(void **state) {
	static const struct {
		const char *groups, *events, *freezer;
		bool is_frozen;
	} rows[] = {
		{"0::/job/step\n", "populated 1\nfrozen 1\n", "FROZEN\n", true},
		{"0::/job/step\n", "populated 1\nfrozen 0\n", "FROZEN\n", false},
		{"6:freezer:/job\n0::/\n", "frozen 1\n", "FROZEN\n", true},
		{"6:freezer:/job\n0::/\n", "frozen 1\n", "THAWED\n", false},
		{"6:freezer:/\n0::/\n", "frozen 1\n", "FROZEN\n", false},
	};
	struct tree *tree = *state;

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		write_text(tree->proc, "100/cgroup", "%s", rows[n].groups);
		write_text(tree->cgroup, "job/step/cgroup.events", "%s", rows[n].events);
		write_text(tree->cgroup, "freezer/job/freezer.state", "%s", rows[n].freezer);
		look_once(tree);
		assert_int_equal(life_is_frozen(tree->life), rows[n].is_frozen);
		assert_int_equal(doing_of(tree).unread & JOBS_SOURCE_FREEZER, 0);
		life_look_at_freezer(tree->life, &tree->roots, PID);
		assert_int_equal(life_is_frozen(tree->life), rows[n].is_frozen);
		assert_int_equal(doing_of(tree).activity, JOBS_DOES_UNKNOWN);
	}
}

static void each_source_that_is_absent_is_told(void **state) {
	static const struct {
		const char *file; // of the process
		uint8_t unread;
	} rows[] = {
		{"100/schedstat", JOBS_SOURCE_SCHEDSTAT},
		{"100/status", JOBS_SOURCE_STATUS},
		{"100/cgroup", JOBS_SOURCE_QUOTA | JOBS_SOURCE_FREEZER},
		{"100/stat", JOBS_SOURCE_STAT},
	};
	struct tree *tree = *state;
	uint8_t unread;

	look_once(tree);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		write_process(tree);
		remove_file(tree->proc, rows[n].file);
		life_look(tree->life, &tree->roots, PID, tree->now_ns += SECOND);
		unread = doing_of(tree).unread;
		if (rows[n].unread == JOBS_SOURCE_STAT)
			assert_int_equal(doing_of(tree).activity, JOBS_DOES_UNKNOWN);
		assert_int_equal(unread & rows[n].unread, rows[n].unread);
	}
	// Make the remaining sources unreadable. The cgroup is outside of the agent's namespace.
	// The kernel lists no children, and does not account for waits for block devices.
	write_text(tree->proc, "100/cgroup", "0::/../other\n");
	write_text(tree->proc, "sys/kernel/task_delayacct", "0\n");
	remove_file(tree->proc, "100/task/100/children");
	remove_file(tree->proc, "100/task/101/children");
	look_once(tree);
	assert_int_equal(
		doing_of(tree).unread, JOBS_SOURCE_QUOTA | JOBS_SOURCE_FREEZER |
					       JOBS_SOURCE_CHILDREN | JOBS_SOURCE_BLOCK_IO
	);
}

static void a_look_is_bounded_and_says_what_it_left_out(void **state) {
	struct tree *tree = *state;
	char list[4096] = "";

	for (int n = 0; n < 100; n++) {
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%d ", 1000 + n);
		write_child(tree, 1000 + n, "worker", 5);
	}
	write_text(tree->proc, "100/task/100/children", "%s", list);
	look_once(tree);
	look_once(tree);
	assert_int_equal(doing_of(tree).unread, JOBS_SOURCE_CHILDREN);
	write_text(tree->proc, "100/task/100/children", "-5 0 99999999999 x 7\n");
	for (int n = 0; n < 100; n++) {
		snprintf(list, sizeof(list), "%d/stat", 1000 + n);
		remove_file(tree->proc, list);
	}
	look_once(tree);
	assert_int_equal(doing_of(tree).unread, 0);
	for (int n = 0; n < LOOKS; n++)
		look_once(tree);
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_NOTHING);
}

// A process of 300 threads, one of which has started a compiler.
static void children_of_each_thread_are_found_in_some_looks(void **state) {
	struct tree *tree = *state;
	uint32_t looks = 0;
	char name[64];

	for (int n = 0; n < 300; n++) {
		snprintf(name, sizeof(name), "100/task/%d/children", 2000 + n);
		write_text(tree->proc, name, "%s", n == 250 ? "200 " : "");
	}
	look_once(tree);
	assert_int_equal(doing_of(tree).unread, JOBS_SOURCE_CHILDREN);
	while (doing_of(tree).activity != JOBS_DOES_CHILD && looks < 9) {
		write_child(tree, 200, "cc1", 100 * (uint64_t)looks++);
		look_once(tree);
	}
	assert_int_equal(doing_of(tree).activity, JOBS_DOES_CHILD);
	for (; looks < 40; looks++) {
		write_child(tree, 200, "cc1", 100 * (uint64_t)looks);
		look_once(tree);
		assert_int_equal(doing_of(tree).activity, JOBS_DOES_CHILD);
	}
	assert_int_equal(doing_of(tree).amount, 200);
	assert_int_equal(doing_of(tree).unread, 0);
}

UNIT_GROUP(jobhost_life) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_sleeping_process_does_nothing_after_two_looks, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			what_the_process_does_itself_is_told, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_child_of_a_child_that_computes_is_named, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			the_time_of_children_that_were_reaped_counts, setup, teardown
		),
		cmocka_unit_test_setup_teardown(the_quota_of_any_level_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_frozen_cgroup_is_seen_in_both_versions, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			each_source_that_is_absent_is_told, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_look_is_bounded_and_says_what_it_left_out, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			children_of_each_thread_are_found_in_some_looks, setup, teardown
		),
	};

	return cmocka_run_group_tests_name("jobhost_life", tests, NULL, NULL);
}
