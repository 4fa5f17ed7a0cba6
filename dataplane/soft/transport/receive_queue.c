// SPDX-License-Identifier: BSD-3-Clause
// The ring of waiting receives. Used under the device's lock; owns works and pieces.
#include "transport/receive_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX (UINT64_C(1) << 31)

int receive_queue_init(struct receive_queue *queue, uint32_t capacity, uint32_t sge_max) {
	*queue = (struct receive_queue){.sge_max = sge_max};
	if (capacity == 0)
		return 0;
	// head and tail wrap at 2^32, so the ring size must be a power of two.
	queue->capacity = 1;
	while (queue->capacity < capacity)
		queue->capacity *= 2;
	queue->works = calloc(queue->capacity, sizeof(*queue->works));
	if (sge_max > 0)
		queue->sges = calloc((size_t)queue->capacity * sge_max, sizeof(*queue->sges));
	if (queue->works != NULL && (sge_max == 0 || queue->sges != NULL))
		return 0;
	receive_queue_fini(queue);
	return -ENOMEM;
}

void receive_queue_fini(struct receive_queue *queue) {
	free(queue->works);
	free(queue->sges);
	*queue = (struct receive_queue){0};
}

static struct ibv_sge *receive_sges_at(const struct receive_queue *queue, uint32_t place) {
	return queue->sges + (size_t)place * queue->sge_max;
}

int receive_queue_post(struct receive_queue *queue, const struct ibv_recv_wr *wr) {
	uint32_t place = queue->tail & (queue->capacity - 1);
	uint64_t length = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->sge_max)
		return -EINVAL;
	for (int n = 0; n < wr->num_sge; n++)
		length += wr->sg_list[n].length;
	if (length > LENGTH_MAX)
		return -EINVAL;
	if (receive_queue_count(queue) == queue->capacity)
		return -ENOMEM;
	queue->works[place] = (struct receive_work){
		.wr_id = wr->wr_id,
		.sge_count = (uint32_t)wr->num_sge,
		.length = (uint32_t)length,
	};
	if (wr->num_sge > 0)
		memcpy(receive_sges_at(queue, place), wr->sg_list,
		       (size_t)wr->num_sge * sizeof(*wr->sg_list));
	queue->tail++;
	return 0;
}

bool receive_queue_pop(
	struct receive_queue *queue, struct receive_work *ret_work, struct ibv_sge *sges
) {
	uint32_t place = queue->head & (queue->capacity - 1);

	if (receive_queue_count(queue) == 0)
		return false;
	*ret_work = queue->works[place];
	if (ret_work->sge_count > 0)
		memcpy(sges, receive_sges_at(queue, place), ret_work->sge_count * sizeof(*sges));
	queue->head++;
	return true;
}
