// SPDX-License-Identifier: BSD-3-Clause
// Protection domains and memory regions. Cold.
//
// A NIC pins registered memory and so finds out whether it is mapped; here the pages are populated
// instead. As with a NIC, a program must not unmap memory that is registered or in use.
#include "nic/region.h"
#include "transport/verbs_limits.h"
#include "verbs/verbs_soft.h"

#include <lib/error.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define PAGES_AT_ONCE 4096

#define ACCESS_REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
// Access flags, plus flags without effect here: hints, and orders that are always kept.
#define ACCESS_KNOWN                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | ACCESS_REMOTE_CHANGES | \
	 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

int soft_alloc_pd(struct ibv_context *context, struct ibv_pd **ret_pd) {
	struct soft_nic *nic = nic_of(context);
	struct soft_pd *pd = calloc(1, sizeof(*pd));
	int err = -ENOMEM;

	if (pd == NULL)
		return -ENOMEM;
	pd->verbs.context = context;
	nic_lock(nic);
	if (nic->count.pds < LIMIT_PDS) {
		nic->count.pds++;
		soft_context_of(context)->objects++;
		err = 0;
	}
	nic_unlock(nic);
	if (err == 0)
		*ret_pd = &pd->verbs;
	else
		free(pd);
	return err;
}

int soft_dealloc_pd(struct ibv_pd *verbs) {
	struct soft_nic *nic = nic_of(verbs->context);
	struct soft_pd *pd = soft_pd_of(verbs);
	int err = -EBUSY;

	nic_lock(nic);
	if (pd->users == 0) {
		nic->count.pds--;
		soft_context_of(verbs->context)->objects--;
		err = 0;
	}
	nic_unlock(nic);
	if (err == 0)
		free(pd);
	return err;
}

// Populate the pages. Returns -EFAULT if they are unmapped, are not memory, or are read-only for a
// writable region.
static int pages_populate(uint8_t *address, size_t length, int access) {
	int advice =
		(access & IBV_ACCESS_LOCAL_WRITE) != 0 ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)address & (page - 1);
	size_t bytes = (before + length + page - 1) & ~(page - 1);

	// Kernels before 5.14 reject the advice even for zero bytes. There, check that the pages
	// are mapped, not that they are writable.
	if (madvise(NULL, 0, advice) != 0) {
		unsigned char in_core[PAGES_AT_ONCE];

		for (size_t done = 0; done < bytes; done += PAGES_AT_ONCE * page) {
			size_t size = bytes - done;

			if (size > PAGES_AT_ONCE * page)
				size = PAGES_AT_ONCE * page;
			if (mincore(address - before + done, size, in_core) != 0)
				return -EFAULT;
		}
		return 0;
	}
	while (madvise(address - before, bytes, advice) != 0) {
		if (errno == EINVAL || errno == ENOMEM || errno == EFAULT)
			return -EFAULT;
		if (errno != EINTR && errno != EAGAIN)
			return neg_errno();
	}
	return 0;
}

static bool range_is_valid(uint64_t first, size_t length) {
	return length > 0 && length <= LIMIT_MR_BYTES && first <= UINT64_MAX - (length - 1);
}

// The specification requires local write access with remote write and atomic access.
static int access_check(int access) {
	if ((access & ~ACCESS_KNOWN) != 0)
		return -EOPNOTSUPP;
	if ((access & ACCESS_REMOTE_CHANGES) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
		return -EINVAL;
	return 0;
}

// Create a region; on success it owns the mapping, if any.
static int region_create(struct ibv_pd *pd, const struct soft_mr *facts, struct ibv_mr **ret_mr) {
	struct soft_context *context = soft_context_of(pd->context);
	struct soft_nic *nic = context->nic;
	struct soft_mr *mr = malloc(sizeof(*mr));
	int err = -ENOMEM;

	if (mr == NULL)
		return -ENOMEM;
	*mr = *facts;
	mr->nic = nic;
	mr->verbs.context = pd->context;
	mr->verbs.pd = pd;
	mr->verbs.addr = mr->bytes;
	mr->verbs.length = mr->length;
	nic_lock(nic);
	if (nic->count.mrs < LIMIT_MRS)
		err = region_add(nic, mr);
	if (err == 0) {
		nic->count.mrs++;
		soft_pd_of(pd)->users++;
		context->objects++;
	}
	nic_unlock(nic);
	if (err == 0)
		*ret_mr = &mr->verbs;
	else
		free(mr);
	return err;
}

int soft_reg_mr_iova(
	struct ibv_pd *pd,
	void *address,
	size_t length,
	uint64_t iova,
	int access,
	struct ibv_mr **ret_mr
) {
	const struct soft_mr facts = {
		.iova = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova,
		.bytes = address,
		.length = length,
		.access = access,
	};
	int err = access_check(access);

	if (err != 0)
		return err;
	if (!range_is_valid((uintptr_t)address, length) || !range_is_valid(facts.iova, length))
		return -EINVAL;
	err = pages_populate(address, length, access);
	return err != 0 ? err : region_create(pd, &facts, ret_mr);
}

int soft_reg_mr(
	struct ibv_pd *pd, void *address, size_t length, int access, struct ibv_mr **ret_mr
) {
	return soft_reg_mr_iova(pd, address, length, (uintptr_t)address, access, ret_mr);
}

int soft_reg_dmabuf_mr(
	struct ibv_pd *pd, const struct verbs_dmabuf *dmabuf, int access, struct ibv_mr **ret_mr
) {
	int protection = PROT_READ | ((access & IBV_ACCESS_LOCAL_WRITE) != 0 ? PROT_WRITE : 0);
	size_t before = dmabuf->offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	struct soft_mr facts = {
		.iova = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : dmabuf->iova,
		.length = dmabuf->length,
		.access = access,
		.mapping_length = before + dmabuf->length,
	};
	off_t size;
	int err = access_check(access);

	if (err != 0)
		return err;
	if (!range_is_valid(dmabuf->iova, dmabuf->length) ||
	    !range_is_valid(dmabuf->offset, dmabuf->length))
		return -EINVAL;
	// A dmabuf's size is its end offset; one without a size could not be mapped either.
	size = lseek(dmabuf->fd, 0, SEEK_END);
	if (size < 0)
		return neg_errno();
	if (dmabuf->offset > (uint64_t)size || dmabuf->length > (uint64_t)size - dmabuf->offset)
		return -EINVAL;
	facts.mapping =
		mmap(NULL, facts.mapping_length, protection, MAP_SHARED, dmabuf->fd,
		     (off_t)(dmabuf->offset - before));
	if (facts.mapping == MAP_FAILED)
		return neg_errno();
	facts.bytes = (uint8_t *)facts.mapping + before;
	err = region_create(pd, &facts, ret_mr);
	if (err != 0)
		munmap(facts.mapping, facts.mapping_length);
	return err;
}

// Requests that use the region fail when they look up its key.
int soft_dereg_mr(struct ibv_mr *verbs) {
	struct soft_nic *nic = nic_of(verbs->context);
	struct soft_mr *mr = soft_mr_of(verbs);

	nic_lock(nic);
	region_remove(nic, mr);
	nic->count.mrs--;
	soft_pd_of(verbs->pd)->users--;
	soft_context_of(verbs->context)->objects--;
	nic_unlock(nic);
	if (mr->mapping != NULL)
		munmap(mr->mapping, mr->mapping_length);
	free(mr);
	return 0;
}
