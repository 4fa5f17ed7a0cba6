// SPDX-License-Identifier: BSD-3-Clause
// The device under test or a device of the system, at each end of a reliable connection.
#include "soft_end.h"

#include <lib/clock.h>
#include <lib/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORD_OFFSET 0		// target of the peer's writes
#define PING_SOURCE_OFFSET 4096 // source of a ping's bytes
#define BULK_OFFSET 65536
#define BULK_BYTES_OUT (1 << 20)

struct verbs {
	struct end end;
	struct clock clock;
	uint8_t pings;
};

static int verbs_open(struct soft_side *side) {
	const struct soft_setup *setup = side->setup;
	const char *name = setup->device[side->number];
	struct verbs *verbs = calloc(1, sizeof(*verbs));
	struct end *end;
	int err = 0;

	if (verbs == NULL)
		return -ENOMEM;
	side->own = verbs;
	clock_init_tsc(&verbs->clock);
	end = &verbs->end;
	end->calls = setup->calls;
	end->why = &side->why;
	if (name == NULL)
		err = end_add_device(setup, side->number, &side->why, &name);
	if (err == 0)
		err = end_open(end, name);
	if (err == 0)
		err = soft_exchange(side, &end->mine, &end->theirs, sizeof(end->mine));
	if (err == 0)
		err = soft_fail(
			&side->why, end_connect(end, end->qp, setup->timeout), "%s: no connection",
			name
		);
	if (err == 0)
		err = soft_exchange(side, &end->mine, &end->theirs, sizeof(end->mine));
	soft_pin(
		setup->together ? 0 : side->number
	); // only this thread: the threads of the device exist already
	return err;
}

// Check whether the ping with this number has arrived; the last byte of a ping is its number.
static bool ping_has_arrived(const struct verbs *verbs, uint32_t size, uint8_t number) {
	const uint8_t *last = verbs->end.area + WORD_OFFSET + size - 1;

	return __atomic_load_n(last, __ATOMIC_ACQUIRE) == number;
}

static int ping_once(struct verbs *verbs, bool first, const struct soft_order *order) {
	bool in_memory = order->play == SOFT_PING_MEMORY;
	uint8_t number = ++verbs->pings;
	int err = 0;

	verbs->end.area[PING_SOURCE_OFFSET + order->size - 1] = number;
	if (first)
		err = end_post(&verbs->end, PING_SOURCE_OFFSET, WORD_OFFSET, order->size);
	while (first && in_memory && verbs->end.out > 0 && err == 0)
		err = end_reap(&verbs->end);
	// Reap at least once: the engine may have written the answer already, and completions would
	// pile up.
	do {
		if (!in_memory)
			err = end_reap(&verbs->end);
	} while (err == 0 && !ping_has_arrived(verbs, order->size, number));
	if (!first && err == 0)
		err = end_post(&verbs->end, PING_SOURCE_OFFSET, WORD_OFFSET, order->size);
	while (!first && in_memory && verbs->end.out > 0 && err == 0)
		err = end_reap(&verbs->end);
	return err;
}

static int ping_measure(struct soft_side *side, const struct soft_order *order, double *ret_value) {
	double *samples = malloc(order->count * sizeof(double));
	struct verbs *verbs = side->own;
	uint64_t begin_ns;
	int err = 0;

	if (samples == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < order->count && err == 0; n++) {
		begin_ns = clock_now_ns(&verbs->clock);
		err = ping_once(verbs, side->number == 0, order);
		samples[n] = (double)(clock_now_ns(&verbs->clock) - begin_ns) / 2;
	}
	if (err == 0)
		err = end_drain(&verbs->end);
	*ret_value = soft_median(samples, order->count);
	free(samples);
	return err;
}

static double cpu_seconds(void) {
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Return the completed bytes per second. Side 1 sleeps, so its device works without its program.
static int write_bulk(
	struct verbs *verbs, const struct soft_order *order, double *ret_value, uint64_t *writes
) {
	uint32_t depth = BULK_BYTES_OUT / order->size;
	uint64_t begin_ns = clock_now_ns(&verbs->clock), now_ns = begin_ns, posted = 0;
	int err = 0;

	if (depth > END_DEPTH)
		depth = END_DEPTH;
	for (; now_ns - begin_ns < order->duration_ns && err == 0;
	     now_ns = clock_now_ns(&verbs->clock)) {
		for (; verbs->end.out < depth && err == 0; posted++)
			err = end_post(
				&verbs->end, BULK_OFFSET,
				BULK_OFFSET + (uint32_t)(posted % depth) * order->size, order->size
			);
		if (err == 0)
			err = end_reap(&verbs->end);
	}
	if (err == 0)
		err = end_drain(&verbs->end);
	now_ns = clock_now_ns(&verbs->clock);
	*writes = posted;
	*ret_value = 1e9 * (double)(posted * order->size) / (double)(now_ns - begin_ns);
	return err;
}

static int bulk_measure(struct soft_side *side, const struct soft_order *order, double *ret_value) {
	double mine = cpu_seconds(), theirs = 0;
	uint64_t writes = 0;
	int err = 0;

	if (side->number == 0)
		err = write_bulk(side->own, order, ret_value, &writes);
	else
		err = recv(side->link, &theirs, 1, MSG_PEEK | MSG_WAITALL) == 1 ? 0 : -EPIPE;
	mine = cpu_seconds() - mine;
	if (err == 0)
		err = soft_exchange(side, &mine, &theirs, sizeof(mine));
	if (order->play == SOFT_RATE)
		*ret_value = (double)writes / (mine + theirs);
	return err;
}

static int idle_measure(const struct soft_order *order, double *ret_value) {
	struct timespec time = {
		(time_t)(order->duration_ns / 1000000000), (long)(order->duration_ns % 1000000000)};
	double before = cpu_seconds();

	nanosleep(&time, NULL);
	*ret_value = 1e11 * (cpu_seconds() - before) / (double)order->duration_ns;
	return 0;
}

static double resident_mib(void) {
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size = 0, resident = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

// Measure the memory of the whole process, not only the part of the queue pairs.
static int measure_queue_pairs(struct end *end, const struct soft_order *order, double *ret_value) {
	struct ibv_qp **qps = calloc(order->count, sizeof(struct ibv_qp *));
	int err = qps == NULL ? -ENOMEM : 0;
	uint32_t made = 0;

	for (; made < order->count && err == 0; made += err == 0) {
		err = end_make_qp(end, &qps[made]);
		if (err == 0)
			err = end_connect(end, qps[made], 14);
	}
	*ret_value = resident_mib();
	while (made > 0)
		end->calls->destroy_qp(qps[--made]);
	free(qps);
	return soft_fail(end->why, err, "%u queue pairs cannot be had", order->count);
}

static int verbs_play(struct soft_side *side, const struct soft_order *order, double *ret_value) {
	struct verbs *verbs = side->own;

	switch (order->play) {
	case SOFT_PING:
	case SOFT_PING_MEMORY:
		return ping_measure(side, order, ret_value);
	case SOFT_BULK:
	case SOFT_RATE:
		return bulk_measure(side, order, ret_value);
	case SOFT_IDLE:
		return idle_measure(order, ret_value);
	case SOFT_MEMORY:
		return measure_queue_pairs(&verbs->end, order, ret_value);
	default:
		return -EINVAL;
	}
}

const struct soft_kind soft_verbs = {verbs_open, verbs_play};
