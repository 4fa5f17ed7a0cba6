// SPDX-License-Identifier: BSD-3-Clause
// The agent's own checks on a fake machine: trees for /sys and /proc, a fake fabric, and files
// that hang (a FIFO without a writer).
#include <control/checks.h>
#include <control/fabric.h>
#include <control/keeper.h>
#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)
#define SAID_MAX 4096
#define DEVICE "sys/mlx5_0/ports/1/"

static char root[] = "/tmp/tocsin-own-XXXXXX";
static struct clock now;
static struct loop *loop;
static struct checks *checks;
static struct statement said[SAID_MAX];
static uint32_t said_count;
static enum fabric_device_state driver_state;
static const char *driver_reason;
static struct checks_builtin_settings settings;
static char sysfs[PATH_MAX], proc[PATH_MAX], state_path[PATH_MAX];

static int say(void *ctx, const struct statement *statement) {
	(void)ctx;
	assert_true(said_count < SAID_MAX);
	said[said_count++] = *statement;
	return 0;
}

static uint32_t device_count(const struct fabric *fabric) {
	(void)fabric;
	return 2;
}

static void
device_at(const struct fabric *fabric, uint32_t n, struct fabric_device_view *ret_view) {
	(void)fabric;
	*ret_view = (struct fabric_device_view
	){.name = n == 0 ? "mlx5_0" : "mlx5_1", .state = FABRIC_DEVICE_UP, .reason = ""};
	if (n == 1) {
		ret_view->state = driver_state;
		ret_view->opened = 1;
		ret_view->reason = driver_reason;
		ret_view->stuck_ns = 12 * SEC;
	}
}

static struct checks_worker threads[] = {
	{.name = "tocsin-w1", .tid = 11}, {.name = "tocsin-w3", .tid = 13}};

static bool thread_at(void *ctx, uint32_t n, struct checks_worker *ret_worker) {
	(void)ctx;
	if (n >= 2)
		return false;
	*ret_worker = threads[n];
	return true;
}

static uint64_t paused_us; // pause time counted by the fake interface

static int
ethtool(const char *netdev, void (*take)(void *ctx, const char *name, uint64_t value), void *ctx) {
	if (strcmp(netdev, "eth7") == 0)
		take(ctx, "tx_prio3_pause_duration", paused_us);
	return 0;
}

static struct fabric_waits played_waits;

static void waits(const struct fabric *fabric, struct fabric_waits *ret_waits) {
	(void)fabric;
	*ret_waits = played_waits;
}

static const struct fabric_calls played = {
	.device_count = device_count, .device_at = device_at, .waits = waits};

static const char *path_of(const char *name) {
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void make_way(const char *name) {
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

static void put(const char *name, const char *text) {
	FILE *file;

	make_way(name);
	file = fopen(path_of(name), "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

// Create a file whose readers hang until let_go().
static void make_hang(const char *name) {
	make_way(name);
	unlink(path_of(name));
	assert_int_equal(mkfifo(path_of(name), 0600), 0);
}

// Release the hanging readers; later readers find an ordinary file.
static void let_go(const char *name, const char *text) {
	int fd = open(path_of(name), O_RDWR | O_CLOEXEC); // works also without a reader

	assert_true(fd >= 0);
	unlink(path_of(name));
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	put(name, text);
}

static void make_machine(void) {
	put("sys/mlx5_0/node_guid", "0000:0000:0000:0001\n");
	put(DEVICE "state", "4: ACTIVE\n");
	put(DEVICE "phys_state", "5: LinkUp\n");
	put(DEVICE "rate", "100 Gb/sec (4X EDR)\n");
	put(DEVICE "counters/symbol_error", "0\n");
	put("proc/self/statm", "1000 100 0 0 0 0 0\n");
	put("proc/pressure/memory", "some avg10=9.00 avg60=99.00 avg300=0.00 total=0\n"
				    "full avg10=0.00 avg60=0.50 avg300=0.00 total=0\n");
	put("proc/sys/kernel/random/boot_id", "this-boot\n");
	make_way("state/x");
}

static void start(void) {
	const struct checks_config config = {
		.subject = 7,
		.loop = loop,
		.say = say,
		.sysfs = sysfs,
		.ethtool = ethtool,
		.proc = proc,
		.state_directory = state_path,
		.fabric_calls = &played,
		.worker_at = thread_at,
		.fabric = (const struct fabric *)&played,
	};

	assert_int_equal(checks_create(&config, &checks), 0);
}

static int begin(void **state) {
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(root));
	snprintf(sysfs, sizeof(sysfs), "%s/sys", root);
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(state_path, sizeof(state_path), "%s/state", root);
	said_count = 0;
	driver_state = FABRIC_DEVICE_UP;
	driver_reason = "";
	settings = (struct checks_builtin_settings){.interval_ns = 10 * SEC};
	make_machine();
	clock_init_fake(&now, 1000 * SEC);
	assert_int_equal(loop_create(&now, &loop), 0);
	start();
	return 0;
}

static int end(void **state) {
	(void)state;
	checks = checks_destroy(checks);
	loop = loop_destroy(loop);
	return tree_remove(root);
}

static struct check_view view(const char *name) {
	struct check_view view = {.name = ""};
	uint32_t n = 0;

	while (strcmp(view.name, name) != 0) {
		assert_true(n < checks_count(checks));
		checks_at(checks, n++, &view);
	}
	return view;
}

static uint64_t runs(const char *name) {
	struct check_view one = view(name);

	return one.counts[0] + one.counts[1] + one.counts[2] + one.counts[3];
}

static void pass(uint64_t ns) {
	clock_advance(&now, ns);
	assert_int_equal(loop_turn(loop, 0), 0);
}

// Wait for one more run of a check, which a keeper may delay.
static void look_once(const char *name) {
	uint64_t before = runs(name);

	pass(11 * SEC);
	while (runs(name) == before)
		assert_int_equal(loop_turn(loop, -1), 0);
}

// Wait for one more run of all checks. No keeper is then left with a call that could look hung.
static void look_all(void) {
	uint64_t links = runs("link-errors"), disk = runs("state-directory");

	pass(11 * SEC);
	while (runs("link-errors") == links || runs("state-directory") == disk)
		assert_int_equal(loop_turn(loop, -1), 0);
}

static void begin_looking(void) {
	assert_int_equal(checks_set_builtin(checks, &settings), 0);
	pass(1);
	while (runs("link-errors") == 0)
		assert_int_equal(loop_turn(loop, -1), 0);
}

static enum verdict last_said(const char *reason) {
	for (uint32_t n = said_count; n-- > 0;) {
		if (strcmp(said[n].reason, reason) == 0)
			return said[n].verdict;
	}
	return VERDICT_NONE;
}

static const char *evidence(const char *reason) {
	for (uint32_t n = said_count; n-- > 0;) {
		if (strcmp(said[n].reason, reason) == 0)
			return said[n].evidence;
	}
	return "";
}

// Wait until the next run hangs.
static void wait_stuck(void) {
	// The clock runs ahead of the keeper, so other calls may look hung.
	while (strstr(evidence("DeviceStuck"), "counters") == NULL) {
		pass(SEC);
		sched_yield();
	}
}

static void a_machine_that_is_well_says_nothing(void **state) {
	(void)state;
	begin_looking();
	look_all();
	assert_int_equal(said_count, 0);
	assert_int_equal(checks_count(checks), CHECKS_BUILTIN_COUNT);
	for (uint32_t n = 0; checks_builtin_name(n) != NULL; n++) {
		assert_int_equal(view(checks_builtin_name(n)).level, CHECK_OK);
		assert_true(view(checks_builtin_name(n)).ran);
	}
	assert_string_equal(view("link-state").evidence, "1 of 1 ports of RDMA devices are up");
}

static void a_link_that_goes_down_is_said_at_the_second_look(void **state) {
	(void)state;
	snprintf(settings.devices[0].name, sizeof(settings.devices[0].name), "mlx5_0");
	settings.device_count = 1;
	begin_looking();
	put(DEVICE "state", "1: DOWN\n");
	put(DEVICE "phys_state", "2: Polling\n");
	look_all();
	assert_int_equal(last_said("LinkDown"), VERDICT_NONE);
	look_all();
	assert_int_equal(last_said("LinkDown"), VERDICT_CHECK_FAILED);
	assert_string_equal(evidence("LinkDown"), "mlx5_0 port 1 is DOWN (Polling)");
	put(DEVICE "state", "4: ACTIVE\n");
	look_all();
	assert_int_equal(last_said("LinkDown"), VERDICT_CHECK_FAILED);
	look_all();
	assert_int_equal(last_said("LinkDown"), VERDICT_HEALTHY);
}

static void a_worker_that_makes_no_turn_is_said_after_five_looks(void **state) {
	(void)state;
	threads[0].sign = threads[1].sign = (struct worker_progress){.asleep_until_ns = IDLE_NEVER};
	begin_looking();
	pass(SEC);
	for (uint32_t n = 0; n < 20; n++)
		pass(SEC); // the worker sleeps
	assert_int_equal(last_said("WorkerStuck"), VERDICT_NONE);
	threads[0].sign.asleep_until_ns = threads[1].sign.asleep_until_ns = 0;
	for (uint32_t n = 0; n < 4; n++) {
		threads[0].sign.turns++; // the worker spins
		pass(SEC);
	}
	assert_int_equal(last_said("WorkerStuck"), VERDICT_NONE);
	pass(3600 * SEC); // only one run, however long the agent was stopped
	assert_int_equal(last_said("WorkerStuck"), VERDICT_CHECK_WARNING);
	assert_string_equal(
		evidence("WorkerStuck"), "tocsin-w3 (thread 13) has made no progress for 5 s"
	);
	threads[1].sign.turns++;
	threads[0].sign.turns++;
	pass(SEC);
	assert_int_equal(last_said("WorkerStuck"), VERDICT_HEALTHY);
}

// The kernel moves a pinned thread when its cpuset shrinks, without notifying the thread.
static void a_worker_that_was_moved_is_told_and_no_finding(void **state) {
	(void)state;
	threads[0].sign = threads[1].sign = (struct worker_progress){.asleep_until_ns = IDLE_NEVER};
	cpu_set_add(&threads[1].wanted, 3);
	cpu_set_add(&threads[1].allowed, 0);
	begin_looking();
	look_once("workers");
	assert_string_equal(
		view("workers").evidence, "tocsin-w3 may run on CPUs 0, but was pinned to 3"
	);
	assert_int_equal(view("workers").level, CHECK_OK);
	assert_int_equal(last_said("WorkerStuck"), VERDICT_NONE);
	threads[1].wanted = threads[1].allowed = (struct cpu_set){{0}};
	look_once("workers");
	assert_string_equal(view("workers").evidence, "all polling threads make progress");
}

static void an_agent_without_processor_time_says_that_it_is_busy(void **state) {
	(void)state;
	played_waits = (struct fabric_waits){0};
	begin_looking();
	look_once("processor");
	assert_int_equal(view("processor").level, CHECK_OK);
	played_waits = (struct fabric_waits
	){.is_short = true, .for_ns = 8 * SEC, .permille = 412, .paths = 6, .unjudged = 3};
	pass(2 * SEC);
	assert_int_equal(last_said(PROCESSOR_SHORT), VERDICT_NODE_BUSY);
	assert_string_equal(
		view("processor").evidence,
		"short of processor time for 8.0 s; a thread waited 41.2 % of the last second"
	);
	played_waits.unjudged = 4;
	played_waits.for_ns = 20 * SEC;
	look_once("processor");
	assert_string_equal(
		view("processor").evidence,
		"short of processor time for 20 s; cannot judge the latency of 4 of 6 paths"
	);
	played_waits = (struct fabric_waits){0};
	pass(2 * SEC);
	assert_int_equal(last_said(PROCESSOR_SHORT), VERDICT_HEALTHY);
}

static bool is_written(const char *words) {
	static char text[8192];
	FILE *file = fopen(path_of("state/links"), "re");
	size_t got = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file != NULL)
		fclose(file);
	text[got] = '\0';
	return strstr(text, words) != NULL;
}

static void errors_survive_a_restart_of_the_agent(void **state) {
	(void)state;
	begin_looking();
	put(DEVICE "counters/symbol_error", "1000000\n");
	look_all();
	assert_int_equal(last_said("LinkErrors"), VERDICT_CHECK_WARNING);
	while (!is_written("symbol_error 1000000 "))
		look_all();
	checks = checks_destroy(checks);
	said_count = 0;
	start();
	begin_looking();
	assert_int_equal(last_said("LinkErrors"), VERDICT_CHECK_WARNING);
}

static void a_device_that_does_not_tell_is_named_and_nothing_waits(void **state) {
	(void)state;
	put("sys/mlx5_0/ports/1/counters/x", "");
	begin_looking();
	make_hang(DEVICE "counters/symbol_error");
	wait_stuck();
	assert_non_null(strstr(evidence("DeviceStuck"), "reading counters of mlx5_0 has hung for"));
	look_once("agent-memory"); // the check runs again
	look_once("state-directory");
	let_go(DEVICE "counters/symbol_error", "0\n");
	look_once("link-errors");
	pass(SEC);
	assert_int_equal(last_said("DeviceStuck"), VERDICT_HEALTHY);
}

// Two runs in a row are needed, so that a burst is no finding.
static void a_port_that_sends_pauses_all_the_time_is_a_warning(void **state) {
	(void)state;
	put(DEVICE "gid_attrs/ndevs/0", "eth7\n");
	begin_looking();
	look_once("pauses");
	for (int n = 0; n < 3; n++) {
		paused_us += UINT64_C(1000000000); // more pause time than time has passed
		look_once("pauses");
	}
	assert_int_equal(last_said("PauseStorm"), VERDICT_CHECK_WARNING);
	assert_string_equal(
		evidence("PauseStorm"), "mlx5_0 port 1 sends pauses for 100 % of the time"
	);
	for (int n = 0; n < 2; n++)
		look_once("pauses");
	assert_int_equal(last_said("PauseStorm"), VERDICT_HEALTHY);
}

static void a_driver_that_hangs_is_said_at_once(void **state) {
	(void)state;
	begin_looking();
	driver_state = FABRIC_DEVICE_STUCK;
	pass(SEC + 1);
	assert_int_equal(last_said("DeviceStuck"), VERDICT_DEVICE_STUCK);
	assert_string_equal(evidence("DeviceStuck"), "a driver call of mlx5_1 has hung for 12 s");
	driver_state = FABRIC_DEVICE_UP;
	pass(SEC + 1);
	assert_int_equal(last_said("DeviceStuck"), VERDICT_HEALTHY);
}

static void a_port_that_is_down_for_a_second_is_fabric_down(void **state) {
	(void)state;
	begin_looking();
	driver_state = FABRIC_DEVICE_DOWN;
	driver_reason = "port 1 of mlx5_1 is down";
	pass(SEC + 1); // first run that sees the value
	driver_state = FABRIC_DEVICE_UP;
	driver_reason = "";
	pass(SEC);
	driver_state = FABRIC_DEVICE_DOWN;
	driver_reason = "port 1 of mlx5_1 is down";
	pass(SEC);
	assert_int_equal(last_said("PortDown"), VERDICT_NONE);
	pass(SEC);
	assert_int_equal(last_said("PortDown"), VERDICT_FABRIC_DOWN);
	assert_string_equal(evidence("PortDown"), "mlx5_1: port 1 of mlx5_1 is down");
	driver_state = FABRIC_DEVICE_UP;
	driver_reason = "";
	pass(SEC);
	assert_int_equal(last_said("PortDown"), VERDICT_HEALTHY);
}

static void a_link_that_is_back_with_its_device_is_cleared_within_seconds(void **state) {
	uint64_t before;

	(void)state;
	snprintf(settings.devices[0].name, sizeof(settings.devices[0].name), "mlx5_0");
	settings.device_count = 1;
	begin_looking();
	driver_state = FABRIC_DEVICE_WAITING;
	driver_reason = "no device 'mlx5_0'";
	put(DEVICE "state", "1: DOWN\n");
	look_all();
	look_all();
	assert_int_equal(last_said("LinkDown"), VERDICT_CHECK_FAILED);
	assert_int_equal(last_said("PortDown"), VERDICT_FABRIC_DOWN);
	driver_state = FABRIC_DEVICE_UP;
	driver_reason = "";
	put(DEVICE "state", "4: ACTIVE\n");
	for (uint32_t n = 0; n < 2; n++) {
		before = runs("link-errors");
		pass(SEC);
		while (runs("link-errors") == before)
			assert_int_equal(loop_turn(loop, -1), 0);
	}
	assert_int_equal(last_said("PortDown"), VERDICT_HEALTHY);
	assert_int_equal(last_said("LinkDown"), VERDICT_HEALTHY);
}

static void a_device_that_is_closed_on_purpose_is_not_down(void **state) {
	(void)state;
	begin_looking();
	driver_state = FABRIC_DEVICE_WAITING;
	pass(3 * SEC);
	assert_int_equal(last_said("PortDown"), VERDICT_NONE);
	driver_reason = "DEVICE_FATAL"; // a reopening is attempted meanwhile
	for (uint32_t n = 0; n < 3; n++) {
		driver_state = n % 2 == 0 ? FABRIC_DEVICE_OPENING : FABRIC_DEVICE_WAITING;
		pass(SEC);
	}
	assert_int_equal(last_said("PortDown"), VERDICT_FABRIC_DOWN);
}

static void a_state_directory_that_hangs_is_unknown_and_links_are_looked_at_without(void **state) {
	(void)state;
	make_hang("state/links");
	assert_int_equal(checks_set_builtin(checks, &settings), 0);
	pass(1);
	while (runs("link-errors") == 0) {
		pass(SEC);
		// Gives the keeper's thread time; statements made meanwhile are recorded.
		poll(NULL, 0, 1);
	}
	assert_int_equal(last_said("CheckUnknownStateDirectory"), VERDICT_UNKNOWN);
	let_go("state/links", "boot this-boot\n");
	while (last_said("CheckUnknownStateDirectory") != VERDICT_HEALTHY)
		look_once("state-directory");
}

static void memory_pressure_and_disk_are_judged_by_their_limits(void **state) {
	(void)state;
	settings.memory_max_bytes = 1 << 20;
	settings.disk_free_bytes = UINT64_MAX;
	put("proc/self/statm", "1000 1000 0 0 0 0 0\n");
	put("proc/pressure/memory", "some avg10=1 avg60=1 avg300=1 total=1\n"
				    "full avg10=1.00 avg60=33.30 avg300=0.00 total=0\n");
	begin_looking();
	assert_int_equal(last_said("AgentMemory"), VERDICT_CHECK_WARNING);
	assert_int_equal(last_said("MemoryPressure"), VERDICT_CHECK_WARNING);
	assert_string_equal(
		evidence("MemoryPressure"),
		"all tasks waited for memory during 33.3% of the last minute"
	);
	assert_int_equal(last_said("StateDirectory"), VERDICT_CHECK_WARNING);
	settings.memory_max_bytes = settings.disk_free_bytes = 0;
	put("proc/pressure/memory", "nonsense");
	assert_int_equal(checks_set_builtin(checks, &settings), 0);
	look_once("state-directory");
	assert_int_equal(last_said("AgentMemory"), VERDICT_HEALTHY);
	assert_int_equal(last_said("StateDirectory"), VERDICT_HEALTHY);
	// Still the last statement: it was not cleared.
	assert_int_equal(last_said("MemoryPressure"), VERDICT_CHECK_WARNING);
	assert_int_equal(last_said("CheckUnknownMemoryPressure"), VERDICT_UNKNOWN);
	unlink(path_of("proc/pressure/memory")); // a kernel without pressure information
	look_once("memory-pressure");
	assert_int_equal(last_said("CheckUnknownMemoryPressure"), VERDICT_HEALTHY);
}

static void one_that_is_turned_off_is_taken_back_and_not_listed(void **state) {
	(void)state;
	settings.memory_max_bytes = 1;
	begin_looking();
	assert_int_equal(last_said("AgentMemory"), VERDICT_CHECK_WARNING);
	settings.off[7] = true;
	assert_string_equal(checks_builtin_name(7), "agent-memory");
	assert_int_equal(checks_set_builtin(checks, &settings), 0);
	assert_int_equal(last_said("AgentMemory"), VERDICT_HEALTHY);
	said_count = 0;
	look_once("link-errors");
	assert_int_equal(said_count, 0);
	assert_int_equal(checks_count(checks), CHECKS_BUILTIN_COUNT - 1);
}

static void it_ends_while_everything_hangs(void **state) {
	(void)state;
	begin_looking();
	make_hang(DEVICE "counters/symbol_error");
	wait_stuck();
	checks = checks_destroy(checks); // the hanging keeper is left behind
	start();
	let_go(DEVICE "counters/symbol_error", "0\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(checks_builtin) {
	const struct CMUnitTest tests[] = {
		TEST(a_machine_that_is_well_says_nothing),
		TEST(a_worker_that_makes_no_turn_is_said_after_five_looks),
		TEST(a_worker_that_was_moved_is_told_and_no_finding),
		TEST(an_agent_without_processor_time_says_that_it_is_busy),
		TEST(a_link_that_goes_down_is_said_at_the_second_look),
		TEST(errors_survive_a_restart_of_the_agent),
		TEST(a_device_that_does_not_tell_is_named_and_nothing_waits),
		TEST(a_port_that_sends_pauses_all_the_time_is_a_warning),
		TEST(a_driver_that_hangs_is_said_at_once),
		TEST(a_port_that_is_down_for_a_second_is_fabric_down),
		TEST(a_link_that_is_back_with_its_device_is_cleared_within_seconds),
		TEST(a_device_that_is_closed_on_purpose_is_not_down),
		TEST(a_state_directory_that_hangs_is_unknown_and_links_are_looked_at_without),
		TEST(memory_pressure_and_disk_are_judged_by_their_limits),
		TEST(one_that_is_turned_off_is_taken_back_and_not_listed),
		TEST(it_ends_while_everything_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
