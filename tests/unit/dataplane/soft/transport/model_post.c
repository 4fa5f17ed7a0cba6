// SPDX-License-Identifier: BSD-3-Clause
// Posts random requests: any operation, any shape, sometimes wrong.
#include "dataplane/soft/transport/model.h"

#include <arpa/inet.h>

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t weight;
} opcodes[] = {
	{IBV_WR_SEND, 4},
	{IBV_WR_SEND_WITH_IMM, 2},
	{IBV_WR_RDMA_WRITE, 6},
	{IBV_WR_RDMA_WRITE_WITH_IMM, 2},
	{IBV_WR_RDMA_READ, 4},
	{IBV_WR_ATOMIC_CMP_AND_SWP, 1},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 2},
};

static enum ibv_wr_opcode draw_opcode(struct model *model) {
	uint32_t pick = below(model, 21);
	size_t i = 0;

	while (pick >= opcodes[i].weight)
		pick -= opcodes[i++].weight;
	return opcodes[i].opcode;
}

static uint32_t draw_length(struct end *end) {
	struct model *model = end->model;
	uint32_t mtu = end->pair->mtu;

	switch (below(model, 12)) {
	case 0:
		return 0;
	case 1:
		return below(model, 4) * mtu;
	case 2:
		return 1 + below(model, 3) * mtu;
	case 3:
		return mtu - 1 + below(model, 3);
	case 4:
		return below(model, 17);
	case 5:
		return below(model, 8) == 0 ? BIG_BYTES - below(model, 2) * below(model, mtu) : 8;
	default:
		return below(model, 3 * mtu);
	}
}

// Reserve `length` contiguous bytes of the arena. Returns false if there is no room.
static bool arena_take(struct end *end, uint32_t length, uint32_t *ret_at, uint64_t *ret_end) {
	uint64_t tail = end->arena_tail;
	uint32_t at = (uint32_t)(tail % end->arena_bytes);

	if (at + length > end->arena_bytes) {
		tail += end->arena_bytes - at;
		at = 0;
	}
	if (tail + length - end->arena_head > end->arena_bytes)
		return false;
	*ret_at = end->arena + at;
	*ret_end = tail + length;
	return true;
}

// Cut `length` bytes from `at` on into at most `max` pieces with small gaps. Returns the number of
// pieces.
static uint32_t
cut(struct model *model,
    struct device *device,
    uint32_t at,
    uint32_t length,
    uint32_t max,
    struct piece pieces[static PIECES_MAX]) {
	uint32_t count = length == 0 ? 0 : 1 + below(model, max);
	uint32_t left = length;

	if (one_in(model, 2) && count > 1)
		count = 1 + below(model, 2);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t piece = i + 1 == count ? left : below(model, left + 1);

		pieces[i] = (struct piece){
			.at = at,
			.length = piece,
			.lkey = one_in(model, 4) ? device->mr_again->lkey : device->mr->lkey,
		};
		left -= piece;
		at += piece + below(model, 8);
	}
	return count;
}

#define GAPS (8 * PIECES_MAX)

static enum wrong draw_wrong(struct end *end, const struct work *work) {
	static const enum wrong of_write[] = {
		WRONG_RKEY, WRONG_RANGE, WRONG_RIGHTS, WRONG_PD, WRONG_LKEY};
	struct model *model = end->model;
	enum wrong wrong = of_write[below(model, COUNT_OF(of_write))];

	if (!model->errs || !one_in(model, 60) || work->length == 0)
		return RIGHT;
	if (wrong == WRONG_LKEY && (work->flags & IBV_SEND_INLINE))
		return RIGHT;
	if (is_send(work->opcode))
		return wrong == WRONG_LKEY ? wrong : RIGHT;
	if (work->opcode == IBV_WR_RDMA_READ && one_in(model, 4))
		return WRONG_LOCAL;
	if (is_atomic(work->opcode) && one_in(model, 3))
		return WRONG_ALIGNMENT;
	return wrong;
}

static void draw_target(struct end *end, struct work *work) {
	struct model *model = end->model;
	struct end *peer = end->peer;

	if (!is_atomic(work->opcode)) {
		work->target = peer->target + below(model, peer->target_bytes - work->length + 1);
		return;
	}
	work->target = peer->words + 8 * below(model, WORDS);
	work->compare_add = one_in(model, 2) ? draw(model) : below(model, 4);
	work->swap = below(model, 4);
	if (work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP && one_in(model, 2)) {
		memcpy(&work->compare_add, peer->device->expected + work->target, 8);
	} else if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && one_in(model, 3)) {
		work->target = peer->device->counter;
		work->compare_add = 1;
	}
}

static unsigned int draw_flags(struct end *end, const struct work *work) {
	struct model *model = end->model;
	unsigned int flags = 0;

	// Completions free room in the queue and the arena, so they must not be delayed for ever.
	if (one_in(model, 2) || end->signal_all || end->unsignalled >= 8 ||
	    end->tail - end->head + 1 >= end->cap.max_send_wr ||
	    end->arena_tail - end->arena_head > end->arena_bytes / 2)
		flags |= IBV_SEND_SIGNALED;
	if (one_in(model, 6))
		flags |= IBV_SEND_FENCE;
	if (takes_receive(work->opcode) && one_in(model, 3))
		flags |= IBV_SEND_SOLICITED;
	if ((is_send(work->opcode) || is_write(work->opcode)) && one_in(model, 2) &&
	    work->length <= end->cap.max_inline_data)
		flags |= IBV_SEND_INLINE;
	return flags;
}

static uint32_t length_max(const struct end *end, enum ibv_wr_opcode opcode) {
	uint32_t max = is_send(opcode) ? end->peer->slot_bytes : end->peer->target_bytes;

	if (max > end->arena_bytes / 2 - GAPS)
		max = end->arena_bytes / 2 - GAPS;
	return max;
}

static bool draw_work(struct end *end, struct work *work) {
	struct model *model = end->model;
	uint32_t at;

	*work = (struct work){.opcode = draw_opcode(model), .immediate = (uint32_t)draw(model)};
	work->length = is_atomic(work->opcode) ? 8 : draw_length(end);
	if (work->length > length_max(end, work->opcode))
		work->length = length_max(end, work->opcode);
	// A receive has at most one slot of bytes, so one byte more never fits.
	if (is_send(work->opcode) && model->errs && one_in(model, 100) &&
	    end->peer->slot_bytes + 1 + GAPS < end->arena_bytes / 2) {
		work->wrong = WRONG_LENGTH;
		work->length = end->peer->slot_bytes + 1;
	}
	if (!arena_take(end, work->length + GAPS, &at, &work->arena_end))
		return false;
	work->id = ++model->next_id;
	work->flags = draw_flags(end, work);
	work->piece_count =
		cut(model, end->device, at, work->length, end->cap.max_send_sge, work->pieces);
	if (work->wrong == RIGHT)
		work->wrong = draw_wrong(end, work);
	if (!is_send(work->opcode))
		draw_target(end, work);
	return true;
}

static uint32_t rkey_of(const struct end *end, const struct work *work) {
	const struct device *over = end->peer->device;

	switch (work->wrong) {
	case WRONG_RKEY:
		return over->mr->rkey ^ (1U << below(end->model, 32));
	case WRONG_RIGHTS:
		return over->mr_local->rkey;
	case WRONG_PD:
		return over->mr_other->rkey;
	default:
		return over->mr->rkey;
	}
}

static uint64_t remote_of(const struct end *end, const struct work *work) {
	const struct device *over = end->peer->device;
	uint64_t address = (uintptr_t)over->memory + work->target;

	if (work->wrong == WRONG_RANGE)
		return (uintptr_t)over->memory + over->memory_bytes - work->length +
		       (is_atomic(work->opcode) ? 8 : 1);
	return work->wrong == WRONG_ALIGNMENT ? address + 1 + below(end->model, 7) : address;
}

static void fill_request(
	struct end *end, const struct work *work, struct ibv_sge *sges, struct ibv_send_wr *wr
) {
	for (uint32_t i = 0; i < work->piece_count; i++) {
		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)end->device->memory + work->pieces[i].at,
			.length = work->pieces[i].length,
			.lkey = work->pieces[i].lkey,
		};
	}
	// The lkey of an empty piece is not checked, so all pieces get the wrong one.
	for (uint32_t i = 0; i < work->piece_count && work->wrong == WRONG_LKEY; i++)
		sges[i].lkey = end->device->mr_other->lkey;
	for (uint32_t i = 0; i < work->piece_count && work->wrong == WRONG_LOCAL; i++)
		sges[i].lkey = end->device->mr_read->lkey;
	*wr = (struct ibv_send_wr){
		.wr_id = (uint64_t)work->id << 1,
		.sg_list = sges,
		.num_sge = (int)work->piece_count,
		.opcode = work->opcode,
		.send_flags = work->flags,
		.imm_data = htonl(work->immediate),
	};
	if (is_atomic(work->opcode)) {
		wr->wr.atomic.remote_addr = remote_of(end, work);
		wr->wr.atomic.rkey = rkey_of(end, work);
		wr->wr.atomic.compare_add = work->compare_add;
		wr->wr.atomic.swap = work->swap;
	} else if (!is_send(work->opcode)) {
		wr->wr.rdma.remote_addr = remote_of(end, work);
		wr->wr.rdma.rkey = rkey_of(end, work);
	}
}

static void paint_pieces(struct end *end, const struct work *work, uint32_t id) {
	uint32_t offset = 0;

	for (uint32_t i = 0; i < work->piece_count; i++) {
		paint(end->device, work->pieces[i].at, work->pieces[i].length, id, offset);
		offset += work->pieces[i].length;
	}
}

static void announce(struct end *end, const struct work *work) {
	struct end *peer = end->peer;

	if (!takes_receive(work->opcode) || work->wrong == WRONG_LKEY)
		return;
	peer->incoming[peer->incoming_tail++ % INCOMING_RING] = (struct incoming){
		.id = work->id,
		.opcode = work->opcode,
		.length = work->length,
		.immediate = work->immediate,
		.too_long = work->wrong == WRONG_LENGTH,
	};
}

static void posted(struct end *end, struct work *work) {
	// Inline bytes are copied when posted, so later changes of the memory must not be sent.
	if (work->flags & IBV_SEND_INLINE)
		paint_pieces(end, work, work->id + 77);
	if (end->signal_all)
		work->flags |= IBV_SEND_SIGNALED;
	end->unsignalled = work->flags & IBV_SEND_SIGNALED ? 0 : end->unsignalled + 1;
	end->arena_tail = work->arena_end;
	end->tail++;
	end->model->posted++;
}

void post_work(struct end *end) {
	struct work *work = work_at(end, end->tail);
	struct ibv_send_wr *bad = NULL;
	struct ibv_sge sges[PIECES_MAX];
	struct ibv_send_wr wr;
	int err;

	if (end->tail - end->kept >= WORKS_RING - 1 ||
	    end->tail - end->head > end->cap.max_send_wr ||
	    end->peer->incoming_tail - end->peer->incoming_head >= INCOMING_RING - 1)
		return;
	if (!draw_work(end, work))
		return;
	fill_request(end, work, sges, &wr);
	if (work->opcode != IBV_WR_RDMA_READ && !is_atomic(work->opcode))
		paint_pieces(end, work, work->id);
	if (work->wrong != RIGHT)
		pair_spoil(end->pair);
	model_trace(
		end->model,
		"work %u on qp %u: opcode %d, %u bytes in %u, at %u, flags 0x%x, wrong %d (%lx %lx)",
		work->id, end->qp->qp_num, work->opcode, work->length, work->piece_count,
		work->target, work->flags, work->wrong, (unsigned long)work->compare_add,
		(unsigned long)work->swap
	);
	err = ibv_post_send(end->qp, &wr, &bad);
	if (err == ENOMEM && bad == &wr && end->tail - end->head >= end->cap.max_send_wr) {
		model_trace(end->model, "the queue is full");
		return;
	}
	model_must(end->model, err == 0, "post_send says %d", err);
	// The request may already be sent, but no answer arrives before the next turn.
	announce(end, work);
	posted(end, work);
}

static bool receive_place(struct end *end, struct receive **ret_receive) {
	struct device *device = end->device;
	struct receive *receive;

	if (!end->uses_srq) {
		uint32_t waiting = end->receive_tail - end->receive_head;

		if (waiting >= end->cap.max_recv_wr || waiting >= end->slot_count)
			return false;
		receive = &end->receives[end->receive_tail % RECEIVES_RING];
		receive->slot =
			end->slots + end->receive_tail % end->slot_count * (end->slot_bytes + GAPS);
		*ret_receive = receive;
		return true;
	}
	for (uint32_t i = 0; i < device->srq_slots; i++) {
		if (device->srq_receives[i].id != 0)
			continue;
		*ret_receive = &device->srq_receives[i];
		return true;
	}
	return false;
}

void post_receive(struct end *end) {
	struct model *model = end->model;
	struct receive *receive;
	struct ibv_recv_wr *bad = NULL;
	struct ibv_sge sges[PIECES_MAX];
	struct ibv_recv_wr wr = {.sg_list = sges};
	uint32_t id;
	int err;

	if (!receive_place(end, &receive))
		return;
	id = ++model->next_id;
	receive->bad = !end->uses_srq && model->errs && one_in(model, 60);
	receive->piece_count =
		cut(model, end->device, receive->slot, end->slot_bytes,
		    end->uses_srq ? 4 : end->cap.max_recv_sge, receive->pieces);
	for (uint32_t i = 0; i < receive->piece_count; i++) {
		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)end->device->memory + receive->pieces[i].at,
			.length = receive->pieces[i].length,
			.lkey = receive->bad ? end->device->mr_read->lkey : receive->pieces[i].lkey,
		};
	}
	wr.wr_id = (uint64_t)id << 1 | 1;
	wr.num_sge = (int)receive->piece_count;
	err = end->uses_srq ? ibv_post_srq_recv(end->device->srq, &wr, &bad)
			    : ibv_post_recv(end->qp, &wr, &bad);
	if (err == ENOMEM && end->uses_srq)
		return;
	model_must(model, err == 0, "post_recv says %d", err);
	receive->id = id;
	if (!end->uses_srq)
		end->receive_tail++;
	if (receive->bad) {
		end->bad_receives = true;
		pair_spoil(end->pair);
	}
	model_trace(
		model, "receive %u on qp %u: %u pieces, bad %d", id, end->qp->qp_num,
		receive->piece_count, receive->bad
	);
}
