// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the responder of a live device with a hostile peer. Packets of every kind, near every
// bound, reach several queue pairs in every state. The input supplies the wire.
//
// Checks: no crash and no must() failure. No byte outside of the registered memory is written. Sent
// packets are valid and within the budget of a turn. Each receive completes once.
#include "transport/output.h"
#include "verbs/verbs_soft.h"

#include <dataplane/soft.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QPS 6
#define SHARING 2 // the last queue pairs share one receive queue
#define REGION 9000
#define GUARD 256
#define REGIONS 4
#define RECEIVES 4096 // receives of one input, distinguished by wr_id
#define STEPS_MAX 600
#define TURN_PACKETS_MAX 256
#define GUARD_BYTE 0xe5
#define ALL_RIGHTS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static const struct verbs_calls *const calls = &verbs_calls_soft;

// Access rights of each region; the last one belongs to another PD.
static const int rights[REGIONS] = {
	ALL_RIGHTS, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE, ALL_RIGHTS};

struct region {
	uint8_t *around; // GUARD, REGION and GUARD bytes
	struct ibv_mr *mr;
};

static struct {
	struct clock clock;
	struct ibv_context *context;
	struct soft_nic *nic;
	struct ibv_pd *pd, *strange_pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qps[QPS];
	struct region regions[REGIONS];
	union ibv_gid self, peer;
	struct soft_wire wire;
	uint8_t out[FRAME_BYTES_MAX];
	uint8_t in[FRAME_BYTES_MAX];
	uint32_t in_size, room, turn_packets;
	bool posted[RECEIVES]; // posted and not completed
	uint32_t posts;
	const uint8_t *data;
	size_t size;
} bed;

static uint8_t take8(void) {
	if (bed.size == 0)
		return 0;
	bed.size--;
	return *bed.data++;
}

static uint32_t take32(void) {
	uint32_t number = 0;

	for (uint32_t n = 0; n < 4; n++)
		number = number << 8 | take8();
	return number;
}

// The wire: it delivers one frame at a time and checks every sent frame.
static uint8_t *wire_take(struct soft_wire *wire) {
	(void)wire;
	return bed.room > 0 ? bed.out : NULL;
}

static void wire_give(struct soft_wire *wire, uint32_t size) {
	struct frame_view view;
	struct packet packet;

	(void)wire;
	bed.room--;
	must(++bed.turn_packets <= TURN_PACKETS_MAX);
	must(frame_check_icrc(bed.out, size, true) == FRAME_ICRC_RIGHT);
	must(frame_parse(bed.out, size, &view) == 0 && view.frame_bytes == size);
	must(memcmp(&view.route.to, &bed.peer, sizeof(bed.peer)) == 0);
	must(packet_decode(view.packet, view.packet_bytes - PACKET_ICRC_BYTES, &packet) == 0);
	must(packet.pad == (-packet.payload_bytes & 3));
}

static void wire_flush(struct soft_wire *wire) {
	(void)wire;
}

static uint32_t
wire_receive(struct soft_wire *wire, struct wire_frame *ret, uint32_t max, uint64_t now_ns) {
	(void)wire;
	(void)max;
	(void)now_ns;
	if (bed.in_size == 0)
		return 0;
	*ret = (struct wire_frame){.bytes = bed.in, .size = bed.in_size, .id_known = true};
	bed.in_size = 0;
	return 1;
}

static uint64_t wire_due(const struct soft_wire *wire) {
	(void)wire;
	return NIC_NEVER;
}

static void wire_none(struct soft_wire *wire) {
	(void)wire;
}

static const struct wire_calls wire_calls = {
	.name = "fuzz",
	.take = wire_take,
	.give = wire_give,
	.flush = wire_flush,
	.receive = wire_receive,
	.due = wire_due,
	.destroy = wire_none,
};

// Replaces the constructor of the DPDK wire.
int wire_dpdk_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	(void)config;
	(void)ret_reason;
	bed.wire = (struct soft_wire){
		.calls = &wire_calls,
		.gid = bed.self,
		.mtu = 4096,
		.window_bytes = 1 << 20,
	};
	*ret_wire = &bed.wire;
	return 0;
}

static union ibv_gid gid_of(uint8_t last) {
	return (union ibv_gid){.raw = {[10] = 0xff, 0xff, 10, 0, 0, last}};
}

static void open_device(void) {
	struct soft_config config = {
		.name = "soft0",
		.wire = SOFT_WIRE_DPDK,
		.address = {.family = SOCK_ADDR_V4, .address = {10, 0, 0, 1}},
		.clock = &bed.clock,
		.random_seed = 1,
	};
	struct ibv_device **devices;
	uint32_t count;

	clock_init_fake(&bed.clock, 1000000);
	bed.self = gid_of(1);
	bed.peer = gid_of(2);
	must(soft_device_add(&config) == 0);
	must(calls->device_list(&devices, &count) == 0 && count == 1);
	must(calls->open(devices[0], &bed.context) == 0);
	calls->device_list_free(devices);
	bed.nic = nic_of(bed.context);
}

// Return a fixed address, so that an input has the same effect in each run.
static uint64_t address_of(uint32_t region) {
	return UINT64_C(0x100000) * (region + 1);
}

static void register_region(uint32_t n) {
	struct ibv_pd *pd = n == REGIONS - 1 ? bed.strange_pd : bed.pd;
	uint8_t *bytes = bed.regions[n].around + GUARD;

	must(soft_reg_mr_iova(pd, bytes, REGION, address_of(n), rights[n], &bed.regions[n].mr) == 0
	);
}

static void make_objects(void) {
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 8, .max_sge = 4}};

	must(calls->alloc_pd(bed.context, &bed.pd) == 0);
	must(calls->alloc_pd(bed.context, &bed.strange_pd) == 0);
	must(calls->create_cq(bed.context, 4096, NULL, &bed.cq) == 0);
	must(soft_create_srq(bed.pd, &shared, &bed.srq) == 0);
	for (uint32_t n = 0; n < REGIONS; n++) {
		bed.regions[n].around = malloc(REGION + 2 * GUARD);
		must(bed.regions[n].around != NULL);
		register_region(n);
	}
	for (uint32_t n = 0; n < QPS; n++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = bed.cq,
			.recv_cq = bed.cq,
			.srq = n >= QPS - SHARING ? bed.srq : NULL,
			.cap = {.max_send_wr = 8,
				.max_recv_wr = 8,
				.max_send_sge = 4,
				.max_recv_sge = 4},
			.qp_type = IBV_QPT_RC,
		};

		must(calls->create_qp(bed.pd, &attr, &bed.qps[n]) == 0);
	}
}

// Move a queue pair towards RTS, as far as the input says: RESET, INIT, RTR, RTS.
static void move_qp(uint32_t n, uint8_t far) {
	static const enum ibv_mtu mtus[] = {IBV_MTU_256, IBV_MTU_1024, IBV_MTU_4096};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = n == 1 ? IBV_ACCESS_REMOTE_READ : ALL_RIGHTS,
		.path_mtu = mtus[n % 3],
		.dest_qp_num = 100 + n,
		.rq_psn = 0xfffff8,
		.sq_psn = 0xfffff8,
		.max_dest_rd_atomic = n == 2 ? 1 : 16,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr =
			{.is_global = 1, .port_num = 1, .grh = {.dgid = bed.peer, .sgid_index = 1}},
	};

	if (far > 0)
		must(calls->modify_qp(
			     bed.qps[n], &attr,
			     IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS
		     ) == 0);
	attr.qp_state = IBV_QPS_RTR;
	if (far > 1)
		must(calls->modify_qp(
			     bed.qps[n], &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER
		     ) == 0);
	attr.qp_state = IBV_QPS_RTS;
	if (far > 2)
		must(calls->modify_qp(
			     bed.qps[n], &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
		     ) == 0);
}

static void reset_qp(uint32_t n) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	must(calls->modify_qp(bed.qps[n], &attr, IBV_QP_STATE) == 0);
}

static void begin(void) {
	struct soft_srq *srq = soft_srq_of(bed.srq);
	struct soft_cq *cq = soft_cq_of(bed.cq);

	for (uint32_t n = 0; n < REGIONS; n++)
		memset(bed.regions[n].around, GUARD_BYTE, REGION + 2 * GUARD);
	for (uint32_t n = 0; n < QPS; n++) {
		reset_qp(n);
		move_qp(n, n < 4 ? 3 : 2);
	}
	srq->queue.head = srq->queue.tail;
	srq->limit = 0;
	cq->head = cq->tail;
	cq->overrun = false;
	bed.room = UINT32_MAX;
	bed.in_size = 0;
	bed.posts = 0;
	memset(bed.posted, 0, sizeof(bed.posted));
}

static bool all_are(const uint8_t *bytes, size_t size) {
	return bytes[0] == GUARD_BYTE && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static void check_guards(void) {
	for (uint32_t n = 0; n < REGIONS; n++) {
		const uint8_t *around = bed.regions[n].around;

		must(all_are(around, GUARD) && all_are(around + GUARD + REGION, GUARD));
	}
}

// Check the read-only region and the region of the other PD.
static void check_untouched(void) {
	must(all_are(bed.regions[1].around, REGION + 2 * GUARD));
	must(all_are(bed.regions[3].around, REGION + 2 * GUARD));
}

static void poll_completions(void) {
	struct ibv_wc wcs[16];
	int count = ibv_poll_cq(bed.cq, 16, wcs);

	must(count >= 0);
	for (int n = 0; n < count; n++) {
		uint64_t id = wcs[n].wr_id;

		if (id >= RECEIVES)
			continue; // completion of a send
		must(bed.posted[id]);
		bed.posted[id] = false;
		must(wcs[n].status != IBV_WC_SUCCESS || wcs[n].byte_len <= LIMIT_MESSAGE_BYTES);
	}
}

static void turn(void) {
	uint64_t due_ns;

	bed.turn_packets = 0;
	soft_turn(bed.context, &due_ns);
	poll_completions();
	check_guards();
}

// Choose addresses and lengths near the bounds.
static uint64_t pick_address(uint32_t region) {
	uint64_t base = address_of(region);
	uint8_t choice = take8();

	switch (choice & 7) {
	case 0:
		return base + REGION;
	case 1:
		return base + REGION - 1 - (choice >> 3);
	case 2:
		return base - 1 - (choice >> 3);
	case 3:
		return (uint64_t)take32() << 32 | take32();
	case 4:
		return base + take32() % REGION;
	default:
		return base + (uint64_t)8 * (choice >> 3);
	}
}

static uint32_t pick_length(uint32_t mtu) {
	static const uint32_t lengths[] = {
		0, 1, 4, 8, REGION, REGION + 1, 1u << 30, (1u << 30) + 1, 1u << 31, UINT32_MAX};
	uint8_t choice = take8();

	if (choice < sizeof(lengths) / sizeof(lengths[0]))
		return lengths[choice];
	if (choice < 128)
		return mtu * (choice % 6) + choice / 32 - 1;
	return choice < 250 ? choice * 16u + take8() : take32();
}

static uint32_t pick_key(uint32_t *ret_region) {
	uint8_t choice = take8();

	*ret_region = choice < 128 ? 0 : choice % REGIONS;
	return choice < 250 ? bed.regions[*ret_region].mr->rkey : take32();
}

// Choose an opcode that may come next in the state of the queue pair.
static uint8_t pick_opcode(const struct soft_qp *qp) {
	static const uint8_t begins[] = {
		PACKET_SEND_FIRST,   PACKET_SEND_ONLY,	  PACKET_SEND_ONLY_IMM,
		PACKET_WRITE_FIRST,  PACKET_WRITE_ONLY,	  PACKET_WRITE_ONLY_IMM,
		PACKET_READ_REQUEST, PACKET_READ_REQUEST, PACKET_COMPARE_SWAP,
		PACKET_FETCH_ADD,    PACKET_ACK,	  PACKET_READ_ONLY,
		PACKET_READ_FIRST,   PACKET_ATOMIC_ACK,
	};
	uint8_t choice = take8();

	if (choice >= 240)
		return choice % (PACKET_FETCH_ADD + 1);
	if (qp->responder.kind == PACKET_KIND_SEND)
		return PACKET_SEND_MIDDLE + choice % 3;
	if (qp->responder.kind == PACKET_KIND_WRITE && qp->responder.write_left > qp->mtu)
		return PACKET_WRITE_MIDDLE;
	if (qp->responder.kind == PACKET_KIND_WRITE)
		return PACKET_WRITE_LAST + choice % 2;
	return begins[choice % sizeof(begins)];
}

static uint32_t sound_payload(const struct soft_qp *qp, const struct packet *packet) {
	const struct packet_opcode_info *facts = packet_opcode_info(packet->opcode);

	if (facts->kind == PACKET_KIND_READ || facts->kind == PACKET_KIND_ATOMIC ||
	    facts->kind == PACKET_KIND_ACK || facts->kind == PACKET_KIND_ATOMIC_ACK)
		return 0;
	if ((facts->flags & PACKET_LAST) == 0)
		return qp->mtu;
	if (facts->kind == PACKET_KIND_WRITE)
		return (facts->flags & PACKET_RETH) != 0 ? packet->length
							 : qp->responder.write_left;
	return take8() + 1u;
}

// Build a valid packet. The input may damage it later.
static struct packet sound_packet(uint32_t n, uint8_t flags) {
	const struct soft_qp *qp = soft_qp_of(bed.qps[n]);
	uint32_t offset = 8u * take8(), bytes = take32() >> 16;
	struct packet packet = {
		.opcode = pick_opcode(qp),
		.ack_request = (flags & 1) != 0,
		.solicited = (flags & 2) != 0,
		.pkey = PACKET_PKEY_DEFAULT,
		.queue_pair = bed.qps[n]->qp_num,
		.address = address_of(0) + offset,
		.key = bed.regions[0].mr->rkey,
		.length = bytes % (REGION - offset + 1),
		.syndrome = PACKET_SYNDROME_ACK,
		.swap_add = UINT64_C(0x5a5a5a5a5a5a5a5a),
	};

	if (packet.opcode == PACKET_WRITE_ONLY || packet.opcode == PACKET_WRITE_ONLY_IMM)
		packet.length %= qp->mtu + 1;
	if (packet.opcode == PACKET_WRITE_FIRST && packet.length <= qp->mtu)
		packet.length = qp->mtu + 1 + bytes % 700;
	if ((packet_opcode_info(packet.opcode)->flags & PACKET_RESPONSE) != 0)
		packet.psn = qp->requester.acked_psn;
	else
		packet.psn = qp->responder.expected_psn;
	return packet;
}

// Build a frame of this packet, with a payload that never contains GUARD_BYTE.
static void put_frame(struct packet *packet, uint32_t payload_bytes, uint8_t raw_opcode) {
	const struct frame_route route = {.from = bed.peer, .to = bed.self, .hop_limit = 64};
	uint32_t begin = frame_headers_bytes(true);
	uint32_t total = payload_bytes + (-payload_bytes & 3);
	uint32_t headers = (uint32_t)packet_encode(packet, bed.in + begin);
	uint32_t size = begin + headers + total + PACKET_ICRC_BYTES;

	must(size <= FRAME_BYTES_MAX);
	memset(bed.in + begin + headers, 0x5a, total);
	if (raw_opcode != 0)
		bed.in[begin] = raw_opcode;
	frame_write_headers(&route, size - begin, bed.in);
	frame_seal(bed.in, size);
	bed.in_size = size;
}

static uint32_t near_psn(uint32_t psn) {
	uint8_t choice = take8();

	if (choice < 128)
		return psn_add(psn, (uint32_t)choice % 24 - 24);
	return choice < 250 ? psn_add(psn, choice % 24) : take32() & PSN_MASK;
}

static uint32_t near_payload(uint32_t payload, uint32_t mtu) {
	static const uint32_t by[] = {UINT32_MAX - 3, UINT32_MAX, 1, 4};
	uint8_t choice = take8();
	uint32_t bytes = choice < 128 ? payload : mtu;

	bytes += by[choice & 3];
	return bytes <= PACKET_PAYLOAD_MAX ? bytes : 0;
}

static void revive(uint32_t n) {
	if (bed.qps[n]->state == IBV_QPS_RTR || bed.qps[n]->state == IBV_QPS_RTS ||
	    bed.qps[n]->state == IBV_QPS_SQD)
		return;
	reset_qp(n);
	move_qp(n, 3);
}

// Deliver a valid packet, except for one or two changes that the input selects.
static void step_packet(void) {
	uint32_t n = take8() % QPS, region, payload;
	const struct soft_qp *qp = soft_qp_of(bed.qps[n]);
	uint8_t flags = take8(), spoil = take8(), raw = 0;
	struct packet packet;

	if (flags < 230)
		revive(n);
	if (qp->mtu == 0)
		return;
	packet = sound_packet(n, flags);
	payload = sound_payload(qp, &packet);
	if (payload > PACKET_PAYLOAD_MAX)
		payload = qp->mtu;
	if (spoil >= 100 && spoil < 130)
		packet.psn = near_psn(packet.psn);
	if ((spoil & 0x0f) == 1)
		packet.key = pick_key(&region);
	if ((spoil & 0x0f) == 2)
		packet.address = pick_address(take8() % REGIONS);
	if ((spoil & 0x0f) == 3)
		packet.length = pick_length(qp->mtu);
	if ((spoil & 0x1f) == 4)
		payload = near_payload(payload, qp->mtu);
	packet.pad = (spoil & 0x1f) == 5 ? flags >> 2 & 3 : -payload & 3;
	if ((spoil & 0x0f) == 6)
		packet.syndrome = take8();
	if ((spoil & 0x3f) == 7)
		raw = take8();
	if (spoil == 8)
		packet.queue_pair = take32() & 0xffffff;
	put_frame(&packet, payload, raw);
	if (spoil == 9)
		bed.in[take32() % bed.in_size] ^= 0x10;
}

// Choose a piece of memory: one in eight is arbitrary, the others are writable.
static struct ibv_sge pick_piece(void) {
	uint8_t choice = take8();
	uint32_t region = choice & 8 ? 0 : 2;

	if ((choice & 7) == 0)
		return (struct ibv_sge){
			.lkey = pick_key(&region),
			.addr = pick_address(region),
			.length = pick_length(256),
		};
	return (struct ibv_sge){
		.lkey = bed.regions[region].mr->lkey,
		.addr = address_of(region) + choice,
		.length = 4u * take8() + (choice >> 6),
	};
}

static void step_receive(void) {
	uint32_t n = take8() % QPS, id = bed.posts;
	struct ibv_sge sges[4];
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sges, .num_sge = take8() % 5};
	struct ibv_recv_wr *bad;
	int err;

	if (bed.posts == RECEIVES)
		return;
	for (int m = 0; m < wr.num_sge; m++)
		sges[m] = pick_piece();
	bed.posted[id] = true;
	if (n >= QPS - SHARING)
		err = ibv_post_srq_recv(bed.srq, &wr, &bad);
	else
		err = ibv_post_recv(bed.qps[n], &wr, &bad);
	if (err != 0)
		bed.posted[id] = false;
	else
		bed.posts++;
}

static void step_send(void) {
	uint32_t n = take8() % QPS;
	struct ibv_sge sge = pick_piece();
	struct ibv_send_wr wr = {
		.wr_id = RECEIVES,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = take8() % (IBV_WR_ATOMIC_FETCH_AND_ADD + 1),
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP)
		sge.length = 8;
	ibv_post_send(bed.qps[n], &wr, &bad);
}

static void step_state(void) {
	static const enum ibv_qp_state states[] = {IBV_QPS_ERR, IBV_QPS_SQD, IBV_QPS_RTS};
	uint8_t choice = take8();
	uint32_t n = choice % QPS;
	struct ibv_qp_attr attr = {.qp_state = states[take8() % 3]};

	if (choice < 80) {
		calls->modify_qp(bed.qps[n], &attr, IBV_QP_STATE);
		return;
	}
	reset_qp(n);
	move_qp(n, choice / 80);
}

static void step_region(void) {
	uint32_t n = take8() % REGIONS;

	must(calls->dereg_mr(bed.regions[n].mr) == 0);
	register_region(n);
}

static void step(void) {
	uint8_t choice = take8();

	if (choice < 150)
		step_packet();
	else if (choice < 205)
		step_receive();
	else if (choice < 220)
		step_send();
	else if (choice < 230)
		step_state();
	else if (choice < 234)
		step_region();
	else if (choice < 246)
		clock_advance(&bed.clock, (uint64_t)take8() << 20);
	// Sometimes the wire is full for a few steps.
	if (choice >= 246)
		bed.room = choice - 246u;
	else if ((choice & 3) == 0)
		bed.room = UINT32_MAX;
	turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct ibv_async_event event;

	if (bed.context == NULL) {
		open_device();
		make_objects();
	}
	bed.data = data;
	bed.size = size;
	begin();
	for (uint32_t n = 0; n < STEPS_MAX && bed.size > 0; n++)
		step();
	bed.room = UINT32_MAX;
	for (uint32_t n = 0; n < 8; n++)
		turn();
	check_untouched();
	while (calls->get_async_event(bed.context, &event) == 0)
		calls->ack_async_event(&event);
	return 0;
}
