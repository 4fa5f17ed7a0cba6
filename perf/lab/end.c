// SPDX-License-Identifier: BSD-3-Clause
// Makes an end, connects it, takes it apart.
#include "end.h"

#include "device.h"
#include "result.h"

#include <dataplane/cores.h>
#include <dataplane/pair.h>
#include <dataplane/worker.h>
#include <lib/clock.h>
#include <lib/error.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PAGE_BYTES UINT64_C(4096)
#define DEPTH 64u // receives of a player, and room for more sends than it has
#define DRAIN_NS UINT64_C(1000000000)
#define TEARDOWN_NS UINT64_C(10000000000)
#define CLOCK_READINGS 10000

struct lab_end {
	struct lab_end_facts facts;
	struct clock clock;
	struct device *device;
	struct messages messages;
	uint64_t half; // bytes of what goes out; as many come in
	struct memory_registry *registry;
	struct memory_view view;
	struct worker *worker;
	struct lane *lane;
	struct pair *pairs[PLAN_PAIRS_MAX];
	uint32_t pair_count, added, drained; // the lane has, and gave back
	struct player player;
	struct device_stamps stamps;
	struct device_time device_time;
	struct plan plan;
	bool serves, quick;
	bool playing; // or serves
};

static uint64_t pages_round_up(uint64_t size) {
	return (size + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

// Of a GPU's memory a program of the host's sees no byte.
static int check_memory(const struct lab_end *end, const struct plan *plan, struct lab_why *why) {
	if (end->facts.memory.kind != MESSAGES_GPU || plan->command != PLAN_LAT ||
	    !plan_op_looks_in_memory(plan->op))
		return 0;
	return lab_fail(
		why, -EINVAL,
		"--memory gpu: the answer of a write is looked for in memory by the processor, "
		"which does not see that of a GPU; use --op write-imm"
	);
}

static int make_memory(struct lab_end *end, const struct plan *plan, struct lab_why *why) {
	struct memory_config config = {.device = end->device, .clock = &end->clock};
	struct memory_request request = {
		.access =
			MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_LOCAL_WRITES | MEMORY_ALONE,
	};
	char reason[MEMORY_REASON_MAX + 1] = "";
	int err = check_memory(end, plan, why);

	if (err != 0)
		return err;
	end->half = pages_round_up(plan_size_max(plan));
	err = messages_create(end->facts.memory, 2 * end->half, why, &end->messages);
	if (err != 0)
		return err;
	if (device_facts(end->device)->limits.atomics)
		request.access |= MEMORY_PEER_ATOMICS;
	config.cuda = end->messages.cuda;
	request.address = end->messages.address;
	request.length = 2 * end->half;
	err = memory_registry_create(&config, &end->registry);
	if (err == 0)
		err = memory_view_take(end->registry, &request, reason, &end->view);
	if (err != 0)
		return lab_fail(
			why, err, "%s: memory cannot be registered: %s", end->facts.device,
			reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	return 0;
}

// Nobody is answered by a server's program where operations are one-sided: it rests, so that it
// takes no processor from whoever does answer.
static enum idle_policy policy_of(const struct lab_end_config *config) {
	bool rests = config->serves && plan_server_rests(config->plan);

	return rests ? IDLE_EVENT : config->plan->policy;
}

// Two ends on one machine take two processors: the client the best, the server the next.
static int choose_core(
	const struct lab_end_config *config,
	const struct cpu_set *near,
	uint32_t *ret_cpu,
	struct lab_why *why
) {
	bool second = config->serves && channel_is_local(config->channel);
	struct cores_places places = {.near = *near, .spins = policy_of(config) == IDLE_SPIN};
	struct cpu_set one, two;
	int err = cpu_set_get_allowed(&places.allowed);

	if (err == 0 && config->cores_given) {
		*ret_cpu = cpu_set_next(&config->cores, 0);
		return 0;
	}
	cores_read_isolated("/sys", &places.isolated);
	if (err == 0)
		err = cores_choose(&places, 1, &one);
	if (err != 0)
		return lab_fail(why, err, "no processor: %s", strerrordesc_np(-err));
	*ret_cpu = cpu_set_next(&one, 0);
	if (!second || cores_choose(&places, 2, &two) != 0)
		return 0;
	for (uint32_t cpu = cpu_set_next(&two, 0); cpu < CPU_SET_CPUS_MAX;
	     cpu = cpu_set_next(&two, cpu + 1)) {
		if (!cpu_set_has(&one, cpu))
			*ret_cpu = cpu;
	}
	return 0;
}

static uint32_t lane_depth(const struct plan *plan) {
	uint32_t depth = plan->depth, receives = load_receives(plan);

	depth = receives > depth ? receives : depth;
	return depth > DEPTH ? depth : DEPTH;
}

static bool end_stamps(const struct lab_end *end) {
	return end->serves ? plan_server_stamps(&end->plan) : end->plan.stamps != PLAN_STAMPS_NONE;
}

static int stamps_fail(const struct lab_end *end, int err, struct lab_why *why) {
	return lab_fail(
		why, err, "--device-time: %s does not stamp completions with its %s (%s)",
		end->facts.device, end->plan.stamps == PLAN_STAMPS_WALL ? "time of day" : "clock",
		strerrordesc_np(-err)
	);
}

static int find_stamps(struct lab_end *end, struct lab_why *why) {
	int err = device_stamps(end->device, &end->stamps);

	if (err != 0)
		return stamps_fail(end, err, why);
	end->facts.stamp_khz = end->stamps.khz;
	return 0;
}

// The device has the kind of completion queue; that it tells its time is seen now.
static int make_device_time(struct lab_end *end, struct lab_why *why) {
	bool wall = end->plan.stamps == PLAN_STAMPS_WALL;
	int err = device_time_init(&end->device_time, end->lane, &end->clock, &end->stamps, wall);

	if (err != 0)
		return lab_fail(
			why, err, "--device-time: %s does not tell the time of its clock (%s)",
			end->facts.device, strerrordesc_np(-err)
		);
	if (end->serves && result_lag_create(&end->device_time.answers) != 0)
		return lab_fail(why, -ENOMEM, "no memory for times");
	return 0;
}

static enum lane_stamps lane_stamps_of(const struct lab_end *end) {
	if (!end_stamps(end))
		return LANE_STAMPS_NONE;
	return end->plan.stamps == PLAN_STAMPS_WALL ? LANE_STAMPS_WALL : LANE_STAMPS_RAW;
}

static int make_lane(
	struct lab_end *end, const struct lab_end_config *config, uint32_t cpu, struct lab_why *why
) {
	uint32_t depth = lane_depth(config->plan), pairs = config->plan->pairs;
	struct lane_config lane = {
		.device = end->device,
		.pair_max = pairs,
		.depth = depth,
		.op_max = 2 * depth * pairs,
		.drain_ns = DRAIN_NS,
		.clock = &end->clock,
		.near = near_cpu(cpu),
		.stamps = lane_stamps_of(end),
	};
	struct lane_facts facts;
	int err = lane.stamps != LANE_STAMPS_NONE ? find_stamps(end, why) : 0;

	if (err != 0)
		return err;
	err = lane_create(&lane, &end->lane);
	// Some drivers say so of flags that they do not know.
	if (lane.stamps != LANE_STAMPS_NONE && (err == -EOPNOTSUPP || err == -EINVAL))
		return stamps_fail(end, err, why);
	if (err != 0)
		return lab_fail(
			why, err, "%s: no completion queue: %s", end->facts.device,
			strerrordesc_np(-err)
		);
	lane_facts(end->lane, &facts);
	if (facts.pair_max < pairs || (config->plan->command == PLAN_BW && facts.depth < depth))
		return lab_fail(
			why, -ENOSPC,
			"%s has room for %u queue pairs of depth %u, not for %u of %u: "
			"lower --queue-pairs or --depth (of send and write-imm twice as many "
			"receives are posted)",
			end->facts.device, facts.pair_max, facts.depth, pairs, depth
		);
	return lane.stamps != LANE_STAMPS_NONE ? make_device_time(end, why) : 0;
}

static int make_worker(
	struct lab_end *end,
	const struct lab_end_config *config,
	const struct cpu_set *near,
	struct lab_why *why
) {
	struct worker_config worker = {
		.name = "tocsin-perf",
		.clock = &end->clock,
		.kept_clock = &end->clock,
		.idle =
			{
				.policy = policy_of(config),
				.window_ns = config->plan->window_ns,
				.foresees = true,
			},
		.request = player_dispatch,
	};
	int err = choose_core(config, near, &worker.cpu, why);

	if (err != 0)
		return err;
	end->facts.cpu = worker.cpu;
	err = make_lane(end, config, worker.cpu, why);
	if (err != 0)
		return err;
	worker.polls[0] = player_poll(&end->player);
	worker.polls[1] = lane_poll(end->lane);
	worker.poll_count = 2;
	err = worker_create(&worker, &end->worker);
	if (err != 0)
		return lab_fail(why, err, "no worker: %s", strerrordesc_np(-err));
	return 0;
}

static int
make_pair(struct lab_end *end, struct device_endpoint *ret_endpoint, struct lab_why *why) {
	struct pair_config config = {.lane = end->lane, .generation = 1};
	int err;

	if (getrandom(&config.psn, sizeof(config.psn), 0) != sizeof(config.psn))
		return lab_fail(why, -EIO, "no random numbers");
	config.psn &= 0xffffff;
	err = pair_create(&config, ret_endpoint, &end->pairs[end->pair_count]);
	if (err != 0)
		return lab_fail(
			why, err, "%s: no queue pair: %s", end->facts.device, strerrordesc_np(-err)
		);
	end->pair_count++;
	return 0;
}

static int make_pairs(struct lab_end *end, struct lab_about *ret_about, struct lab_why *why) {
	struct lab_about about = {
		.address = end->view.wire_address + end->half,
		.key = end->view.remote_key,
		.pair_count = end->plan.pairs,
	};
	int err = 0;

	for (uint32_t n = 0; n < about.pair_count && err == 0; n++)
		err = make_pair(end, &about.endpoints[n], why);
	if (err != 0)
		return err;
	memcpy(about.device, end->facts.device, sizeof(about.device));
	*ret_about = about;
	return 0;
}

static void read_clock(struct lab_end *end) {
	uint64_t before = clock_now_ns(&end->clock), least = UINT64_MAX;

	for (int n = 0; n < CLOCK_READINGS; n++) {
		uint64_t now = clock_now_ns(&end->clock);

		least = now - before < least ? now - before : least;
		before = now;
	}
	end->facts.clock = clock_source_name(clock_source(&end->clock));
	end->facts.clock_why = clock_reason(&end->clock);
	end->facts.clock_error_ppb = clock_error_ppb(&end->clock);
	end->facts.clock_read_ns = least;
}

static void read_device(struct lab_end *end) {
	const struct device_facts *facts = device_facts(end->device);

	memcpy(end->facts.device, facts->name, sizeof(end->facts.device));
	end->facts.responder = device_responder_name(facts->responder);
	end->facts.link = device_link_name(facts->port.link);
	end->facts.mtu = facts->port.active_mtu;
	end->facts.speed_mbps = facts->port.speed_mbps;
}

static int check_device(struct lab_end *end, const struct plan *plan, struct lab_why *why) {
	if (plan_op_is_atomic(plan->op) && !device_facts(end->device)->limits.atomics)
		return lab_fail(why, -EOPNOTSUPP, "%s has no atomic operations", end->facts.device);
	return 0;
}

int lab_end_open(
	const struct lab_end_config *config,
	struct lab_why *why,
	struct lab_about *ret_about,
	struct lab_end **ret_end
) {
	struct lab_end *end = calloc(1, sizeof(*end));
	struct cpu_set near;
	int err;

	if (end == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	end->plan = *config->plan;
	end->serves = config->serves;
	end->quick = config->quick;
	end->facts.memory = config->memory;
	clock_init_kept(&end->clock);
	read_clock(end);
	err = lab_device_open(
		config->device, &config->settings,
		channel_is_local(config->channel) ? NULL : &config->channel->local, why, &near,
		&end->device
	);
	if (err == 0) {
		read_device(end);
		err = check_device(end, config->plan, why);
	}
	if (err == 0)
		err = make_memory(end, config->plan, why);
	if (err == 0)
		err = make_worker(end, config, &near, why);
	if (err == 0)
		err = make_pairs(end, ret_about, why);
	if (err != 0) {
		lab_end_close(end);
		return err;
	}
	*ret_end = end;
	return 0;
}

static struct memory_view view_part(const struct lab_end *end, uint64_t offset) {
	struct memory_view view = end->view;

	view.address += offset;
	view.wire_address += offset;
	view.length = end->half;
	return view;
}

static int add_pair(struct lab_end *end, const struct pair *pair) {
	const struct worker_record add = {
		.kind = LANE_REQUEST_ADD,
		.words = {worker_word(end->lane), worker_word(pair)},
	};
	int err = worker_post(end->worker, &add);

	end->added += err == 0;
	return err;
}

static int start_worker(struct lab_end *end, struct lab_why *why) {
	struct worker_facts facts;
	int err = worker_start(end->worker, &facts);

	if (err != 0)
		return lab_fail(
			why, err, "no worker on processor %u: %s", end->facts.cpu,
			strerrordesc_np(-err)
		);
	end->facts.tid = facts.tid;
	end->facts.block_ns = facts.block_ns;
	for (uint32_t n = 0; n < end->pair_count && err == 0; n++)
		err = add_pair(end, end->pairs[n]);
	return err == 0 ? 0 : lab_fail(why, err, "the worker does not keep up");
}

static int connect_pairs(struct lab_end *end, const struct lab_about *theirs, struct lab_why *why) {
	char reason[DEVICE_REASON_MAX + 1] = "";
	int err = 0;

	if (theirs->pair_count != end->pair_count)
		return lab_fail(
			why, -EBADMSG, "the other end has %u queue pairs, we have %u",
			theirs->pair_count, end->pair_count
		);
	for (uint32_t n = 0; n < end->pair_count && err == 0; n++)
		err = pair_connect(end->pairs[n], &theirs->endpoints[n], 0, reason);
	if (err != 0)
		return lab_fail(
			why, err, "%s cannot be connected to %s: %s", end->facts.device,
			theirs->device, reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	return 0;
}

static int make_player(struct lab_end *end, const struct player_way *way, struct lab_why *why) {
	struct load_pair pairs[PLAN_PAIRS_MAX];
	struct load load;

	if (end->plan.command == PLAN_LAT) {
		player_init(&end->player, way, end->plan.op, end->serves);
		end->player.device_time = lab_end_device_time(end);
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

int lab_end_connect(struct lab_end *end, const struct lab_about *theirs, struct lab_why *why) {
	struct player_way way = {
		.lane = end->lane,
		.pair = pair_slot(end->pairs[0]),
		.generation = pair_generation(end->pairs[0]),
		.clock = &end->clock,
		.out = view_part(end, 0),
		.in = view_part(end, end->half),
		.remote_address = theirs->address,
		.remote_key = theirs->key,
	};
	int err = connect_pairs(end, theirs, why);

	if (err == 0)
		err = make_player(end, &way, why);
	if (err != 0)
		return err;
	// Refused to many: then faults are counted with the other noise.
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

struct device_time *lab_end_device_time(struct lab_end *end) {
	return end_stamps(end) ? &end->device_time : NULL;
}

int lab_end_request(struct lab_end *end, enum player_request request, struct lab_why *why) {
	const struct worker_record record = {
		.kind = request,
		.words = {worker_word(&end->player)},
	};
	int err = worker_post(end->worker, &record);

	if (err != 0)
		return lab_fail(why, err, "the worker does not keep up");
	end->playing |= request == PLAYER_REQUEST_PLAY || request == PLAYER_REQUEST_SERVE;
	return 0;
}

bool lab_end_is_playing(const struct lab_end *end) {
	return end->playing;
}

static void post_gone(const struct lab_end *end, struct pair *pair) {
	const struct worker_record gone = {
		.kind = LANE_REQUEST_GONE,
		.words = {worker_word(end->lane), pair_slot(pair), pair_generation(pair)},
	};

	if (pair_cut_off(pair) == 0)
		(void)worker_post(end->worker, &gone);
}

// Returns what of it a caller waits for.
static uint32_t take_event(struct lab_end *end, const struct worker_record *record) {
	switch (record->kind) {
	case PLAYER_EVENT_ENDED:
		end->playing = false;
		return LAB_WAKE_PLAYER;
	case PLAYER_EVENT_SERVES:
		return LAB_WAKE_PLAYER;
	case LANE_EVENT_FAILED:
		(void)pair_fail(worker_pointer(record->words[1]));
		return 0;
	case LANE_EVENT_STUCK:
		post_gone(end, worker_pointer(record->words[1]));
		return 0;
	case LANE_EVENT_DRAINED:
		end->drained++;
		return LAB_WAKE_PLAYER;
	default:
		return 0;
	}
}

static uint32_t take_events(struct lab_end *end) {
	struct worker_record records[16];
	uint32_t wakes = 0, count;

	do {
		count = worker_take(end->worker, records, 16);
		for (uint32_t n = 0; n < count; n++)
			wakes |= take_event(end, &records[n]);
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
	uint32_t wakes = take_events(end);

	while (wakes == 0) {
		uint64_t now_ns = clock_monotonic_ns();

		if (deadline_expired(deadline, now_ns))
			return LAB_WAKE_TIME;
		(void)poll(fds, 3, deadline_poll_timeout_ms(deadline, now_ns));
		wakes = take_events(end);
		if (fds[1].revents != 0)
			wakes |= LAB_WAKE_CHANNEL;
		if (fds[2].revents != 0)
			wakes |= LAB_WAKE_SIGNAL;
	}
	return wakes;
}

// Harmless for one that failed already.
static void post_fail(const struct lab_end *end, const struct pair *pair) {
	const struct worker_record fail = {
		.kind = LANE_REQUEST_FAIL,
		.words =
			{worker_word(end->lane), pair_slot(pair), pair_generation(pair),
			 (uint64_t)-ESHUTDOWN},
	};

	(void)worker_post(end->worker, &fail);
}

// The player ends, then the pairs, so that nothing is posted while it drains.
static void pairs_drain(struct lab_end *end) {
	struct deadline deadline = deadline_after(clock_monotonic_ns(), TEARDOWN_NS);
	struct lab_why unheard = {.text = ""};

	if (end->playing)
		(void)lab_end_request(end, PLAYER_REQUEST_STOP, &unheard);
	while (end->playing && lab_end_wait(end, NULL, -1, deadline) != LAB_WAKE_TIME)
		;
	for (uint32_t n = 0; n < end->added; n++)
		post_fail(end, end->pairs[n]);
	while (end->drained < end->added && lab_end_wait(end, NULL, -1, deadline) != LAB_WAKE_TIME)
		;
}

// What a device does not give back stays with the process, which is about to end.
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
