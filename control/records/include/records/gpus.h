// SPDX-License-Identifier: BSD-3-Clause
// GPU memory that peers read: pages that this node offers, and reads of other nodes' pages.
#pragma once

#include <lib/record.h>

struct gpu_page_row {
	uint32_t ordinal;
	const char *state, *pci, *reason;
};

struct gpu_read_row {
	uint32_t ordinal;
	const char *seen;
	uint64_t for_ns, probes;
	uint64_t silent, refused, wrong;
	uint64_t median_ns, usual_ns, p99_ns;
};

struct gpu_place_row {
	const char *peer, *device, *peer_device; // a page has a device only
};

// The records of places extend a page or read in an array of GPUs.
extern const struct record gpu_page_record, gpu_page_place_record;
extern const struct record gpu_read_record, gpu_read_place_record;
