// SPDX-License-Identifier: BSD-3-Clause
// tocsin-micro [--json]: operations of lib and tocsin-perf on hot paths.
#include "micro.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off
static const struct micro_row rows[] = {
	{"histogram record", micro_histogram_record, "increment a counter by index", micro_counter_add, "ns", MICRO_TARGET_VALUE, 10},
	{"histogram record, log2 form", micro_histogram_log2_record, "increment a counter by index", micro_counter_add, "ns", MICRO_TARGET_VALUE, 10},
	{"histogram snapshot, 1 ns to 1 h at 1/128", micro_histogram_snapshot, "memcpy of as many bytes", micro_histogram_copy, "ns", MICRO_TARGET_NONE, 0},
	{"a sample of the laboratory, timed and kept", micro_record_sample, "two readings of the clock", micro_record_clock_twice, "ns", MICRO_TARGET_VALUE, 30},
	{"the same in a run of millions", micro_record_sample_long, "two readings of the clock", micro_record_clock_twice, "ns", MICRO_TARGET_VALUE, 30},
	{"wire write and read 100 bytes", micro_wire_message, "memcpy of 100 bytes, twice", micro_wire_memcpy, "ns", MICRO_TARGET_VALUE, 60},
	{"clock read", micro_clock_tsc, "rdtsc", micro_clock_rdtsc, "ns", MICRO_TARGET_RATIO, 1.3},
	{"clock read, kernel", micro_clock_monotonic, "rdtsc", micro_clock_rdtsc, "ns", MICRO_TARGET_NONE, 0},
	{"disabled log line", micro_log_disabled, "relaxed load and branch", micro_log_load_and_branch, "ns", MICRO_TARGET_VALUE, 2},
	{"hostlist expand 100,000 names", micro_hostlist_expand, "snprintf of as many names", micro_hostlist_format, "ms", MICRO_TARGET_VALUE, 50},
};
// clang-format on

int main(int argc, char **argv) {
	return micro_run("micro", rows, COUNT_OF(rows), argc, argv);
}
