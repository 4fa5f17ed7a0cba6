// SPDX-License-Identifier: BSD-3-Clause
// /metrics of a large cluster with faults everywhere: the size of the page is bounded.
#include "feeds/http/metrics_page.h"

#include <control/snapshot.h>
#include <dataplane/peer_table.h>
#include <lib/clock.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES_MAX (1u << 20)

static struct snapshot snapshot;

// Return a name of maximum length, full of characters that must be escaped.
static void name_of(uint32_t n, char name[static PEER_NAME_MAX + 1]) {
	snprintf(name, PEER_NAME_MAX + 1, "%052" PRIu32 "\"\\\"\\\"\\\"\\\"\\\"", n);
}

static struct peer_table *table_of(uint32_t count) {
	struct peer_view view = {.number = 1, .joined = true};
	struct peer_table *table;

	assert_int_equal(peer_table_create(&table), 0);
	for (uint32_t n = 0; n < count; n++) {
		struct peer_row row = {.id = n + 1, .slot = n, .state = PEER_UNREACHABLE};

		name_of(n, row.name);
		row.name_length = (uint8_t)strlen(row.name);
		assert_int_equal(peer_table_set(table, &row), 0);
	}
	rcu_thread_online(0);
	assert_int_equal(peer_table_publish(table, &view), 0);
	return table;
}

static void fill_snapshot(void) {
	snapshot = (struct snapshot){.at_ns = 1, .judged = true};
	snapshot.verdict_rows = SNAPSHOT_VERDICTS_MAX;
	for (uint32_t n = 0; n < SNAPSHOT_VERDICTS_MAX; n++) {
		struct snapshot_verdict *row = &snapshot.rows[n];

		*row = (struct snapshot_verdict){.verdict = VERDICT_MGMT_NET_DOWN};
		name_of(n, row->node);
		memset(row->reason, 'R', VERDICT_REASON_MAX);
	}
	snapshot.path_count = SNAPSHOT_PATHS_MAX;
	snapshot.paths_left = 7;
	for (uint32_t n = 0; n < SNAPSHOT_PATHS_MAX; n++) {
		struct snapshot_path *path = &snapshot.paths[n];

		name_of(n, path->peer);
		memset(path->row.device, '"', RAS_PATH_DEVICE_MAX);
		memset(path->row.peer_device, '"', RAS_PATH_DEVICE_MAX);
		path->row.median_ns = path->row.p99_ns = path->row.baseline_ns = UINT64_MAX;
		path->row.count = path->row.lost = UINT64_MAX / 2;
	}
	snapshot.port_count = CONGESTION_PORTS_MAX;
	for (uint32_t n = 0; n < CONGESTION_PORTS_MAX; n++) {
		struct congestion_port *port = &snapshot.ports[n];

		memset(port->device, '"', sizeof(port->device) - 1);
		port->number = 255;
		for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++)
			port->totals[kind] = CONGESTION_UNKNOWN - 1;
		port->sent_permille = port->received_permille = 1000;
	}
	snapshot.job_count = JOBHOST_JOBS_MAX;
	for (uint32_t n = 0; n < JOBHOST_JOBS_MAX; n++) {
		memset(snapshot.jobs[n].id, '"', JOBHOST_ID_BYTES - 1);
		snapshot.jobs[n].user = snapshot.jobs[n].stuck = UINT32_MAX;
	}
	memset(snapshot.values, 0xff, sizeof(snapshot.values));
}

static uint32_t lines_of(const char *page, const char *beginning) {
	uint32_t count = 0;

	for (; (page = strstr(page, beginning)) != NULL; page++)
		count += page[-1] == '\n';
	return count;
}

// The time is printed but not checked, since machines differ.
static char *page_of(uint32_t peers, uint8_t parts, size_t *ret_size) {
	struct peer_table *table = table_of(peers);
	struct page_facts facts = {&snapshot, table, "1.2.3", 2};
	struct clock clock;
	uint64_t before_ns;
	char *page = NULL;
	FILE *out;

	fill_snapshot();
	clock_init_monotonic(&clock);
	out = open_memstream(&page, ret_size);
	assert_non_null(out);
	before_ns = clock_now_ns(&clock);
	page_metrics(&facts, parts, false, out);
	fclose(out);
	printf("# %" PRIu32 " nodes, all lost: %zu bytes in %" PRIu64 " us\n", peers, *ret_size,
	       (clock_now_ns(&clock) - before_ns) / 1000);
	rcu_thread_offline();
	peer_table_destroy(table);
	return page;
}

static void page_of_a_thousand_lost_nodes_is_below_a_mebibyte(void **state) {
	size_t size;
	char *page = page_of(1000, PAGE_PARTS_ALL, &size);

	(void)state;
	assert_true(size <= PAGE_BYTES_MAX);
	assert_int_equal(lines_of(page, "tocsin_peer_not_alive{"), 1000);
	assert_int_equal(lines_of(page, "tocsin_node_verdict{"), SNAPSHOT_VERDICTS_MAX);
	assert_int_equal(lines_of(page, "tocsin_path_"), 6 * SNAPSHOT_PATHS_MAX);
	assert_non_null(strstr(page, "\ntocsin_paths_left_out 7\n"));
	assert_int_equal(lines_of(page, "tocsin_job_by_id_stuck{"), JOBHOST_JOBS_MAX);
	assert_non_null(strstr(page, "\\\"\",user=\"4294967295\"} 4294967295\n"));
	assert_int_equal(
		lines_of(page, "tocsin_port_congestion_total{"),
		CONGESTION_KIND_COUNT * CONGESTION_PORTS_MAX
	);
	assert_int_equal(lines_of(page, "tocsin_port_paused_ratio{"), 2 * CONGESTION_PORTS_MAX);
	free(page);
}

// Each family is in one part, and all parts together are the whole page.
static void parts_that_are_chosen_are_written_and_no_others(void **state) {
	static const struct {
		uint8_t parts;
		const char *family; // of this part alone
	} cases[] = {
		{PAGE_PART_SELF, "tocsin_joined "},
		{PAGE_PART_VERDICTS, "tocsin_node_verdict{"},
		{PAGE_PART_PATHS, "tocsin_path_"},
		{PAGE_PART_JOBS, "tocsin_job_by_id_stuck{"},
	};
	size_t whole_size, sum = 0, size;
	char *whole = page_of(10, PAGE_PARTS_ALL, &whole_size);

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		char *page = page_of(10, cases[n].parts, &size);

		sum += size;
		for (size_t other = 0; other < sizeof(cases) / sizeof(cases[0]); other++) {
			uint32_t lines = lines_of(page, cases[other].family);

			assert_int_equal(
				lines, other == n ? lines_of(whole, cases[other].family) : 0
			);
			assert_true(other != n || lines > 0);
		}
		free(page);
	}
	assert_int_equal(sum, whole_size);
	free(whole);
}

static void fill_port(struct congestion_port *port) {
	memset(port, 0xff, sizeof(*port));
	snprintf(port->device, sizeof(port->device), "mlx5_0");
	port->number = 2;
	port->totals[CONGESTION_CNP_SENT] = 17;
	port->received_permille = 62;
}

static struct fabric_gpu_path gpu; // of the only path

static char *page_of_one_path(const struct ras_path_row *row) {
	struct peer_table *table = table_of(1);
	struct page_facts facts = {&snapshot, table, "1.2.3", 2};
	char *page = NULL;
	size_t size;
	FILE *out;

	snapshot = (struct snapshot){.at_ns = 1, .path_count = 1};
	snapshot.paths[0].row = *row;
	snapshot.paths[0].gpu = gpu;
	snapshot.port_count = 1;
	fill_port(&snapshot.ports[0]);
	snprintf(snapshot.paths[0].peer, sizeof(snapshot.paths[0].peer), "n\"2");
	out = open_memstream(&page, &size);
	assert_non_null(out);
	page_metrics(&facts, PAGE_PARTS_ALL, false, out);
	fclose(out);
	rcu_thread_offline();
	peer_table_destroy(table);
	return page;
}

static void path_tells_what_is_known_of_it(void **state) {
	struct ras_path_row row = {
		.device = "mlx5_0",
		.peer_device = "mlx5_1",
		.seen = OBSERVATION_DEGRADED,
		.count = 97,
		.lost = 3,
		.median_ns = 310000,
		.p99_ns = 1500000000,
		.baseline_ns = 26000,
	};
	static const char *const lines[] = {
		"\ntocsin_path_seen{peer=\"n\\\"2\",device=\"mlx5_0\",peer_device=",
		"peer_device=\"mlx5_1\",seen=\"degraded\"} 1\n",
		"peer_device=\"mlx5_1\",quantile=\"0.5\"} 0.000310000\n",
		"peer_device=\"mlx5_1\",quantile=\"0.99\"} 1.500000000\n",
		"\ntocsin_path_baseline_seconds{",
		"\"} 100\n",
		"\"} 3\n",
	};
	char *page = page_of_one_path(&row);

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++)
		assert_non_null(strstr(page, lines[n]));
	free(page);
	row = (struct ras_path_row){.seen = OBSERVATION_NO_PAIR};
	page = page_of_one_path(&row);
	assert_non_null(strstr(page, ",seen=\"no-pair\"} 1\n"));
	assert_int_equal(lines_of(page, "tocsin_path_latency_seconds{"), 0);
	assert_int_equal(lines_of(page, "tocsin_path_baseline_seconds{"), 0);
	free(page);
}

static void path_to_memory_of_a_gpu_tells_of_that_beside_it(void **state) {
	static const char *const lines[] = {
		"peer_device=\"mlx5_1\",gpu=\"3\",seen=\"refused\"} 1\n",
		"peer_device=\"mlx5_1\",gpu=\"3\",quantile=\"0.5\"} 0.000022000\n",
		"peer_device=\"mlx5_1\",gpu=\"3\",quantile=\"0.99\"} 0.000040000\n",
		"\ntocsin_path_gpu_probes_total{peer=\"n\\\"2\",device=\"mlx5_0\",peer_device=",
		"gpu=\"3\"} 40\n",
		"gpu=\"3\"} 6\n",
	};
	struct ras_path_row row = {
		.device = "mlx5_0", .peer_device = "mlx5_1", .seen = OBSERVATION_GOOD};
	char *page;

	(void)state;
	gpu = (struct fabric_gpu_path){
		.shown = true,
		.ordinal = 3,
		.seen = FABRIC_GPU_REFUSED,
		.probes = 40,
		.silent = 1,
		.refused = 2,
		.wrong = 3,
		.median_ns = 22000,
		.p99_ns = 40000,
	};
	page = page_of_one_path(&row);
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++)
		assert_non_null(strstr(page, lines[n]));
	assert_non_null(strstr(page, "peer_device=\"mlx5_1\",seen=\"good\"} 1\n"));
	free(page);
	gpu = (struct fabric_gpu_path){.shown = false};
	page = page_of_one_path(&row);
	assert_int_equal(lines_of(page, "tocsin_path_gpu_seen{"), 0);
	assert_int_equal(lines_of(page, "tocsin_path_gpu_probes_total{"), 0);
	free(page);
}

static void a_port_tells_what_its_driver_counts_and_nothing_else(void **state) {
	char *page = page_of_one_path(&(struct ras_path_row){.seen = OBSERVATION_NO_PAIR});

	(void)state;
	assert_non_null(strstr(
		page,
		"\ntocsin_port_congestion_total{device=\"mlx5_0\",port=\"2\",kind=\"cnp_sent\"} 17\n"
	));
	assert_int_equal(lines_of(page, "tocsin_port_congestion_total{"), 1);
	assert_non_null(strstr(page, "port=\"2\",direction=\"received\"} 0.062\n"));
	assert_int_equal(lines_of(page, "tocsin_port_paused_ratio{"), 1);
	free(page);
}

static void page_does_not_grow_with_the_cluster(void **state) {
	size_t thousand, many;

	(void)state;
	free(page_of(1000, PAGE_PARTS_ALL, &thousand));
	free(page_of(20000, PAGE_PARTS_ALL, &many));
	assert_in_range(many, thousand - 64, thousand + 64); // process_* gain and lose digits
}

static void node_that_never_came_has_a_row_while_there_is_room(void **state) {
	struct peer_table *table = table_of(1);
	struct page_facts facts = {&snapshot, table, "1.2.3", 2};
	char *page = NULL;
	size_t size;
	FILE *out;

	(void)state;
	fill_snapshot();
	snapshot.missing = SNAPSHOT_MISSING_MAX + 5;
	for (uint32_t n = 0; n < SNAPSHOT_MISSING_MAX; n++)
		name_of(n, snapshot.missing_names[n]);
	snapshot.verdict_rows = SNAPSHOT_VERDICTS_MAX - 10;
	out = open_memstream(&page, &size);
	assert_non_null(out);
	page_metrics(&facts, PAGE_PARTS_ALL, false, out);
	fclose(out);
	assert_int_equal(lines_of(page, "tocsin_node_verdict{"), SNAPSHOT_VERDICTS_MAX);
	assert_non_null(strstr(
		page, "verdict=\"unknown\",reason=\"NeverSeen\",grade=\"unknown\",advice=\"show\","
		      "maint=\"0\"} 1\n"
	));
	free(page);
	rcu_thread_offline();
	peer_table_destroy(table);
}

// A try fails also if the agent of another node answers at the address.
static void help_of_failed_tries_mentions_answers_of_another_agent(void **state) {
	const char *help = NULL;
	struct counter counter;

	(void)state;
	for (uint32_t n = 0; n < counters_count(); n++) {
		counter_at(n, &counter);
		if (strcmp(counter.group, "reach") == 0 &&
		    strcmp(counter.name, "tries_failed") == 0)
			help = counter.help;
	}
	assert_non_null(help);
	assert_non_null(strstr(help, "another agent answered"));
}

UNIT_GROUP(metrics_page) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_of_a_thousand_lost_nodes_is_below_a_mebibyte),
		cmocka_unit_test(parts_that_are_chosen_are_written_and_no_others),
		cmocka_unit_test(path_tells_what_is_known_of_it),
		cmocka_unit_test(path_to_memory_of_a_gpu_tells_of_that_beside_it),
		cmocka_unit_test(a_port_tells_what_its_driver_counts_and_nothing_else),
		cmocka_unit_test(page_does_not_grow_with_the_cluster),
		cmocka_unit_test(node_that_never_came_has_a_row_while_there_is_room),
		cmocka_unit_test(help_of_failed_tries_mentions_answers_of_another_agent),
	};
	int failed;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("control", 0) != 0)
		return 1;
	rcu_thread_offline();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_thread_unregister();
	return failed;
}
