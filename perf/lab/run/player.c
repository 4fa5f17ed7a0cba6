// SPDX-License-Identifier: BSD-3-Clause
// Setup of a player between stretches, and memory of its load.
#include "run/player.h"

#include <lib/histogram.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void player_init(
	struct player *player, const struct player_path *way, enum plan_op op, bool serves
) {
	memset(player, 0, sizeof(*player));
	player->way = *way;
	player->kind = plan_op_kind(op);
	player->answered = plan_op_is_answered(op);
	player->polls_memory = plan_op_polls_memory(op);
	player->serves = serves;
	atomic_init(&player->played, 0);
}

void player_init_load(
	struct player *player,
	const struct player_path *way,
	enum plan_op op,
	bool serves,
	const struct load *load
) {
	player_init(player, way, op, serves);
	player->answered = player->polls_memory = false;
	player->load = *load;
}

void player_release(struct player *player) {
	load_release(&player->load);
}

void player_set_size(struct player *player, uint64_t size) {
	must(size > 0 && size <= player->way.out.length);
	player->size = size;
	player->number = 0;
	// Clear the memory: bytes of an earlier size must not look like an answer.
	if (player->polls_memory)
		memset(worker_word_to_pointer(player->way.in.address), 0, player->way.in.length);
}

struct worker_poll player_poll(struct player *player) {
	return (struct worker_poll){.poll = player_step, .ctx = player, .fd = -1};
}

void player_dispatch(void *ctx, struct worker *worker, const struct worker_record *record) {
	struct player *player;

	if (record->kind < PLAYER_REQUEST_PLAY) {
		lane_request(ctx, worker, record);
		return;
	}
	player = worker_word_to_pointer(record->words[0]);
	player->worker = worker;
	if (record->kind == PLAYER_REQUEST_STOP) {
		player->stopping = true;
		return;
	}
	if (record->kind == PLAYER_REQUEST_MARK) {
		if (player->device_time != NULL)
			histogram_clear(player->device_time->answers);
		return;
	}
	must(!player->playing);
	player_begin_stretch(player);
}

uint32_t load_receives(const struct plan *plan) {
	return plan_op_has_receiver(plan->op) ? 2 * plan->depth : 0;
}

int load_create(
	const struct plan *plan, const struct load_pair *pairs, bool serves, struct load *ret_load
) {
	struct load load = {
		.pair_count = plan->pairs,
		.depth = plan->depth,
		.sends = !serves || plan->both_ways,
	};

	if (serves || plan->both_ways)
		load.receive_count = load_receives(plan);
	memcpy(load.pairs, pairs, plan->pairs * sizeof(*pairs));
	load.ops = calloc((size_t)load.pair_count * load.depth, sizeof(*load.ops));
	load.receives =
		calloc((size_t)load.pair_count * load.receive_count + 1, sizeof(*load.receives));
	if (load.ops == NULL || load.receives == NULL) {
		load_release(&load);
		return -ENOMEM;
	}
	*ret_load = load;
	return 0;
}

void load_release(struct load *load) {
	free(load->ops);
	free(load->receives);
	load->ops = load->receives = NULL;
}
