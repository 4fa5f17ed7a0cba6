// SPDX-License-Identifier: BSD-3-Clause
// A page in GPU memory that peers read. It is exported as dmabuf for each device that serves it, so
// each read crosses PCIe to the GPU.
//
// The whole page holds one repeated word, so that a reader can verify the source of its data. All
// calls enter the GPU's driver and may hang. They run on a keeper of their own, not on that of an
// RDMA device.
#pragma once

#include <dataplane/cuda.h>

#include <stdint.h>

#define GPU_PAGE_BYTES 65536

struct gpu_page;

struct gpu_page_config {
	const char *library; // NULL: libcuda.so.1, as the system's loader finds it
	uint32_t ordinal;    // CUDA's device number
	uint64_t word;
};

// Constant facts of a page.
struct gpu_page_facts {
	uint32_t ordinal;
	char pci[CUDA_PCI_BYTES]; // "": unknown
	uint64_t address;	  // start of GPU_PAGE_BYTES bytes
	uint64_t word;
	int fd; // dmabuf that begins at address; the page owns it
};

// Create a page. Returns 0, -ENOMEM, or the error of cuda_open(), cuda_block_create() or
// cuda_export_dmabuf(). ret_reason explains each error.
int gpu_page_create(
	const struct gpu_page_config *config,
	char ret_reason[static CUDA_REASON_MAX + 1],
	struct gpu_page **ret_page
);
// Destroy the page, which no device has registered any more. NULL is fine.
struct gpu_page *gpu_page_destroy(struct gpu_page *page);
// May be called on any thread.
const struct gpu_page_facts *gpu_page_facts(const struct gpu_page *page);
