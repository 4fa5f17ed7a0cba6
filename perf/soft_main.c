// SPDX-License-Identifier: BSD-3-Clause
// tocsin-soft-bench [--json] [TEXT]: all rows, or those that have the text in their name.
//
// A row's two contenders take turns; a slice gives one value of each and their ratio. Printed are
// the medians over the slices and the interval that holds the true median of the judged one 96
// times of 100; a target is missed only if the whole interval misses it.
#include "soft.h"

#include <lib/must.h>

#include <jansson.h>

#include <math.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
// Of nine values in order the second and the eighth.
#define INTERVAL_LOW 1
#define INTERVAL_HIGH 7
#define MS UINT64_C(1000000)
#define PING_BYTES 8
#define PING_PACKET_BYTES 40 // BTH, RETH, 8 bytes, ICRC
#define BULK_BYTES 65536
#define MTU 4096
#define MTU_PACKET_BYTES 4128 // BTH, a RETH in one of sixteen, ICRC
#define QUEUE_PAIRS 1000

enum judged { JUDGED_RATIO, JUDGED_VALUE };

struct row {
	const char *what;
	const struct soft_setup *setup;
	struct soft_order order;
	double scale; // of what is printed
	const char *unit;
	const char *yardstick;
	const struct soft_setup *beside; // NULL: none
	struct soft_order beside_order;
	enum judged judged;
	bool at_least;
	double target; // 0: none
};

struct result {
	double value, yardstick, ratio, low, high;
	bool ok;
};

static const struct soft_setup udp_small = {.kind = &soft_udp, .packet_bytes = PING_PACKET_BYTES};
static const struct soft_setup udp_large = {.kind = &soft_udp, .packet_bytes = MTU_PACKET_BYTES};
static const struct soft_setup on_udp = {
	.kind = &soft_verbs, .calls = &verbs_calls_soft, .wire = SOFT_WIRE_UDP, .timeout = 17};
static const struct soft_setup on_udp_fast = {
	.kind = &soft_verbs, .calls = &verbs_calls_soft, .wire = SOFT_WIRE_UDP, .timeout = 10};
static const struct soft_setup on_memif = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_DPDK,
	.wire_args =
		{"net_memif0,role=server,id=0,socket=@tocsin-soft-bench",
		 "net_memif0,role=client,id=0,socket=@tocsin-soft-bench"},
	.address = {"10.77.0.1", "10.77.0.2"},
	.timeout = 17};
static const struct soft_setup on_udp_lossy = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_UDP,
	.timeout = 10,
	.faults = "loss=1%,seed=1"};

// clang-format off
static const struct row rows[] = {
	{"udp: write of 8 bytes, one way, polling", &on_udp, {SOFT_PING, 4000, PING_BYTES, 0}, 1e-3, "us",
	 "UDP ping-pong, spinning", &udp_small, {SOFT_PING, 4000, 0, 0}, JUDGED_RATIO, false, 1.5},
	{"memif: write of 8 bytes, one way, polling", &on_memif, {SOFT_PING, 4000, PING_BYTES, 0}, 1e-3, "us",
	 "UDP ping-pong, spinning", &udp_small, {SOFT_PING, 4000, 0, 0}, JUDGED_VALUE, false, 1.5},
	{"udp: the same, spinning on memory", &on_udp, {SOFT_PING_MEMORY, 1000, PING_BYTES, 0}, 1e-3, "us",
	 "one block-and-wake", &udp_small, {SOFT_BLOCK_COST, 0, 0, 0}, JUDGED_RATIO, false, 1.3},
	{"udp: the same, spinning on memory", &on_udp, {SOFT_PING_MEMORY, 1000, PING_BYTES, 0}, 1e-3, "us",
	 "UDP ping-pong, blocking", &udp_small, {SOFT_PING_BLOCK, 1000, 0, 0}, JUDGED_RATIO, false, 0},
	{"udp: writes of 64 KiB", &on_udp, {SOFT_BULK, 0, BULK_BYTES, 100 * MS}, 1e-9, "GB/s",
	 "UDP blast, 4128 bytes", &udp_large, {SOFT_BULK, 0, 0, 100 * MS}, JUDGED_RATIO, true, 0.8},
	{"udp: writes of 8 bytes, a core's", &on_udp, {SOFT_RATE, 0, PING_BYTES, 100 * MS}, 1e-6, "M/s",
	 NULL, NULL, {0}, JUDGED_VALUE, true, 0},
	{"udp: 64 KiB, 1 % loss, timeout 10", &on_udp_lossy, {SOFT_BULK, 0, BULK_BYTES, 200 * MS}, 1e-9, "GB/s",
	 "without loss", &on_udp_fast, {SOFT_BULK, 0, BULK_BYTES, 200 * MS}, JUDGED_RATIO, true, 0.6},
	{"udp: idle device", &on_udp, {SOFT_IDLE, 0, 0, 500 * MS}, 1, "% cpu",
	 NULL, NULL, {0}, JUDGED_VALUE, false, 0.1},
	{"udp: 1,000 queue pairs, resident", &on_udp, {SOFT_MEMORY, QUEUE_PAIRS, 0, 0}, 1, "MiB",
	 NULL, NULL, {0}, JUDGED_VALUE, false, 64},
};
// clang-format on

static struct result
judge(const struct row *row, double *values, double *yardsticks, double *ratios) {
	double *judged = row->judged == JUDGED_RATIO ? ratios : values;
	struct result result = {
		.value = soft_median(values, SOFT_SLICES),
		.yardstick = soft_median(yardsticks, SOFT_SLICES),
		.ratio = soft_median(ratios, SOFT_SLICES),
	};

	result.low = judged[INTERVAL_LOW];
	result.high = judged[INTERVAL_HIGH];
	result.ok = row->at_least ? !(result.high < row->target) : !(result.low > row->target);
	for (uint32_t n = 0; n < SOFT_SLICES; n++)
		result.ok &= !isnan(values[n]);
	return result;
}

// 0 or -errno of what could not be started.
static int measure(const struct row *row, struct result *ret_result) {
	double values[SOFT_SLICES], yardsticks[SOFT_SLICES] = {0}, ratios[SOFT_SLICES] = {0};
	struct soft_pair pair, beside;
	int err = soft_pair_start(row->setup, &pair);

	if (err != 0)
		return err;
	if (row->beside != NULL)
		err = soft_pair_start(row->beside, &beside);
	if (err != 0) {
		soft_pair_stop(&pair);
		return err;
	}
	soft_pair_play(&pair, &row->order); // warms up
	for (uint32_t n = 0; n < SOFT_SLICES; n++) {
		values[n] = soft_pair_play(&pair, &row->order) * row->scale;
		if (row->beside == NULL)
			continue;
		yardsticks[n] = soft_pair_play(&beside, &row->beside_order) * row->scale;
		ratios[n] = values[n] / yardsticks[n];
	}
	*ret_result = judge(row, values, yardsticks, ratios);
	soft_pair_stop(&pair);
	if (row->beside != NULL)
		soft_pair_stop(&beside);
	return 0;
}

static void print_head(void) {
	printf("%-40s %8s %-5s  %-25s %8s %6s %15s %7s\n", "medians of 9 slices", "value", "",
	       "beside", "value", "ratio", "interval", "target");
}

static void print_row(const struct row *row, const struct result *result) {
	printf("%-40s %8.3f %-5s  ", row->what, result->value, row->unit);
	if (row->beside != NULL)
		printf("%-25s %8.3f %6.2f ", row->yardstick, result->yardstick, result->ratio);
	else
		printf("%-25s %8s %6s ", "", "", "");
	printf("[%6.2f, %6.2f]", result->low, result->high);
	if (row->target > 0)
		printf(" %s %-4.4g %s", row->at_least ? ">=" : "<=", row->target,
		       result->ok ? "ok" : "MISSED");
	printf("\n");
	fflush(stdout);
}

static json_t *json_of(const struct row *row, const struct result *result) {
	bool beside = row->beside != NULL, aimed = row->target > 0;

	return json_pack(
		"{s:s s:f s:s s:s? s:o s:o s:[f,f] s:o s:s? s:o}", "what", row->what, "value",
		result->value, "unit", row->unit, "yardstick", row->yardstick, "yardstick_value",
		beside ? json_real(result->yardstick) : json_null(), "ratio",
		beside ? json_real(result->ratio) : json_null(), "interval", result->low,
		result->high, "target", aimed ? json_real(row->target) : json_null(), "target_of",
		!aimed			      ? NULL
		: row->judged == JUDGED_RATIO ? "ratio"
					      : "value",
		"ok", aimed ? json_boolean(result->ok) : json_null()
	);
}

static int run(bool json, const char *text) {
	json_t *array = json_array(), *object;
	struct result result;
	uint32_t missed = 0;
	int err = 0;

	if (!json)
		print_head();
	for (size_t n = 0; n < COUNT_OF(rows) && err == 0; n++) {
		if (text != NULL && strstr(rows[n].what, text) == NULL)
			continue;
		err = measure(&rows[n], &result);
		if (err != 0) {
			fprintf(stderr, "%s: %s\n", rows[n].what, strerrorname_np(-err));
			break;
		}
		missed += rows[n].target > 0 && !result.ok;
		if (json)
			json_array_append_new(array, json_of(&rows[n], &result));
		else
			print_row(&rows[n], &result);
	}
	object = json_pack("{s:s s:o}", "bench", "soft", "rows", array);
	if (json && err == 0) {
		err = json_dumpf(object, stdout, JSON_REAL_PRECISION(6));
		printf("\n");
	}
	json_decref(object);
	return err == 0 && missed == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	const char *text = argc > 1 + json ? argv[1 + json] : NULL;

	if (argc > 2 + json || (text != NULL && text[0] == '-')) {
		fprintf(stderr, "usage: %s [--json] [TEXT]\n", argv[0]);
		return 2;
	}
	return run(json, text);
}
