// SPDX-License-Identifier: BSD-3-Clause
// Allocates, fills and exports GPU memory for peers to read.
#include <dataplane/gpu_page.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Mapping unit of the driver: a block of this size shares no page with others.
#define BLOCK_BYTES (UINT64_C(2) << 20)

struct gpu_page {
	struct cuda *cuda;
	struct cuda_block block;
	struct gpu_page_facts facts;
};

int gpu_page_create(
	const struct gpu_page_config *config,
	char ret_reason[static CUDA_REASON_MAX + 1],
	struct gpu_page **ret_page
) {
	struct gpu_page *page = calloc(1, sizeof(*page));
	uint64_t unit = (uint64_t)sysconf(_SC_PAGESIZE);
	int err;

	if (page == NULL) {
		snprintf(ret_reason, CUDA_REASON_MAX + 1, "out of memory");
		return -ENOMEM;
	}
	page->facts = (struct gpu_page_facts){
		.ordinal = config->ordinal,
		.word = config->word,
		.fd = -1,
	};
	err = cuda_open(config->library, ret_reason, &page->cuda);
	if (err == 0)
		err = cuda_block_create(
			page->cuda, config->ordinal, BLOCK_BYTES, config->word, ret_reason,
			&page->block
		);
	if (err == 0) {
		// Only whole pages can be exported.
		page->facts.address = (page->block.address + unit - 1) / unit * unit;
		err = cuda_export_dmabuf(
			page->cuda, page->facts.address, GPU_PAGE_BYTES, ret_reason, &page->facts.fd
		);
	}
	if (err != 0) {
		gpu_page_destroy(page);
		return err;
	}
	if (cuda_device_pci_address(page->cuda, config->ordinal, page->facts.pci) != 0)
		page->facts.pci[0] = '\0';
	*ret_page = page;
	return 0;
}

struct gpu_page *gpu_page_destroy(struct gpu_page *page) {
	if (page == NULL)
		return NULL;
	if (page->facts.fd >= 0)
		close(page->facts.fd);
	if (page->cuda != NULL)
		cuda_block_destroy(page->cuda, &page->block);
	cuda_close(page->cuda);
	free(page);
	return NULL;
}

const struct gpu_page_facts *gpu_page_facts(const struct gpu_page *page) {
	return &page->facts;
}
