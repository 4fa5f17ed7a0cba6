// SPDX-License-Identifier: BSD-3-Clause
// Incremental parser of the JSON report of NCCL's own RAS: which process is which rank, on which
// GPU.
//
// Pure: bytes in, ranks out, no memory beyond the struct. Separators between values are not
// checked, because the report of NCCL 2.28 lacks commas. Unknown keys are skipped with their
// values.
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
	int16_t cuda_device, nvml_device; // -1: unknown
};

struct nccl_report {
	void (*on_rank)(void *ctx, const struct nccl_rank *rank);
	void *ctx;
	// Private.
	struct nccl_rank now;
	uint32_t seen; // SEEN_* bits of the fields found in `now`
	uint32_t depth;
	uint32_t squares; // one bit per depth whose bracket is an array
	bool in_ranks;	  // the array is "ranks", not "missing_ranks"
	bool in_string, escaped, in_word, is_over;
	size_t length; // bytes of `text`; a longer text is not kept
	char text[NCCL_REPORT_TEXT_BYTES], key[NCCL_REPORT_TEXT_BYTES];
};

void nccl_report_begin(
	struct nccl_report *report,
	void (*on_rank)(void *ctx, const struct nccl_rank *rank),
	void *ctx
);
// Parse the next bytes. Returns 0, or -EBADMSG if the bytes are no such report.
int nccl_report_feed(struct nccl_report *report, const char *bytes, size_t size);
// Return whether the whole report was parsed.
bool nccl_report_is_complete(const struct nccl_report *report);
