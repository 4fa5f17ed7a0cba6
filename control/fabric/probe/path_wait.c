// SPDX-License-Identifier: BSD-3-Clause
// Samples that were taken while this agent or the responder waited for a processor.
//
// Waiting can only delay an answer. So a slow sample is excluded if the known wait explains its
// delay beyond the baseline: it enters no window, no baseline and no run of slow reads. A quick
// sample counts, and so does one that is later than the wait explains. If more than half of the
// last samples are excluded, the latency of the path is not judged.
#include "path_inside.h"

// A mean wait of at least 1/8 of the timeout makes single waits of the whole timeout likely.
#define LOSS_WAIT_SHARE 8
#define SAMPLES_MIN 4  // fewest samples for a share
#define SAMPLES_MAX 16 // most samples for a share

bool path_sample_is_excluded(const struct path_memory *memory, const struct path_probe *probe) {
	// Without a baseline, the quickest read so far is the best guess.
	uint64_t usual_ns = memory->baseline_ns != 0 ? memory->baseline_ns : memory->quickest_ns;

	if (probe->wait_ns == 0 || usual_ns == 0)
		return false;
	return probe->latency_ns > path_slow_threshold_ns(memory, usual_ns) &&
	       probe->latency_ns - usual_ns <= probe->wait_ns;
}

bool path_loss_is_excluded(const struct path_probe *probe) {
	return !probe->answered && probe->wait_ns != 0 && probe->latency_ns != 0 &&
	       probe->wait_ns >= probe->latency_ns / LOSS_WAIT_SHARE;
}

void path_record_exclusion(
	struct path_memory *memory, const struct path_probe *probe, bool excluded
) {
	if (memory->quickest_ns == 0 || probe->latency_ns < memory->quickest_ns)
		memory->quickest_ns = probe->latency_ns;
	memory->exclusions = memory->exclusions << 1 | excluded;
	if (memory->exclusion_count < SAMPLES_MAX)
		memory->exclusion_count++;
	if (excluded)
		memory->excluded_ns = probe->latency_ns;
}

bool path_latency_is_unjudged(const struct path_memory *memory) {
	uint32_t count = memory->exclusion_count;
	uint32_t excluded = memory->exclusions & ((UINT32_C(1) << count) - 1);

	return count >= SAMPLES_MIN && 2 * (uint32_t)__builtin_popcount(excluded) > count;
}

void path_forget_slowness(struct path_memory *memory) {
	memory->degraded = false;
	memory->slow_windows = 0;
	memory->slow_run = 0;
}
