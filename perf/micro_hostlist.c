// SPDX-License-Identifier: BSD-3-Clause
// Benchmarks of hostlists.
#include "micro.h"

#include <lib/clock.h>
#include <lib/hostlist.h>
#include <lib/must.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COUNT 100000
#define NAME_BYTES_MAX 24

uint64_t micro_hostlist_expand(uint64_t rounds) {
	static const char text[] = "rack[001-100]node[0001-1000]";
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		struct hostlist *list = NULL;

		must(hostlist_expand(text, strlen(text), NAME_COUNT, NULL, &list) == 0);
		must(hostlist_count(list) == NAME_COUNT);
		hostlist_destroy(list);
	}
	return clock_monotonic_ns() - start_ns;
}

// The names alone, side by side: no check, no search for repeated ones.
uint64_t micro_hostlist_format(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		char *names = malloc((size_t)NAME_COUNT * NAME_BYTES_MAX);

		must(names != NULL);
		for (unsigned int i = 0; i < NAME_COUNT; i++)
			snprintf(
				names + (size_t)i * NAME_BYTES_MAX, NAME_BYTES_MAX,
				"rack%03unode%04u", i / 1000 + 1, i % 1000 + 1
			);
		micro_touch(names);
		free(names);
	}
	return clock_monotonic_ns() - start_ns;
}
