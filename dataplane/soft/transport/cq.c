// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: rings, armed for one event at a time. Used under the device's lock.
#include "transport/cq.h"

#include "transport/verbs_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint32_t cq_count(const struct soft_cq *cq) {
	return cq->tail - cq->head;
}

static struct soft_completion *cq_entry(const struct soft_cq *cq, uint32_t n) {
	return &cq->entries[n & (cq->capacity - 1)];
}

// Return the ring size; 0: out of range.
static uint32_t cq_capacity_for(uint32_t entries) {
	uint32_t capacity = 1;

	if (entries == 0 || entries > LIMIT_CQ_ENTRIES)
		return 0;
	while (capacity < entries)
		capacity *= 2;
	return capacity;
}

int cq_create(
	struct soft_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct soft_cq **ret_cq
) {
	struct soft_nic *nic = context->nic;
	uint32_t capacity = cq_capacity_for(entries);
	struct soft_cq *cq;

	if (capacity == 0 || (channel != NULL && channel->context != &context->verbs.context))
		return -EINVAL;
	if (nic->count.cqs >= LIMIT_CQS)
		return -ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return -ENOMEM;
	cq->entries = calloc(capacity, sizeof(struct soft_completion));
	if (cq->entries == NULL) {
		free(cq);
		return -ENOMEM;
	}
	cq->nic = nic;
	cq->capacity = capacity;
	cq->verbs.context = &context->verbs.context;
	cq->verbs.channel = channel;
	cq->verbs.cqe = (int)capacity;
	pthread_mutex_init(&cq->verbs.mutex, NULL);
	pthread_cond_init(&cq->verbs.cond, NULL);
	pthread_mutex_init(&cq->polling, NULL);
	if (channel != NULL)
		channel->refcnt++;
	nic->count.cqs++;
	context->objects++;
	*ret_cq = cq;
	return 0;
}

// No queue pair completes into the queue any more; only events held by the program delay its end.
int cq_destroy(struct soft_cq *cq) {
	struct soft_context *context = soft_context_of(cq->verbs.context);

	if (cq->users > 0)
		return -EBUSY;
	cq->armed = cq->armed_solicited = false;
	if (cq->verbs.channel != NULL) {
		struct soft_cq **place = &soft_channel_of(cq->verbs.channel)->ready;

		// Remove the queue and its waiting events from the channel.
		while (*place != NULL && *place != cq)
			place = &(*place)->next_ready;
		if (*place != NULL) {
			*place = cq->next_ready;
			event_fd_withdraw(cq->verbs.channel->fd, cq->events_waiting);
		}
	}
	async_settle_events(context, cq, &cq->async_taken);
	while (cq->events_taken > 0)
		nic_wait_acked(cq->nic);
	if (cq->verbs.channel != NULL)
		cq->verbs.channel->refcnt--;
	cq->nic->count.cqs--;
	context->objects--;
	pthread_mutex_destroy(&cq->polling);
	pthread_cond_destroy(&cq->verbs.cond);
	pthread_mutex_destroy(&cq->verbs.mutex);
	free(cq->entries);
	free(cq);
	return 0;
}

int cq_resize(struct soft_cq *cq, uint32_t entries) {
	uint32_t capacity = cq_capacity_for(entries), count = cq_count(cq);
	struct soft_completion *moved;

	if (capacity == 0 || capacity < count)
		return -EINVAL;
	moved = calloc(capacity, sizeof(struct soft_completion));
	if (moved == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < count; n++)
		moved[n] = *cq_entry(cq, cq->head + n);
	free(cq->entries);
	cq->entries = moved;
	cq->capacity = capacity;
	cq->head = 0;
	cq->tail = count;
	cq->verbs.cqe = (int)capacity;
	return 0;
}

static void cq_raise_event(struct soft_cq *cq) {
	struct soft_channel *channel;
	struct soft_cq **place;

	cq->armed = cq->armed_solicited = false;
	if (cq->verbs.channel == NULL)
		return;
	channel = soft_channel_of(cq->verbs.channel);
	if (cq->events_waiting++ == 0) {
		cq->next_ready = NULL;
		place = &channel->ready;
		while (*place != NULL)
			place = &(*place)->next_ready;
		*place = cq;
	}
	event_fd_signal(channel->verbs.fd);
}

// Read the clocks now: one turn may take a batch of frames, so its time is too coarse.
static struct soft_stamp cq_stamp_now(const struct soft_cq *cq) {
	struct soft_stamp stamp = {.raw_ns = 0};
	struct timespec now;

	if ((cq->stamps & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0)
		stamp.raw_ns = clock_now_ns(cq->nic->clock);
	if ((cq->stamps & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		stamp.wall_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
	}
	return stamp;
}

void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited) {
	struct soft_completion *entry;

	if (cq->overrun || cq_count(cq) == cq->capacity) {
		// The caller is processing a queue pair, so the queue pairs of this queue go to ERR
		// later, at the end of the turn.
		if (!cq->overrun) {
			const struct ibv_async_event event = {
				.element.cq = &cq->verbs,
				.event_type = IBV_EVENT_CQ_ERR,
			};

			cq->overrun = true;
			async_raise_event(soft_context_of(cq->verbs.context), &event);
		}
		cq->nic->cq_overran = true;
		return;
	}
	entry = cq_entry(cq, cq->tail++);
	entry->wc = *wc;
	if (cq->stamps != 0)
		entry->stamp = cq_stamp_now(cq);
	solicited = solicited || wc->status != IBV_WC_SUCCESS;
	if (cq->armed || (cq->armed_solicited && solicited)) {
		cq_raise_event(cq);
	} else {
		cq->untold = true;
		cq->eventless_solicited |= solicited;
	}
}

uint32_t
cq_pop(struct soft_cq *cq, struct ibv_wc *ret_wcs, struct soft_stamp *ret_stamps, uint32_t max) {
	uint32_t count = cq_count(cq) < max ? cq_count(cq) : max;

	for (uint32_t n = 0; n < count; n++) {
		const struct soft_completion *entry = cq_entry(cq, cq->head++);

		ret_wcs[n] = entry->wc;
		if (ret_stamps != NULL)
			ret_stamps[n] = entry->stamp;
	}
	// Restart at the front. A program that polls in time then uses only a few entries. The
	// other pages of a large ring are never touched.
	if (cq->head == cq->tail) {
		cq->head = cq->tail = 0;
		cq->untold = cq->eventless_solicited = false;
	}
	return count;
}

// A queue armed for any completion stays so, even if armed again for solicited ones.
void cq_arm(struct soft_cq *cq, bool solicited_only) {
	if (solicited_only)
		cq->armed_solicited = true;
	else
		cq->armed = true;
	if (cq_count(cq) > 0 && cq->events_waiting == 0 &&
	    (cq->armed ? cq->untold : cq->eventless_solicited))
		cq_raise_event(cq);
}

void cq_remove_completions(struct soft_cq *cq, uint32_t qp_number) {
	uint32_t kept = cq->head;

	for (uint32_t n = cq->head; n != cq->tail; n++) {
		if (cq_entry(cq, n)->wc.qp_num != qp_number)
			*cq_entry(cq, kept++) = *cq_entry(cq, n);
	}
	cq->tail = kept;
}

// An event whose queue was destroyed is skipped.
int channel_get_event(struct ibv_comp_channel *verbs, struct ibv_cq **ret_cq) {
	struct soft_nic *nic = soft_context_of(verbs->context)->nic;
	struct soft_channel *channel = soft_channel_of(verbs);
	struct soft_cq *cq = NULL;

	while (cq == NULL) {
		int err = event_fd_take(verbs->fd);

		if (err != 0)
			return err;
		nic_lock(nic);
		cq = channel->ready;
		if (cq != NULL) {
			cq->events_taken++;
			if (--cq->events_waiting == 0)
				channel->ready = cq->next_ready;
		}
		nic_unlock(nic);
	}
	*ret_cq = &cq->verbs;
	return 0;
}

void cq_ack_events(struct ibv_cq *verbs, uint32_t count) {
	struct soft_cq *cq = soft_cq_of(verbs);

	nic_lock(cq->nic);
	cq->events_taken -= count < cq->events_taken ? count : cq->events_taken;
	pthread_cond_broadcast(&cq->nic->acked);
	nic_unlock(cq->nic);
}
