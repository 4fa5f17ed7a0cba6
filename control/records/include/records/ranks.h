// SPDX-License-Identifier: BSD-3-Clause
// WHY of a job or a communicator: one rank.
#pragma once

#include <lib/record.h>

struct rank_row {
	uint32_t rank;
	const char *node;
	uint32_t pid;
	const char *process;
	uint64_t launched, started, completed;
	uint64_t still_ns;
	uint64_t worked_ns;
	json_t *told;
	const char *doing; // NULL if unknown
	json_t *unread;
	json_t *cuda_dev, *nvml_dev;
	const char *gpu_from; // NULL if no source reports the GPU
};

extern const struct record rank_record;
