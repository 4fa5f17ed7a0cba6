// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes communicators: untrusted payloads are merged, judged and described.
#include <lib/must.h>
#include <ras/payload.h>
#include <support/fuzz.h>
#include <support/heap.h>
#include <support/job_model.h>

#include <jobs/judge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ras_memory memory = HEAP_MEMORY(NULL);

static void node_name(void *ctx, uint64_t node, char *text, uint32_t size) {
	(void)ctx;
	snprintf(text, size, "#%llx", (unsigned long long)node);
}

static bool is_dead(void *ctx, uint64_t node) {
	(void)ctx;
	return node == 1;
}

static void judge(const struct ras_comms *comms, uint32_t count, struct jobs_wait_history *book) {
	struct ras_merged_comm *merged = calloc(count + 1, sizeof(*merged));
	struct jobs_finding *findings = calloc(count + 1, sizeof(*findings));
	const struct jobs_pair pair = {.node = 1, .peer = 2, .words = "a path"};
	const struct jobs_name_resolver words = {.node_name = node_name};
	const struct jobs_snapshot look = {
		.comms = merged,
		.comm_count = count,
		.pairs = &pair,
		.pair_count = 1,
		.is_dead = is_dead,
		.book = book,
		.memory = &memory,
	};
	char text[JOBS_SENTENCE_BYTES];

	for (uint32_t n = 0; n < count; n++) {
		ras_comms_at(comms, n, &merged[n]);
		jobs_wait_history_add(book, &merged[n]);
	}
	if (jobs_judge(&look, findings) == 0) {
		for (uint32_t n = 0; n < count; n++) {
			must(findings[n].chain_count <= JOBS_CHAIN_MAX);
			jobs_describe_finding(&look, n, &findings[n], &words, text);
			must(strlen(text) < sizeof(text));
		}
	}
	free(merged);
	free(findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct ras_collected_part part = {.payload = data, .size = size};
	struct ras_comms *comms;
	struct jobs_wait_history *book;

	if (ras_comms_create(&memory, &comms) != 0)
		return 0;
	if (jobs_wait_history_create(&memory, &book) == 0) {
		for (part.node = 1; part.node <= 2; part.node++) {
			(void)ras_comms_add(comms, &part);
			judge(comms, ras_comms_settle(comms), book);
		}
		jobs_wait_history_destroy(book);
	}
	ras_comms_destroy(comms);
	return 0;
}
