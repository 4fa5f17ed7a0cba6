// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes merging of collected parts. The first byte selects the kind.
#include <lib/must.h>
#include <ras/payload.h>
#include <support/fuzz.h>
#include <support/heap.h>

static const struct ras_memory memory = HEAP_MEMORY(NULL);

static void merge_conns(const struct ras_collected_part *part) {
	struct ras_conns conns = {0};

	if (ras_conns_add(&conns, part) == 0 && conns.all.samples > 0)
		must(conns.all.min_ns <= conns.all.mean_ns && conns.all.mean_ns <= conns.all.max_ns
		);
}

static void merge_comms(const struct ras_collected_part *part) {
	struct ras_merged_comm comm;
	struct ras_comms *comms;
	uint32_t count;

	if (ras_comms_create(&memory, &comms) != 0)
		return;
	(void)ras_comms_add(comms, part);
	(void)ras_comms_add(comms, part);
	count = ras_comms_settle(comms);
	for (uint32_t n = 0; n < count; n++) {
		ras_comms_at(comms, n, &comm);
		must(comm.rank_count + comm.missing_count <= comm.size);
	}
	ras_comms_destroy(comms);
}

static void merge_paths(const struct ras_collected_part *part) {
	struct ras_paths *paths;
	uint32_t count;

	if (ras_paths_create(&memory, &paths) != 0)
		return;
	(void)ras_paths_add(paths, part);
	count = ras_paths_settle(paths);
	(void)ras_paths_add(paths, part);
	must(ras_paths_settle(paths) == count);
	ras_paths_destroy(paths);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static void (*const merges[])(const struct ras_collected_part *part
	) = {merge_conns, merge_comms, merge_paths};
	struct ras_collected_part part = {.node = 1};

	if (size == 0)
		return 0;
	part.payload = data + 1;
	part.size = size - 1;
	merges[data[0] % 3](&part);
	return 0;
}
