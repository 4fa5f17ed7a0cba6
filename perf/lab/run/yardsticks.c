// SPDX-License-Identifier: BSD-3-Clause
// Measure the yardsticks, store them in an environment, and format them again.
#include "run/yardsticks.h"

#include <lib/histogram.h>
#include <lib/parse.h>

#include <errno.h>
#include <record.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS UINT64_C(2000000)
#define SAMPLES 32
// A sample longer than this contains waiting for a processor, so it is no floor.
#define SAMPLE_MAX_NS (LIMIT_NS / 4)
// All floors before memif are yardsticks; starting DPDK for memif takes too long for a run.
#define KIND_COUNT FLOOR_MEMIF
#define KEY_BYTES 32

static void floor_environment_key(enum floor_kind kind, char key[static KEY_BYTES]) {
	snprintf(key, KEY_BYTES, "floor_%s_ns", floor_key(kind));
}

void yardsticks_add(struct lab_environment *environment, enum floor_kind kind, uint64_t sample_ns) {
	char key[KEY_BYTES];

	floor_environment_key(kind, key);
	if (sample_ns <= SAMPLE_MAX_NS)
		environment_add(environment, key, "%.1f", (double)sample_ns / floor_batch(kind));
	else
		environment_add(environment, key, "n/a");
}

void yardsticks_measure(struct lab_environment *environment) {
	const struct floor_config config = {.samples = SAMPLES, .limit_ns = LIMIT_NS};
	struct run_record *record;

	for (int kind = 0; kind < KIND_COUNT; kind++) {
		struct lab_why unheard = {.text = ""};
		struct histogram_summary all;
		uint64_t least_ns = UINT64_MAX;
		int err;

		if (run_record_create(&record) != 0)
			return;
		err = floor_measure((enum floor_kind)kind, &config, record, &unheard);
		if (err == 0) {
			histogram_summarize(run_record_all(record), &all);
			least_ns = all.min;
		}
		if (err != -EOPNOTSUPP)
			yardsticks_add(environment, (enum floor_kind)kind, least_ns);
		run_record_destroy(record);
	}
}

void yardsticks_format(
	const struct lab_environment *environment, char text[static YARDSTICKS_BYTES]
) {
	static const char *const names[KIND_COUNT] = {
		"clock", "syscall", "cache line", "wake-up", "UDP",
	};
	size_t used = 0;

	text[0] = '\0';
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		char key[KEY_BYTES], value[FLOOR_TIME_BYTES];
		struct parse_error error;
		uint64_t value_ns;
		const char *item;
		int length;

		floor_environment_key((enum floor_kind)kind, key);
		item = environment_get(environment, key);
		if (item[0] == '\0')
			continue;

		// Format "9.5" as "9.5 ns", and "7450.2" as "7.45 us". Keep "n/a".
		if (parse_u64(item, strcspn(item, "."), 1000, UINT32_MAX, &error, &value_ns) == 0)
			floor_format_time((double)value_ns, value);
		else
			snprintf(
				value, sizeof(value), "%.8s%s", item,
				strcmp(item, "n/a") == 0 ? "" : " ns"
			);
		length = snprintf(
			text + used, YARDSTICKS_BYTES - used, "%s%s %.10s", used > 0 ? ", " : "",
			names[kind], value
		);
		// Drop the first value that does not fit, and all that follow.
		if ((size_t)length >= YARDSTICKS_BYTES - used) {
			text[used] = '\0';
			return;
		}
		used += (size_t)length;
	}
}
