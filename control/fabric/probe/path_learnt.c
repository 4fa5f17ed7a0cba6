// SPDX-License-Identifier: BSD-3-Clause
// Saved baseline of a path: export, import and expiry.
#include "path_inside.h"

static uint64_t age_ns(const struct path_memory *memory, uint64_t now_ns) {
	uint64_t since_ns = now_ns > memory->learnt_ns ? now_ns - memory->learnt_ns : 0;

	return memory->learnt_before_ns + since_ns;
}

bool path_baseline_is_outdated(const struct path_memory *memory, uint64_t now_ns) {
	return memory->baseline_ns != 0 && age_ns(memory, now_ns) > PATH_LEARNT_MAX_NS;
}

void path_forget_baseline(struct path_memory *memory) {
	memory->past_count = 0;
	memory->baseline_ns = memory->baseline_mad_ns = 0;
}

bool path_memory_get_learnt(
	const struct path_memory *memory, uint64_t now_ns, struct path_learnt *ret_learnt
) {
	uint32_t count = memory->past_count;

	if (memory->baseline_ns == 0)
		return false;
	*ret_learnt = (struct path_learnt){
		.baseline_ns = memory->baseline_ns,
		.baseline_mad_ns = memory->baseline_mad_ns,
		.windows = count < PATH_PAST_WINDOWS ? count : PATH_PAST_WINDOWS,
		.age_ns = age_ns(memory, now_ns),
	};
	return true;
}

static bool learnt_is_valid(const struct path_learnt *learnt) {
	return learnt->baseline_ns > 0 && learnt->baseline_ns < PATH_LATENCY_MAX_NS &&
	       learnt->baseline_mad_ns < PATH_LATENCY_MAX_NS &&
	       learnt->windows >= PATH_LEARN_WINDOWS && learnt->windows <= PATH_PAST_WINDOWS &&
	       learnt->age_ns <= PATH_LEARNT_MAX_NS;
}

bool path_memory_restore(
	struct path_memory *memory, uint64_t now_ns, const struct path_learnt *learnt
) {
	uint64_t middle_ns = learnt->baseline_ns, off_ns = learnt->baseline_mad_ns;
	const uint64_t medians[3] = {
		middle_ns + off_ns, middle_ns > off_ns ? middle_ns - off_ns : 1, middle_ns};

	if (memory->baseline_ns != 0 || !learnt_is_valid(learnt))
		return false;

	// Fill the window history so that median and MAD equal the saved ones: of three windows one
	// lies above the baseline, one below, one on it. New windows then move the baseline as
	// before the restart.
	for (uint32_t n = 0; n < learnt->windows; n++)
		memory->past[n] = medians[n % 3];
	memory->past_count = learnt->windows;
	memory->baseline_ns = learnt->baseline_ns;
	memory->baseline_mad_ns = learnt->baseline_mad_ns;
	memory->baseline_at_ns = memory->learnt_ns = now_ns;
	memory->learnt_before_ns = learnt->age_ns;
	return true;
}
