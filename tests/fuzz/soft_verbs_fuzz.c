// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes every call of the software device, cold and hot, with hostile attributes and in any order.
// There are two devices on memory wires, moved by the test.
//
// Each step is one call with arguments from the input. As always in verbs, objects must be alive
// and structs must be valid memory; every value in them is arbitrary. At the end all objects are
// destroyed in a permitted order, and nothing may be left.
#include <dataplane/soft.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

#define DEVICES 2
#define SLOTS 6 // objects of each kind
#define MEMORY 16384
#define SGES 40
#define STEPS_MAX 400

static const struct verbs_calls *const calls = &verbs_calls_soft;

struct input {
	const uint8_t *data;
	size_t size;
};

struct world {
	struct input input;
	struct clock clock;
	struct ibv_context *contexts[DEVICES];
	struct ibv_pd *pds[SLOTS];
	struct ibv_mr *mrs[SLOTS];
	struct ibv_comp_channel *channels[SLOTS];
	struct ibv_cq *cqs[SLOTS];
	struct ibv_srq *srqs[SLOTS];
	struct ibv_qp *qps[SLOTS];
	uint32_t cq_events[SLOTS]; // not acknowledged
	struct ibv_sge sges[SGES];
	uint8_t *memory;
};

static uint8_t take8(struct world *world) {
	if (world->input.size == 0)
		return 0;
	world->input.size--;
	return *world->input.data++;
}

static void take(struct world *world, void *bytes, size_t size) {
	for (size_t n = 0; n < size; n++)
		((uint8_t *)bytes)[n] = take8(world);
}

// Choose a count: mostly small, sometimes an extreme value.
static uint32_t take_count(struct world *world) {
	static const uint32_t odd[] = {0,	  1,	    32,	       33,	512,
				       513,	  16384,    16385,     1 << 20, 1 << 30,
				       INT32_MAX, 1U << 31, UINT32_MAX};
	uint8_t byte = take8(world);

	return byte < 0xe0 ? byte % 9 : odd[(byte - 0xe0) % (sizeof(odd) / sizeof(odd[0]))];
}

static uint32_t take_slot(struct world *world) {
	return take8(world) % SLOTS;
}

static struct ibv_context *take_context(struct world *world) {
	return world->contexts[take8(world) % DEVICES];
}

static void query(struct world *world) {
	struct ibv_context *context = take_context(world);
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_gid_entry gids[8];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp = world->qps[take_slot(world)];
	uint32_t count;
	uint16_t pkey;

	must(calls->query_device(context, &device) == 0);
	(void)calls->query_port(context, take8(world), &port);
	(void)calls->query_gids(context, gids, take8(world) % 9, &count);
	(void)calls->query_pkey(context, take8(world), take8(world), &pkey);
	if (qp != NULL)
		must(calls->query_qp(qp, -1, &attr, &init) == 0);
}

static void make_pd(struct world *world) {
	struct ibv_pd **pd = &world->pds[take_slot(world)];

	if (*pd == NULL)
		must(calls->alloc_pd(take_context(world), pd) == 0);
	else if (calls->dealloc_pd(*pd) == 0)
		*pd = NULL;
}

static void make_mr(struct world *world) {
	struct ibv_mr **mr = &world->mrs[take_slot(world)];
	struct ibv_pd *pd = world->pds[take_slot(world)];
	uint32_t offset = take8(world) * 64u;
	uint64_t length = take_count(world);
	uint64_t iova;
	int access = take8(world) & 0x1f;

	if (*mr != NULL) {
		must(calls->dereg_mr(*mr) == 0);
		*mr = NULL;
	}
	if (pd == NULL)
		return;
	if (length > MEMORY - offset && length < UINT32_MAX)
		length = MEMORY - offset;
	else if (length == UINT32_MAX)
		length = UINT64_MAX - take8(world);
	take(world, &iova, sizeof(iova));
	if (take8(world) & 1)
		(void)soft_reg_mr_iova(pd, world->memory + offset, length, iova, access, mr);
	else
		(void)calls->reg_mr(pd, world->memory + offset, length, access, mr);
}

static void make_dmabuf(struct world *world) {
	struct ibv_pd *pd = world->pds[take_slot(world)];
	struct verbs_dmabuf dmabuf = {.fd = (int8_t)take8(world)};
	struct ibv_mr *mr;

	take(world, &dmabuf.offset, sizeof(dmabuf.offset));
	take(world, &dmabuf.length, sizeof(dmabuf.length));
	take(world, &dmabuf.iova, sizeof(dmabuf.iova));
	// Small descriptors may be open files of the fuzzer itself.
	if (dmabuf.fd >= 0)
		dmabuf.fd = 1000;
	if (pd != NULL && calls->reg_dmabuf_mr(pd, &dmabuf, take8(world), &mr) == 0)
		must(calls->dereg_mr(mr) == 0);
}

static void make_channel(struct world *world) {
	struct ibv_comp_channel **channel = &world->channels[take_slot(world)];

	if (*channel == NULL)
		must(calls->create_comp_channel(take_context(world), channel) == 0);
	else if (calls->destroy_comp_channel(*channel) == 0)
		*channel = NULL;
}

static void ack_events(struct world *world, uint32_t slot) {
	if (world->cq_events[slot] > 0)
		calls->ack_cq_events(world->cqs[slot], world->cq_events[slot]);
	world->cq_events[slot] = 0;
}

static void make_cq(struct world *world) {
	uint32_t slot = take_slot(world);
	struct ibv_cq **cq = &world->cqs[slot];
	struct ibv_comp_channel *channel = world->channels[take_slot(world)];
	struct ibv_context *context = take_context(world);
	uint32_t entries = take_count(world);

	if (*cq == NULL) {
		// A channel of another context is an error of the caller and must be rejected.
		(void)calls->create_cq(context, entries, channel, cq);
		return;
	}
	ack_events(world, slot);
	if (calls->destroy_cq(*cq) == 0)
		*cq = NULL;
}

static void resize_cq(struct world *world) {
	struct ibv_cq *cq = world->cqs[take_slot(world)];

	if (cq != NULL)
		(void)soft_resize_cq(cq, (int)take_count(world));
}

static void make_srq(struct world *world) {
	struct ibv_srq **srq = &world->srqs[take_slot(world)];
	struct ibv_pd *pd = world->pds[take_slot(world)];
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = take_count(world), .max_sge = take_count(world)}};
	struct ibv_srq_attr set = {.max_wr = take_count(world), .srq_limit = take_count(world)};

	if (*srq == NULL) {
		if (pd != NULL)
			(void)soft_create_srq(pd, &attr, srq);
		return;
	}
	(void)soft_modify_srq(*srq, &set, take8(world) & 7);
	must(soft_query_srq(*srq, &set) == 0);
	if (take8(world) & 1 && soft_destroy_srq(*srq) == 0)
		*srq = NULL;
}

static void make_qp(struct world *world) {
	struct ibv_qp **qp = &world->qps[take_slot(world)];
	struct ibv_pd *pd = world->pds[take_slot(world)];
	struct ibv_qp_init_attr init = {
		.send_cq = world->cqs[take_slot(world)],
		.recv_cq = world->cqs[take_slot(world)],
		.srq = take8(world) & 1 ? world->srqs[take_slot(world)] : NULL,
		.cap = {take_count(world), take_count(world), take_count(world), take_count(world),
			take_count(world)},
		.qp_type = take8(world) & 7 ? IBV_QPT_RC : (enum ibv_qp_type)take8(world),
		.sq_sig_all = take8(world) & 1,
	};

	if (*qp != NULL) {
		must(calls->destroy_qp(*qp) == 0);
		*qp = NULL;
	}
	if (pd != NULL && init.send_cq != NULL && init.recv_cq != NULL)
		(void)calls->create_qp(pd, &init, qp);
}

static void modify_wildly(struct world *world) {
	struct ibv_qp *qp = world->qps[take_slot(world)];
	struct ibv_qp_attr attr;
	int mask;

	take(world, &attr, sizeof(attr));
	take(world, &mask, sizeof(mask));
	if (qp != NULL)
		(void)calls->modify_qp(qp, &attr, mask);
}

static void state_attr(struct world *world, const struct ibv_qp *peer, struct ibv_qp_attr *attr) {
	*attr = (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = 15,
		.path_mtu = (enum ibv_mtu)(1 + take8(world) % 5),
		.dest_qp_num = peer != NULL ? peer->qp_num : take8(world),
		.rq_psn = 0xfffffe,
		.sq_psn = 0xfffffe,
		.max_dest_rd_atomic = take8(world) % 17,
		.max_rd_atomic = take8(world) % 17,
		.min_rnr_timer = take8(world) % 32,
		.timeout = take8(world) % 32,
		.retry_cnt = take8(world) % 8,
		.rnr_retry = take8(world) % 8,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	attr->ah_attr.grh.sgid_index = 1;
	attr->ah_attr.grh.dgid.raw[10] = attr->ah_attr.grh.dgid.raw[11] = 0xff;
	attr->ah_attr.grh.dgid.raw[12] = 127;
	attr->ah_attr.grh.dgid.raw[15] = (uint8_t)(1 + take8(world) % DEVICES);
}

// Modify a queue pair with the mask that fits the target state. The previous state and one bit of
// the mask are arbitrary.
static void modify(struct world *world) {
	static const int masks[] = {
		[IBV_QPS_RESET] = 0,
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
		[IBV_QPS_SQD] = 0,
		[IBV_QPS_SQE] = 0,
		[IBV_QPS_ERR] = 0,
	};
	struct ibv_qp *qp = world->qps[take_slot(world)];
	const struct ibv_qp *peer = world->qps[take_slot(world)];
	enum ibv_qp_state state = (enum ibv_qp_state)(take8(world) % 7);
	uint8_t odd = take8(world);
	struct ibv_qp_attr attr;
	int mask = masks[state] | IBV_QP_STATE;

	state_attr(world, peer, &attr);
	attr.qp_state = state;
	if (odd >= 0xe8)
		mask ^= 1 << (odd - 0xe8);
	if (qp != NULL)
		(void)calls->modify_qp(qp, &attr, mask);
}

// Connect two queue pairs as a program would do.
static void connect_pair(struct world *world) {
	struct ibv_qp *qps[2] = {world->qps[take_slot(world)], world->qps[take_slot(world)]};
	struct ibv_qp_attr attr;

	for (int e = 0; e < 2 && qps[0] != NULL && qps[1] != NULL; e++) {
		state_attr(world, qps[1 - e], &attr);
		attr.ah_attr.grh.dgid.raw[15] = qps[1 - e]->context == world->contexts[0] ? 1 : 2;
		attr.path_mtu = IBV_MTU_1024;
		attr.qp_state = IBV_QPS_RESET;
		(void)calls->modify_qp(qps[e], &attr, IBV_QP_STATE);
		attr.qp_state = IBV_QPS_INIT;
		(void)calls->modify_qp(
			qps[e], &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
		);
		attr.qp_state = IBV_QPS_RTR;
		(void)calls->modify_qp(
			qps[e], &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		);
		attr.qp_state = IBV_QPS_RTS;
		(void)calls->modify_qp(
			qps[e], &attr,
			IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
		);
	}
}

// Choose pieces of regions, or of arbitrary addresses. Inline pieces must be readable memory.
static int take_sges(struct world *world, bool inlined) {
	uint8_t count = take8(world);

	for (uint32_t n = 0; n < (count % SGES); n++) {
		const struct ibv_mr *mr = world->mrs[take_slot(world)];
		struct ibv_sge *sge = &world->sges[n];

		*sge = (struct ibv_sge){.length = take_count(world)};
		sge->addr = (uintptr_t)world->memory + take8(world);
		if (mr != NULL && take8(world) & 7)
			sge->lkey = mr->lkey;
		if (inlined && sge->length > MEMORY / 2)
			sge->length = MEMORY / 2;
		if (!inlined && take8(world) >= 0xe0)
			take(world, sge, sizeof(*sge));
	}
	return count == 0xff ? -1 : count % SGES;
}

static void post_send(struct world *world) {
	struct ibv_qp *qp = world->qps[take_slot(world)];
	const struct ibv_mr *mr = world->mrs[take_slot(world)];
	uint8_t opcode = take8(world);
	struct ibv_send_wr wrs[2] = {
		{
			.sg_list = world->sges,
			.opcode = (enum ibv_wr_opcode)(opcode < 0xf0 ? opcode % 7 : opcode - 0xf0),
			.send_flags = take8(world) & 0x1f,
			.imm_data = opcode,
		},
	};
	struct ibv_send_wr *bad;
	uint64_t remote = (uintptr_t)world->memory + take8(world) * 8u;

	wrs[0].num_sge = take_sges(world, (wrs[0].send_flags & IBV_SEND_INLINE) != 0);
	if (take8(world) >= 0xf0)
		take(world, &remote, sizeof(remote));
	if (wrs[0].opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wrs[0].wr.atomic.remote_addr = remote;
		wrs[0].wr.atomic.rkey = mr != NULL ? mr->rkey : 0;
	} else {
		wrs[0].wr.rdma.remote_addr = remote;
		wrs[0].wr.rdma.rkey = mr != NULL ? mr->rkey : 0;
	}
	wrs[1] = wrs[0];
	wrs[0].next = opcode & 0x10 ? &wrs[1] : NULL;
	if (qp != NULL)
		(void)ibv_post_send(qp, wrs, &bad);
}

static void post_receive(struct world *world) {
	struct ibv_qp *qp = world->qps[take_slot(world)];
	struct ibv_srq *srq = world->srqs[take_slot(world)];
	struct ibv_recv_wr wrs[2] = {{.sg_list = world->sges, .next = &wrs[1]}};
	struct ibv_recv_wr *bad;

	wrs[0].num_sge = take_sges(world, false);
	wrs[1] = (struct ibv_recv_wr){.sg_list = world->sges, .num_sge = wrs[0].num_sge};
	if (qp != NULL)
		(void)ibv_post_recv(qp, wrs, &bad);
	if (srq != NULL)
		(void)ibv_post_srq_recv(srq, wrs, &bad);
}

static void poll(struct world *world) {
	struct ibv_cq *cq = world->cqs[take_slot(world)];
	struct ibv_wc wcs[8];

	if (cq == NULL)
		return;
	(void)ibv_poll_cq(cq, take8(world) % 9, wcs);
	if (take8(world) & 1)
		must(ibv_req_notify_cq(cq, take8(world) & 1) == 0);
}

static void take_events(struct world *world) {
	struct ibv_comp_channel *channel = world->channels[take_slot(world)];
	struct ibv_async_event event;
	struct ibv_cq *cq;

	for (uint32_t d = 0; d < DEVICES; d++) {
		while (calls->get_async_event(world->contexts[d], &event) == 0)
			calls->ack_async_event(&event);
	}
	if (channel == NULL || calls->get_cq_event(channel, &cq) != 0)
		return;
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		world->cq_events[slot] += world->cqs[slot] == cq;
}

static void turn(struct world *world) {
	uint64_t due_ns;

	for (uint32_t n = take8(world) % 8; n > 0; n--)
		soft_turn(world->contexts[n % DEVICES], &due_ns);
	clock_advance(&world->clock, take8(world) * UINT64_C(1000) << (take8(world) % 16));
}

static void (*const steps[])(struct world *world) = {
	query,	   make_pd,   make_mr,	    make_mr,	  make_dmabuf, make_channel,
	make_cq,   resize_cq, make_srq,	    make_qp,	  make_qp,     modify_wildly,
	modify,	   modify,    connect_pair, connect_pair, post_send,   post_send,
	post_send, post_send, post_receive, post_receive, poll,	       take_events,
	turn,	   turn,      turn,
};

static void world_open(struct world *world) {
	struct ibv_device **list;
	uint32_t count;

	clock_init_fake(&world->clock, 1000000);
	for (uint8_t d = 0; d < DEVICES; d++) {
		struct soft_config config = {
			.wire = SOFT_WIRE_MEMORY,
			.address =
				{.address = {127, 0, 0, (uint8_t)(d + 1)}, .family = SOCK_ADDR_V4},
			.clock = &world->clock,
			.random_seed = 1 + d,
		};

		memcpy(config.name, "soft0", 6);
		config.name[4] = (char)('0' + d);
		must(soft_device_add(&config) == 0);
	}
	must(calls->device_list(&list, &count) == 0 && count == DEVICES);
	for (uint32_t d = 0; d < DEVICES; d++)
		must(calls->open(list[d], &world->contexts[d]) == 0);
	calls->device_list_free(list);
}

// Create valid objects as a start.
static void world_furnish(struct world *world) {
	for (uint32_t d = 0; d < DEVICES; d++) {
		struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 4, 4, 64}};

		must(calls->alloc_pd(world->contexts[d], &world->pds[d]) == 0);
		must(calls->reg_mr(world->pds[d], world->memory, MEMORY, 15, &world->mrs[d]) == 0);
		must(calls->create_cq(world->contexts[d], 16, NULL, &world->cqs[d]) == 0);
		init.send_cq = init.recv_cq = world->cqs[d];
		must(calls->create_qp(world->pds[d], &init, &world->qps[d]) == 0);
	}
}

static void world_close(struct world *world) {
	take_events(world);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (world->qps[slot] != NULL)
			must(calls->destroy_qp(world->qps[slot]) == 0);
	}
	take_events(world);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (world->cqs[slot] != NULL) {
			ack_events(world, slot);
			must(calls->destroy_cq(world->cqs[slot]) == 0);
		}
		if (world->srqs[slot] != NULL)
			must(soft_destroy_srq(world->srqs[slot]) == 0);
		if (world->mrs[slot] != NULL)
			must(calls->dereg_mr(world->mrs[slot]) == 0);
	}
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (world->channels[slot] != NULL)
			must(calls->destroy_comp_channel(world->channels[slot]) == 0);
		if (world->pds[slot] != NULL)
			must(calls->dealloc_pd(world->pds[slot]) == 0);
	}
	for (uint32_t d = 0; d < DEVICES; d++)
		must(calls->close(world->contexts[d]) == 0);
	soft_devices_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static uint8_t memory[MEMORY] __attribute__((aligned(64)));
	struct world world = {.input = {data, size}, .memory = memory};

	world_open(&world);
	world_furnish(&world);
	for (uint32_t n = 0; n < STEPS_MAX && world.input.size > 0; n++)
		steps[take8(&world) % (sizeof(steps) / sizeof(steps[0]))](&world);
	world_close(&world);
	return 0;
}
