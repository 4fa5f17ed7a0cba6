// SPDX-License-Identifier: BSD-3-Clause
// Setup of a player between stretches.
#include "run/player.h"

#include <lib/histogram.h>
#include <lib/must.h>

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
