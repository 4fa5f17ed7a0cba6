// SPDX-License-Identifier: BSD-3-Clause
// Options about the plan: what is measured.
#include "options/options_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#define SOCKET_PATH_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)

static int set_op(struct options *options, const char *value, struct parse_error *error) {
	if (plan_op_parse(value, &options->session.plan.op) != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is not one of read, write, send, write-imm, cas, fadd"
		);
	return 0;
}

static int set_size(struct options *options, const char *value, struct parse_error *error) {
	struct plan *plan = &options->session.plan;
	int err;

	plan->size_count = 0;
	if (strcmp(value, "all") == 0) {
		for (uint64_t size = 1; size <= PLAN_SIZE_BYTES_MAX; size *= 2)
			plan->sizes[plan->size_count++] = size;
		return 0;
	}
	for (;;) {
		size_t length = strcspn(value, ",");

		if (plan->size_count == PLAN_SIZES_MAX)
			return parse_fail(error, -EINVAL, value, length, "is one size too many");
		err = parse_size_bytes(
			value, length, 1, PLAN_SIZE_BYTES_MAX, error,
			&plan->sizes[plan->size_count++]
		);
		if (err != 0 || value[length] == '\0')
			return err;
		value += length + 1;
	}
}

static int set_iterations(struct options *options, const char *value, struct parse_error *error) {
	return parse_u64(
		value, strlen(value), 1, PLAN_ITERATIONS_MAX, error,
		&options->session.plan.iterations
	);
}

static int set_duration(struct options *options, const char *value, struct parse_error *error) {
	return parse_duration_ns(
		value, strlen(value), 1000000, PLAN_DURATION_NS_MAX, error,
		&options->session.plan.duration_ns
	);
}

static int set_gap(struct options *options, const char *value, struct parse_error *error) {
	return parse_duration_ns(
		value, strlen(value), 0, PLAN_GAP_NS_MAX, error, &options->session.plan.gap_ns
	);
}

static int set_policy(struct options *options, const char *value, struct parse_error *error) {
	if (idle_policy_parse(value, &options->session.plan.policy) != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is not one of spin, window, event, adaptive"
		);
	return 0;
}

static int set_arrivals(struct options *options, const char *value, struct parse_error *error) {
	struct plan *plan = &options->session.plan;

	if (strncmp(value, "trace:", 6) == 0 && value[6] != '\0') {
		plan->arrivals = PLAN_TRACE;
		options->trace_path = value + 6;
		return 0;
	}
	if (plan_arrivals_parse(value, &plan->arrivals) != 0 || plan->arrivals == PLAN_TRACE)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is not one of closed, constant, poisson, onoff, trace:FILE"
		);
	return 0;
}

static int set_rate(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 1, PLAN_RATE_MAX, error, &options->session.plan.rate);
}

static int set_seed(struct options *options, const char *value, struct parse_error *error) {
	return parse_u64(value, strlen(value), 0, INT64_MAX, error, &options->session.plan.seed);
}

static int set_depth(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 1, PLAN_DEPTH_MAX, error, &options->session.plan.depth);
}

static int set_pairs(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 1, PLAN_PAIRS_MAX, error, &options->session.plan.pairs);
}

static int set_inline(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(
		value, 0, PLAN_INLINE_BYTES_MAX, error, &options->session.plan.inline_bytes
	);
}

static int set_both_ways(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->session.plan.both_ways = true;
	return 0;
}

static int set_via_agent(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->via_node = value;
	return 0;
}

static int set_agent(struct options *options, const char *value, struct parse_error *error) {
	if (value[0] == '\0' || strlen(value) >= SOCKET_PATH_BYTES)
		return parse_fail(
			error, -EINVAL, value, strlen(value), "is not a valid path of a socket"
		);
	options->agent_socket = value;
	return 0;
}

static int set_device_time(struct options *options, const char *value, struct parse_error *error) {
	enum plan_stamps *stamps = &options->session.plan.stamps;

	*stamps = PLAN_STAMPS_RAW;
	if (value != NULL && (plan_stamps_parse(value, stamps) != 0 || *stamps == PLAN_STAMPS_NONE))
		return parse_fail(error, -EINVAL, value, strlen(value), "is not one of raw, wall");
	return 0;
}

static const struct option rows[] = {
	OPTION("--op", set_op, PLAN_PART_OP, OPTION_BOTH),
	OPTION("--size", set_size, PLAN_PART_SIZES, OPTION_BOTH),
	OPTION("--iterations", set_iterations, PLAN_PART_ITERATIONS, OPTION_BOTH),
	OPTION("--duration", set_duration, PLAN_PART_DURATION, OPTION_BOTH),
	OPTION("--gap", set_gap, PLAN_PART_GAP, OPTION_BOTH),
	OPTION("--policy", set_policy, PLAN_PART_POLICY, OPTION_BOTH),
	OPTION("--arrivals", set_arrivals, PLAN_PART_ARRIVALS, OPTION_BOTH),
	OPTION("--rate", set_rate, PLAN_PART_RATE, OPTION_BOTH),
	OPTION("--seed", set_seed, PLAN_PART_SEED, OPTION_BOTH),
	OPTION("--depth", set_depth, PLAN_PART_DEPTH, OPTION_BOTH),
	OPTION("--queue-pairs", set_pairs, PLAN_PART_PAIRS, OPTION_BOTH),
	OPTION("--inline", set_inline, PLAN_PART_INLINE, OPTION_BOTH),
	OPTION_FLAG_VALUED("--device-time", set_device_time, PLAN_PART_STAMPS, OPTION_BOTH),
	OPTION("--via-agent", set_via_agent, 0, OPTION_CLIENT),
	OPTION("--agent", set_agent, 0, OPTION_CLIENT),
	OPTION_FLAG("--bidirectional", set_both_ways, PLAN_PART_BOTH_WAYS, OPTION_BOTH),
};

const struct option_table options_of_plan = OPTION_TABLE(rows);
