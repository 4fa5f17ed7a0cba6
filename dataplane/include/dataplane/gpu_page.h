// SPDX-License-Identifier: BSD-3-Clause
// A page in a GPU's memory for peers to read, exported as dmabuf for every device that is to lead
// there: what reads it crosses PCIe to the GPU.
//
// It holds the same word all over, so that whoever reads it sees whether it came from there. All
// calls enter the GPU's driver and may hang: on a keeper of its own, not on an RDMA device's.
#pragma once

#include <dataplane/cuda.h>

#include <stdint.h>

#define GPU_PAGE_BYTES 65536

struct gpu_page;

struct gpu_page_config {
	const char *library; // NULL: libcuda.so.1, wherever the system's loader finds it
	uint32_t ordinal;    // as CUDA counts
	uint64_t word;
};

// Constant.
struct gpu_page_facts {
	uint32_t ordinal;
	char pci[CUDA_PCI_BYTES]; // "" if it is not known
	uint64_t address;	  // of GPU_PAGE_BYTES
	uint64_t word;
	int fd; // of a dmabuf that begins there; the page's
};

// What cuda_open(), cuda_block_create() and cuda_export() say; -ENOMEM. All have a reason.
int gpu_page_create(
	const struct gpu_page_config *config,
	char ret_reason[static CUDA_REASON_MAX + 1],
	struct gpu_page **ret_page
);
// No device has it registered any more. NULL is fine.
struct gpu_page *gpu_page_destroy(struct gpu_page *page);
// Any thread.
const struct gpu_page_facts *gpu_page_facts(const struct gpu_page *page);
