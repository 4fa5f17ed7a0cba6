// SPDX-License-Identifier: BSD-3-Clause
// Registrations: keys that never become valid again, memory and dmabufs, and access checks.
#include "fake_verbs_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_mr *fake_mr_find(const struct fake_device *device, uint32_t key) {
	uint32_t place = key >> 8;

	if (place == 0 || place >= device->private->mr_places)
		return NULL;
	if (device->private->mr_variants[place] != (uint8_t)key)
		return NULL;
	return device->private->mrs[place];
}

static uint32_t mr_place(struct fake_device_private *private) {
	uint32_t place = 1, places = private->mr_places;

	while (place < places && private->mrs[place] != NULL)
		place++;
	if (place < places)
		return place;
	places = places == 0 ? 16 : 2 * places;
	private->mrs = realloc(private->mrs, places * sizeof(struct fake_mr *));
	private->mr_variants = realloc(private->mr_variants, places);
	must(private->mrs != NULL && private->mr_variants != NULL);
	for (uint32_t n = private->mr_places; n < places; n++) {
		private->mrs[n] = NULL;
		private->mr_variants[n] = 0;
	}
	private->mr_places = places;
	return place;
}

static bool mr_is_sound(const struct fake_device *device, size_t length, int access) {
	bool written = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;

	return length > 0 && length <= device->attr.max_mr_size &&
	       (!written || (access & IBV_ACCESS_LOCAL_WRITE) != 0);
}

// Add a region. A key is a place plus a variant, so that the key of a removed region never matches.
static int mr_add(struct ibv_pd *pd, struct fake_mr *model, struct ibv_mr **ret_mr) {
	struct fake_device *device = fake_device_of(pd->context);
	struct fake_device_private *private = device->private;
	struct fake_mr *mr;
	uint32_t place;

	if (!mr_is_sound(device, model->verbs.length, model->access))
		return -EINVAL;
	if (fake_alive_of(pd->context)->mrs >= (uint32_t)device->attr.max_mr)
		return -ENOMEM;
	mr = malloc(sizeof(*mr));
	must(mr != NULL);
	*mr = *model;
	place = mr_place(private);
	private->mrs[place] = mr;
	mr->verbs.context = pd->context;
	mr->verbs.pd = pd;
	mr->verbs.handle = place;
	mr->verbs.lkey = place << 8 | ++private->mr_variants[place];
	mr->verbs.rkey = mr->verbs.lkey | FAKE_RKEY;
	container_of(pd, struct fake_pd, verbs)->users++;
	fake_context_of(pd->context)->objects++;
	fake_alive_of(pd->context)->mrs++;
	*ret_mr = &mr->verbs;
	return 0;
}

int fake_reg_mr(
	struct ibv_pd *pd, void *address, size_t length, int access, struct ibv_mr **ret_mr
) {
	struct fake_mr model = {
		.verbs = {.addr = address, .length = length},
		.iova = (uintptr_t)address,
		.bytes = address,
		.access = access,
	};
	int err = fake_enter_on(FAKE_REG_MR, pd->context);

	if (err != 0)
		return err;
	if ((uintptr_t)address + length < (uintptr_t)address)
		return fake_leave(-EINVAL);
	return fake_leave(mr_add(pd, &model, ret_mr));
}

// Map a dmabuf. The descriptor must be mappable, and its file position is the start of the memory.
static int dmabuf_map(const struct verbs_dmabuf *dmabuf, struct fake_mr *model) {
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	off_t begin = lseek(dmabuf->fd, 0, SEEK_CUR);
	uint64_t from, slack;
	uint8_t *mapping;

	if (begin < 0)
		return -EBADF;
	from = (uint64_t)begin + dmabuf->offset;
	slack = from % page;
	mapping =
		mmap(NULL, dmabuf->length + slack, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf->fd,
		     (off_t)(from - slack));
	if (mapping == MAP_FAILED)
		return -EINVAL;
	model->mapping = mapping;
	model->mapping_length = dmabuf->length + slack;
	model->bytes = mapping + slack;
	return 0;
}

int fake_reg_dmabuf_mr(
	struct ibv_pd *pd, const struct verbs_dmabuf *dmabuf, int access, struct ibv_mr **ret_mr
) {
	struct fake_mr model = {
		.verbs = {.addr = fake_pointer(dmabuf->offset), .length = dmabuf->length},
		.iova = dmabuf->iova,
		.access = access,
	};
	int err = fake_enter_on(FAKE_REG_DMABUF_MR, pd->context);

	if (err != 0)
		return err;
	if (fake_device_of(pd->context)->no_dmabuf)
		return fake_leave(-EOPNOTSUPP);
	// As the kernel requires: both addresses have the same offset in their page.
	if (dmabuf->length == 0 || (dmabuf->offset ^ dmabuf->iova) % 4096 != 0)
		return fake_leave(-EINVAL);
	err = dmabuf_map(dmabuf, &model);
	if (err != 0)
		return fake_leave(err);
	err = mr_add(pd, &model, ret_mr);
	if (err != 0)
		munmap(model.mapping, model.mapping_length);
	return fake_leave(err);
}

static bool sge_has_key(const struct ibv_sge *sge, int count, uint32_t key) {
	for (int n = 0; n < count; n++) {
		if (sge[n].lkey == key && sge[n].length > 0)
			return true;
	}
	return false;
}

static bool qp_may_reach(const struct fake_qp *qp, uint32_t key) {
	for (uint32_t n = qp->sends_done; n != qp->sends_posted; n++) {
		const struct fake_send *send = &qp->sends[n % qp->init.cap.max_send_wr];

		if ((send->wr.send_flags & IBV_SEND_INLINE) == 0 &&
		    sge_has_key(send->sge, send->wr.num_sge, key))
			return true;
	}
	for (uint32_t n = qp->receives_done; n != qp->receives_posted; n++) {
		const struct fake_receive *receive = &qp->receives[n % qp->init.cap.max_recv_wr];

		if (sge_has_key(receive->sge, receive->num_sge, key))
			return true;
	}
	return false;
}

int fake_dereg_mr(struct ibv_mr *verbs) {
	struct fake_mr *mr = container_of(verbs, struct fake_mr, verbs);
	struct fake_device_private *private = fake_device_of(verbs->context)->private;
	int err = fake_enter_on(FAKE_DEREG_MR, verbs->context);

	if (err != 0)
		return err;
	for (uint32_t n = 0; n < private->qp_places; n++) {
		const struct fake_qp *qp = private->qps[n];

		if (qp != NULL && qp->verbs.pd == verbs->pd && qp_may_reach(qp, verbs->lkey))
			fake_break(
				"key 0x%x was deregistered while a work request of queue pair %u "
				"may reach it",
				verbs->lkey, qp->verbs.qp_num
			);
	}
	private->mrs[verbs->handle] = NULL;
	fake_alive_of(verbs->context)->mrs--;
	container_of(verbs->pd, struct fake_pd, verbs)->users--;
	fake_context_of(verbs->context)->objects--;
	if (mr->mapping != NULL)
		munmap(mr->mapping, mr->mapping_length);
	free(mr);
	return fake_leave(0);
}
