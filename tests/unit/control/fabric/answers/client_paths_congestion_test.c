// SPDX-License-Identifier: BSD-3-Clause
// Tests of the congestion that PATHS, PATH and WHY report for the ports of a path.
#include "control/fabric/answers/client_paths_bed.h"

#include <control/checks.h>
#include <control/congestion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Two ports that count, and what they count.
struct checks {
	struct congestion_port ports[2];
};

static struct checks checks;

uint32_t checks_congestion(const struct checks *given, const struct congestion_port **ret_ports) {
	*ret_ports = given->ports;
	return 2;
}

uint32_t checks_count(const struct checks *given) {
	(void)given;
	return 0;
}

void checks_at(const struct checks *given, uint32_t n, struct check_view *ret_view) {
	(void)given;
	(void)n;
	(void)ret_view;
}

void checks_counters(const struct checks *given, struct checks_counters *ret_counters) {
	(void)given;
	(void)ret_counters;
}

static void play_congestion(void) {
	memset(&checks, 0xff, sizeof(checks));
	snprintf(checks.ports[0].device, sizeof(checks.ports[0].device), "mlx5_0");
	snprintf(checks.ports[1].device, sizeof(checks.ports[1].device), "mlx5_1");
	checks.ports[0].number = checks.ports[1].number = 1;
	checks.ports[0].totals[CONGESTION_CNP_SENT] = 4711;
	checks.ports[0].milli_per_s[CONGESTION_CNP_SENT] = 12500;
	checks.ports[0].totals[CONGESTION_ECN_MARKED] = 9;
	checks.ports[0].milli_per_s[CONGESTION_ECN_MARKED] = 0;
	checks.ports[0].received_permille = 625;
}

static void tables_mark_whose_port_is_congested_or_storms(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_DEGRADED, 26000);
	int fd = bench_connect(), json = connect_json();
	json_t *object, *rows;
	const char *text;

	(void)state;
	play_congestion();
	client_server_use_checks(bench.server, &checks);
	add_own(&row);
	row = a_row("n3", OBSERVATION_DEGRADED, 26000);
	snprintf(row.device, sizeof(row.device), "mlx5_1");
	add_own(&row);
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(text, " mlx5_0>mlx5_1 degraded^ "));
	assert_non_null(bench_find(text, " mlx5_1>mlx5_1 degraded  "));
	assert_non_null(
		bench_find(text, "\n^ this node's device counts congestion now, ! it sends ")
	);
	checks.ports[0].sent_permille = 500;
	bench_say(fd, "PATHS --worst\n");
	assert_non_null(bench_find(bench_shown(fd), " mlx5_0>mlx5_1 degraded! "));
	bench_say(json, "PATHS\n");
	object = json_loads(bench_hear(json), 0, NULL);
	rows = json_object_get(object, "paths");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "port_congestion")),
		"pause-storm"
	);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "port_congestion")),
		"not-counted"
	);
	json_decref(object);
	// Nothing moves: no mark, and nothing that explains it.
	checks.ports[0].sent_permille = UINT32_MAX;
	checks.ports[0].milli_per_s[CONGESTION_CNP_SENT] = 0;
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	assert_non_null(bench_find(text, " mlx5_0>mlx5_1 degraded  "));
	assert_null(bench_find(text, "counts congestion"));
	close(fd);
	close(json);
}

static void ports_congestion_is_told_beside_its_path(void **state) {
	static const char of_n2[] =
		"{\"devices\":1,\"probing\":true,\"paths\":["
		"{\"device\":\"soft0\",\"congestion\":[{\"counts\":{\"cnp_sent\":{\"per_s\":1e300},"
		"\"ecn_marked\":{\"per_s\":-4},\"rx_discards\":{\"per_s\":\"9\"},\"retransmits\":7,"
		"\"\\u001b[2J\":{\"per_s\":5}},\"paused_sent_permille\":1001,"
		"\"paused_received_permille\":null}]},"
		"{\"congestion\":[{\"counts\":{\"adaptive_retransmits\":{\"per_s\":2.25}},"
		"\"paused_sent_permille\":500}]},{\"congestion\":[{\"paused_sent\":0.25}]},"
		"{\"congestion\":{}},{\"congestion\":[[]]}]}\n";
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect(), json = connect_json();
	json_t *object, *port;
	const char *text;

	(void)state;
	play_congestion();
	client_server_use_checks(bench.server, &checks);
	add_own(&row);
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	say(bench.overlay.call, of_n2);
	bench.overlay.call->ended(bench.overlay.call, 0);
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(
		text, "  congested cnp_sent 12.5/s, paused by its switch 62.5 % of the time\n"
	));
	assert_non_null(bench_find(text, "  congested nothing counted recently\n"));
	assert_non_null(bench_find(
		text,
		"  congested adaptive_retransmits 2.2/s, pauses its switch 50.0 % of the time\n"
	));
	assert_non_null( // of an older agent
		bench_find(text, "  congested pauses its switch 25.0 % of the time\n")
	);
	assert_null(strchr(text, '\x1b'));
	object = bench_ask_json(json, "WHY n2\n");
	assert_int_equal(json_array_size(json_object_get(object, "congestion")), 2);
	port = json_array_get(json_object_get(object, "congestion"), 0);
	assert_string_equal(json_string_value(json_object_get(port, "device")), "mlx5_0");
	assert_true(json_is_null(json_object_get(port, "paused_sent_permille")));
	port = json_object_get(json_object_get(port, "counts"), "cnp_sent");
	assert_int_equal(json_integer_value(json_object_get(port, "total")), 4711);
	json_decref(object);
	bench_say(fd, "WHY n2\n");
	assert_non_null(bench_find(
		bench_shown(fd),
		"\nCongestion at the ports of the node that answers\n  mlx5_0 port 1: cnp_"
	));
	client_server_use_checks(bench.server, NULL);
	close(fd);
	close(json);
}

UNIT_GROUP(client_paths_congestion) {
	const struct CMUnitTest tests[] = {
		PATHS_TEST(tables_mark_whose_port_is_congested_or_storms),
		PATHS_TEST(ports_congestion_is_told_beside_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
