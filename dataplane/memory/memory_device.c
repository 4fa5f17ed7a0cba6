// SPDX-License-Identifier: BSD-3-Clause
// Registers GPU memory by the methods listed in <dataplane/memory.h>, in order.
#include "memory/memory_impl.h"

#include <dataplane/memory.h>
#include <lib/scoped.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Mapping unit of the driver; pieces of an allocation are multiples of it.
#define DEVICE_PAGE_BYTES (UINT64_C(2) << 20)

static uint64_t round_down(uint64_t value, uint64_t unit) {
	return value - value % unit;
}

// Export the pages that the source touches; *ret_offset is its first byte within them.
static int export_pages(
	const struct cuda *cuda,
	const struct memory_source *source,
	struct memory_reason *reason,
	uint64_t *ret_offset,
	int *ret_fd
) {
	uint64_t page = memory_page_bytes();
	uint64_t begin = round_down(source->address, page);
	uint64_t end = source->address + source->length;
	char said[CUDA_REASON_MAX + 1] = "";
	int err;

	if (end > UINT64_MAX - page)
		return -EINVAL;
	end = round_down(end + page - 1, page);
	err = cuda_export_dmabuf(cuda, begin, end - begin, said, ret_fd);
	if (err != 0) {
		memory_reason_add_clause(
			reason, "%s: %s", source->what,
			said[0] != '\0' ? said : "no file descriptor"
		);
		return err;
	}
	*ret_offset = source->address - begin;
	return 0;
}

// Register a dmabuf. The registration holds the memory, so the descriptor is closed afterwards.
static int register_dmabuf(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_source *source,
	struct memory_reason *reason,
	struct memory_region **ret_region
) {
	scoped_fd int fd = -1;
	int err = export_pages(registry->config.cuda, source, reason, &source->offset, &fd);

	if (err != 0)
		return err;
	source->fd = fd;
	return memory_region_add(registry, wanted, source, reason, ret_region);
}

// Select the whole allocation, or the piece that contains the range if the whole is too large for a
// region.
static int select_allocation_piece(
	const struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_source *source,
	struct memory_reason *reason
) {
	uint64_t piece = round_down(registry->config.region_bytes_max, DEVICE_PAGE_BYTES);
	uint64_t offset = wanted->address - source->address;

	if (source->length <= registry->config.region_bytes_max)
		return 0;
	if (piece == 0 || offset / piece != (offset + wanted->length - 1) / piece) {
		memory_reason_add_clause(
			reason, "%s: %llu bytes exceed the largest region", source->what,
			(unsigned long long)source->length
		);
		return -EFBIG;
	}
	offset = round_down(offset, piece);
	source->address += offset;
	source->length = source->length - offset < piece ? source->length - offset : piece;
	return 0;
}

static int register_allocation(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_reason *reason,
	struct memory_region **ret_region
) {
	struct memory_source source = {.what = "whole allocation"};
	char said[CUDA_REASON_MAX + 1] = "";
	int err;

	err = cuda_allocation_range(
		registry->config.cuda, wanted->address, said, &source.address, &source.length
	);
	if (err != 0) {
		memory_reason_add_clause(reason, "%s: %s", source.what, said);
		return err;
	}
	// Memory mapped from several allocations: the range may extend beyond this one.
	if (wanted->address < source.address || wanted->address - source.address > source.length ||
	    wanted->length > source.length - (wanted->address - source.address)) {
		memory_reason_add_clause(reason, "%s: the range extends beyond it", source.what);
		return -ERANGE;
	}
	err = select_allocation_piece(registry, wanted, &source, reason);
	if (err != 0)
		return err;
	return register_dmabuf(registry, wanted, &source, reason, ret_region);
}

// Return true if /proc/modules has a line that begins with the name and a space.
static bool module_is_loaded(const char *path, const char *name) {
	scoped_file FILE *file = fopen(path, "re");
	scoped_mem char *line = NULL;
	size_t size = 0, length = strlen(name);

	if (file == NULL)
		return false;
	while (getline(&line, &size, file) >= 0) {
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return true;
	}
	return false;
}

static int register_by_peermem(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_reason *reason,
	struct memory_region **ret_region
) {
	struct memory_source source = {
		.address = wanted->address,
		.length = wanted->length,
		.fd = -1,
		.what = "peer memory",
	};

	if (!module_is_loaded(registry->config.modules_path, "nvidia_peermem")) {
		memory_reason_add_clause(
			reason,
			"%s: the kernel module nvidia_peermem is not loaded: it is not in %s",
			source.what, registry->config.modules_path
		);
		return -EOPNOTSUPP;
	}
	return memory_region_add(registry, wanted, &source, reason, ret_region);
}

int memory_register_device(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_reason *reason,
	struct memory_region **ret_region
) {
	struct memory_source source = {
		.address = wanted->address,
		.length = wanted->length,
		.what = "dmabuf of the range"};

	if ((wanted->access & MEMORY_UNSHARED) == 0 &&
	    register_allocation(registry, wanted, reason, ret_region) == 0)
		return 0;
	if (register_dmabuf(registry, wanted, &source, reason, ret_region) == 0)
		return 0;
	return register_by_peermem(registry, wanted, reason, ret_region);
}

struct memory_location memory_location(const struct cuda *cuda, uint64_t address) {
	struct memory_location place = {.kind = MEMORY_HOST};
	struct cuda_memory_info memory;

	if (cuda == NULL || cuda_memory_info(cuda, address, &memory) != 0 ||
	    (!memory.device && !memory.managed))
		return place;
	place.kind = memory.managed ? MEMORY_MANAGED : MEMORY_DEVICE;
	if (memory.ordinal < 0)
		return place;
	place.ordinal = (uint32_t)memory.ordinal;
	if (cuda_device_pci_address(cuda, place.ordinal, place.pci) != 0)
		place.pci[0] = '\0';
	return place;
}
