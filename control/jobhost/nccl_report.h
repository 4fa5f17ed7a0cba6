// SPDX-License-Identifier: BSD-3-Clause
// The JSON report of NCCL's own RAS, as it comes: which process is which rank, on which GPU.
//
// Pure: bytes in, ranks out, no memory beyond the struct. What stands between values is not judged,
// so that 2.28's report, which lacks commas, is read as well. Names that are not known are passed
// over with what they hold.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_REPORT_TEXT_BYTES 48
#define NCCL_REPORT_DEPTH_MAX 12

struct nccl_rank {
	uint64_t comm_hash;
	uint32_t size, rank;
	int32_t pid;
	int16_t cuda_device, nvml_device; // -1 unknown
};

struct nccl_report {
	void (*on_rank)(void *ctx, const struct nccl_rank *rank);
	void *ctx;
	// Private.
	struct nccl_rank now;
	uint32_t seen; // of its fields
	uint32_t depth;
	uint32_t squares; // a bit for each depth that is an array
	bool in_ranks;	  // not missing_ranks
	bool in_string, escaped, in_word, is_over;
	size_t length; // of text; more than fits: not kept
	char text[NCCL_REPORT_TEXT_BYTES], key[NCCL_REPORT_TEXT_BYTES];
};

void nccl_report_begin(
	struct nccl_report *report,
	void (*on_rank)(void *ctx, const struct nccl_rank *rank),
	void *ctx
);
// -EBADMSG: that is no such report.
int nccl_report_take(struct nccl_report *report, const char *bytes, size_t size);
// Whether the whole report was there.
bool nccl_report_is_over(const struct nccl_report *report);
