// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/soft/transport/responder_bed.h"

#include "transport/output.h"

#include <lib/must.h>
#include <support/cmocka.h>

#include <stdlib.h>

#define UNTOUCHED 0xee
#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct bed bed;

static uint8_t *around; // the region, with guard areas of the same size before and after it

uint64_t nic_random(struct soft_nic *nic) {
	nic->random = nic->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return nic->random >> 16;
}

uint8_t *output_begin(struct soft_qp *qp, const struct packet *packet, uint32_t payload_bytes) {
	struct bed_sent *sent = &bed.sent[bed.sent_tail];

	if (bed.wire_room == 0)
		return NULL;
	bed.wire_room--;
	must(bed.sent_tail < BED_SENT && qp->verbs.state != IBV_QPS_ERR);
	sent->packet = *packet;
	sent->packet.payload = sent->payload;
	sent->packet.payload_bytes = payload_bytes;
	sent->qp_number = qp->verbs.qp_num;
	return sent->payload;
}

void output_end(struct soft_qp *qp) {
	(void)qp;
	bed.sent_tail++;
}

void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited) {
	must(cq == &bed.cq && bed.done_tail < BED_DONE);
	bed.done_solicited[bed.done_tail] = solicited;
	bed.done[bed.done_tail++] = *wc;
}

void async_raise_event(struct soft_context *context, const struct ibv_async_event *event) {
	must(context == &bed.context && bed.event_tail < BED_EVENTS);
	bed.events[bed.event_tail++] = *event;
}

void async_raise_qp_event(struct soft_qp *qp, enum ibv_event_type type) {
	async_raise_event(
		&bed.context,
		&(struct ibv_async_event){.event_type = type, .element.qp = &qp->verbs}
	);
}

void async_settle_events(struct soft_context *context, const void *object, const uint32_t *taken) {
	(void)context;
	(void)object;
	must(*taken == 0);
}

void qp_mark_ready(struct soft_qp *qp) {
	qp->is_ready = true;
}

void qp_enter_error(struct soft_qp *qp) {
	if (qp->verbs.state == IBV_QPS_ERR)
		return;
	qp->verbs.state = IBV_QPS_ERR;
	responder_flush(qp);
}

void qp_raise_fatal(struct soft_qp *qp, enum ibv_event_type type) {
	async_raise_qp_event(qp, type);
	qp_enter_error(qp);
}

static void region(struct soft_mr *mr, struct soft_pd *pd, int access) {
	*mr = (struct soft_mr){
		.verbs.pd = &pd->verbs,
		.iova = (uintptr_t)bed.memory,
		.bytes = bed.memory,
		.length = BED_REGION,
		.access = access,
	};
	assert_int_equal(region_add(&bed.nic, mr), 0);
}

static void queue_pair(struct soft_qp *qp, uint32_t number) {
	*qp = (struct soft_qp){
		.verbs = {.state = IBV_QPS_RTS, .qp_num = number, .pd = &bed.pd.verbs},
		.nic = &bed.nic,
		.context = &bed.context,
		.attr =
			{
				.rq_psn = BED_PSN,
				.dest_qp_num = number + 100,
				.qp_access_flags = RIGHTS,
				.max_dest_rd_atomic = RESPONDER_READS_MAX,
				.min_rnr_timer = 14,
			},
		.receive_cq = &bed.cq,
		.srq = bed.srq,
		.mtu = BED_MTU,
	};
	assert_int_equal(responder_init(&qp->responder, 4), 0);
	assert_int_equal(receive_queue_init(&qp->receives, bed.srq == NULL ? 4 : 0, 4), 0);
	responder_start(qp);
}

static void bed_build(void) {
	bed = (struct bed){.wire_room = UINT32_MAX};
	around = malloc(3 * BED_REGION);
	bed.payload = malloc(PACKET_PAYLOAD_MAX + 1);
	bed.sent = malloc(BED_SENT * sizeof(*bed.sent));
	must(around != NULL && bed.payload != NULL && bed.sent != NULL);
	memset(around, UNTOUCHED, 3 * BED_REGION);
	bed.memory = around + BED_REGION;
	memset(bed.memory, 0x11, BED_REGION);
	for (uint32_t n = 0; n <= PACKET_PAYLOAD_MAX; n++)
		bed.payload[n] = (uint8_t)(n * 7 + n / 256 + 1);
	bed.context.nic = &bed.nic;
	bed.pd.verbs.context = bed.strange_pd.verbs.context = &bed.context.verbs.context;
	region(&bed.mr, &bed.pd, RIGHTS);
	region(&bed.closed_mr, &bed.pd, 0);
	region(&bed.strange_mr, &bed.strange_pd, RIGHTS);
}

int bed_make(void **state) {
	(void)state;
	bed_build();
	for (uint32_t n = 0; n < BED_QPS; n++)
		queue_pair(&bed.qps[n], n + 1);
	return 0;
}

int bed_make_shared(void **state) {
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 4}};
	struct ibv_srq *srq;

	(void)state;
	bed_build();
	assert_int_equal(soft_create_srq(&bed.pd.verbs, &attr, &srq), 0);
	bed.srq = (struct soft_srq *)(void *)srq;
	for (uint32_t n = 0; n < BED_QPS; n++)
		queue_pair(&bed.qps[n], n + 1);
	return 0;
}

static bool untouched(const uint8_t *bytes) {
	for (uint32_t n = 0; n < BED_REGION; n++) {
		if (bytes[n] != UNTOUCHED)
			return false;
	}
	return true;
}

int bed_end(void **state) {
	bool fine = untouched(around) && untouched(around + (size_t)2 * BED_REGION);

	(void)state;
	for (uint32_t n = 0; n < BED_QPS; n++) {
		responder_fini(&bed.qps[n].responder);
		receive_queue_fini(&bed.qps[n].receives);
	}
	if (bed.srq != NULL)
		fine = soft_destroy_srq(&bed.srq->verbs) == 0 && fine;
	region_remove(&bed.nic, &bed.mr);
	region_remove(&bed.nic, &bed.closed_mr);
	region_remove(&bed.nic, &bed.strange_mr);
	free(bed.sent);
	free(bed.payload);
	free(around);
	return fine ? 0 : -1;
}

struct packet bed_packet(uint8_t opcode, uint32_t psn, uint32_t payload_bytes) {
	uint8_t flags = packet_opcode_info(opcode)->flags;
	struct packet packet = {
		.opcode = opcode,
		.ack_request = true,
		.pad = -payload_bytes & 3,
		.queue_pair = 1,
		.psn = psn & PSN_MASK,
		.payload = bed.payload,
		.payload_bytes = payload_bytes,
	};

	if ((flags & (PACKET_RETH | PACKET_ATOMIC_ETH)) != 0) {
		packet.address = bed_address(0);
		packet.key = bed.mr.verbs.rkey;
	}
	if ((flags & PACKET_RETH) != 0)
		packet.length = payload_bytes;
	return packet;
}

// The payload is copied to a buffer of its exact size, so that a sanitizer detects reads past it.
void bed_request_at(uint32_t qp, const struct packet *packet) {
	enum ibv_qp_state state = bed.qps[qp].verbs.state;
	struct packet copy = *packet;
	uint8_t *bytes = malloc(packet->payload_bytes > 0 ? packet->payload_bytes : 1);

	must(bytes != NULL);
	memcpy(bytes, packet->payload, packet->payload_bytes);
	copy.payload = bytes;
	if (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD)
		responder_request(&bed.qps[qp], &copy);
	free(bytes);
}

void bed_request(const struct packet *packet) {
	bed_request_at(0, packet);
}

void bed_transmit(void) {
	for (uint32_t n = 0; n < BED_QPS; n++) {
		struct soft_qp *qp = &bed.qps[n];

		while (qp->is_ready) {
			qp->is_ready = false;
			if (qp->verbs.state != IBV_QPS_ERR &&
			    responder_transmit(qp, BED_BUDGET, false))
				qp_mark_ready(qp);
		}
	}
}

void bed_exchange(const struct packet *packet) {
	bed_request(packet);
	bed_transmit();
}

uint64_t bed_address(uint32_t offset) {
	return (uintptr_t)bed.memory + offset;
}

void bed_receive(uint64_t wr_id, uint32_t offset, uint32_t bytes) {
	struct ibv_sge sge = {bed_address(offset), bytes, bed.mr.verbs.lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (bed.srq == NULL)
		assert_int_equal(responder_post(&bed.qps[0], &wr), 0);
	else
		assert_int_equal(srq_post_recv(&bed.srq->verbs, &wr, &bad), 0);
}

const struct bed_sent *bed_next_sent(void) {
	assert_true(bed.sent_head < bed.sent_tail);
	return &bed.sent[bed.sent_head++];
}

void bed_expect(uint8_t opcode, uint32_t psn, uint8_t syndrome) {
	const struct packet *packet = &bed_next_sent()->packet;

	assert_string_equal(packet_opcode_name(packet->opcode), packet_opcode_name(opcode));
	assert_int_equal(packet->psn, psn & PSN_MASK);
	assert_int_equal(packet->syndrome, syndrome);
}

const struct ibv_wc *bed_next_done(void) {
	assert_true(bed.done_head < bed.done_tail);
	return &bed.done[bed.done_head++];
}

void bed_expect_event(enum ibv_event_type type) {
	assert_true(bed.event_head < bed.event_tail);
	assert_int_equal(bed.events[bed.event_head++].event_type, type);
}

void bed_expect_quiet(void) {
	assert_int_equal(bed.sent_tail - bed.sent_head, 0);
	assert_int_equal(bed.done_tail - bed.done_head, 0);
	assert_int_equal(bed.event_tail - bed.event_head, 0);
}

void bed_expect_over(enum ibv_event_type type) {
	assert_int_equal(bed.qps[0].verbs.state, IBV_QPS_ERR);
	if (type != IBV_EVENT_COMM_EST)
		bed_expect_event(type);
}
