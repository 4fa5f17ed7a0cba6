// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/answers/client_paths_bed.h"

#include <string.h>

struct fabric fabric;

static uint32_t device_count(const struct fabric *given) {
	return given->count > 0;
}

static bool
path_next(const struct fabric *given, uint32_t *cursor, struct fabric_path_view *ret_view) {
	if (*cursor >= given->count)
		return false;
	*ret_view = given->views[(*cursor)++];
	return true;
}

static void path_row(
	const struct fabric *given,
	const struct fabric_path_view *view,
	struct ras_path_row *ret_row
) {
	uint32_t n = 0;

	while (given->rows[n].peer != view->peer ||
	       strcmp(given->rows[n].peer_device, view->peer_device) != 0)
		n++;
	*ret_row = given->rows[n];
}

static void numbers(const struct fabric *given, struct fabric_numbers *ret_numbers) {
	*ret_numbers = (struct fabric_numbers
	){.probes = {.interval_ns = given->interval_ns, .neighbours = given->count}};
}

static bool
pair_next(const struct fabric *given, uint32_t *cursor, struct fabric_pair_view *ret_view) {
	(void)given;
	(void)cursor;
	(void)ret_view;
	return false;
}

static const struct fabric_calls calls = {
	.pair_next = pair_next,
	.device_count = device_count,
	.path_next = path_next,
	.path_row = path_row,
	.numbers = numbers,
};

int begin(void **state) {
	memset(&fabric, 0, sizeof(fabric));
	fabric.interval_ns = RAS_NS_PER_SEC;
	if (bench_start(state) != 0)
		return -1;
	client_server_use_fabric(bench.server, &calls, &fabric);
	return 0;
}

int connect_json(void) {
	int fd = bench_connect();

	bench_say(fd, "SET FORMAT json\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	return fd;
}

struct ras_path_row a_row(const char *peer, enum observation_kind seen, uint64_t median_ns) {
	struct ras_path_row row = {
		.peer = bench_peer(peer)->record->id,
		.device = "mlx5_0",
		.peer_device = "mlx5_1",
		.seen = (uint8_t)seen,
		.for_s = 754,
		.steady = true,
	};

	if (median_ns == 0)
		return row;
	row.count = 1200;
	row.lost = 3;
	row.min_ns = median_ns / 2;
	row.median_ns = row.baseline_ns = median_ns;
	row.p99_ns = 2 * median_ns;
	return row;
}

void add_own(const struct ras_path_row *row) {
	struct fabric_path_view *view = &fabric.views[fabric.count];

	assert_true(fabric.count < PATHS_MAX);
	fabric.rows[fabric.count] = *row;
	*view = (struct fabric_path_view){
		.peer = row->peer,
		.device = fabric.rows[fabric.count].device,
		.peer_device = fabric.rows[fabric.count].peer_device,
		.neighbour = true,
		.known = true,
		.mtu = 4096,
		.flow_label = 0x1234,
	};
	view->summary.last_answer_ns = RAS_NEVER;
	view->summary.last_probe_ns = clock_now_ns(&bench.clock) - RAS_NS_PER_SEC / 2;
	fabric.count++;
}

void say(struct overlay_call *call, const char *text) {
	assert_non_null(call);
	assert_int_equal(call->piece(call, text, strlen(text)), 0);
}
