// SPDX-License-Identifier: BSD-3-Clause
// Create an end: device, memory, lane, worker and queue pairs. Encode its description.
#include "run/device.h"
#include "run/end_inside.h"
#include "run/result.h"

#include <dataplane/cores.h>
#include <lib/wire.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PAGE_BYTES UINT64_C(4096)
#define DEPTH 64u // receives posted by a player, with room for more sends than a player has
#define DRAIN_NS UINT64_C(1000000000)
#define CLOCK_READINGS 1000 // per batch
#define CLOCK_BATCHES 10
#define ENDPOINT_BYTES 33 // of an encoded endpoint

// Reject options that need the processor to access GPU memory, which host programs cannot read.
static int check_memory(const struct lab_end *end, const struct plan *plan, struct lab_why *why) {
	if (end->facts.memory.kind != MESSAGES_GPU)
		return 0;
	if (plan->inline_bytes != PLAN_INLINE_DEFAULT && plan->inline_bytes > 0)
		return lab_fail(
			why, -EINVAL,
			"--memory gpu: --inline is impossible, because the processor copies inline "
			"data and cannot read the memory of a GPU"
		);
	if (plan->command != PLAN_LAT || !plan_op_polls_memory(plan->op))
		return 0;
	return lab_fail(
		why, -EINVAL,
		"--memory gpu: the processor polls memory for the answer of a write, and cannot "
		"read the memory of a GPU; use --op write-imm"
	);
}

static int make_memory(struct lab_end *end, const struct plan *plan, struct lab_why *why) {
	struct memory_config config = {.device = end->device, .clock = &end->clock};
	struct memory_request request = {
		.access = MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_LOCAL_WRITES |
			  MEMORY_UNSHARED,
	};
	char reason[MEMORY_REASON_MAX + 1] = "";
	int err = check_memory(end, plan, why);

	if (err != 0)
		return err;
	end->half = (plan_size_max(plan) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
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
		err = memory_view_get(end->registry, &request, reason, &end->view);
	if (err != 0)
		return lab_fail(
			why, err, "%s: memory cannot be registered: %s", end->facts.device,
			reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	return 0;
}

// Return the idle policy of the worker. A server's program answers no one-sided operation. So its
// worker sleeps and leaves the processor to the device that answers.
static enum idle_policy end_idle_policy(const struct lab_end_config *config) {
	bool rests = config->serves && plan_server_is_idle(config->plan);

	return rests ? IDLE_EVENT : config->plan->policy;
}

// Choose the worker's processor. Two ends on one machine take two: the client the best one, the
// server the next.
static int choose_core(
	const struct lab_end_config *config,
	const struct cpu_set *near,
	uint32_t *ret_cpu,
	struct lab_why *why
) {
	bool second = config->serves && channel_is_local(config->channel);
	struct cores_constraints places = {
		.near = *near, .spins = end_idle_policy(config) == IDLE_SPIN};
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

static int fail_no_stamps(const struct lab_end *end, int err, struct lab_why *why) {
	return lab_fail(
		why, err, "--device-time: %s does not stamp completions with its %s (%s)",
		end->facts.device, end->plan.stamps == PLAN_STAMPS_WALL ? "time of day" : "clock",
		strerrordesc_np(-err)
	);
}

// Initialize the device times. lane_create() has checked that the completion queue has stamps; this
// call checks that the clock can be read.
static int make_device_time(struct lab_end *end, struct lab_why *why) {
	bool wall = end->plan.stamps == PLAN_STAMPS_WALL;
	int err = device_time_init(&end->device_time, end->lane, &end->clock, &end->stamps, wall);

	if (err != 0)
		return lab_fail(
			why, err, "--device-time: the clock of %s cannot be read (%s)",
			end->facts.device, strerrordesc_np(-err)
		);
	if (end->serves && result_lag_create(&end->device_time.answers) != 0)
		return lab_fail(why, -ENOMEM, "no memory for times");
	return 0;
}

static int make_lane(
	struct lab_end *end, const struct lab_end_config *config, uint32_t cpu, struct lab_why *why
) {
	uint32_t depth = config->plan->depth, pairs = config->plan->pairs;
	uint32_t receives = load_receives(config->plan);
	struct lane_config lane = {
		.device = end->device,
		.pair_max = pairs,
		.drain_ns = DRAIN_NS,
		.clock = &end->clock,
		.near = near_of_cpu(cpu),
	};
	struct lane_facts facts;
	int err = 0;

	depth = receives > depth ? receives : depth;
	depth = depth > DEPTH ? depth : DEPTH;
	lane.depth = depth;
	lane.op_max = 2 * depth * pairs;
	if (end_uses_stamps(end)) {
		lane.stamps =
			end->plan.stamps == PLAN_STAMPS_WALL ? LANE_STAMPS_WALL : LANE_STAMPS_RAW;
		err = device_stamp_clock(end->device, &end->stamps);
		if (err != 0)
			return fail_no_stamps(end, err, why);
		end->facts.stamp_khz = end->stamps.khz;
	}
	err = lane_create(&lane, &end->lane);
	// Some drivers return -EINVAL for flags that they do not support.
	if (lane.stamps != LANE_STAMPS_NONE && (err == -EOPNOTSUPP || err == -EINVAL))
		return fail_no_stamps(end, err, why);
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
				.policy = end_idle_policy(config),
				.window_ns = config->plan->window_ns,
				.block_ns = config->machine != NULL ? config->machine->block_ns : 0,
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

static int make_pairs(struct lab_end *end, struct lab_end_info *ret_about, struct lab_why *why) {
	struct lab_end_info about = {
		.address = end->view.wire_address + end->half,
		.key = end->view.remote_key,
		.pair_count = end->plan.pairs,
	};
	bool usual = end->plan.inline_bytes == PLAN_INLINE_DEFAULT;
	struct pair_config config = {
		.lane = end->lane,
		.generation = 1,
		.inline_bytes = usual ? PAIR_INLINE_BYTES : end->plan.inline_bytes,
	};
	int err;

	for (uint32_t n = 0; n < about.pair_count; n++) {
		if (getrandom(&config.psn, sizeof(config.psn), 0) != sizeof(config.psn))
			return lab_fail(why, -EIO, "no random numbers");
		config.psn &= 0xffffff;
		err = pair_create(&config, &about.endpoints[n], &end->pairs[end->pair_count]);
		if (err != 0)
			return lab_fail(
				why, err, "%s: no queue pair: %s", end->facts.device,
				strerrordesc_np(-err)
			);
		end->facts.inline_bytes = pair_inline_bytes(end->pairs[end->pair_count++]);
		if (!usual && end->facts.inline_bytes < config.inline_bytes)
			return lab_fail(
				why, -EOPNOTSUPP,
				"--inline: %s does not carry %u bytes within a work request: "
				"lower it",
				end->facts.device, config.inline_bytes
			);
	}
	memcpy(about.device, end->facts.device, sizeof(about.device));
	*ret_about = about;
	return 0;
}

static void measure_clock(struct lab_end *end) {
	uint64_t least = UINT64_MAX;

	// Measure a whole batch: two single readings may return the same nanosecond.
	for (int batch = 0; batch < CLOCK_BATCHES; batch++) {
		uint64_t before = clock_now_ns(&end->clock), took_ns;

		for (int n = 1; n < CLOCK_READINGS; n++)
			(void)clock_now_ns(&end->clock);
		took_ns = (clock_now_ns(&end->clock) - before) / CLOCK_READINGS;
		least = took_ns < least ? took_ns : least;
	}
	end->facts.clock = clock_source_name(clock_source(&end->clock));
	end->facts.clock_why = clock_reason(&end->clock);
	end->facts.clock_error_ppb = clock_error_ppb(&end->clock);
	end->facts.clock_read_ns = least;
}

int lab_end_open(
	const struct lab_end_config *config,
	struct lab_why *why,
	struct lab_end_info *ret_about,
	struct lab_end **ret_end
) {
	struct lab_end *end = calloc(1, sizeof(*end));
	const struct device_facts *facts;
	struct cpu_set near;
	int err;

	if (end == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	end->plan = *config->plan;
	end->serves = config->serves;
	end->quick = config->quick;
	end->facts.memory = config->memory;
	end->facts.priority = config->priority;
	if (config->machine != NULL)
		end->clock = config->machine->clock;
	else
		clock_init_resynced(&end->clock);
	measure_clock(end);
	err = lab_device_open(
		config->device, &config->settings,
		channel_is_local(config->channel) ? NULL : &config->channel->local, why, &near,
		&end->device
	);
	if (err == 0) {
		facts = device_facts(end->device);
		memcpy(end->facts.device, facts->name, sizeof(end->facts.device));
		end->facts.responder = device_responder_name(facts->responder);
		end->facts.link = device_link_name(facts->port.link);
		end->facts.mtu = facts->port.active_mtu;
		end->facts.speed_mbps = facts->port.speed_mbps;
		if (plan_op_is_atomic(config->plan->op) && !facts->limits.atomics)
			err = lab_fail(
				why, -EOPNOTSUPP, "%s has no atomic operations", end->facts.device
			);
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

// Wire format of the description that each end sends to the other one.
void lab_end_info_encode(const struct lab_end_info *about, struct wire_writer *writer) {
	wire_put_u16(writer, (uint16_t)about->pair_count);
	for (uint32_t n = 0; n < about->pair_count; n++) {
		const struct device_endpoint *endpoint = &about->endpoints[n];

		wire_put_u8(writer, (uint8_t)endpoint->link);
		wire_put_u16(writer, endpoint->lid);
		wire_put_bytes(writer, endpoint->gid.raw, sizeof(endpoint->gid.raw));
		wire_put_u16(writer, endpoint->mtu);
		wire_put_u8(writer, endpoint->reads_in_max);
		wire_put_u8(writer, endpoint->reads_out_max);
		wire_put_u32(writer, endpoint->queue_number);
		wire_put_u32(writer, endpoint->psn);
		wire_put_u16(writer, endpoint->pkey);
	}
	wire_put_u64(writer, about->address);
	wire_put_u32(writer, about->key);
	wire_put_string(writer, about->device, strlen(about->device));
}

// Decode only; device_endpoint_check() judges the values.
void lab_end_info_decode(struct wire_reader *reader, struct lab_end_info *ret_about) {
	struct lab_end_info about = {.key = 0};

	about.pair_count = wire_get_count_u16(reader, PLAN_PAIRS_MAX, ENDPOINT_BYTES);
	for (uint32_t n = 0; n < about.pair_count; n++) {
		struct device_endpoint *endpoint = &about.endpoints[n];
		uint8_t link = wire_get_u8(reader);

		if (link > DEVICE_LINK_ETHERNET)
			wire_reader_fail(reader, -EBADMSG);
		endpoint->link = (enum device_link)(link & 1);
		endpoint->lid = wire_get_u16(reader);
		wire_get_bytes(reader, endpoint->gid.raw, sizeof(endpoint->gid.raw));
		endpoint->mtu = wire_get_u16(reader);
		endpoint->reads_in_max = wire_get_u8(reader);
		endpoint->reads_out_max = wire_get_u8(reader);
		endpoint->queue_number = wire_get_u32(reader);
		endpoint->psn = wire_get_u32(reader);
		endpoint->pkey = wire_get_u16(reader);
	}
	about.address = wire_get_u64(reader);
	about.key = wire_get_u32(reader);
	wire_get_string(reader, about.device, sizeof(about.device));
	if (wire_reader_ok(reader))
		*ret_about = about;
}
