// SPDX-License-Identifier: BSD-3-Clause
// Work of a load in one turn of the worker. Hot: no allocation, no blocking.
#include "run/load.h"
#include "run/player.h"

static uint64_t time_since(uint64_t from_ns, uint64_t to_ns) {
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void op_submit(struct player *player, struct op *op) {
	struct op *ops[1] = {op};

	player->load.under_way++;
	lane_submit(player->way.lane, ops, 1);
}

static bool stretch_is_over(const struct player *player, uint64_t now_ns) {
	const struct player_stretch *stretch = &player->stretch;

	return player->stopping || player->kept >= stretch->count ||
	       (player->first_ns > 0 && player->kept >= stretch->windows_min &&
		time_since(player->first_ns, now_ns) >= stretch->last_ns);
}

// Count one completed message. The first window begins after the last message that belongs to no
// window.
static void count_message(struct player *player, uint64_t end_ns) {
	const struct player_stretch *stretch = &player->stretch;
	struct load *load = &player->load;
	uint64_t took_ns;

	load->messages++;
	if (load->lead > 0) {
		if (--load->lead == 0)
			player->first_ns = player->start_ns = end_ns;
		return;
	}
	if (++load->in_window < stretch->window_messages || player->ended)
		return;

	// The message ends a window.
	took_ns = time_since(player->start_ns, end_ns);
	if (stretch->raw != NULL)
		stretch->raw[player->kept] = took_ns;
	else if (stretch->times != NULL)
		run_record_add(stretch->times, took_ns);
	player->kept++;
	player->took_ns = time_since(player->first_ns, end_ns);
	player->start_ns = end_ns;
	load->in_window = 0;
	player->ended |= stretch_is_over(player, end_ns);
}

static void player_fail(struct player *player, const struct op *op) {
	if (!player->playing)
		return;
	if (!player->failed) {
		player->outcome = op->outcome;
		player->cause = op->cause;
	}
	player->failed = true;
	player->ended = true;
}

// Called from the lane's step, as are all functions that submit operations below.
static void on_sent(struct op *op) {
	struct player *player = op->ctx;

	player->load.under_way--;
	if (op->outcome != OP_OK) {
		player_fail(player, op);
		return;
	}
	count_message(player, op->done_ns);
	if (!player->ended && !player->stopping)
		op_submit(player, op);
}

// Post a receive again, also between stretches: the peer may send while this end does not.
static void on_received(struct op *op) {
	struct player *player = op->ctx;
	struct op *ops[1] = {op};

	if (op->outcome != OP_OK) {
		player_fail(player, op);
		return;
	}
	lane_submit(player->way.lane, ops, 1);
}

static struct op op_make(struct player *player, const struct load_pair *pair, enum op_kind kind) {
	const struct player_path *way = &player->way;
	bool goes_out = kind == OP_WRITE || kind == OP_SEND || kind == OP_WRITE_IMM;

	return (struct op){
		.kind = kind,
		.pair = pair->slot,
		.generation = pair->generation,
		.solicited = true,
		.view = goes_out ? way->out : way->in,
		.remote_address = way->remote_address,
		.remote_length = player->size,
		.remote_key = way->remote_key,
		.deadline_ns = IDLE_NEVER,
		.done = kind == OP_RECEIVE ? on_received : on_sent,
		.ctx = player,
	};
}

void load_begin_stretch(struct player *player) {
	struct load *load = &player->load;
	uint32_t receives = load->pair_count * load->receive_count;
	uint32_t sends = load->pair_count * load->depth;

	player->first_ns = player->start_ns = 0;
	load->in_window = 0;
	for (uint32_t n = 0; !load->receives_posted && n < receives; n++) {
		struct op *op = &load->receives[n], *ops[1] = {op};

		*op = op_make(player, &load->pairs[n % load->pair_count], OP_RECEIVE);
		lane_submit(player->way.lane, ops, 1);
	}
	load->receives_posted = true;
	if (!load->sends)
		return;
	load->lead = sends;
	for (uint32_t n = 0; n < sends; n++) {
		struct op *op = &load->ops[n];

		*op = op_make(player, &load->pairs[n % load->pair_count], player->kind);
		op->view.length = player->size;
		op_submit(player, op);
	}
}

bool load_step(struct player *player, const struct idle_step_findings *found) {
	const struct load *load = &player->load;

	atomic_store_explicit(&player->played, load->messages, memory_order_relaxed);
	player->ended |= load->sends ? stretch_is_over(player, found->now_ns) : player->stopping;
	return player->ended && load->under_way == 0;
}
