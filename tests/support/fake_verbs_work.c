// SPDX-License-Identifier: BSD-3-Clause
// Execution of a work request: the responder, access checks, data, and status.
#include "fake_verbs_impl.h"

#include <lib/must.h>

#include <unistd.h>

// A list of pieces of memory.
struct pieces {
	uint32_t count;
	uint64_t bytes;
	struct {
		uint8_t *at;
		uint64_t length;
	} piece[FAKE_SGE_MAX];
};

static uint32_t mtu_bytes(enum ibv_mtu mtu) {
	return UINT32_C(128) << mtu;
}

// The responder.

static bool port_has_address(const struct fake_port *port, const struct ibv_ah_attr *address) {
	if (!address->is_global)
		return port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND &&
		       port->attr.lid == address->dlid;
	for (uint32_t n = 0; n < port->gid_count; n++) {
		if (memcmp(&port->gids[n].gid, &address->grh.dgid, sizeof(union ibv_gid)) == 0)
			return true;
	}
	return false;
}

static bool
device_has_address(const struct fake_device *device, const struct ibv_ah_attr *address) {
	for (uint32_t n = 0; n < device->attr.phys_port_cnt; n++) {
		if (port_has_address(&device->ports[n], address))
			return true;
	}
	return false;
}

static bool would_answer(const struct fake_qp *peer, const struct fake_qp *qp) {
	return (peer->attr.qp_state == IBV_QPS_RTR || peer->attr.qp_state == IBV_QPS_RTS) &&
	       peer->attr.dest_qp_num == qp->verbs.qp_num && peer->attr.rq_psn == qp->attr.sq_psn &&
	       device_has_address(qp->device, &peer->attr.ah_attr);
}

static struct fake_qp *peer_find(const struct fake_qp *qp) {
	for (uint32_t n = 0; n < fake.device_count; n++) {
		struct fake_qp *peer;

		if (!device_has_address(fake.devices[n], &qp->attr.ah_attr))
			continue;
		peer = fake_qp_by_number(fake.devices[n], qp->attr.dest_qp_num);
		if (peer != NULL && would_answer(peer, qp))
			return peer;
	}
	return NULL;
}

static uint16_t pkey_of(const struct fake_qp *qp) {
	return qp->device->ports[qp->attr.port_num - 1].pkeys[qp->attr.pkey_index];
}

// Return true if the keys belong to one partition and one of them is a full member, as ports
// require.
static bool share_partition(const struct fake_qp *a, const struct fake_qp *b) {
	uint16_t one = pkey_of(a), other = pkey_of(b);

	return ((one ^ other) & 0x7fff) == 0 && ((one | other) & 0x8000) != 0;
}

static struct fake_qp *peer_of(struct fake_qp *qp) {
	if (qp->peer_epoch != fake.peer_epoch) {
		qp->peer = peer_find(qp);
		qp->peer_epoch = fake.peer_epoch;
	}
	if (qp->peer == NULL || qp->device->private->cut || qp->peer->device->private->cut)
		return NULL;
	if (qp->device != qp->peer->device &&
	    (qp->device->private->unplugged || qp->peer->device->private->unplugged))
		return NULL;
	return share_partition(qp, qp->peer) ? qp->peer : NULL;
}

// Access checks.

static uint8_t *mr_bytes(const struct fake_mr *mr, uint64_t address, uint64_t length) {
	uint64_t offset = address - mr->iova;

	if (address < mr->iova || offset > mr->verbs.length || length > mr->verbs.length - offset)
		return NULL;
	return mr->bytes + offset;
}

static uint8_t *reach_local(const struct fake_qp *qp, const struct ibv_sge *sge, int access) {
	const struct fake_mr *mr = NULL;

	if ((sge->lkey & FAKE_RKEY) == 0)
		mr = fake_mr_find(qp->device, sge->lkey);
	if (mr == NULL || mr->verbs.pd != qp->verbs.pd || (mr->access & access) != access)
		return NULL;
	return mr_bytes(mr, sge->addr, sge->length);
}

static uint8_t *reach_remote(
	const struct fake_qp *peer, uint32_t key, uint64_t address, uint64_t length, int access
) {
	const struct fake_mr *mr = NULL;

	if ((key & FAKE_RKEY) != 0)
		mr = fake_mr_find(peer->device, key & ~FAKE_RKEY);
	if (mr == NULL || mr->verbs.pd != peer->verbs.pd || (mr->access & access) != access)
		return NULL;
	return mr_bytes(mr, address, length);
}

static bool pieces_of(
	const struct fake_qp *qp,
	const struct ibv_sge *sge,
	int count,
	int access,
	struct pieces *ret_pieces
) {
	struct pieces pieces = {0};

	for (int n = 0; n < count; n++) {
		uint8_t *at;

		if (sge[n].length == 0)
			continue;
		at = reach_local(qp, &sge[n], access);
		if (at == NULL)
			return false;
		pieces.piece[pieces.count].at = at;
		pieces.piece[pieces.count++].length = sge[n].length;
		pieces.bytes += sge[n].length;
	}
	*ret_pieces = pieces;
	return true;
}

static struct pieces piece_of(uint8_t *at, uint64_t length) {
	struct pieces pieces = {.count = 1, .bytes = length};

	pieces.piece[0].at = at;
	pieces.piece[0].length = length;
	return pieces;
}

static void move(const struct pieces *to, const struct pieces *from, uint64_t bytes) {
	uint32_t t = 0, f = 0;
	uint64_t t_at = 0, f_at = 0;

	while (bytes > 0) {
		uint64_t part = bytes;

		must(t < to->count && f < from->count);
		if (part > to->piece[t].length - t_at)
			part = to->piece[t].length - t_at;
		if (part > from->piece[f].length - f_at)
			part = from->piece[f].length - f_at;
		fake_touch(to->piece[t].at + t_at, part);
		fake_touch(from->piece[f].at + f_at, part);
		memmove(to->piece[t].at + t_at, from->piece[f].at + f_at, part);
		bytes -= part;
		t_at += part;
		f_at += part;
		if (t_at == to->piece[t].length) {
			t++;
			t_at = 0;
		}
		if (f_at == from->piece[f].length) {
			f++;
			f_at = 0;
		}
	}
}

// Completions.

static bool raises_event(const struct fake_cq *cq, const struct fake_cqe *entry) {
	return cq->armed &&
	       (!cq->armed_solicited || entry->solicited || entry->wc.status != IBV_WC_SUCCESS);
}

static void event_raise(struct fake_cq *cq) {
	struct fake_channel *channel = container_of(cq->verbs.channel, struct fake_channel, verbs);
	struct fake_cq **last = &channel->ready;
	uint64_t one = 1;

	cq->armed = false;
	if (cq->events_waiting++ == 0) {
		while (*last != NULL)
			last = &(*last)->next_event;
		*last = cq;
		cq->next_event = NULL;
	}
	if (write(channel->verbs.fd, &one, sizeof(one)) != sizeof(one))
		fake_break("the completion channel's descriptor takes no event");
}

void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *entry) {
	uint32_t size = (uint32_t)cq->verbs.cqe, place = cq->head + cq->count;

	if (cq->count == size) {
		fake_break("a completion queue of %u entries overflowed", size);
		return;
	}
	cq->entries[place < size ? place : place - size] = *entry;
	cq->count++;
	if (raises_event(cq, entry) && cq->verbs.channel != NULL)
		event_raise(cq);
}

static void complete_receive(
	struct fake_qp *qp,
	enum ibv_wc_status status,
	const struct fake_send *send,
	const struct fake_qp *from
) {
	const struct fake_receive *receive =
		&qp->receives[qp->receives_done++ % qp->init.cap.max_recv_wr];
	struct fake_cqe entry = {
		.wc =
			{
				.wr_id = receive->wr_id,
				.status = status,
				.opcode = IBV_WC_RECV,
				.qp_num = qp->verbs.qp_num,
				.src_qp = from->verbs.qp_num,
			},
		.qp = qp,
		.end = qp->receives_done,
		.receive = true,
		.solicited = (send->wr.send_flags & IBV_SEND_SOLICITED) != 0,
	};

	if (send->wr.opcode != IBV_WR_SEND) {
		entry.wc.wc_flags = IBV_WC_WITH_IMM;
		entry.wc.imm_data = send->wr.imm_data;
	}
	if (send->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		entry.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	for (int n = 0; n < send->wr.num_sge; n++)
		entry.wc.byte_len += send->sge[n].length;
	if (status != IBV_WC_SUCCESS) {
		entry.wc.opcode = (enum ibv_wc_opcode)0x5a;
		entry.wc.byte_len = UINT32_C(0xdeadbeef);
		entry.wc.vendor_err = qp->receive_error.vendor;
		qp->receive_error.status = IBV_WC_SUCCESS;
	}
	fake_cq_push(fake_cq_of(qp->verbs.recv_cq), &entry);
}

// The requests. Each function returns the status for the requester. If the operation also fails for
// the responder, it moves the responder to ERR.

static enum ibv_wc_status refuse(struct fake_qp *peer, enum ibv_wc_status status) {
	fake_qp_to_error(peer);
	return status;
}

void fake_key_fault(uint32_t key, enum fake_key_fault fault) {
	fake_lock();
	fake.faulty_key = key;
	fake.key_fault = fault;
	fake_unlock();
}

static enum fake_key_fault fault_of(const struct fake_send *send) {
	return send->wr.opcode == IBV_WR_RDMA_READ && send->wr.wr.rdma.rkey == fake.faulty_key
		       ? fake.key_fault
		       : FAKE_KEY_SOUND;
}

static bool receive_waits(const struct fake_qp *peer) {
	return peer->receives_posted != peer->receives_done;
}

static enum ibv_wc_status
do_send(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send, struct pieces *own) {
	const struct fake_receive *receive =
		&peer->receives[peer->receives_done % peer->init.cap.max_recv_wr];
	struct pieces theirs;

	if (peer->receive_error.status != IBV_WC_SUCCESS) {
		complete_receive(peer, peer->receive_error.status, send, qp);
		return refuse(peer, IBV_WC_REM_OP_ERR);
	}
	if (!pieces_of(peer, receive->sge, receive->num_sge, IBV_ACCESS_LOCAL_WRITE, &theirs)) {
		complete_receive(peer, IBV_WC_LOC_PROT_ERR, send, qp);
		return refuse(peer, IBV_WC_REM_OP_ERR);
	}
	if (own->bytes > theirs.bytes) {
		complete_receive(peer, IBV_WC_LOC_LEN_ERR, send, qp);
		return refuse(peer, IBV_WC_REM_INV_REQ_ERR);
	}
	move(&theirs, own, own->bytes);
	complete_receive(peer, IBV_WC_SUCCESS, send, qp);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status
do_write(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send, struct pieces *own) {
	const struct ibv_send_wr *wr = &send->wr;
	struct pieces theirs;
	uint8_t *at;

	if ((peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) == 0)
		return refuse(peer, IBV_WC_REM_INV_REQ_ERR);
	if (own->bytes > 0) {
		at = reach_remote(
			peer, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, own->bytes,
			IBV_ACCESS_REMOTE_WRITE
		);
		if (at == NULL)
			return refuse(peer, IBV_WC_REM_ACCESS_ERR);
		theirs = piece_of(at, own->bytes);
		move(&theirs, own, own->bytes);
	}
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		complete_receive(peer, IBV_WC_SUCCESS, send, qp);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status
do_read(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send, struct pieces *own) {
	const struct ibv_send_wr *wr = &send->wr;
	struct pieces theirs;
	uint8_t *at;

	if ((peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) == 0 ||
	    qp->attr.max_rd_atomic > peer->attr.max_dest_rd_atomic)
		return refuse(peer, IBV_WC_REM_INV_REQ_ERR);
	if (own->bytes == 0)
		return IBV_WC_SUCCESS;
	at = reach_remote(
		peer, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, own->bytes, IBV_ACCESS_REMOTE_READ
	);
	if (at == NULL)
		return refuse(peer, IBV_WC_REM_ACCESS_ERR);
	theirs = piece_of(at, own->bytes);
	move(own, &theirs, own->bytes);
	return IBV_WC_SUCCESS;
}

static uint64_t atomic_apply(const struct ibv_send_wr *wr, uint64_t *word) {
	uint64_t old = wr->wr.atomic.compare_add;

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return __atomic_fetch_add(word, wr->wr.atomic.compare_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(
		word, &old, wr->wr.atomic.swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST
	);
	return old;
}

static enum ibv_wc_status
do_atomic(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send, struct pieces *own) {
	const struct ibv_send_wr *wr = &send->wr;
	struct pieces result;
	uint64_t old;
	uint8_t *at;

	if ((peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) == 0 ||
	    peer->device->attr.atomic_cap == IBV_ATOMIC_NONE ||
	    wr->wr.atomic.remote_addr % sizeof(uint64_t) != 0 ||
	    qp->attr.max_rd_atomic > peer->attr.max_dest_rd_atomic)
		return refuse(peer, IBV_WC_REM_INV_REQ_ERR);
	at = reach_remote(
		peer, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, sizeof(uint64_t),
		IBV_ACCESS_REMOTE_ATOMIC
	);
	if (at == NULL)
		return refuse(peer, IBV_WC_REM_ACCESS_ERR);
	fake_touch(at, sizeof(uint64_t));
	old = atomic_apply(wr, (uint64_t *)(void *)at);
	result = piece_of((uint8_t *)&old, sizeof(old));
	move(own, &result, sizeof(old));
	return IBV_WC_SUCCESS;
}

static const struct {
	enum ibv_wc_status (*act
	)(struct fake_qp *qp, struct fake_qp *peer, struct fake_send *send, struct pieces *own);
	int access; // access rights needed for the local memory
	bool receives;
	bool reads; // counts against max_rd_atomic
} kinds[] = {
	[IBV_WR_RDMA_WRITE] = {do_write, 0, false, false},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {do_write, 0, true, false},
	[IBV_WR_SEND] = {do_send, 0, true, false},
	[IBV_WR_SEND_WITH_IMM] = {do_send, 0, true, false},
	[IBV_WR_RDMA_READ] = {do_read, IBV_ACCESS_LOCAL_WRITE, false, true},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {do_atomic, IBV_ACCESS_LOCAL_WRITE, false, true},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {do_atomic, IBV_ACCESS_LOCAL_WRITE, false, true},
};

// Check what the requester's device checks before it sends anything.
static enum ibv_wc_status
check_own(const struct fake_qp *qp, const struct fake_send *send, struct pieces *ret_own) {
	const struct ibv_send_wr *wr = &send->wr;
	const struct fake_port *port = &qp->device->ports[qp->attr.port_num - 1];

	if (kinds[wr->opcode].reads && qp->attr.max_rd_atomic == 0)
		return IBV_WC_LOC_QP_OP_ERR;
	if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
		*ret_own = piece_of(fake_pointer(send->sge[0].addr), send->sge[0].length);
	} else if (!pieces_of(qp, send->sge, wr->num_sge, kinds[wr->opcode].access, ret_own)) {
		return IBV_WC_LOC_PROT_ERR;
	}
	if (ret_own->bytes > port->attr.max_msg_sz)
		return IBV_WC_LOC_LEN_ERR;
	if (kinds[wr->opcode].act == do_atomic && ret_own->bytes != sizeof(uint64_t))
		return IBV_WC_LOC_LEN_ERR;
	return IBV_WC_SUCCESS;
}

// Return true if the request goes to another process, which only reads and writes can.
static bool is_far(const struct fake_qp *qp, enum ibv_wr_opcode opcode) {
	return fake.far != NULL && !qp->attr.ah_attr.is_global && !qp->device->private->cut &&
	       !qp->device->private->unplugged &&
	       (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE);
}

static enum ibv_wc_status
do_far(const struct fake_qp *qp, const struct fake_send *send, const struct pieces *own) {
	uint64_t address = send->wr.wr.rdma.remote_addr;

	for (uint32_t n = 0; n < own->count; n++) {
		if (!fake.far(
			    qp->attr.ah_attr.dlid, send->wr.opcode == IBV_WR_RDMA_WRITE, address,
			    own->piece[n].at, own->piece[n].length
		    ))
			return IBV_WC_RETRY_EXC_ERR;
		address += own->piece[n].length;
	}
	return IBV_WC_SUCCESS;
}

enum fake_answer
fake_work_do(struct fake_qp *qp, struct fake_send *send, struct fake_outcome *ret_outcome) {
	enum ibv_wr_opcode opcode = send->wr.opcode;
	struct pieces own;
	struct fake_qp *peer;

	ret_outcome->bytes = 0;
	ret_outcome->status = check_own(qp, send, &own);
	if (ret_outcome->status != IBV_WC_SUCCESS)
		return FAKE_ANSWER_DONE;
	peer = peer_of(qp);
	if (peer == NULL && is_far(qp, opcode)) {
		ret_outcome->status = do_far(qp, send, &own);
		ret_outcome->bytes = (uint32_t)own.bytes;
		return FAKE_ANSWER_DONE;
	}
	if (peer == NULL || fault_of(send) == FAKE_KEY_SILENT)
		return FAKE_ANSWER_SILENT;
	if (fault_of(send) == FAKE_KEY_REFUSED) {
		ret_outcome->status = refuse(peer, IBV_WC_REM_OP_ERR);
		return FAKE_ANSWER_DONE;
	}
	if (kinds[opcode].receives && !receive_waits(peer))
		return FAKE_ANSWER_RNR;
	if (peer->attr.path_mtu != qp->attr.path_mtu &&
	    (own.bytes > mtu_bytes(peer->attr.path_mtu) || own.bytes > mtu_bytes(qp->attr.path_mtu)
	    )) {
		ret_outcome->status = refuse(peer, IBV_WC_REM_INV_REQ_ERR);
		return FAKE_ANSWER_DONE;
	}
	ret_outcome->status = kinds[opcode].act(qp, peer, send, &own);
	ret_outcome->bytes = (uint32_t)own.bytes;
	return FAKE_ANSWER_DONE;
}
