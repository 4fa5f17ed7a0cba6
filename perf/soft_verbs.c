// SPDX-License-Identifier: BSD-3-Clause
// The device under test, or one of the system's: two ends of a reliable connection.
#include "soft.h"

#include <lib/clock.h>
#include <lib/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define AREA_BYTES (4 << 20)
#define WORD_OFFSET 0	 // what the peer writes to
#define FROM_OFFSET 4096 // of a ping's bytes
#define BULK_OFFSET 65536
#define DEPTH 128
#define BULK_BYTES_OUT (1 << 20)
#define GIDS_MAX 64

struct about { // told to the other side
	union ibv_gid gid;
	uint64_t address;
	uint32_t queue_pair, key;
	enum ibv_mtu mtu;
};

struct verbs {
	const struct verbs_calls *calls;
	struct clock clock;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *area;
	uint8_t gid_index;
	struct about mine, theirs;
	uint32_t out; // posted and not complete
	uint8_t pings;
};

static int say(const char *what, int err) {
	if (err != 0)
		fprintf(stderr, "soft bench: %s: %s\n", what, strerrorname_np(-err));
	return err;
}

static int add_device(const struct soft_side *side, const char **ret_name) {
	const struct soft_setup *setup = side->setup;
	const char *address = setup->address[side->number];
	struct soft_config config = {.name = "soft0", .wire = setup->wire};
	int err = 0;

	config.address_any = address == NULL;
	if (address != NULL)
		err = sock_addr_parse_host(address, strlen(address), NULL, &config.address);
	if (err == 0 && setup->wire_args[side->number] != NULL)
		snprintf(
			config.wire_args, sizeof(config.wire_args), "%s",
			setup->wire_args[side->number]
		);
	if (err == 0 && setup->faults != NULL)
		err = soft_faults_parse(setup->faults, strlen(setup->faults), NULL, &config.faults);
	*ret_name = "soft0";
	return err != 0 ? err : soft_device_add(&config);
}

static int open_device(struct verbs *verbs, const char *name) {
	struct ibv_device **devices;
	uint32_t count;
	char reason[SOFT_HOLDER_MAX + 1] = "";
	int err = verbs->calls->device_list(&devices, &count);

	if (err != 0)
		return err;
	err = -ENODEV;
	for (uint32_t n = 0; n < count; n++) {
		if (strcmp(devices[n]->name, name) == 0)
			err = verbs->calls->open(devices[n], &verbs->context);
	}
	verbs->calls->device_list_free(devices);
	if (err != 0 && verbs->calls == &verbs_calls_soft) {
		soft_device_reason(name, reason);
		fprintf(stderr, "soft bench: %s\n", reason);
	}
	return err;
}

// The first RoCEv2 GID that is an IPv4 address.
static int find_gid(struct verbs *verbs) {
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	struct ibv_gid_entry entries[GIDS_MAX];
	uint32_t count;
	int err = verbs->calls->query_gids(verbs->context, entries, GIDS_MAX, &count);

	for (uint32_t n = 0; err == 0 && n < count; n++) {
		if (entries[n].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entries[n].gid.raw, mapped, sizeof(mapped)) == 0) {
			verbs->mine.gid = entries[n].gid;
			verbs->gid_index = (uint8_t)entries[n].gid_index;
			return 0;
		}
	}
	return err != 0 ? err : -ENOENT;
}

static int make_qp(struct verbs *verbs, struct ibv_qp **ret_qp) {
	struct ibv_qp_init_attr attr = {
		.send_cq = verbs->cq,
		.recv_cq = verbs->cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = IBV_QPT_RC,
	};

	return verbs->calls->create_qp(verbs->pd, &attr, ret_qp);
}

static int make_objects(struct verbs *verbs) {
	const struct verbs_calls *calls = verbs->calls;
	int err = calls->alloc_pd(verbs->context, &verbs->pd);

	if (err == 0)
		err = calls->create_cq(verbs->context, 2 * DEPTH, NULL, &verbs->cq);
	verbs->area = aligned_alloc(4096, AREA_BYTES);
	if (verbs->area == NULL)
		return -ENOMEM;
	memset(verbs->area, 0, AREA_BYTES);
	if (err == 0)
		err = calls->reg_mr(
			verbs->pd, verbs->area, AREA_BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &verbs->mr
		);
	return err != 0 ? err : make_qp(verbs, &verbs->qp);
}

static int connect_qp(struct verbs *verbs, struct ibv_qp *qp, uint8_t timeout) {
	const struct about *mine = &verbs->mine, *theirs = &verbs->theirs;
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu,
		.dest_qp_num = theirs->queue_pair,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr =
			{.is_global = 1,
			 .port_num = 1,
			 .grh = {.dgid = theirs->gid,
				 .sgid_index = verbs->gid_index,
				 .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int err = verbs->calls->modify_qp(
		qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
	);

	if (err == 0)
		err = verbs->calls->modify_qp(
			qp, &rtr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		);
	if (err == 0)
		err = verbs->calls->modify_qp(
			qp, &rts,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
		);
	return err;
}

static int verbs_open(struct soft_side *side) {
	const char *name = side->setup->device[side->number];
	struct verbs *verbs = calloc(1, sizeof(*verbs));
	struct ibv_port_attr port;
	int err = 0;

	if (verbs == NULL)
		return -ENOMEM;
	side->own = verbs;
	verbs->calls = side->setup->calls;
	clock_init_tsc(&verbs->clock);
	if (name == NULL)
		err = say("add", add_device(side, &name));
	if (err == 0)
		err = say("open", open_device(verbs, name));
	if (err == 0)
		err = say("objects", make_objects(verbs));
	if (err == 0)
		err = say("GID", find_gid(verbs));
	if (err == 0)
		err = say("port", verbs->calls->query_port(verbs->context, 1, &port));
	if (err != 0)
		return err;
	verbs->mine.address = (uintptr_t)verbs->area;
	verbs->mine.queue_pair = verbs->qp->qp_num;
	verbs->mine.key = verbs->mr->rkey;
	verbs->mine.mtu = port.active_mtu;
	err = soft_exchange(side, &verbs->mine, &verbs->theirs, sizeof(verbs->mine));
	if (err == 0)
		err = say("connect", connect_qp(verbs, verbs->qp, side->setup->timeout));
	if (err == 0)
		err = soft_exchange(side, &verbs->mine, &verbs->theirs, sizeof(verbs->mine));
	soft_pin(side->number); // this thread alone: what the device has is there by now
	return err;
}

static int post(struct verbs *verbs, uint32_t from, uint32_t to, uint32_t size) {
	struct ibv_sge sge = {(uintptr_t)verbs->area + from, size, verbs->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | (size <= 64 ? IBV_SEND_INLINE : 0u),
		.wr.rdma = {verbs->theirs.address + to, verbs->theirs.key},
	};
	struct ibv_send_wr *bad;

	verbs->out++;
	return say("post", -ibv_post_send(verbs->qp, &wr, &bad));
}

static int reap(struct verbs *verbs) {
	struct ibv_wc wcs[16];
	int count = ibv_poll_cq(verbs->cq, 16, wcs);

	for (int n = 0; n < count; n++) {
		if (wcs[n].status != IBV_WC_SUCCESS)
			return say(ibv_wc_status_str(wcs[n].status), -EIO);
		verbs->out--;
	}
	return count < 0 ? say("poll", -EIO) : 0;
}

// The last byte of a ping is its number.
static bool is_there(const struct verbs *verbs, uint32_t size, uint8_t number) {
	const uint8_t *last = verbs->area + WORD_OFFSET + size - 1;

	return __atomic_load_n(last, __ATOMIC_ACQUIRE) == number;
}

static int ping_once(struct verbs *verbs, bool first, const struct soft_order *order) {
	bool in_memory = order->play == SOFT_PING_MEMORY;
	uint8_t number = ++verbs->pings;
	int err = 0;

	verbs->area[FROM_OFFSET + order->size - 1] = number;
	if (first)
		err = post(verbs, FROM_OFFSET, WORD_OFFSET, order->size);
	while (first && in_memory && verbs->out > 0 && err == 0)
		err = reap(verbs);
	// Once at least: the engine may be first, and completions pile up.
	do {
		if (!in_memory)
			err = reap(verbs);
	} while (err == 0 && !is_there(verbs, order->size, number));
	if (!first && err == 0)
		err = post(verbs, FROM_OFFSET, WORD_OFFSET, order->size);
	while (!first && in_memory && verbs->out > 0 && err == 0)
		err = reap(verbs);
	return err;
}

static int drain(struct verbs *verbs) {
	int err = 0;

	while (verbs->out > 0 && err == 0)
		err = reap(verbs);
	return err;
}

static int ping(struct soft_side *side, const struct soft_order *order, double *ret_value) {
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
		err = drain(verbs);
	*ret_value = soft_median(samples, order->count);
	free(samples);
	return err;
}

static double cpu_seconds(void) {
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Bytes a second that are complete. Side 1 sleeps: its device has to do without its program.
static int write_bulk(
	struct verbs *verbs, const struct soft_order *order, double *ret_value, uint64_t *writes
) {
	uint32_t depth = BULK_BYTES_OUT / order->size;
	uint64_t begin_ns = clock_now_ns(&verbs->clock), now_ns = begin_ns, posted = 0;
	int err = 0;

	if (depth > DEPTH)
		depth = DEPTH;
	for (; now_ns - begin_ns < order->duration_ns && err == 0;
	     now_ns = clock_now_ns(&verbs->clock)) {
		for (; verbs->out < depth && err == 0; posted++)
			err =
				post(verbs, BULK_OFFSET,
				     BULK_OFFSET + (uint32_t)(posted % depth) * order->size,
				     order->size);
		if (err == 0)
			err = reap(verbs);
	}
	if (err == 0)
		err = drain(verbs);
	now_ns = clock_now_ns(&verbs->clock);
	*writes = posted;
	*ret_value = 1e9 * (double)(posted * order->size) / (double)(now_ns - begin_ns);
	return err;
}

static int bulk(struct soft_side *side, const struct soft_order *order, double *ret_value) {
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

static int idle(const struct soft_order *order, double *ret_value) {
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

// All that the process has, not only what the queue pairs added.
static int queue_pairs(struct verbs *verbs, const struct soft_order *order, double *ret_value) {
	struct ibv_qp **qps = calloc(order->count, sizeof(struct ibv_qp *));
	int err = qps == NULL ? -ENOMEM : 0;
	uint32_t made = 0;

	for (; made < order->count && err == 0; made += err == 0) {
		err = make_qp(verbs, &qps[made]);
		if (err == 0)
			err = connect_qp(verbs, qps[made], 14);
	}
	*ret_value = resident_mib();
	while (made > 0)
		verbs->calls->destroy_qp(qps[--made]);
	free(qps);
	return say("queue pairs", err);
}

static int verbs_play(struct soft_side *side, const struct soft_order *order, double *ret_value) {
	switch (order->play) {
	case SOFT_PING:
	case SOFT_PING_MEMORY:
		return ping(side, order, ret_value);
	case SOFT_BULK:
	case SOFT_RATE:
		return bulk(side, order, ret_value);
	case SOFT_IDLE:
		return idle(order, ret_value);
	case SOFT_MEMORY:
		return queue_pairs(side->own, order, ret_value);
	default:
		return -EINVAL;
	}
}

const struct soft_kind soft_verbs = {verbs_open, verbs_play};
