// SPDX-License-Identifier: BSD-3-Clause
// Plans: names, checks, comparison of both ends, and encoding.
#include "run/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 64
#define PAGE_BYTES UINT64_C(4096)
#define MIB (UINT64_C(1) << 20)
#define NS_PER_S UINT64_C(1000000000)
#define OP_BYTES 1024 // operation, two receives, and their entries in queues and pools
#define SILENCE_NS (60 * NS_PER_S)
#define SILENCE_TRACE_NS (3600 * NS_PER_S)   // the server does not know the trace
#define SILENCE_ARRIVALS_NS (160 * NS_PER_S) // 20 bursts at one operation per second

const struct plan plan_default = {
	.op = PLAN_READ,
	.size_count = 1,
	.sizes = {64},
	.iterations = 20000,
	.policy = IDLE_SPIN,
	.window_ns = 100000,
	.seed = 1,
	.depth = 1,
	.pairs = 1,
	.run = 1,
	.runs = 1,
	.inline_bytes = PLAN_INLINE_DEFAULT,
};

static const struct {
	const char *name;
	enum op_kind kind;
	bool answered;
} ops[PLAN_OP_COUNT] = {
	[PLAN_READ] = {"read", OP_READ, false},
	[PLAN_WRITE] = {"write", OP_WRITE, true},
	[PLAN_SEND] = {"send", OP_SEND, true},
	[PLAN_WRITE_IMM] = {"write-imm", OP_WRITE_IMM, true},
	[PLAN_CAS] = {"cas", OP_COMPARE_SWAP, false},
	[PLAN_FADD] = {"fadd", OP_FETCH_ADD, false},
};

static const char *const arrivals_names[PLAN_ARRIVALS_COUNT] = {
	"closed", "constant", "poisson", "onoff", "trace",
};

static const char *const stamps_names[PLAN_STAMPS_COUNT] = {"none", "raw", "wall"};

const char *plan_command_name(enum plan_command command) {
	return command == PLAN_BW ? "bw" : "lat";
}

const char *plan_policy_name(const struct plan *plan) {
	return plan->via_agents ? "agent" : idle_policy_name(plan->policy);
}

const char *plan_op_name(enum plan_op op) {
	return ops[op].name;
}

int plan_op_parse(const char *name, enum plan_op *ret_op) {
	for (enum plan_op op = 0; op < PLAN_OP_COUNT; op++) {
		if (strcmp(name, ops[op].name) != 0)
			continue;
		*ret_op = op;
		return 0;
	}
	return -EINVAL;
}

const char *plan_arrivals_name(enum plan_arrivals arrivals) {
	return arrivals_names[arrivals];
}

int plan_arrivals_parse(const char *name, enum plan_arrivals *ret_arrivals) {
	for (enum plan_arrivals n = 0; n < PLAN_ARRIVALS_COUNT; n++) {
		if (strcmp(name, arrivals_names[n]) != 0)
			continue;
		*ret_arrivals = n;
		return 0;
	}
	return -EINVAL;
}

const char *plan_stamps_name(enum plan_stamps stamps) {
	return stamps_names[stamps];
}

int plan_stamps_parse(const char *name, enum plan_stamps *ret_stamps) {
	for (enum plan_stamps n = 0; n < PLAN_STAMPS_COUNT; n++) {
		if (strcmp(name, stamps_names[n]) != 0)
			continue;
		*ret_stamps = n;
		return 0;
	}
	return -EINVAL;
}

enum op_kind plan_op_kind(enum plan_op op) {
	return ops[op].kind;
}

bool plan_op_is_answered(enum plan_op op) {
	return ops[op].answered;
}

bool plan_op_polls_memory(enum plan_op op) {
	return op == PLAN_WRITE;
}

bool plan_op_is_atomic(enum plan_op op) {
	return op == PLAN_CAS || op == PLAN_FADD;
}

bool plan_op_has_receiver(enum plan_op op) {
	return op == PLAN_SEND || op == PLAN_WRITE_IMM;
}

bool plan_is_answered(const struct plan *plan) {
	return plan->command == PLAN_LAT && plan_op_is_answered(plan->op);
}

bool plan_server_is_idle(const struct plan *plan) {
	if (plan->command == PLAN_BW)
		return !plan->both_ways && !plan_op_has_receiver(plan->op);
	return !plan_op_is_answered(plan->op);
}

bool plan_server_uses_stamps(const struct plan *plan) {
	return plan->stamps != PLAN_STAMPS_NONE && plan_is_answered(plan);
}

uint64_t plan_size_max(const struct plan *plan) {
	uint64_t max = 0;

	for (uint32_t n = 0; n < plan->size_count; n++)
		max = plan->sizes[n] > max ? plan->sizes[n] : max;
	return max;
}

uint64_t plan_memory_bytes(const struct plan *plan) {
	uint64_t half = (plan_size_max(plan) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

	return 2 * half + (uint64_t)plan->depth * plan->pairs * OP_BYTES;
}

uint64_t plan_time_ns(const struct plan *plan) {
	double each = (double)plan->duration_ns, all;

	if (plan->duration_ns == 0 && plan->rate > 0)
		each = (double)plan->iterations / plan->rate * 1e9;
	else if (plan->duration_ns == 0)
		each = (double)plan->iterations * (double)plan->gap_ns;
	all = each * plan->size_count;
	return all < (double)INT64_MAX ? (uint64_t)all : INT64_MAX;
}

uint64_t plan_silence_max_ns(const struct plan *plan) {
	if (plan->arrivals == PLAN_TRACE)
		return SILENCE_TRACE_NS;
	return SILENCE_NS + plan->gap_ns + (plan->rate > 0 ? SILENCE_ARRIVALS_NS / plan->rate : 0);
}

static int check_number(const char *name, uint64_t value, uint64_t max, struct lab_why *why) {
	if (value <= max)
		return 0;
	return lab_fail(
		why, -EINVAL, "%s is %" PRIu64 ", and the limit is %" PRIu64, name, value, max
	);
}

// Check what the plan costs an end. Must be called after the checks of the single numbers.
static int check_cost(const struct plan *plan, struct lab_why *why) {
	uint64_t memory = plan_memory_bytes(plan), time_ns = plan_time_ns(plan);

	if (memory > PLAN_MEMORY_BYTES_MAX)
		return lab_fail(
			why, -EINVAL,
			"messages of %" PRIu64 " bytes and %u operations under way need %" PRIu64
			" MiB, and the limit is %" PRIu64 " MiB: lower --size, --depth or "
			"--queue-pairs",
			plan_size_max(plan), plan->depth * plan->pairs, (memory + MIB - 1) / MIB,
			PLAN_MEMORY_BYTES_MAX / MIB
		);
	if (time_ns > PLAN_TIME_NS_MAX)
		return lab_fail(
			why, -EINVAL,
			"the run takes %" PRIu64 " s, and the limit is %" PRIu64
			" s: lower --duration, --iterations or --gap, or measure fewer sizes",
			time_ns / NS_PER_S, PLAN_TIME_NS_MAX / NS_PER_S
		);
	return 0;
}

// Check the sizes, and whether the operation can carry them within a work request.
static int check_sizes(const struct plan *plan, struct lab_why *why) {
	if (plan->size_count == 0 || plan->size_count > PLAN_SIZES_MAX)
		return lab_fail(why, -EINVAL, "--size must be 1 to %d sizes", PLAN_SIZES_MAX);
	for (uint32_t n = 0; n < plan->size_count; n++) {
		uint64_t size = plan->sizes[n];

		if (plan_op_is_atomic(plan->op) && size != 8)
			return lab_fail(
				why, -EINVAL, "%s works on 8 bytes, not on %" PRIu64,
				plan_op_name(plan->op), size
			);
		if (size == 0 || size > PLAN_SIZE_BYTES_MAX)
			return lab_fail(
				why, -EINVAL,
				"a size of %" PRIu64 " B: it must be from 1 B to 8 MiB", size
			);
	}
	if (plan->inline_bytes == PLAN_INLINE_DEFAULT)
		return 0;
	if (plan->inline_bytes > PLAN_INLINE_BYTES_MAX)
		return lab_fail(why, -EINVAL, "--inline is 0 to %u bytes", PLAN_INLINE_BYTES_MAX);
	if (plan->op != PLAN_WRITE && !plan_op_has_receiver(plan->op))
		return lab_fail(
			why, -EINVAL,
			"--inline is for write, send and write-imm only: %s has no data to send",
			plan_op_name(plan->op)
		);
	return 0;
}

static int check_arrivals(const struct plan *plan, struct lab_why *why) {
	bool paced = plan->arrivals != PLAN_CLOSED && plan->arrivals != PLAN_TRACE;

	if (paced != (plan->rate > 0))
		return lab_fail(
			why, -EINVAL, "%s",
			paced ? "an open loop needs --rate"
			      : "--rate needs an open loop: --arrivals constant, poisson or onoff"
		);
	if (plan->arrivals != PLAN_CLOSED && plan->gap_ns > 0)
		return lab_fail(
			why, -EINVAL,
			"--gap needs a closed loop, and --arrivals selects an open one"
		);
	if (paced && plan->duration_ns > 0 &&
	    (double)plan->duration_ns / 1e9 * plan->rate > (double)PLAN_ARRIVALS_MAX)
		return lab_fail(
			why, -EINVAL,
			"a schedule has at most %" PRIu64 " arrivals: shorten --duration or --rate",
			PLAN_ARRIVALS_MAX
		);
	return 0;
}

static int check_load(const struct plan *plan, struct lab_why *why) {
	if (plan->command == PLAN_LAT && (plan->depth != 1 || plan->pairs != 1 || plan->both_ways))
		return lab_fail(
			why, -EINVAL,
			"--depth, --queue-pairs and --bidirectional are options of bw, not of lat"
		);
	if (plan->depth == 0 || plan->depth > PLAN_DEPTH_MAX || plan->pairs == 0 ||
	    plan->pairs > PLAN_PAIRS_MAX || plan->depth * plan->pairs > PLAN_OPS_MAX)
		return lab_fail(
			why, -EINVAL,
			"--depth %u, --queue-pairs %u: --depth is 1 to %u, --queue-pairs 1 to %u, "
			"both multiplied at most %u",
			plan->depth, plan->pairs, PLAN_DEPTH_MAX, PLAN_PAIRS_MAX, PLAN_OPS_MAX
		);
	if (plan->run == 0 || plan->run > plan->runs || plan->runs > PLAN_RUNS_MAX)
		return lab_fail(
			why, -EINVAL, "--run is N/K, with N from 1 to K and K at most %u",
			PLAN_RUNS_MAX
		);
	if (plan->command == PLAN_BW && (plan->arrivals != PLAN_CLOSED || plan->gap_ns > 0))
		return lab_fail(
			why, -EINVAL,
			"--arrivals, --rate and --gap are options of lat: bw begins an operation "
			"when another one has ended"
		);
	return 0;
}

int plan_check(const struct plan *plan, struct lab_why *why) {
	const struct {
		const char *name;
		uint64_t value, max;
	} numbers[] = {
		{"--iterations", plan->iterations, PLAN_ITERATIONS_MAX},
		{"--duration in ns", plan->duration_ns, PLAN_DURATION_NS_MAX},
		{"--gap in ns", plan->gap_ns, PLAN_GAP_NS_MAX},
		{"--rate", plan->rate, PLAN_RATE_MAX},
		{"the window in ns", plan->window_ns, PLAN_WINDOW_NS_MAX},
	};
	int err = check_sizes(plan, why);

	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]) && err == 0; n++)
		err = check_number(numbers[n].name, numbers[n].value, numbers[n].max, why);
	if (err != 0)
		return err;
	if (plan->stamps != PLAN_STAMPS_NONE && plan->command == PLAN_BW)
		return lab_fail(why, -EINVAL, "--device-time is an option of lat, not of bw");
	if (plan->stamps != PLAN_STAMPS_NONE && plan_op_polls_memory(plan->op))
		return lab_fail(
			why, -EINVAL,
			"--device-time: a write that arrives has no completion and no time stamp; "
			"use --op write-imm or send"
		);
	err = check_arrivals(plan, why);
	if (err == 0)
		err = check_load(plan, why);
	if (err == 0)
		err = check_cost(plan, why);
	if (err != 0)
		return err;
	if (plan->arrivals != PLAN_TRACE && (plan->iterations > 0) == (plan->duration_ns > 0))
		return lab_fail(why, -EINVAL, "give either --iterations or --duration");
	if (plan->command == PLAN_LAT && plan_op_polls_memory(plan->op) &&
	    plan->policy == IDLE_EVENT)
		return lab_fail(
			why, -EINVAL,
			"--policy event: a write that arrives causes no event at the peer; "
			"use --op write-imm or send"
		);
	return 0;
}

static void sizes_format(const struct plan *plan, char text[static TEXT_BYTES]) {
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t n = 0; n < plan->size_count && used + 24 < TEXT_BYTES; n++)
		used += (size_t)snprintf(
			text + used, TEXT_BYTES - used, "%s%" PRIu64, n > 0 ? "," : "",
			plan->sizes[n]
		);
}

static int
fail_option_differs(struct lab_why *why, const char *option, const char *theirs, const char *own) {
	return lab_fail(
		why, -EINVAL, "%s differs: the client has %s, the server %s", option, theirs, own
	);
}

static int
fail_number_differs(struct lab_why *why, const char *option, uint64_t theirs, uint64_t own) {
	return lab_fail(
		why, -EINVAL, "%s differs: the client has %" PRIu64 ", the server %" PRIu64, option,
		theirs, own
	);
}

static void inline_format(const struct plan *plan, char text[static TEXT_BYTES]) {
	if (plan->inline_bytes == PLAN_INLINE_DEFAULT)
		snprintf(text, TEXT_BYTES, "the default");
	else
		snprintf(text, TEXT_BYTES, "%u", plan->inline_bytes);
}

static bool sizes_equal(const struct plan *one, const struct plan *other) {
	return one->size_count == other->size_count &&
	       memcmp(one->sizes, other->sizes, one->size_count * sizeof(one->sizes[0])) == 0;
}

int plan_compare(
	const struct plan *client, const struct plan *own, uint32_t given, struct lab_why *why
) {
	const struct {
		enum plan_part part;
		const char *option;
		uint64_t theirs, own;
	} numbers[] = {
		{PLAN_PART_ITERATIONS, "--iterations", client->iterations, own->iterations},
		{PLAN_PART_DURATION, "--duration (ns)", client->duration_ns, own->duration_ns},
		{PLAN_PART_GAP, "--gap (ns)", client->gap_ns, own->gap_ns},
		{PLAN_PART_RATE, "--rate", client->rate, own->rate},
		{PLAN_PART_SEED, "--seed", client->seed, own->seed},
		{PLAN_PART_DEPTH, "--depth", client->depth, own->depth},
		{PLAN_PART_PAIRS, "--queue-pairs", client->pairs, own->pairs},
		{PLAN_PART_BOTH_WAYS, "--bidirectional", client->both_ways, own->both_ways},
	};
	char theirs_text[TEXT_BYTES], own_text[TEXT_BYTES];

	if (client->command != own->command)
		return fail_option_differs(
			why, "the command", plan_command_name(client->command),
			plan_command_name(own->command)
		);
	if ((given & PLAN_PART_OP) != 0 && client->op != own->op)
		return fail_option_differs(
			why, "--op", plan_op_name(client->op), plan_op_name(own->op)
		);
	if ((given & PLAN_PART_SIZES) != 0 && !sizes_equal(client, own)) {
		sizes_format(client, theirs_text);
		sizes_format(own, own_text);
		return fail_option_differs(why, "--size", theirs_text, own_text);
	}
	if ((given & PLAN_PART_POLICY) != 0 && client->policy != own->policy)
		return fail_option_differs(
			why, "--policy", idle_policy_name(client->policy),
			idle_policy_name(own->policy)
		);
	if ((given & PLAN_PART_ARRIVALS) != 0 && client->arrivals != own->arrivals)
		return fail_option_differs(
			why, "--arrivals", plan_arrivals_name(client->arrivals),
			plan_arrivals_name(own->arrivals)
		);
	if ((given & PLAN_PART_STAMPS) != 0 && client->stamps != own->stamps)
		return fail_option_differs(
			why, "--device-time", plan_stamps_name(client->stamps),
			plan_stamps_name(own->stamps)
		);
	if ((given & PLAN_PART_INLINE) != 0 && client->inline_bytes != own->inline_bytes) {
		inline_format(client, theirs_text);
		inline_format(own, own_text);
		return fail_option_differs(why, "--inline", theirs_text, own_text);
	}
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		if ((given & numbers[n].part) != 0 && numbers[n].theirs != numbers[n].own)
			return fail_number_differs(
				why, numbers[n].option, numbers[n].theirs, numbers[n].own
			);
	}
	return 0;
}

void plan_encode(const struct plan *plan, struct wire_writer *writer) {
	wire_put_u8(writer, (uint8_t)plan->command);
	wire_put_u8(writer, (uint8_t)plan->op);
	wire_put_u8(writer, (uint8_t)plan->policy);
	wire_put_u8(writer, (uint8_t)plan->arrivals);
	wire_put_u64(writer, plan->iterations);
	wire_put_u64(writer, plan->duration_ns);
	wire_put_u64(writer, plan->gap_ns);
	wire_put_u64(writer, plan->window_ns);
	wire_put_u32(writer, plan->rate);
	wire_put_u64(writer, plan->seed);
	wire_put_u32(writer, plan->depth);
	wire_put_u32(writer, plan->pairs);
	wire_put_u8(writer, plan->both_ways);
	wire_put_u32(writer, plan->inline_bytes);
	wire_put_u8(writer, (uint8_t)plan->stamps);
	wire_put_u16(writer, (uint16_t)plan->run);
	wire_put_u16(writer, (uint16_t)plan->runs);
	wire_put_u16(writer, (uint16_t)plan->size_count);
	for (uint32_t n = 0; n < plan->size_count; n++)
		wire_put_u64(writer, plan->sizes[n]);
}

static uint8_t get_u8_below(struct wire_reader *reader, uint8_t bound) {
	uint8_t value = wire_get_u8(reader);

	if (value < bound)
		return value;
	wire_reader_fail(reader, -EBADMSG);
	return 0;
}

void plan_decode(struct wire_reader *reader, struct plan *ret_plan) {
	struct plan plan = {.command = (enum plan_command)get_u8_below(reader, PLAN_COMMAND_COUNT)};

	plan.op = (enum plan_op)get_u8_below(reader, PLAN_OP_COUNT);
	plan.policy = (enum idle_policy)get_u8_below(reader, IDLE_POLICY_COUNT);
	plan.arrivals = (enum plan_arrivals)get_u8_below(reader, PLAN_ARRIVALS_COUNT);
	plan.iterations = wire_get_u64(reader);
	plan.duration_ns = wire_get_u64(reader);
	plan.gap_ns = wire_get_u64(reader);
	plan.window_ns = wire_get_u64(reader);
	plan.rate = wire_get_u32(reader);
	plan.seed = wire_get_u64(reader);
	plan.depth = wire_get_u32(reader);
	plan.pairs = wire_get_u32(reader);
	plan.both_ways = get_u8_below(reader, 2) == 1;
	plan.inline_bytes = wire_get_u32(reader);
	plan.stamps = (enum plan_stamps)get_u8_below(reader, PLAN_STAMPS_COUNT);
	plan.run = wire_get_u16(reader);
	plan.runs = wire_get_u16(reader);
	plan.size_count = wire_get_count_u16(reader, PLAN_SIZES_MAX, sizeof(uint64_t));
	for (uint32_t n = 0; n < plan.size_count; n++)
		plan.sizes[n] = wire_get_u64(reader);
	if (wire_reader_ok(reader))
		*ret_plan = plan;
}
