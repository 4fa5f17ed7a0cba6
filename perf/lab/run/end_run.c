// SPDX-License-Identifier: BSD-3-Clause
// Connect an end, wait for its worker, and destroy the end.
#include "run/end_inside.h"

#include <lib/error.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define TEARDOWN_NS UINT64_C(10000000000)

static struct memory_view view_half(const struct lab_end *end, uint64_t offset) {
	struct memory_view view = end->view;

	view.address += offset;
	view.wire_address += offset;
	view.length = end->half;
	return view;
}

// Raise the priority of the worker's thread only; the other work of this process can wait.
static int raise_priority(const struct lab_end *end, struct lab_why *why) {
	const struct sched_param wanted = {.sched_priority = (int)end->facts.priority};
	struct rlimit limit = {.rlim_cur = 0};
	int err;

	if (end->facts.priority == 0 ||
	    sched_setscheduler(end->facts.tid, SCHED_FIFO, &wanted) == 0)
		return 0;
	err = neg_errno();
	(void)getrlimit(RLIMIT_RTPRIO, &limit);
	return lab_fail(
		why, err,
		"--priority %u: the kernel does not permit it (%s); this process needs "
		"CAP_SYS_NICE, or a limit (ulimit -r) of at least %u instead of %llu",
		end->facts.priority, strerrordesc_np(-err), end->facts.priority,
		(unsigned long long)limit.rlim_cur
	);
}

static int start_worker(struct lab_end *end, struct lab_why *why) {
	struct worker_facts facts;
	int err = worker_start(end->worker, &facts);

	if (err != 0)
		return lab_fail(
			why, err, "cannot start a worker on processor %u: %s", end->facts.cpu,
			strerrordesc_np(-err)
		);
	end->facts.tid = facts.tid;
	end->facts.block_ns = facts.block_ns;
	err = raise_priority(end, why);
	if (err != 0)
		return err;
	for (uint32_t n = 0; n < end->pair_count && err == 0; n++) {
		const struct worker_record add = {
			.kind = LANE_REQUEST_ADD,
			.words =
				{worker_pointer_to_word(end->lane),
				 worker_pointer_to_word(end->pairs[n])},
		};

		err = worker_post_request(end->worker, &add);
		end->added += err == 0;
	}
	return err == 0 ? 0 : lab_fail(why, err, "the request queue of the worker is full");
}

static int make_player(struct lab_end *end, const struct player_path *way, struct lab_why *why) {
	struct load_pair pairs[PLAN_PAIRS_MAX];
	struct load load;

	if (end->plan.command == PLAN_LAT) {
		player_init(&end->player, way, end->plan.op, end->serves);
		end->player.device_time = lab_end_get_device_time(end);
		return 0;
	}
	for (uint32_t n = 0; n < end->pair_count; n++)
		pairs[n] = (struct load_pair){
			.slot = pair_slot(end->pairs[n]),
			.generation = pair_generation(end->pairs[n]),
		};
	if (load_create(&end->plan, pairs, end->serves, &load) != 0)
		return lab_fail(why, -ENOMEM, "no memory for operations");
	player_init_load(&end->player, way, end->plan.op, end->serves, &load);
	return 0;
}

int lab_end_connect(struct lab_end *end, const struct lab_end_info *theirs, struct lab_why *why) {
	struct player_path way = {
		.lane = end->lane,
		.pair = pair_slot(end->pairs[0]),
		.generation = pair_generation(end->pairs[0]),
		.clock = &end->clock,
		.out = view_half(end, 0),
		.in = view_half(end, end->half),
		.remote_address = theirs->address,
		.remote_key = theirs->key,
	};
	char reason[DEVICE_REASON_MAX + 1] = "";
	int err = 0;

	if (theirs->pair_count != end->pair_count)
		return lab_fail(
			why, -EBADMSG, "the other end has %u queue pairs, this end has %u",
			theirs->pair_count, end->pair_count
		);
	for (uint32_t n = 0; n < end->pair_count && err == 0; n++)
		err = pair_connect(end->pairs[n], &theirs->endpoints[n], 0, reason);
	if (err != 0)
		return lab_fail(
			why, err, "%s cannot be connected to %s: %s", end->facts.device,
			theirs->device, reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	err = make_player(end, &way, why);
	if (err != 0)
		return err;
	// Many systems do not allow this; page faults are then counted as noise.
	end->facts.memory_locked = !end->quick && worker_lock_memory() == 0;
	return start_worker(end, why);
}

const struct lab_end_facts *lab_end_facts(const struct lab_end *end) {
	return &end->facts;
}

const struct worker *lab_end_worker(const struct lab_end *end) {
	return end->worker;
}

struct player *lab_end_player(struct lab_end *end) {
	return &end->player;
}

struct device_time *lab_end_get_device_time(struct lab_end *end) {
	return end_uses_stamps(end) ? &end->device_time : NULL;
}

int lab_end_request(struct lab_end *end, enum player_request request, struct lab_why *why) {
	const struct worker_record record = {
		.kind = request,
		.words = {worker_pointer_to_word(&end->player)},
	};
	int err = worker_post_request(end->worker, &record);

	if (err != 0)
		return lab_fail(why, err, "the request queue of the worker is full");
	end->playing |= request == PLAYER_REQUEST_PLAY || request == PLAYER_REQUEST_SERVE;
	return 0;
}

bool lab_end_is_playing(const struct lab_end *end) {
	return end->playing;
}

// Handle one event of the worker. Returns the wakes that a caller may wait for.
static uint32_t handle_event(struct lab_end *end, const struct worker_record *record) {
	struct worker_record gone;
	struct pair *pair;

	switch (record->kind) {
	case PLAYER_EVENT_ENDED:
		end->playing = false;
		return LAB_WAKE_PLAYER;
	case PLAYER_EVENT_SERVES:
		return LAB_WAKE_PLAYER;
	case LANE_EVENT_FAILED:
		(void)pair_fail(worker_word_to_pointer(record->words[1]));
		return 0;
	case LANE_EVENT_STUCK:
		pair = worker_word_to_pointer(record->words[1]);
		gone = (struct worker_record){
			.kind = LANE_REQUEST_QP_DESTROYED,
			.words =
				{worker_pointer_to_word(end->lane), pair_slot(pair),
				 pair_generation(pair)},
		};
		if (pair_destroy_qp(pair) == 0)
			(void)worker_post_request(end->worker, &gone);
		return 0;
	case LANE_EVENT_DRAINED:
		end->drained++;
		return LAB_WAKE_PLAYER;
	default:
		return 0;
	}
}

static uint32_t handle_events(struct lab_end *end) {
	struct worker_record records[16];
	uint32_t wakes = 0, count;

	do {
		count = worker_take_events(end->worker, records, 16);
		for (uint32_t n = 0; n < count; n++)
			wakes |= handle_event(end, &records[n]);
	} while (count == 16);
	return wakes;
}

uint32_t lab_end_wait(
	struct lab_end *end, const struct channel *channel, int signal_fd, struct deadline deadline
) {
	struct pollfd fds[3] = {
		{.fd = worker_event_fd(end->worker), .events = POLLIN},
		{.fd = channel != NULL ? channel->fd : -1, .events = POLLIN},
		{.fd = signal_fd, .events = POLLIN},
	};
	uint32_t wakes = handle_events(end);

	while (wakes == 0) {
		uint64_t now_ns = clock_monotonic_ns();

		if (deadline_expired(deadline, now_ns))
			return LAB_WAKE_TIME;
		(void)poll(fds, 3, deadline_poll_timeout_ms(deadline, now_ns));
		wakes = handle_events(end);
		if (fds[1].revents != 0)
			wakes |= LAB_WAKE_CHANNEL;
		if (fds[2].revents != 0)
			wakes |= LAB_WAKE_SIGNAL;
	}
	return wakes;
}

// Stop the player first, then drain the pairs, so that nothing is posted during the drain.
static void pairs_drain(struct lab_end *end) {
	struct deadline deadline = deadline_after(clock_monotonic_ns(), TEARDOWN_NS);
	struct lab_why unheard = {.text = ""};

	if (end->playing)
		(void)lab_end_request(end, PLAYER_REQUEST_STOP, &unheard);
	while (end->playing && lab_end_wait(end, NULL, -1, deadline) != LAB_WAKE_TIME)
		;

	// The lane fails each pair. This is harmless if the pair has already failed.
	for (uint32_t n = 0; n < end->added; n++) {
		const struct worker_record fail = {
			.kind = LANE_REQUEST_FAIL,
			.words =
				{worker_pointer_to_word(end->lane), pair_slot(end->pairs[n]),
				 pair_generation(end->pairs[n]), (uint64_t)-ESHUTDOWN},
		};

		(void)worker_post_request(end->worker, &fail);
	}
	while (end->drained < end->added && lab_end_wait(end, NULL, -1, deadline) != LAB_WAKE_TIME)
		;
}

// Resources that the device does not release stay allocated; the process is about to exit.
void lab_end_close(struct lab_end *end) {
	if (end == NULL)
		return;
	if (end->added > 0)
		pairs_drain(end);
	if (end->drained < end->added) {
		worker_stop(end->worker);
		return;
	}
	for (uint32_t n = 0; n < end->pair_count; n++)
		(void)pair_destroy(end->pairs[n]);
	end->worker = worker_destroy(end->worker);
	if (end->lane != NULL && lane_destroy(end->lane) != 0)
		return;
	if (end->view.region != NULL)
		memory_view_put(&end->view);
	if (memory_registry_destroy(end->registry) != NULL)
		return;
	device_put(end->device);
	player_release(&end->player);
	histogram_destroy(end->device_time.answers);
	messages_destroy(&end->messages);
	free(end);
}
