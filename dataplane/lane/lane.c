// SPDX-License-Identifier: BSD-3-Clause
// Creates and destroys lanes, and handles their completion channel outside of the step.
#include "lane/lane_impl.h"

#include <lib/error.h>
#include <lib/must.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Acknowledging events takes a lock of the driver, so events are acknowledged in batches.
#define ACK_BATCH 64
// Largest work request that every device supports.
#define MESSAGE_MAX (UINT64_C(1) << 30)

static uint32_t min_u32(uint32_t a, uint32_t b) {
	return a < b ? a : b;
}

// Clamp the configuration so that the completion queue holds all that may be posted.
static int config_clamp(struct lane *lane, const struct lane_config *config) {
	const struct device_facts *facts = device_facts(config->device);
	uint32_t entries = facts->limits.completions_max;
	uint64_t message_max = facts->port.message_max;

	lane->depth = min_u32(config->depth, facts->limits.queue_depth_max);
	lane->depth = min_u32(lane->depth, entries / 2);
	if (lane->depth == 0)
		return -ENOSPC;
	lane->pair_max = min_u32(config->pair_max, facts->limits.pair_max);
	lane->pair_max = min_u32(lane->pair_max, entries / (2 * lane->depth));
	if (lane->pair_max == 0)
		return -ENOSPC;
	lane->completions_max = 2 * lane->depth * lane->pair_max;
	if (config->message_max != 0 && config->message_max < message_max)
		message_max = config->message_max;
	lane->message_max = message_max < MESSAGE_MAX ? message_max : MESSAGE_MAX;
	return lane->message_max > 0 ? 0 : -EINVAL;
}

static int create_channel(struct lane *lane) {
	const struct verbs_calls *calls = device_calls(lane->device);
	int err = calls->create_comp_channel(device_context(lane->device), &lane->channel);

	// A device without channels: the worker polls by its timer.
	if (err == -ENOSYS || err == -EOPNOTSUPP)
		return 0;
	if (err == 0 && fcntl(lane->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		err = neg_errno();
	return err;
}

static int create_stamped_queue(struct lane *lane, uint32_t vector) {
	const struct verbs_calls *calls = device_calls(lane->device);
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = lane->completions_max,
		.channel = lane->channel,
		.comp_vector = vector,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
			    (lane->stamps == LANE_STAMPS_RAW
				     ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
				     : IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK),
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct device_stamp_clock clock;
	int err = device_stamp_clock(lane->device, &clock);

	if (err == 0)
		err = calls->create_cq_ex(device_context(lane->device), &attr, &lane->stamped);
	if (err != 0)
		return err;
	lane->cq = ibv_cq_ex_to_cq(lane->stamped);
	lane->vector = vector;
	return 0;
}

static int create_queue(struct lane *lane, const struct vector_preference *wish) {
	const struct verbs_calls *calls = device_calls(lane->device);
	struct ibv_context *context = device_context(lane->device);
	int count = context->num_comp_vectors, err;
	uint32_t vector = 0;

	// Without a channel there are no interrupts, so the vector does not matter.
	if (lane->channel != NULL && count > 1)
		vector = vector_choose("", device_facts(lane->device)->path, (uint32_t)count, wish);

	if (lane->stamps != LANE_STAMPS_NONE)
		return create_stamped_queue(lane, vector);
	if (vector > 0 && calls->create_cq_at != NULL) {
		err = calls->create_cq_at(
			context, lane->completions_max, lane->channel, vector, &lane->cq
		);
		lane->vector = err == 0 ? vector : 0;
		// If the driver refuses the vector, the default one is used instead.
		if (err != -EINVAL)
			return err;
	}
	return calls->create_cq(context, lane->completions_max, lane->channel, &lane->cq);
}

static size_t pairs_bytes(const struct lane *lane) {
	return lane->pair_max * sizeof(struct pair *);
}

static size_t heap_bytes(const struct lane *lane) {
	return ((size_t)lane->op_max + 1) * sizeof(lane->heap[0]);
}

static int lane_allocate(struct lane *lane) {
	lane->made = calloc(lane->pair_max, sizeof(struct pair *));
	lane->pairs = near_alloc(lane->near, pairs_bytes(lane));
	lane->heap = near_alloc(lane->near, heap_bytes(lane));
	if (lane->made == NULL || lane->pairs == NULL || lane->heap == NULL)
		return -ENOMEM;
	memset(lane->pairs, 0, pairs_bytes(lane));
	return 0;
}

static void lane_arm(void *ctx) {
	struct lane *lane = ctx;

	// The queue is armed and its event has not been read, or nothing is posted. Work that is
	// posted later will probably be polled anyway.
	if (lane->armed || lane->dead || lane->under_way == 0)
		return;
	lane->armed = true;
	if (ibv_req_notify_cq(lane->cq, 0) != 0)
		atomic_store_explicit(&lane->events, false, memory_order_relaxed);
}

static void lane_read_events(void *ctx) {
	struct lane *lane = ctx;
	const struct verbs_calls *calls = device_calls(lane->device);
	struct ibv_cq *cq;
	int err;

	while ((err = calls->get_cq_event(lane->channel, &cq)) == 0) {
		lane->armed = false;
		lane->unacked++;
		lane_count(lane, LANE_COMPLETION_EVENTS, 1);
	}
	// A removed device sends no more events. The worker polls by a timer until control ends the
	// work in flight.
	if (err != -EAGAIN && err != -EINTR)
		atomic_store_explicit(&lane->events, false, memory_order_relaxed);
	if (lane->unacked >= ACK_BATCH) {
		calls->ack_cq_events(lane->cq, lane->unacked);
		lane->unacked = 0;
	}
}

uint64_t lane_chain_bytes(const struct device_facts *facts) {
	bool kernel = facts->responder == DEVICE_RESPONDER_KERNEL && facts->path[0] != '\0';

	return kernel ? LANE_CHAIN_KERNEL_BYTES : UINT64_MAX;
}

int lane_create(const struct lane_config *config, struct lane **ret_lane) {
	struct lane *lane;
	int err;

	if (config->pair_max == 0 || config->pair_max > LANE_PAIRS_MAX || config->depth == 0 ||
	    config->depth > LANE_DEPTH_MAX || config->op_max == 0 ||
	    config->op_max > LANE_OPS_MAX || config->drain_ns == 0)
		return -EINVAL;
	lane = near_alloc(config->near, sizeof(*lane));
	if (lane == NULL)
		return -ENOMEM;
	memset(lane, 0, sizeof(*lane));
	lane->near = config->near;
	lane->device = device_get(config->device);
	lane->clock = config->clock;
	lane->op_max = config->op_max;
	lane->drain_ns = config->drain_ns;
	lane->stamps = config->stamps;
	lane->atomics = device_facts(lane->device)->limits.atomics;
	lane->chain_bytes = lane_chain_bytes(device_facts(lane->device));
	err = config_clamp(lane, config);
	if (err == 0)
		err = lane_allocate(lane);
	if (err == 0)
		err = create_channel(lane);
	if (err == 0)
		err = create_queue(lane, &config->vector);
	if (err != 0) {
		// An object that the driver refuses to destroy is leaked: no caller could retry.
		(void)lane_destroy(lane);
		return err;
	}

	TAILQ_INIT(&lane->ready);
	TAILQ_INIT(&lane->full);
	TAILQ_INIT(&lane->draining);
	TAILQ_INIT(&lane->drained);
	TAILQ_INIT(&lane->swept);
	STAILQ_INIT(&lane->untold);
	for (uint32_t n = 0; n < LANE_POST_BATCH; n++) {
		lane->sends[n].sg_list = &lane->sges[n];
		lane->receives[n].sg_list = &lane->sges[n];
	}
	lane->poll = (struct worker_poll){.poll = lane_run_step, .ctx = lane, .fd = -1};
	atomic_init(&lane->events, lane->channel != NULL);
	if (lane->channel != NULL) {
		lane->poll.fd = lane->channel->fd;
		lane->poll.arm = lane_arm;
		lane->poll.woken = lane_read_events;
	}
	*ret_lane = lane;
	return 0;
}

int lane_destroy(struct lane *lane) {
	const struct verbs_calls *calls;
	int err = 0;

	if (lane == NULL)
		return 0;
	must(lane_pairs(lane) == 0 && lane_ops(lane) == 0);
	calls = device_calls(lane->device);

	// The driver may have refused to destroy these pairs earlier.
	for (uint32_t slot = 0; lane->made != NULL && slot < lane->pair_max && err == 0; slot++)
		err = pair_destroy(lane->made[slot]);

	// Acknowledge all events before the queue is destroyed, else the driver waits for them.
	if (err == 0 && lane->cq != NULL) {
		if (lane->unacked > 0)
			calls->ack_cq_events(lane->cq, lane->unacked);
		lane->unacked = 0;
		err = device_release_result(lane->device, calls->destroy_cq(lane->cq));
		if (err == 0)
			lane->cq = NULL;
	}

	// libibverbs keeps the channel while its completion queue exists. For a lost device the
	// kernel has neither: the descriptor is closed and the library keeps the struct.
	if (err == 0 && lane->channel != NULL) {
		err = calls->destroy_comp_channel(lane->channel);
		if (err != 0 && device_is_lost(lane->device)) {
			close(lane->channel->fd);
			err = 0;
		}
		if (err == 0)
			lane->channel = NULL;
	}
	if (err != 0)
		return err;
	device_put(lane->device);
	free(lane->made);
	near_free(lane->near, lane->pairs, pairs_bytes(lane));
	near_free(lane->near, lane->heap, heap_bytes(lane));
	near_free(lane->near, lane, sizeof(*lane));
	return 0;
}

struct worker_poll lane_poll(struct lane *lane) {
	return lane->poll;
}

void lane_facts(const struct lane *lane, struct lane_facts *ret_facts) {
	*ret_facts = (struct lane_facts){
		.pair_max = lane->pair_max,
		.depth = lane->depth,
		.vector = lane->vector,
		.message_max = lane->message_max,
		.events = atomic_load_explicit(&lane->events, memory_order_relaxed),
	};
}

void lane_counters(const struct lane *lane, struct lane_counters *ret_counters) {
	uint64_t counts[LANE_COUNTS];

	for (int n = 0; n < LANE_COUNTS; n++)
		counts[n] = atomic_load_explicit(&lane->counts[n], memory_order_relaxed);
	*ret_counters = (struct lane_counters){
		.polls = counts[LANE_POLLS],
		.completions = counts[LANE_COMPLETIONS],
		.stale = counts[LANE_STALE],
		.chains = counts[LANE_CHAINS],
		.posted = counts[LANE_POSTED],
		.signalled = counts[LANE_SIGNALLED],
		.inlined = counts[LANE_INLINED],
		.full = counts[LANE_FULL],
		.post_failures = counts[LANE_POST_FAILURES],
		.submitted = counts[LANE_OPS],
		.failed = counts[LANE_FAILED],
		.drained = counts[LANE_DRAINED],
		.stuck = counts[LANE_STUCK],
		.poll_failures = counts[LANE_POLL_FAILURES],
		.completion_events = counts[LANE_COMPLETION_EVENTS],
		.pairs = counts[LANE_PAIRS],
		.ops = counts[LANE_OPS],
	};
	for (int n = 0; n < OP_OUTCOME_COUNT; n++) {
		ret_counters->ended[n] = atomic_load_explicit(&lane->ends[n], memory_order_relaxed);
		ret_counters->submitted += ret_counters->ended[n];
	}
}
