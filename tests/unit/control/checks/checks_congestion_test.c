// SPDX-License-Identifier: BSD-3-Clause
// Congestion counters from a fake sysfs and fake interfaces, by device family; and rates between
// two reads, whatever the counters do.
#include "checks/congestion.h"

#include <support/cases.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)

static char root[] = "/tmp/tocsin-congestion-XXXXXX";
static struct congestion_book book;
static struct link_finding found;
static uint64_t now_ns;

// Counters of the fake interface; a NULL name ends the list.
static struct counter {
	const char *name;
	uint64_t value;
} counters[16];
static char asked[64];

static int
play(const char *netdev, void (*take)(void *ctx, const char *name, uint64_t value), void *ctx) {
	snprintf(asked, sizeof(asked), "%s", netdev);
	if (counters[0].name == NULL)
		return -EOPNOTSUPP;
	for (const struct counter *counter = counters; counter->name != NULL; counter++)
		take(ctx, counter->name, counter->value);
	return 0;
}

static int begin(void **state) {
	(void)state;
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(root));
	memset(&book, 0, sizeof(book));
	memset(counters, 0, sizeof(counters));
	asked[0] = '\0';
	now_ns = 100 * SEC;
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

static void put_hw(const char *name, const char *text) {
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "dev0/ports/1/hw_counters/%s", name);
	put(path, text);
}

static void look(struct congestion_read *ret_read) {
	struct congestion_read reads[LINK_DEVICE_PORTS_MAX];
	uint32_t count;

	congestion_read_device(root, "dev0", play, reads, &count);
	assert_int_equal(count, 1);
	*ret_read = reads[0];
}

static void judge(const struct congestion_read *read) {
	now_ns += 10 * SEC;
	congestion_judge(&book, read, 1, now_ns, &found);
}

// Tables of the counter names that each family's kernel driver uses.
static void each_family_is_read_by_its_own_names(void **state) {
	static const struct {
		const char *family, *name;
		bool ethtool;
		enum congestion_kind kind;
	} rows[] = {
		{"mlx5", "np_ecn_marked_roce_packets", false, CONGESTION_ECN_MARKED},
		{"mlx5", "np_cnp_sent", false, CONGESTION_CNP_SENT},
		{"mlx5", "rp_cnp_handled", false, CONGESTION_CNP_HANDLED},
		{"mlx5", "rp_cnp_ignored", false, CONGESTION_CNP_IGNORED},
		{"mlx5", "out_of_sequence", false, CONGESTION_OUT_OF_SEQUENCE},
		{"mlx5", "packet_seq_err", false, CONGESTION_RETRANSMITS},
		{"mlx5", "local_ack_timeout_err", false, CONGESTION_RETRANSMITS},
		{"mlx5", "roce_adp_retrans", false, CONGESTION_ADAPTIVE_RETRANSMITS},
		{"mlx5", "rx_discards_phy", true, CONGESTION_RX_DISCARDS},
		{"mlx5", "tx_prio3_pause", true, CONGESTION_PAUSE_SENT},
		{"mlx5", "rx_prio7_pause", true, CONGESTION_PAUSE_RECEIVED},
		{"mlx5", "tx_pause_storm_warning_events ", true, CONGESTION_PAUSE_STORMS},
		{"mlx5", "tx_pause_storm_error_events", true, CONGESTION_PAUSE_STORMS},
		{"bnxt_re", "tx_cnp_pkts", false, CONGESTION_CNP_SENT},
		{"bnxt_re", "rx_cnp_pkts", false, CONGESTION_CNP_HANDLED},
		{"bnxt_re", "rx_ecn_marked_pkts", false, CONGESTION_ECN_MARKED},
		{"bnxt_re", "oos_drop_count", false, CONGESTION_OUT_OF_SEQUENCE},
		{"bnxt_re", "to_retransmits", false, CONGESTION_RETRANSMITS},
		{"bnxt_re", "rx_roce_discards", false, CONGESTION_RX_DISCARDS},
		{"bnxt_re", "tx_pfc_ena_frames_pri0", true, CONGESTION_PAUSE_SENT},
		{"bnxt_re", "rx_pfc_ena_frames_pri5", true, CONGESTION_PAUSE_RECEIVED},
		{"irdma", "cnpSent", false, CONGESTION_CNP_SENT},
		{"irdma", "cnpHandled", false, CONGESTION_CNP_HANDLED},
		{"irdma", "cnpIgnored", false, CONGESTION_CNP_IGNORED},
		{"irdma", "RxECNMrkd", false, CONGESTION_ECN_MARKED},
		{"irdma", "Rcvd Out of order packets", false, CONGESTION_OUT_OF_SEQUENCE},
		{"irdma", "Nak Sequence Error", false, CONGESTION_RETRANSMITS},
		{"irdma", "tx_priority_4_xoff.nic", true, CONGESTION_PAUSE_SENT},
		{"irdma", "port.rx_priority_4_xoff_rx", true, CONGESTION_PAUSE_RECEIVED},
		{"rxe", "out_of_seq_request", false, CONGESTION_OUT_OF_SEQUENCE},
		{"rxe", "rcvd_seq_err", false, CONGESTION_RETRANSMITS},
		{"rxe", "completer_retry_err", false, CONGESTION_RETRANSMITS},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct congestion_read read;
		char path[PATH_MAX];

		memset(counters, 0, sizeof(counters));
		put("dev0/ports/1/gid_attrs/ndevs/0", "eth7\n");
		if (rows[n].ethtool)
			counters[0] = (struct counter){rows[n].name, 41};
		else
			put_hw(rows[n].name, "41\n");
		look(&read);
		for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++)
			assert_int_equal(read.parts[kind], kind == rows[n].kind);
		assert_int_equal(read.values[rows[n].kind], 41);
		snprintf(path, sizeof(path), "%s/dev0", root);
		assert_int_equal(tree_remove(path), 0);
	}
}

static void the_interface_is_that_of_the_ports_addresses(void **state) {
	struct congestion_read read;

	(void)state;
	put("dev0/ports/1/state", "4: ACTIVE\n");
	look(&read); // InfiniBand has no Ethernet interface
	assert_string_equal(asked, "");
	// An entry without an interface name cannot be read.
	put("dev0/ports/1/gid_attrs/ndevs/0", "");
	put("dev0/ports/1/gid_attrs/ndevs/1", "a-name-that-is-longer-than-any\n");
	put("dev0/ports/1/gid_attrs/ndevs/2", "ens5f0np0\n");
	look(&read);
	assert_string_equal(asked, "ens5f0np0");
	judge(&read);
	assert_int_equal(book.count, 0); // without counters the port is not listed
	assert_int_equal(found.level, CHECK_OK);
}

static void what_makes_no_sense_counts_as_not_there(void **state) {
	static const char *const bad[] = {
		"",
		"\n",
		"x",
		"-1",
		"-9223372036854775808",
		"1.5",
		"18446744073709551615",
		"18446744073709551616",
		"99999999999999999999999999999999999999999999999999999999",
		"4 4",
		" 4",
		"4 ",
		"\xff\xfe",
		"N/A (no counter)"};
	struct congestion_read read;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(bad); n++) {
		put_hw("np_cnp_sent", bad[n]);
		look(&read);
		assert_int_equal(read.parts[CONGESTION_CNP_SENT], 0);
	}
	// Counter names that must be ignored.
	for (size_t n = 0; n < COUNT_OF(bad); n++) {
		congestion_add_ethtool_counter(&read, bad[n], 5);
		congestion_add_hw_counter(&read, bad[n], 5);
	}
	congestion_add_ethtool_counter(&read, "tx_prio8_pause", 5);
	congestion_add_ethtool_counter(&read, "tx_prio#_pause", 5);
	congestion_add_ethtool_counter(&read, "tx_prio3_pause_", 5);
	congestion_add_ethtool_counter(&read, "tx_prio", 5);
	for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++)
		assert_int_equal(read.parts[kind], 0);
}

static void take_cnp(struct congestion_read *read, uint64_t value) {
	congestion_read_init(read, "dev0", 1);
	congestion_add_hw_counter(read, "np_cnp_sent", value);
}

static uint64_t rate(enum congestion_kind kind) {
	assert_int_equal(book.count, 1);
	return book.ports[0].milli_per_s[kind];
}

static void rates_are_of_two_looks(void **state) {
	struct congestion_read read;

	(void)state;
	take_cnp(&read, 1000);
	judge(&read);
	assert_true(
		rate(CONGESTION_CNP_SENT) == CONGESTION_UNKNOWN
	); // earlier values are no baseline
	assert_int_equal(book.ports[0].totals[CONGESTION_CNP_SENT], 1000);
	assert_true(book.ports[0].totals[CONGESTION_CNP_HANDLED] == CONGESTION_UNKNOWN);
	take_cnp(&read, 1015);
	judge(&read);
	assert_int_equal(rate(CONGESTION_CNP_SENT), 1500); // 15 in 10 s
	take_cnp(&read, 1015);
	judge(&read);
	assert_int_equal(rate(CONGESTION_CNP_SENT), 0);
}

// mlx5's q counters wrap at 32 bits, a driver reset starts at 0, and faulty firmware jumps.
static void counters_that_go_back_wrap_vanish_or_jump_make_no_false_rate(void **state) {
	struct congestion_read read;

	(void)state;
	take_cnp(&read, UINT32_MAX - 1);
	judge(&read);
	take_cnp(&read, 3); // wrapped
	judge(&read);
	assert_true(rate(CONGESTION_CNP_SENT) == CONGESTION_UNKNOWN);
	take_cnp(&read, 13);
	judge(&read);
	assert_int_equal(rate(CONGESTION_CNP_SENT), 1000);
	congestion_read_init(&read, "dev0", 1); // missing in one read
	congestion_add_hw_counter(&read, "rp_cnp_handled", 1);
	judge(&read);
	assert_true(rate(CONGESTION_CNP_SENT) == CONGESTION_UNKNOWN);
	take_cnp(&read, 500);
	judge(&read);
	assert_true(rate(CONGESTION_CNP_SENT) == CONGESTION_UNKNOWN);
	take_cnp(&read, UINT64_MAX); // the maximum value
	judge(&read);
	assert_true(rate(CONGESTION_CNP_SENT) == UINT64_C(1) << 53);
	assert_int_equal(found.level, CHECK_OK);
}

// Enabling PFC for one more priority adds a counter that already has a value.
static void a_sum_of_another_number_of_counters_says_nothing_against_the_one_before(void **state) {
	struct congestion_read read;

	(void)state;
	for (int n = 0; n < 3; n++) {
		congestion_read_init(&read, "dev0", 1);
		congestion_add_ethtool_counter(&read, "tx_prio3_pause", 10);
		if (n > 0)
			congestion_add_ethtool_counter(&read, "tx_prio4_pause", 1000000);
		judge(&read);
		if (n == 1)
			assert_true(rate(CONGESTION_PAUSE_SENT) == CONGESTION_UNKNOWN);
	}
	assert_int_equal(rate(CONGESTION_PAUSE_SENT), 0);
	congestion_read_init(&read, "dev0", 1);
	congestion_add_ethtool_counter(&read, "tx_prio3_pause", UINT64_MAX);
	congestion_add_ethtool_counter(&read, "tx_prio4_pause", UINT64_MAX);
	assert_true(read.values[CONGESTION_PAUSE_SENT] == CONGESTION_UNKNOWN - 1);
}

static void take_pauses(struct congestion_read *read, uint64_t sent_us, uint64_t received_us) {
	congestion_read_init(read, "mlx5_0", 1);
	congestion_add_ethtool_counter(read, "tx_prio3_pause_duration", sent_us);
	congestion_add_ethtool_counter(read, "rx_prio3_pause_duration", received_us);
}

static void a_port_that_sends_pauses_half_of_the_time_is_a_finding(void **state) {
	struct congestion_read read;

	(void)state;
	take_pauses(&read, 77000000, 0); // counted before the first read
	judge(&read);
	assert_int_equal(found.level, CHECK_OK);
	assert_string_equal(found.evidence, "1 ports count congestion, none sends pauses for long");
	take_pauses(&read, 77000000 + 4990000, 0);
	judge(&read);
	assert_int_equal(found.level, CHECK_OK);
	assert_int_equal(book.ports[0].sent_permille, 499);
	take_pauses(&read, 77000000 + 4990000 + 6200000, 0);
	judge(&read);
	assert_int_equal(found.level, CHECK_WARNING);
	assert_string_equal(found.evidence, "mlx5_0 port 1 sends pauses for 62 % of the time");
	take_pauses(&read, 0, 0); // reset
	judge(&read);
	assert_int_equal(found.level, CHECK_OK);
	assert_true(book.ports[0].sent_permille == UINT32_MAX);
	take_pauses(&read, UINT64_MAX, 0);
	judge(&read);
	assert_int_equal(book.ports[0].sent_permille, 1000); // limited to all of the time
}

static void a_ports_level_is_what_moves_now_and_no_loss_that_a_dead_peer_makes(void **state) {
	static const struct {
		enum congestion_kind kind;
		uint64_t milli_per_s;
		uint32_t sent_permille;
		enum congestion_level level;
		const char *name;
	} rows[] = {
		{CONGESTION_CNP_SENT, CONGESTION_UNKNOWN, UINT32_MAX, CONGESTION_NOT_COUNTED,
		 "not-counted"},
		{CONGESTION_CNP_SENT, 0, UINT32_MAX, CONGESTION_QUIET, "quiet"},
		{CONGESTION_CNP_SENT, 1, UINT32_MAX, CONGESTION_ACTIVE, "congested"},
		{CONGESTION_RX_DISCARDS, 1, UINT32_MAX, CONGESTION_ACTIVE, "congested"},
		{CONGESTION_ADAPTIVE_RETRANSMITS, 1, UINT32_MAX, CONGESTION_ACTIVE, "congested"},
		{CONGESTION_RETRANSMITS, 9000, UINT32_MAX, CONGESTION_NOT_COUNTED, "not-counted"},
		{CONGESTION_OUT_OF_SEQUENCE, 9, UINT32_MAX, CONGESTION_NOT_COUNTED, "not-counted"},
		{CONGESTION_PAUSE_SENT, 9, 499, CONGESTION_ACTIVE, "congested"},
		{CONGESTION_PAUSE_SENT, 9, 500, CONGESTION_STORM, "pause-storm"},
		{CONGESTION_PAUSE_STORMS, 1, 0, CONGESTION_STORM, "pause-storm"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct congestion_port port;

		memset(&port, 0xff, sizeof(port)); // all values are unknown
		port.milli_per_s[rows[n].kind] = rows[n].milli_per_s;
		port.sent_permille = rows[n].sent_permille;
		assert_int_equal(congestion_level(&port), rows[n].level);
		assert_string_equal(congestion_level_name(rows[n].level), rows[n].name);
	}
}

// The switch may pause the port for reasons outside of this node.
static void a_port_that_is_paused_by_its_switch_is_told_and_no_finding(void **state) {
	struct congestion_read read;

	(void)state;
	take_pauses(&read, 0, 0);
	judge(&read);
	take_pauses(&read, 0, 9000000);
	judge(&read);
	assert_int_equal(found.level, CHECK_OK);
	assert_string_equal(
		found.evidence, "mlx5_0 port 1 is paused by its switch for 90 % of the time"
	);
}

// Eight priorities paused for an eighth of the time each are no pause storm.
static void shares_of_priorities_do_not_add_up(void **state) {
	struct congestion_read read;

	(void)state;
	for (uint64_t n = 0; n < 2; n++) {
		congestion_read_init(&read, "bnxt_re0", 1);
		for (uint32_t lane = 0; lane < 8; lane++) {
			char name[64];

			snprintf(name, sizeof(name), "pfc_pri%u_tx_duration_us", lane);
			congestion_add_ethtool_counter(&read, name, n * 1250000);
		}
		judge(&read);
	}
	assert_int_equal(book.ports[0].sent_permille, 125);
	assert_int_equal(found.level, CHECK_OK);
}

static void take_storms(struct congestion_read *read, uint64_t events) {
	congestion_read_init(read, "mlx5_0", 1);
	congestion_add_ethtool_counter(read, "tx_pause_storm_error_events", events);
}

static void a_device_that_found_its_pauses_too_long_is_a_finding_for_a_minute(void **state) {
	struct congestion_read read;

	(void)state;
	take_storms(&read, 4);
	judge(&read);
	assert_int_equal(found.level, CHECK_OK);
	take_storms(&read, 5);
	for (int n = 0; n < 6; n++) {
		judge(&read);
		assert_int_equal(found.level, CHECK_WARNING);
		assert_string_equal(
			found.evidence, "mlx5_0 port 1 reports that its own pauses are too long"
		);
	}
	judge(&read);
	assert_int_equal(found.level, CHECK_OK);
}

// The number of pause frames does not give their duration: many short ones are no storm.
static void frames_alone_are_no_finding(void **state) {
	struct congestion_read read;

	(void)state;
	for (uint64_t n = 0; n < 3; n++) {
		congestion_read_init(&read, "dev0", 1);
		congestion_add_ethtool_counter(&read, "tx_priority_3_xoff.nic", n * 1000000000);
		judge(&read);
		assert_int_equal(found.level, CHECK_OK);
	}
}

static void as_many_ports_as_there_may_be_are_kept_and_told_apart(void **state) {
	static struct congestion_read reads[CONGESTION_PORTS_MAX + 3];
	char name[32];

	(void)state;
	for (uint64_t turn = 0; turn < 2; turn++) {
		for (uint32_t n = 0; n < COUNT_OF(reads); n++) {
			snprintf(name, sizeof(name), "dev%u", n / 2);
			congestion_read_init(&reads[n], name, (uint8_t)(1 + n % 2));
			congestion_add_hw_counter(&reads[n], "np_cnp_sent", turn * 10 * n);
			congestion_add_ethtool_counter(
				&reads[n], "tx_prio0_pause_duration", turn * 9000000
			);
		}
		congestion_judge(
			&book, reads, (uint32_t)COUNT_OF(reads), now_ns + turn * 10 * SEC, &found
		);
	}
	assert_int_equal(book.count, CONGESTION_PORTS_MAX);
	for (uint32_t n = 0; n < book.count; n++)
		assert_int_equal(book.ports[n].milli_per_s[CONGESTION_CNP_SENT], n * 1000);
	assert_int_equal(found.level, CHECK_WARNING);
	assert_true(strlen(found.evidence) <= VERDICT_EVIDENCE_MAX);
	// The first three ports fit, and the others are counted.
	assert_int_equal(found.more, CONGESTION_PORTS_MAX - 3);
	assert_non_null(strstr(found.evidence, "; 61 more"));
	// A port that reappears has no earlier values.
	congestion_judge(&book, reads, 1, now_ns + 20 * SEC, &found);
	congestion_judge(&book, &reads[1], 1, now_ns + 30 * SEC, &found);
	assert_true(book.ports[0].milli_per_s[CONGESTION_CNP_SENT] == CONGESTION_UNKNOWN);
}

static void count_one(void *ctx, const char *name, uint64_t value) {
	(void)name;
	(void)value;
	(*(uint32_t *)ctx)++;
}

// The kernel's own interfaces: one without counters reports that, others report some.
static void the_kernel_is_asked_what_an_interface_counts(void **state) {
	uint32_t count = 0;

	(void)state;
	assert_int_equal(congestion_ethtool("lo", count_one, &count), -EOPNOTSUPP);
	assert_int_equal(congestion_ethtool("no-such-device", count_one, &count), -ENODEV);
	assert_int_equal(count, 0);
}

UNIT_GROUP(checks_congestion) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(each_family_is_read_by_its_own_names),
		TEST(the_interface_is_that_of_the_ports_addresses),
		TEST(what_makes_no_sense_counts_as_not_there),
		TEST(rates_are_of_two_looks),
		TEST(counters_that_go_back_wrap_vanish_or_jump_make_no_false_rate),
		TEST(a_sum_of_another_number_of_counters_says_nothing_against_the_one_before),
		TEST(a_port_that_sends_pauses_half_of_the_time_is_a_finding),
		TEST(a_ports_level_is_what_moves_now_and_no_loss_that_a_dead_peer_makes),
		TEST(a_port_that_is_paused_by_its_switch_is_told_and_no_finding),
		TEST(shares_of_priorities_do_not_add_up),
		TEST(a_device_that_found_its_pauses_too_long_is_a_finding_for_a_minute),
		TEST(frames_alone_are_no_finding),
		TEST(as_many_ports_as_there_may_be_are_kept_and_told_apart),
		TEST(the_kernel_is_asked_what_an_interface_counts),
	};

	return cmocka_run_group_tests_name("checks_congestion", tests, NULL, NULL);
}
