// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/soft/transport/requester_bed.h"

#include <stdlib.h>

#define BED_CQ_FD 0
#define BED_CAPACITY 64

struct bed *bed;
static uint64_t next_wr_id;

// Stubs of the rest of the device, as far as a requester needs it.

uint64_t nic_random(struct soft_nic *nic) {
	return nic->random += UINT64_C(0x9e3779b97f4a7c15);
}

uint8_t *output_begin(struct soft_qp *qp, const struct packet *packet, uint32_t payload_bytes) {
	struct bed_packet *sent = &bed->sent[bed->sent_count];

	must(qp == &bed->qp && payload_bytes <= qp->mtu);
	if (bed->room == 0)
		return NULL;
	must(bed->sent_count < BED_PACKETS);
	sent->packet = *packet;
	sent->size = payload_bytes;
	return sent->payload;
}

void output_end(struct soft_qp *qp) {
	(void)qp;
	bed->room--;
	bed->sent_count++;
}

void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited) {
	must(cq == &bed->cq && bed->wc_count < BED_WCS);
	must(solicited == (wc->status != IBV_WC_SUCCESS));
	bed->wcs[bed->wc_count++] = *wc;
}

void qp_mark_ready(struct soft_qp *qp) {
	qp->is_ready = true;
}

void qp_enter_error(struct soft_qp *qp) {
	if (qp->verbs.state == IBV_QPS_ERR)
		return;
	bed->errors++;
	qp->verbs.state = IBV_QPS_ERR;
	requester_flush(qp);
}

void async_raise_qp_event(struct soft_qp *qp, enum ibv_event_type type) {
	must(qp == &bed->qp && type == IBV_EVENT_SQ_DRAINED);
	bed->drained++;
}

static void start_qp(void) {
	static const struct ibv_qp_cap cap = {
		.max_send_wr = BED_CAPACITY, .max_send_sge = 4, .max_inline_data = 64};
	struct soft_qp *qp = &bed->qp;

	qp->nic = &bed->nic;
	qp->verbs.pd = &bed->pd.verbs;
	qp->verbs.qp_num = 0x123;
	qp->send_cq = &bed->cq;
	qp->attr = (struct ibv_qp_attr
	){.timeout = 10, .retry_cnt = 3, .rnr_retry = 2, .max_rd_atomic = 4};
	assert_int_equal(requester_init(&qp->requester, &cap), 0);
}

int bed_open(void **state) {
	static const int access = IBV_ACCESS_LOCAL_WRITE;

	(void)state;
	bed = calloc(1, sizeof(*bed));
	bed->sent = calloc(BED_PACKETS, sizeof(*bed->sent));
	bed->memory = calloc(1, BED_MEMORY);
	bed->room = UINT32_MAX;
	bed->wire.window_bytes = BED_WINDOW_BYTES;
	bed->nic.wire = &bed->wire;
	bed->nic.now_ns = 1000;
	bed->mr = (struct soft_mr){
		.verbs.pd = &bed->pd.verbs,
		.iova = (uintptr_t)bed->memory,
		.bytes = bed->memory,
		.length = BED_MEMORY,
		.access = access,
	};
	assert_int_equal(region_add(&bed->nic, &bed->mr), 0);
	for (uint32_t n = 0; n < BED_MEMORY; n++)
		bed->memory[n] = (uint8_t)(n * 7 + n / 256);
	next_wr_id = 0;
	start_qp();
	bed_start(1000, BED_MTU);
	return 0;
}

int bed_close(void **state) {
	(void)state;
	requester_fini(&bed->qp.requester);
	region_remove(&bed->nic, &bed->mr);
	free(bed->memory);
	free(bed->sent);
	free(bed);
	bed = NULL;
	return 0;
}

void bed_start(uint32_t psn, uint32_t mtu) {
	bed->qp.mtu = mtu;
	bed->qp.attr.sq_psn = psn;
	requester_reset(&bed->qp);
	bed->qp.verbs.state = IBV_QPS_RTS;
	requester_start(&bed->qp);
}

void bed_state(enum ibv_qp_state state) {
	bed->qp.verbs.state = state;
}

struct ibv_send_wr bed_wr(enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length) {
	static struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = ++next_wr_id,
		.sg_list = &sge,
		.num_sge = length > 0,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	must((uint64_t)offset + length <= BED_MEMORY);
	sge = (struct ibv_sge){
		.addr = (uintptr_t)bed->memory + offset,
		.length = length,
		.lkey = bed->mr.verbs.lkey,
	};
	if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = BED_REMOTE + offset;
		wr.wr.atomic.rkey = BED_RKEY;
	} else {
		wr.wr.rdma.remote_addr = BED_REMOTE + offset;
		wr.wr.rdma.rkey = BED_RKEY;
	}
	return wr;
}

void bed_post_flags(
	enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length, unsigned int flags
) {
	struct ibv_send_wr wr = bed_wr(opcode, offset, length);

	wr.send_flags = flags;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
}

void bed_post(enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length) {
	bed_post_flags(opcode, offset, length, IBV_SEND_SIGNALED);
}

uint32_t bed_transmit(void) {
	uint32_t before = bed->sent_count;

	bed->qp.is_ready = false;
	assert_false(requester_transmit(&bed->qp, UINT32_MAX));
	return bed->sent_count - before;
}

const struct bed_packet *bed_sent(void) {
	assert_true(bed->seen < bed->sent_count);
	return &bed->sent[bed->seen++];
}

const struct bed_packet *bed_sent_as(uint8_t opcode, uint32_t psn) {
	const struct bed_packet *sent = bed_sent();

	assert_string_equal(packet_opcode_name(sent->packet.opcode), packet_opcode_name(opcode));
	assert_int_equal(sent->packet.psn, psn & PSN_MASK);
	return sent;
}

void bed_sent_nothing(void) {
	assert_int_equal(bed->seen, bed->sent_count);
}

void bed_answer(const struct packet *packet) {
	requester_response(&bed->qp, packet);
}

void bed_syndrome(uint32_t psn, uint8_t syndrome) {
	const struct packet packet = {
		.opcode = PACKET_ACK, .psn = psn & PSN_MASK, .syndrome = syndrome};

	bed_answer(&packet);
}

void bed_ack(uint32_t psn) {
	bed_syndrome(psn, PACKET_SYNDROME_ACK);
}

void bed_read_answer(uint8_t opcode, uint32_t psn, uint8_t fill, uint32_t bytes) {
	uint8_t payload[PACKET_PAYLOAD_MAX];
	struct packet packet = {
		.opcode = opcode,
		.psn = psn & PSN_MASK,
		.payload = payload,
		.payload_bytes = bytes,
	};

	must(bytes <= sizeof(payload));
	memset(payload, fill, sizeof(payload));
	if ((packet_opcode_info(opcode)->flags & PACKET_AETH) != 0)
		packet.syndrome = PACKET_SYNDROME_ACK;
	bed_answer(&packet);
}

void bed_atomic_answer(uint32_t psn, uint64_t original) {
	const struct packet packet = {
		.opcode = PACKET_ATOMIC_ACK,
		.psn = psn & PSN_MASK,
		.syndrome = PACKET_SYNDROME_ACK,
		.original = original,
	};

	bed_answer(&packet);
}

void bed_advance(uint64_t ns) {
	bed->nic.now_ns += ns;
	requester_run_timers(&bed->qp);
}

void bed_due(void) {
	uint64_t due_ns = requester_next_timer_ns(&bed->qp);

	assert_true(due_ns != NIC_NEVER && due_ns > bed->nic.now_ns);
	bed_advance(due_ns - bed->nic.now_ns);
}

uint32_t bed_timeout(void) {
	uint64_t timeouts = bed->nic.counters.timeouts;
	uint64_t probes = bed->nic.counters.probes;

	while (bed->nic.counters.timeouts == timeouts)
		bed_due();
	return (uint32_t)(bed->nic.counters.probes - probes);
}

const struct ibv_wc *bed_wc(enum ibv_wc_status status) {
	const struct ibv_wc *wc = &bed->wcs[bed->wc_seen];

	assert_true(bed->wc_seen < bed->wc_count);
	bed->wc_seen++;
	assert_string_equal(ibv_wc_status_str(wc->status), ibv_wc_status_str(status));
	assert_int_equal(wc->qp_num, 0x123);
	assert_int_equal(wc->vendor_err, 0);
	return wc;
}

void bed_wcs(uint32_t count, enum ibv_wc_status status) {
	while (count-- > 0)
		bed_wc(status);
}

void bed_no_wc(void) {
	assert_int_equal(bed->wc_seen, bed->wc_count);
}
