// SPDX-License-Identifier: BSD-3-Clause
// The fields of GPU memory in DEVICES, PAIRS, PATHS, PATH and WHY.
#include <records/gpus.h>

#define PAGE(...) RECORD_MEMBER(struct gpu_page_row, __VA_ARGS__)
#define READ(...) RECORD_MEMBER(struct gpu_read_row, __VA_ARGS__)
#define PLACE(...) RECORD_MEMBER(struct gpu_place_row, __VA_ARGS__)

static const struct record_field pages[] = {
	PAGE(ordinal, UNIT_NONE, "number of the GPU in CUDA"),
	PAGE(state, UNIT_NONE, "shown, awaited, missing or stuck"),
	PAGE(pci, UNIT_NONE, "PCI address, or \"\""),
	PAGE(reason, UNIT_NONE, "why peers cannot read it, or \"\""),
};

static const struct record_field page_places[] = {
	PLACE(device, UNIT_NONE, "device of this node through which peers read it"),
};

static const struct record_field reads[] = {
	READ(ordinal, UNIT_NONE, "number of the peer's GPU in CUDA"),
	READ(seen, UNIT_NONE, "unseen, good, slow, silent, refused or wrong"),
	READ(for_ns, UNIT_NANOSECONDS, "time for which it has been seen so"),
	READ(probes, UNIT_COUNT, "reads of its memory"),
	READ(silent, UNIT_COUNT, "reads without an answer"),
	READ(refused, UNIT_COUNT, "reads that the peer's device refused"),
	READ(wrong, UNIT_COUNT, "reads that returned another value"),
	READ(median_ns, UNIT_NANOSECONDS, "median latency of 8 bytes, or null"),
	READ(usual_ns, UNIT_NANOSECONDS, "usual median latency, or null"),
	READ(p99_ns, UNIT_NANOSECONDS, "99th percentile of the latency, or null"),
};

static const struct record_field read_places[] = {
	PLACE(peer, UNIT_NONE, "the node whose GPU it is"),
	PLACE(device, UNIT_NONE, "device of the node that reads"),
	PLACE(peer_device, UNIT_NONE, "device of the peer"),
};

const struct record gpu_page_record = RECORD("gpus", pages);
const struct record gpu_page_place_record = RECORD("gpus", page_places);
const struct record gpu_read_record = RECORD("gpus", reads);
const struct record gpu_read_place_record = RECORD("gpus", read_places);
