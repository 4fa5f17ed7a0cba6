// SPDX-License-Identifier: BSD-3-Clause
// Work of a player in one turn of the worker. Hot: no allocation, no blocking.
//
// An operation without a delay is submitted where the end of the previous one is seen. For a
// completion this is the lane's step; for a byte in memory it is player_step(). The lane posts the
// operation in the same turn in both cases, because it is polled after the player.
#include "run/player.h"

#include <lib/histogram.h>

static uint64_t time_since(uint64_t from_ns, uint64_t to_ns) {
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static uint8_t *last_byte(const struct memory_view *view, uint64_t size) {
	return (uint8_t *)worker_word_to_pointer(view->address) + size - 1;
}

// Record the first failure. Failures between stretches come from the teardown and are ignored.
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

// Submit one message. If memory is polled, its last byte carries a sequence number; an answer
// repeats the number of its message. Returns false if all operations are outstanding.
static bool message_submit(struct player *player) {
	uint32_t place = player->next_op % PLAYER_OPS;
	struct op *op = &player->ops[place], *ops[1] = {op};

	if (player->busy[place])
		return false;
	player->busy[place] = true;
	player->next_op++;
	player->number++;
	if (player->polls_memory)
		*last_byte(&player->way.out, player->size) = player->number;
	op->view.length = op->remote_length = player->size;
	lane_submit(player->way.lane, ops, 1);
	return true;
}

static void record_sample(struct player *player, uint64_t end_ns) {
	const struct player_stretch *stretch = &player->stretch;
	uint64_t took_ns = time_since(player->start_ns, end_ns), ready_ns = player->start_ns;
	struct device_time *time = player->device_time;
	struct outlier_watch *watch = stretch->watch;

	if (player->begun <= stretch->lead)
		return;

	// An operation of an open loop could begin when it was due and the one before had ended.
	if (stretch->due_ns != NULL)
		ready_ns = player->free_ns > player->due_ns ? player->free_ns : player->due_ns;
	if (stretch->raw != NULL) {
		stretch->raw[player->kept] = took_ns;
	} else if (stretch->due_ns != NULL) {
		run_record_add(stretch->times, time_since(player->due_ns, end_ns));
		run_record_add(stretch->service, took_ns);
		histogram_record(stretch->lag, time_since(ready_ns, player->start_ns));
	} else {
		run_record_add(stretch->times, took_ns);
	}

	// The clocks are compared while no operation is outstanding.
	if (time != NULL && stretch->raw == NULL) {
		device_time_record(time, player->start_ns, end_ns, player->stamp);
		if (end_ns >= time->due_ns)
			device_time_read(time, player->way.lane, player->way.clock);
	}

	// Examine a large sample, or read the counters from time to time as a reference.
	took_ns = time_since(ready_ns, end_ns);
	if (watch != NULL && (took_ns >= watch->bound_ns || end_ns >= watch->due_ns))
		outlier_watch_sample(
			watch, player->kept, took_ns, end_ns, time_since(player->first_ns, end_ns)
		);
	player->kept++;
	player->took_ns = time_since(player->first_ns, end_ns);
}

static uint64_t next_due_ns(const struct player *player, uint64_t end_ns) {
	const struct player_stretch *stretch = &player->stretch;

	if (stretch->due_ns != NULL && player->begun >= stretch->lead)
		return player->begin_ns + stretch->due_ns[player->begun - stretch->lead];
	return end_ns + stretch->gap_ns;
}

static bool stretch_is_over(const struct player *player, uint64_t now_ns) {
	const struct player_stretch *stretch = &player->stretch;

	return player->stopping || player->kept >= stretch->count ||
	       (player->begun > stretch->lead &&
		time_since(player->first_ns, now_ns) >= stretch->last_ns);
}

// Start the next operation if it is due. Returns true if it was submitted.
static bool operation_begin(struct player *player, uint64_t now_ns) {
	if (player->due_ns > now_ns)
		return false;
	player->start_ns = clock_now_ns(player->way.clock);
	if (!message_submit(player))
		return false;
	if (player->begun++ == player->stretch.lead)
		player->first_ns = player->start_ns;
	player->under_way = true;
	return true;
}

// Finish the current operation, whose end was just seen.
static void operation_end(struct player *player, uint64_t end_ns) {
	player->under_way = false;
	record_sample(player, end_ns);
	player->free_ns = end_ns;
	atomic_store_explicit(&player->played, player->begun, memory_order_relaxed);
	if (player->ended || stretch_is_over(player, end_ns)) {
		player->ended = true;
		return;
	}
	// The schedule begins with its first operation, after the lead.
	if (player->stretch.due_ns != NULL && player->begun == player->stretch.lead)
		player->begin_ns = clock_now_ns(player->way.clock);
	player->due_ns = next_due_ns(player, end_ns);
	// If the operation is not due yet, a later turn starts it.
	operation_begin(player, end_ns);
}

// Called from the lane's step, as are all functions that submit operations below.
static void on_sent(struct op *op) {
	struct player *player = op->ctx;

	player->busy[op - player->ops] = false;
	if (op->outcome != OP_OK) {
		player_fail(player, op);
	} else if (!player->answered && player->under_way) {
		player->stamp = op->device_stamp;
		operation_end(player, op->done_ns);
	}
}

// Send the owed answers. If all operations are outstanding, a later turn continues.
static bool send_owed_answers(struct player *player) {
	bool any = false;

	while (player->playing && player->owed > 0 && message_submit(player)) {
		player->owed--;
		any = true;
		if (player->device_time != NULL)
			device_time_note_answer(
				player->device_time, clock_now_ns(player->way.clock), player->stamp
			);
	}
	atomic_store_explicit(&player->played, player->next_op, memory_order_relaxed);
	return any;
}

static void on_received(struct op *op) {
	struct player *player = op->ctx;
	struct op *ops[1] = {op};
	uint64_t end_ns = op->done_ns;

	if (op->outcome != OP_OK) {
		player_fail(player, op);
		return;
	}
	player->stamp = op->device_stamp;
	lane_submit(player->way.lane, ops, 1); // posted before the next message is sent
	if (player->serves) {
		player->owed++;
		send_owed_answers(player);
	} else if (player->under_way) {
		operation_end(player, end_ns);
	}
}

static struct op op_make(struct player *player, enum op_kind kind, void (*done)(struct op *op)) {
	const struct player_path *way = &player->way;

	return (struct op){
		.kind = kind,
		.pair = way->pair,
		.generation = way->generation,
		.solicited = true,
		.remote_address = way->remote_address,
		.remote_length = player->size,
		.remote_key = way->remote_key,
		.operand = {0, 0},
		.deadline_ns = IDLE_NEVER,
		.done = done,
		.ctx = player,
	};
}

void player_begin_stretch(struct player *player) {
	bool receives = player->answered && !player->polls_memory;

	player->playing = true;
	player->stopping = player->ended = player->failed = player->under_way = false;
	player->serves_reported = false;
	player->begun = player->kept = player->took_ns = 0;
	if (player->load.depth > 0) {
		load_begin_stretch(player);
		return;
	}
	for (uint32_t n = 0; n < PLAYER_OPS; n++) {
		if (player->busy[n])
			continue; // outstanding; it differs from the new ones only in the size
		player->ops[n] = op_make(player, player->kind, on_sent);
		player->ops[n].view = player->answered ? player->way.out : player->way.in;
		player->ops[n].view.length = player->size;
	}
	if (player->device_time != NULL)
		device_time_read(player->device_time, player->way.lane, player->way.clock);
	for (uint32_t n = 0; receives && !player->receives_posted && n < PLAYER_RECEIVES; n++) {
		struct op *op = &player->receives[n], *ops[1] = {op};

		*op = op_make(player, OP_RECEIVE, on_received);
		op->view = player->way.in;
		lane_submit(player->way.lane, ops, 1);
	}
	player->receives_posted = receives;
	player->owed = 0;
	player->begin_ns = player->free_ns = player->due_ns = clock_now_ns(player->way.clock);
	if (!player->serves && player->stretch.lead == 0)
		player->due_ns = next_due_ns(player, player->begin_ns);
}

// Acquire orders the other bytes of the message before the last one.
static bool message_has_arrived(const struct player *player, uint8_t number) {
	return __atomic_load_n(last_byte(&player->way.in, player->size), __ATOMIC_ACQUIRE) ==
	       number;
}

static bool serve_messages(struct player *player, struct idle_step_findings *found) {
	uint8_t next = (uint8_t)(player->number + 1);
	struct device_time *time = player->device_time;

	if (player->polls_memory) {
		found->outstanding = true;
		found->events = false; // no completion reports the message
		player->owed = message_has_arrived(player, next);
	}
	if (player->owed > 0)
		return send_owed_answers(player);

	// The last answer has been posted by now.
	if (time != NULL) {
		device_time_record_answer(time);
		if (found->now_ns >= time->due_ns)
			device_time_read(time, player->way.lane, player->way.clock);
	}
	return false;
}

static bool operation_play(struct player *player, struct idle_step_findings *found) {
	if (player->under_way) {
		if (!player->polls_memory)
			return false;
		found->outstanding = true;
		found->events = false;
		if (!message_has_arrived(player, player->number))
			return false;
		operation_end(player, clock_now_ns(player->way.clock));
		return true;
	}
	if (stretch_is_over(player, found->now_ns)) {
		player->ended = true;
		return true;
	}
	if (operation_begin(player, found->now_ns))
		return true;
	if (player->due_ns > found->now_ns && player->due_ns < found->due_ns)
		found->due_ns = player->due_ns;
	return false;
}

static bool post_event(const struct player *player, enum player_event kind) {
	const struct worker_record record = {
		.kind = kind, .words = {worker_pointer_to_word(player)}};

	return worker_event(player->worker, &record) == 0;
}

// Report the end of the stretch. Returns true if the event was queued; the player then belongs to
// control again.
static bool report_ended(struct player *player) {
	player->playing = player->under_way = false;
	if (post_event(player, PLAYER_EVENT_ENDED))
		return true;
	player->playing = true;
	return false;
}

bool player_step(void *ctx, struct idle_step_findings *found) {
	struct player *player = ctx;

	if (!player->playing)
		return false;
	if (player->serves && !player->serves_reported)
		player->serves_reported = post_event(player, PLAYER_EVENT_SERVES);
	if (player->load.depth > 0)
		return load_step(player, found) && report_ended(player);
	player->ended |= player->stopping;
	if (player->ended)
		return report_ended(player);
	return player->serves ? serve_messages(player, found) : operation_play(player, found);
}
