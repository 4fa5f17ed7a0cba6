// SPDX-License-Identifier: BSD-3-Clause
// Describes which GPU memory is exposed to peers, and how the memory of peers is read.
#include "show/gpu.h"

#include <inttypes.h>
#include <string.h>

#define PATHS_SHOWN_MAX 16
#define LINE_BYTES 1024

void gpu_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]) {
	char age[SHOW_BYTES], probes[SHOW_BYTES];
	char silent[SHOW_BYTES], refused[SHOW_BYTES], wrong[SHOW_BYTES];

	fact_duration(gpu, "for_ns", age);
	fact_count(gpu, "silent", silent);
	fact_count(gpu, "refused", refused);
	fact_count(gpu, "wrong", wrong);
	fact_count(gpu, "probes", probes);
	snprintf(
		words, GPU_WORDS_BYTES,
		"cuda:%" PRIu64 " %.20s, for %s; %s silent, %s refused, %s wrong of %s",
		fact_number(gpu, "ordinal") % 10000, fact_name(gpu, "seen"), age, silent, refused,
		wrong, probes
	);
}

void gpu_time_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]) {
	char median[SHOW_BYTES], usual[SHOW_BYTES], p99[SHOW_BYTES];

	fact_duration(gpu, "median_ns", median);
	fact_duration(gpu, "usual_ns", usual);
	fact_duration(gpu, "p99_ns", p99);
	snprintf(words, GPU_WORDS_BYTES, "8 bytes take %s, usually %s, p99 %s", median, usual, p99);
}

void gpus_print_bad(struct page *page, const json_t *gpus, const char *head, bool with_peers) {
	char words[GPU_WORDS_BYTES], times[GPU_WORDS_BYTES], line[LINE_BYTES];
	uint32_t said = 0;
	const json_t *gpu;
	size_t n;

	json_array_foreach(gpus, n, gpu) {
		if (fact_is(gpu, "seen", "good") || fact_is(gpu, "seen", "unseen") ||
		    said == PATHS_SHOWN_MAX)
			continue;
		if (said++ == 0)
			page_print(page, "%s", head);
		gpu_words(gpu, words);
		gpu_time_words(gpu, times);
		snprintf(
			line, sizeof(line), "%.64s%s%.40s>%.40s: %s; %s",
			with_peers ? fact_name(gpu, "peer") : "", with_peers ? ", " : "",
			fact_name(gpu, "device"), fact_name(gpu, "peer_device"), words, times
		);
		page_wrap(page, 2, 4, line);
	}
}

void gpus_print_devices(struct page *page, const json_t *gpus) {
	char line[LINE_BYTES];
	const json_t *gpu;
	size_t n;

	if (json_array_size(gpus) > 0)
		page_print(page, "\n");
	json_array_foreach(gpus, n, gpu) {
		const char *device = fact_name(gpu, "device"), *pci = fact_word(gpu, "pci");
		uint64_t ordinal = fact_number(gpu, "ordinal");

		if (fact_is(gpu, "state", "shown"))
			snprintf(
				line, sizeof(line),
				"%s: peers read memory of cuda:%" PRIu64 ", %s, through it", device,
				ordinal, pci[0] != '\0' ? pci : "PCI address unknown"
			);
		else if (fact_is(gpu, "state", "awaited"))
			snprintf(
				line, sizeof(line), "%s: waits for memory of cuda:%" PRIu64, device,
				ordinal
			);
		else
			snprintf(
				line, sizeof(line),
				"%s: memory of cuda:%" PRIu64 " is not exposed: %s", device,
				ordinal, fact_word(gpu, "reason")
			);
		page_wrap(page, 2, 4, line);
	}
}
