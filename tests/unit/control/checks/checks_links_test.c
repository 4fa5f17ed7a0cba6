// SPDX-License-Identifier: BSD-3-Clause
// Links: values read from a fake sysfs tree, remembered state, and the judgement.
#include "checks/links.h"

#include <support/cases.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)
#define HOUR (3600 * SEC)

static char root[] = "/tmp/tocsin-links-XXXXXX";
static struct link_book book;
static struct link_finding found[LINK_FINDING_COUNT];
static struct checks_builtin_settings settings;

static int begin(void **state) {
	(void)state;
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(root));
	link_book_parse(&book, "", "this-boot");
	memset(&settings, 0, sizeof(settings));
	return 0;
}

static int end(void **state) {
	(void)state;
	return tree_remove(root);
}

static void put(const char *name, const char *text) {
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void put_mlx5_0(void) {
	put("mlx5_0/node_guid", "5054:00ff:fe12:3456\n");
	put("mlx5_0/ports/1/state", "4: ACTIVE\n");
	put("mlx5_0/ports/1/phys_state", "5: LinkUp\n");
	put("mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	put("mlx5_0/ports/1/counters/symbol_error", "17\n");
	put("mlx5_0/ports/1/hw_counters/packet_seq_err", "3\n");
}

static uint32_t counter(const char *name) {
	uint32_t n = 0;

	while (strcmp(link_counters[n].name, name) != 0)
		assert_true(++n < link_counter_count);
	return n;
}

static void a_port_is_read_with_its_counters(void **state) {
	struct link_port ports[LINK_DEVICE_PORTS_MAX];
	struct link_device_list list;

	(void)state;
	put_mlx5_0();
	put("rxe0/ports/2/state", "1: DOWN\n");
	put("rxe0/ports/2/rate", "2.5 Gb/sec (1X SDR)\n");
	link_list_devices(root, &list);
	assert_int_equal(list.count, 2);
	assert_int_equal(link_read_device(root, "mlx5_0", ports), 1);
	assert_int_equal(ports[0].number, 1);
	assert_int_equal(ports[0].state, 4);
	assert_string_equal(ports[0].state_name, "ACTIVE");
	assert_string_equal(ports[0].phys_name, "LinkUp");
	assert_int_equal(ports[0].rate_mbps, 100000);
	assert_true(ports[0].guid == 0x505400fffe123456);
	assert_int_equal(ports[0].counters[counter("symbol_error")], 17);
	assert_int_equal(ports[0].counters[counter("packet_seq_err")], 3);
	assert_true(ports[0].counters[counter("link_downed")] == UINT64_MAX);
	assert_int_equal(link_read_device(root, "rxe0", ports), 1);
	assert_int_equal(ports[0].number, 2);
	assert_int_equal(ports[0].rate_mbps, 2500);
	assert_true(ports[0].guid == 0);
}

static void what_makes_no_sense_in_sysfs_is_as_nothing(void **state) {
	static const char *const bad[] = {"",
					  "\n",
					  "x",
					  "4 4",
					  "-4: A",
					  "999: A",
					  "18446744073709551616: A",
					  "x4",
					  "nan Gb/sec",
					  "1e99 Gb/sec",
					  "-1 Gb/sec",
					  "5 Mb/s"};
	struct link_port ports[LINK_DEVICE_PORTS_MAX];
	struct link_device_list list;

	(void)state;
	link_list_devices("/nowhere/at/all", &list);
	assert_int_equal(list.count, 0);
	assert_int_equal(link_read_device(root, "none", ports), 0);
	put_mlx5_0();
	for (size_t n = 0; n < COUNT_OF(bad); n++) {
		put("mlx5_0/ports/1/state", bad[n]);
		put("mlx5_0/ports/1/rate", bad[n]);
		put("mlx5_0/ports/1/counters/symbol_error", bad[n]);
		put("mlx5_0/node_guid", bad[n]);
		assert_int_equal(link_read_device(root, "mlx5_0", ports), 1);
		assert_int_equal(ports[0].state, 0);
		assert_int_equal(ports[0].rate_mbps, 0);
		assert_true(ports[0].counters[counter("symbol_error")] == UINT64_MAX);
		assert_true(ports[0].guid == 0);
	}
}

static struct link_port port(const char *device, uint8_t number, uint8_t state, uint32_t mbps) {
	struct link_port port = {.number = number, .guid = 9, .state = state, .rate_mbps = mbps};

	snprintf(port.device, sizeof(port.device), "%s", device);
	snprintf(port.state_name, sizeof(port.state_name), "%s", state == 4 ? "ACTIVE" : "DOWN");
	snprintf(port.phys_name, sizeof(port.phys_name), "%s", state == 4 ? "LinkUp" : "Polling");
	memset(port.counters, 0xff, sizeof(port.counters));
	return port;
}

static void judge(const struct link_port *ports, uint32_t count, uint64_t now_ns) {
	link_judge(&book, ports, count, &settings, now_ns, found);
}

static void want(const char *device, uint8_t number, uint32_t mbps) {
	struct checks_device *wanted = &settings.devices[settings.device_count++];

	*wanted = (struct checks_device){.port = number, .expect_mbps = mbps};
	snprintf(wanted->name, sizeof(wanted->name), "%s", device);
}

static void a_machine_without_rdma_devices_is_well(void **state) {
	(void)state;
	judge(NULL, 0, SEC);
	for (uint32_t n = 0; n < LINK_FINDING_COUNT; n++)
		assert_int_equal(found[n].level, CHECK_OK);
	assert_string_equal(found[LINK_STATE].evidence, "0 of 0 ports of RDMA devices are up");
}

// deepops #703: one check that was wrong on every node drained a whole cluster.
static void a_port_that_was_never_up_fails_no_node(void **state) {
	struct link_port ports[2] = {port("mlx5_0", 1, 4, 100000), port("mlx5_1", 1, 1, 0)};

	(void)state;
	judge(ports, 2, SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_OK);
	// Applies also to a port that the agent probes with: it may never have had a cable.
	want("mlx5_1", 0, 0);
	judge(ports, 2, 2 * SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_WARNING);
	assert_string_equal(
		found[LINK_STATE].evidence, "mlx5_1 port 1 is DOWN (Polling), and was never seen up"
	);
	// An administrator's expectation means that the port has a cable.
	settings.devices[0].expect_mbps = 100000;
	judge(ports, 2, 3 * SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_CRITICAL);
}

static void a_port_that_was_up_is_missed(void **state) {
	struct link_port ports[2] = {port("mlx5_0", 1, 4, 100000), port("mlx5_1", 1, 4, 100000)};

	(void)state;
	want("mlx5_0", 0, 0);
	judge(ports, 2, SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_OK);
	assert_string_equal(found[LINK_STATE].evidence, "2 of 2 ports of RDMA devices are up");
	ports[1] = port("mlx5_1", 1, 1, 0);
	judge(ports, 2, 2 * SEC);
	// The agent does not probe with this port.
	assert_int_equal(found[LINK_STATE].level, CHECK_WARNING);
	assert_string_equal(
		found[LINK_STATE].evidence, "mlx5_1 port 1 is DOWN (Polling), and was up before"
	);
	ports[0] = port("mlx5_0", 1, 1, 0);
	judge(ports, 2, 3 * SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_CRITICAL);
	// A removed port is critical only if the agent probes with it.
	judge(ports, 0, 4 * SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_CRITICAL);
	assert_string_equal(found[LINK_STATE].evidence, "mlx5_0 port 1 has disappeared");
}

static void a_device_that_something_is_expected_of_is_missed_though_it_never_was(void **state) {
	(void)state;
	want("mlx5_7", 0, 0);
	judge(NULL, 0, SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_OK);
	settings.devices[0].expect_mbps = 100000;
	judge(NULL, 0, 2 * SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_CRITICAL);
	assert_string_equal(found[LINK_STATE].evidence, "device mlx5_7 does not exist");
}

static void one_port_that_is_up_suffices_where_any_will_do(void **state) {
	struct link_port ports[2] = {port("mlx5_0", 1, 4, 100000), port("mlx5_0", 2, 1, 0)};

	(void)state;
	want("mlx5_0", 0, 0);
	judge(ports, 2, SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_OK);
	settings.devices[0].port = 2;
	settings.devices[0].expect_mbps = 100000;
	judge(ports, 2, 2 * SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_CRITICAL);
}

static void a_link_is_slow_against_what_is_expected_or_what_it_was(void **state) {
	struct link_port one = port("mlx5_0", 1, 4, 100000);

	(void)state;
	judge(&one, 1, SEC);
	one.rate_mbps = 50000;
	judge(&one, 1, 2 * SEC);
	assert_int_equal(found[LINK_RATE].level, CHECK_WARNING);
	assert_string_equal(
		found[LINK_RATE].evidence,
		"mlx5_0 port 1 runs at 50.0 Gb/s, and ran at 100.0 before"
	);
	want("mlx5_0", 0, 200000);
	judge(&one, 1, 3 * SEC);
	assert_int_equal(found[LINK_RATE].level, CHECK_CRITICAL);
	// An administrator changed the cable and the setting.
	settings.devices[0].expect_mbps = 50000;
	judge(&one, 1, 4 * SEC);
	assert_int_equal(found[LINK_RATE].level, CHECK_OK);
	// Other hardware under the same name has no history.
	settings.device_count = 0;
	one.guid = 10;
	judge(&one, 1, 5 * SEC);
	assert_int_equal(found[LINK_RATE].level, CHECK_OK);
}

// azurehpc #648: errors counted long ago kept a node drained.
static void errors_count_by_what_comes_in_an_hour(void **state) {
	struct link_port one = port("mlx5_0", 1, 4, 100000);
	uint32_t symbol = counter("symbol_error"), limit = link_counters[symbol].per_hour;
	uint64_t now_ns = SEC;

	(void)state;
	one.counters[symbol] = 100000; // counted before the first run
	judge(&one, 1, now_ns);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_OK);
	one.counters[symbol] += limit;
	judge(&one, 1, now_ns += SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_OK); // exactly at the limit
	one.counters[symbol] += 2;
	judge(&one, 1, now_ns += SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_WARNING);
	assert_string_equal(
		found[LINK_ERRORS].evidence,
		"mlx5_0 port 1 counted 12 symbol_error in the last hour"
	);
	judge(&one, 1, now_ns += HOUR);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_OK); // the hour is over
	for (uint32_t n = 0; n < 100; n++) {
		// Half of the limit in each half hour, without end.
		one.counters[symbol] += limit / 2;
		judge(&one, 1, now_ns += HOUR / 2);
		assert_int_equal(found[LINK_ERRORS].level, CHECK_OK);
	}
}

static void several_kinds_of_errors_add_up(void **state) {
	struct link_port one = port("mlx5_0", 1, 4, 100000);
	uint32_t a = counter("symbol_error"), b = counter("port_rcv_errors");

	(void)state;
	one.counters[a] = one.counters[b] = 0;
	judge(&one, 1, SEC);
	one.counters[a] = link_counters[a].per_hour * 6 / 10;
	judge(&one, 1, 2 * SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_OK);
	one.counters[b] = link_counters[b].per_hour * 6 / 10;
	judge(&one, 1, 3 * SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_WARNING);
}

// Peers that die, paths that lose, and our own probes to both: the port itself is healthy.
static void what_peers_make_a_port_count_is_told_and_no_finding(void **state) {
	struct link_port one = port("mlx5_0", 1, 4, 100000);
	uint32_t a = counter("packet_seq_err"), b = counter("local_ack_timeout_err");
	uint32_t symbol = counter("symbol_error");

	(void)state;
	one.counters[a] = one.counters[b] = one.counters[symbol] = 0;
	judge(&one, 1, SEC);
	one.counters[a] = 100;
	one.counters[b] = 20000;
	judge(&one, 1, 2 * SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_OK);
	assert_string_equal(
		found[LINK_ERRORS].evidence,
		"1 of 1 ports of RDMA devices are up; "
		"mlx5_0 port 1 counted 20000 local_ack_timeout_err caused by peers"
	);
	one.counters[symbol] = link_counters[symbol].per_hour + 1;
	judge(&one, 1, 3 * SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_WARNING);
	assert_non_null(strstr(found[LINK_ERRORS].evidence, "11 symbol_error in the last hour; "));
	assert_non_null(strstr(found[LINK_ERRORS].evidence, "local_ack_timeout_err caused by peers")
	);
}

static void a_counter_that_was_reset_or_goes_away_counts_nothing(void **state) {
	struct link_port one = port("mlx5_0", 1, 4, 100000);
	uint32_t n = counter("symbol_error");
	static const uint64_t values[] = {5000, 0, 7, UINT64_MAX, 8, UINT64_MAX - 1, 0};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(values) - 2; k++) {
		one.counters[n] = values[k];
		judge(&one, 1, (k + 1) * SEC);
		assert_int_equal(found[LINK_ERRORS].level, CHECK_OK);
	}
	one.counters[n] = UINT64_MAX - 1; // even an impossible jump must stay bounded
	judge(&one, 1, 10 * SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_WARNING);
}

static void a_restart_in_the_same_boot_remembers_and_another_boot_forgets_counts(void **state) {
	struct link_port one = port("mlx5_0", 1, 4, 100000);
	static char text[LINK_BOOK_BYTES];
	uint32_t n = counter("symbol_error");

	(void)state;
	one.counters[n] = 0;
	judge(&one, 1, SEC);
	one.counters[n] = 50;
	judge(&one, 1, 2 * SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_WARNING);
	assert_true(book.changed);
	link_book_format(&book, text);

	link_book_parse(&book, text, "this-boot");
	judge(&one, 1, 3 * SEC);
	// No further error, and still a warning.
	assert_int_equal(found[LINK_ERRORS].level, CHECK_WARNING);

	link_book_parse(&book, text, "next-boot");
	one.counters[n] = 3; // the counters restart
	one.rate_mbps = 50000;
	judge(&one, 1, SEC);
	assert_int_equal(found[LINK_ERRORS].level, CHECK_OK);
	assert_int_equal(found[LINK_RATE].level, CHECK_WARNING); // the earlier rate is remembered
	link_book_parse(&book, text, "next-boot");
	one = port("mlx5_0", 1, 1, 0);
	judge(&one, 1, SEC);
	assert_int_equal(found[LINK_STATE].level, CHECK_OK); // unplugged while the agent was off
	want("mlx5_0", 0, 0);
	judge(&one, 1, 2 * SEC);
	// Critical, since the agent probes with this port.
	assert_int_equal(found[LINK_STATE].level, CHECK_CRITICAL);
}

static void a_book_that_makes_no_sense_is_read_as_far_as_it_does(void **state) {
	static const char *const texts[] = {
		"boot",
		"boot \n",
		"port mlx5_0 1 9 100000 1 1 5\n",
		"boot this-boot\nport\nport x\nport mlx5_0 0 9 1 1 1 1\nport mlx5_0 999 9 1 1 1 1\n",
		"boot this-boot\ncounter mlx5_0 1 symbol_error 5 5\ncounter\n\n\n",
		"\xff\xfe\x01",
	};
	static char many[LINK_BOOK_BYTES] = "boot b\n";
	size_t used = strlen(many);

	(void)state;
	for (size_t n = 0; n < COUNT_OF(texts); n++) {
		link_book_parse(&book, texts[n], "this-boot");
		assert_int_equal(book.count, 0);
	}
	link_book_parse(
		&book, "boot b\nport m 1 9 7 1 1 5\nport m 1 9 8 1 1 5\ncounter m 1 none 1 1\n", "b"
	);
	assert_int_equal(book.count, 1);
	assert_int_equal(book.ports[0].best_mbps, 7);
	// A name that no device can have.
	used += (size_t)snprintf(many + used, sizeof(many) - used, "port %0200d 1 9 7 1 1 5\n", 1);
	for (uint32_t n = 0; n < 2 * LINK_PORTS_MAX; n++)
		used += (size_t
		)snprintf(many + used, sizeof(many) - used, "port m%u 1 9 7 1 1 5\n", n);
	link_book_parse(&book, many, "b");
	assert_int_equal(book.count, LINK_PORTS_MAX);
	assert_string_equal(book.ports[0].device, "m0");
}

static void as_much_as_fits_is_named_and_the_rest_counted(void **state) {
	struct link_port ports[LINK_PORTS_MAX];

	(void)state;
	for (uint32_t n = 0; n < LINK_PORTS_MAX; n++) {
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%u", n);
		ports[n] = port(name, 1, 4, 100000);
	}
	judge(ports, LINK_PORTS_MAX, SEC);
	for (uint32_t n = 0; n < LINK_PORTS_MAX; n++)
		ports[n].state = 1;
	judge(ports, LINK_PORTS_MAX, 2 * SEC);
	assert_true(strlen(found[LINK_STATE].evidence) <= VERDICT_EVIDENCE_MAX);
	assert_non_null(strstr(found[LINK_STATE].evidence, "; 62 more"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(checks_links) {
	const struct CMUnitTest tests[] = {
		TEST(a_port_is_read_with_its_counters),
		TEST(what_makes_no_sense_in_sysfs_is_as_nothing),
		TEST(a_machine_without_rdma_devices_is_well),
		TEST(a_port_that_was_never_up_fails_no_node),
		TEST(a_port_that_was_up_is_missed),
		TEST(a_device_that_something_is_expected_of_is_missed_though_it_never_was),
		TEST(one_port_that_is_up_suffices_where_any_will_do),
		TEST(a_link_is_slow_against_what_is_expected_or_what_it_was),
		TEST(errors_count_by_what_comes_in_an_hour),
		TEST(several_kinds_of_errors_add_up),
		TEST(what_peers_make_a_port_count_is_told_and_no_finding),
		TEST(a_counter_that_was_reset_or_goes_away_counts_nothing),
		TEST(a_restart_in_the_same_boot_remembers_and_another_boot_forgets_counts),
		TEST(a_book_that_makes_no_sense_is_read_as_far_as_it_does),
		TEST(as_much_as_fits_is_named_and_the_rest_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
