// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes a live device with packets of a hostile peer. Some queue pairs respond, some request, and
// two are connected to each other. The packets change the state of each.
//
// The input is a sequence of packets. They are valid except for selected bits, so that they pass
// most checks, and sealed, so that they are accepted. No byte outside of the registered memory may
// change. Every response must be valid, and all objects can be destroyed at the end.
#include "transport/qp.h"

#include <lib/container.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

#define QPS 4 // 0 and 1 belong to the peer; 2 and 3 are connected to each other
#define REGION 8192
#define GUARD 4096
#define PACKETS_MAX 300
#define MTU 256

static const struct verbs_calls *const calls = &verbs_calls_soft;

struct world {
	const uint8_t *data;
	size_t size;
	struct clock clock;
	struct soft_wire *peer;
	struct soft_counters counters;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qps[QPS];
	uint8_t memory[GUARD + REGION + GUARD];
};

static uint8_t take8(struct world *world) {
	if (world->size == 0)
		return 0;
	world->size--;
	return *world->data++;
}

static uint32_t take32(struct world *world) {
	uint32_t value = 0;

	for (int n = 0; n < 4; n++)
		value = value << 8 | take8(world);
	return value;
}

static struct soft_qp *soft_of(struct ibv_qp *qp) {
	return container_of(qp, struct soft_qp, verbs);
}

static void connect_qp(struct world *world, uint32_t n) {
	bool foreign = n < 2;
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = 15,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = foreign ? 0x1234 : world->qps[n ^ 1]->qp_num,
		.rq_psn = 0xfffff0,
		.sq_psn = 0xfffff0,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
	attr.ah_attr.grh.dgid.raw[12] = 127;
	attr.ah_attr.grh.dgid.raw[15] = foreign ? 9 : 1;
	attr.qp_state = IBV_QPS_INIT;
	must(calls->modify_qp(
		     world->qps[n], &attr,
		     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
	     ) == 0);
	attr.qp_state = IBV_QPS_RTR;
	must(calls->modify_qp(
		     world->qps[n], &attr,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
	     ) == 0);
	attr.qp_state = IBV_QPS_RTS;
	must(calls->modify_qp(
		     world->qps[n], &attr,
		     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
	     ) == 0);
}

static void post_send(struct world *world, struct ibv_qp *qp, uint8_t what) {
	struct ibv_sge sge = {
		(uintptr_t)world->memory + GUARD, 1 + (what & 0xf8) * 4u, world->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = (enum ibv_wr_opcode)(what % 7),
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = (uintptr_t)world->memory + GUARD;
		wr.wr.atomic.rkey = world->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)world->memory + GUARD + 2048;
		wr.wr.rdma.rkey = world->mr->rkey;
	}
	(void)ibv_post_send(qp, &wr, &bad);
}

static void post_receive(struct world *world, struct ibv_qp *qp, uint8_t what) {
	struct ibv_sge sge = {
		(uintptr_t)world->memory + GUARD + REGION - 1024, (what & 0xf8) * 4u,
		world->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	(void)ibv_post_recv(qp, &wr, &bad);
}

static void world_open(struct world *world) {
	struct soft_config config = {
		.name = "soft0",
		.wire = SOFT_WIRE_MEMORY,
		.address = {.address = {127, 0, 0, 1}, .family = SOCK_ADDR_V4},
		.clock = &world->clock,
		.random_seed = 1,
	};
	const struct wire_config peer = {
		.address = {.address = {127, 0, 0, 9}, .family = SOCK_ADDR_V4},
		.counters = &world->counters,
	};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 2, 2, 0}};
	char reason[SOFT_REASON_MAX + 1];
	struct ibv_device **list;
	uint32_t count;

	memset(world->memory, 0xee, sizeof(world->memory));
	clock_init_fake(&world->clock, 1000000);
	must(soft_device_add(&config) == 0);
	must(wire_memory_create(&peer, reason, &world->peer) == 0);
	must(calls->device_list(&list, &count) == 0);
	must(calls->open(list[0], &world->context) == 0);
	calls->device_list_free(list);
	must(calls->alloc_pd(world->context, &world->pd) == 0);
	must(calls->reg_mr(world->pd, world->memory + GUARD, REGION, 15, &world->mr) == 0);
	must(calls->create_cq(world->context, 128, NULL, &world->cq) == 0);
	init.send_cq = init.recv_cq = world->cq;
	for (uint32_t n = 0; n < QPS; n++)
		must(calls->create_qp(world->pd, &init, &world->qps[n]) == 0);
	for (uint32_t n = 0; n < QPS; n++)
		connect_qp(world, n);
}

static void world_close(struct world *world) {
	struct ibv_async_event event;

	while (calls->get_async_event(world->context, &event) == 0)
		calls->ack_async_event(&event);
	for (uint32_t n = 0; n < QPS; n++)
		must(calls->destroy_qp(world->qps[n]) == 0);
	must(calls->destroy_cq(world->cq) == 0);
	must(calls->dereg_mr(world->mr) == 0);
	must(calls->dealloc_pd(world->pd) == 0);
	must(calls->close(world->context) == 0);
	wire_destroy(world->peer);
	soft_devices_clear();
}

static void check_guards(const struct world *world) {
	for (size_t n = 0; n < GUARD; n++) {
		must(world->memory[n] == 0xee);
		must(world->memory[GUARD + REGION + n] == 0xee);
	}
}

// Check that every response is valid.
static void read_answers(struct world *world) {
	struct wire_frame frames[WIRE_BATCH];
	uint32_t count;

	do {
		count = world->peer->calls->receive(world->peer, frames, WIRE_BATCH, 0);
		for (uint32_t n = 0; n < count; n++) {
			struct frame_view view;
			struct packet packet;

			must(frame_parse(frames[n].bytes, frames[n].size, &view) == 0);
			must(view.frame_bytes == frames[n].size);
			must(frame_check_icrc(frames[n].bytes, frames[n].size, true) ==
			     FRAME_ICRC_RIGHT);
			must(packet_decode(
				     view.packet, view.packet_bytes - PACKET_ICRC_BYTES, &packet
			     ) == 0);
			must(packet.queue_pair == 0x1234);
			must(packet.payload_bytes <= MTU);
		}
	} while (count > 0);
}

static uint32_t take_length(struct world *world) {
	static const uint32_t odd[] = {0,      1,	   255,	    256,	   257,	      512,
				       REGION, REGION + 1, 1 << 30, (1 << 30) + 1, UINT32_MAX};
	uint8_t byte = take8(world);

	return byte < 0xc0 ? byte * 4u : odd[byte % (sizeof(odd) / sizeof(odd[0]))];
}

static void fill_packet(struct world *world, struct packet *packet) {
	static const uint8_t syndromes[] = {
		PACKET_SYNDROME_ACK, 0x00, 0x20, 0x3f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x40, 0xff};
	struct ibv_qp *qp = world->qps[take8(world) % QPS];
	const struct soft_qp *soft = soft_of(qp);
	uint8_t turned = take8(world);
	const struct packet_opcode_info *facts;

	packet->opcode = take8(world) % 0x15;
	facts = packet_opcode_info(packet->opcode);
	packet->solicited = turned & 1;
	packet->ack_request = turned & 2;
	packet->pkey = turned & 4 ? take8(world) : PACKET_PKEY_DEFAULT;
	packet->queue_pair = turned & 0x40 ? take32(world) & PSN_MASK : qp->qp_num;
	packet->psn = facts->flags & PACKET_RESPONSE ? soft->requester.acked_psn
						     : soft->responder.expected_psn;
	if (turned & 8)
		packet->psn = psn_add(packet->psn, (uint32_t)(int8_t)take8(world));
	packet->address = (uintptr_t)world->memory + GUARD;
	packet->address += turned & 0x10 ? take_length(world) : 0;
	packet->key = turned & 0x20 ? take32(world) : world->mr->rkey;
	packet->length = take_length(world);
	packet->immediate = packet->length;
	packet->syndrome = syndromes[take8(world) % sizeof(syndromes)];
	packet->msn = packet->psn;
	packet->swap_add = packet->compare = packet->original = packet->length;
}

static void send_packet(struct world *world) {
	struct packet packet = {.migration = true};
	struct frame_route route = {.from = world->peer->gid, .to = world->peer->gid};
	uint8_t *frame = world->peer->calls->take(world->peer);
	uint32_t begin = frame_headers_bytes(true);
	uint32_t payload, size;
	uint8_t shape;

	fill_packet(world, &packet);
	shape = take8(world);
	payload = shape & 0x80 ? take_length(world) % PACKET_PAYLOAD_MAX
			       : (packet.length < MTU ? packet.length : MTU);
	packet.pad = shape & 0x40 ? shape & 3 : -payload & 3;
	route.to.raw[15] = 1;
	route.source_port = 0xc000;
	size = begin + (uint32_t)packet_encode(&packet, frame + begin);
	memset(frame + size, shape, payload + packet.pad);
	size += payload + packet.pad + PACKET_ICRC_BYTES;
	if (shape == 0xff)
		frame[begin] = take8(world); // an unknown opcode, or one with other headers
	frame_write_headers(&route, size - begin, frame);
	frame_seal(frame, size);
	world->peer->calls->give(world->peer, size);
}

static void step(struct world *world) {
	uint8_t what = take8(world);
	struct ibv_wc wcs[16];
	uint64_t due_ns;

	if (what < 0xc0)
		send_packet(world);
	else if (what < 0xd0)
		post_send(world, world->qps[what % QPS], take8(world));
	else if (what < 0xe0)
		post_receive(world, world->qps[what % QPS], take8(world));
	else if (what < 0xf0)
		clock_advance(&world->clock, UINT64_C(1000) << (what & 0xf));
	else
		(void)ibv_poll_cq(world->cq, what & 0xf, wcs);
	for (uint32_t n = 1 + (what & 1); n > 0; n--)
		soft_turn(world->context, &due_ns);
	read_answers(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct world world;

	world = (struct world){.data = data, .size = size};
	world_open(&world);
	for (uint32_t n = 0; n < PACKETS_MAX && world.size > 0; n++)
		step(&world);
	check_guards(&world);
	world_close(&world);
	return 0;
}
