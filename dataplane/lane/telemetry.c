// SPDX-License-Identifier: BSD-3-Clause
// A table of names, written by control and read by DPDK's telemetry thread under one lock. Counters
// are read without a lock.
#include <dataplane/dpdk.h>
#include <dataplane/foreign_error.h>
#include <dataplane/telemetry.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct entry {
	char name[TELEMETRY_NAME_MAX + 1];
	const struct worker *worker; // exactly one of the two pointers is set
	const struct lane *lane;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[TELEMETRY_NAMES_MAX];
static uint32_t entry_count;

struct number {
	const char *name;
	uint64_t value;
};

static void add_numbers(struct rte_tel_data *data, const struct number *numbers, size_t count) {
	rte_tel_data_start_dict(data);
	for (size_t n = 0; n < count; n++)
		rte_tel_data_add_dict_u64(data, numbers[n].name, numbers[n].value);
}

static void add_worker_counters(const struct worker *worker, struct rte_tel_data *data) {
	struct worker_counters counters;

	worker_counters(worker, &counters);
	const struct number numbers[] = {
		{"turns", counters.turns},
		{"requests", counters.requests},
		{"events", counters.events},
		{"events_lost", counters.events_lost},
		{"busy_ns", counters.busy_ns},
		{"spin_ns", counters.spin_ns},
		{"yield_ns", counters.yield_ns},
		{"blocked_ns", counters.blocked_ns},
		{"yields", counters.yields},
		{"blocks", counters.blocks},
		{"sleeps", counters.sleeps},
		{"wakes_rung", counters.wakes_rung},
		{"wakes_timed", counters.wakes_timed},
		{"wakes_polled", counters.wakes_polled},
		{"waits", counters.waits},
		{"paid_ns", counters.paid_ns},
		{"optimum_ns", counters.optimum_ns},
		{"clock_jumps", counters.clock_jumps},
		{"clock_off_ns", counters.clock_off_ns},
	};
	add_numbers(data, numbers, RTE_DIM(numbers));
}

static void add_lane_counters(const struct lane *lane, struct rte_tel_data *data) {
	struct lane_counters counters;
	struct lane_facts facts;

	lane_counters(lane, &counters);
	lane_facts(lane, &facts);
	const struct number numbers[] = {
		{"pair_max", facts.pair_max},
		{"depth", facts.depth},
		{"events", facts.events},
		{"pairs", counters.pairs},
		{"ops", counters.ops},
		{"polls", counters.polls},
		{"completions", counters.completions},
		{"stale", counters.stale},
		{"chains", counters.chains},
		{"posted", counters.posted},
		{"signalled", counters.signalled},
		{"inlined", counters.inlined},
		{"full", counters.full},
		{"post_failures", counters.post_failures},
		{"poll_failures", counters.poll_failures},
		{"completion_events", counters.completion_events},
		{"submitted", counters.submitted},
		{"failed", counters.failed},
		{"drained", counters.drained},
		{"stuck", counters.stuck},
	};
	add_numbers(data, numbers, RTE_DIM(numbers));
	for (int n = 0; n < OP_OUTCOME_COUNT; n++) {
		char name[32];

		snprintf(name, sizeof(name), "ended_%s", op_outcome_name((enum op_outcome)n));
		// DPDK accepts only letters, digits and underscores.
		for (char *dash = strchr(name, '-'); dash != NULL; dash = strchr(dash, '-'))
			*dash = '_';
		rte_tel_data_add_dict_u64(data, name, counters.ended[n]);
	}
}

static int answer_request(bool lanes, const char *name, struct rte_tel_data *data) {
	int err = 0;

	pthread_mutex_lock(&lock);
	if (name == NULL || name[0] == '\0') {
		rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
		for (uint32_t n = 0; n < entry_count; n++) {
			if ((entries[n].lane != NULL) == lanes)
				rte_tel_data_add_array_string(data, entries[n].name);
		}
	} else {
		err = -ENOENT;
		for (uint32_t n = 0; n < entry_count && err != 0; n++) {
			if ((entries[n].lane != NULL) != lanes ||
			    strcmp(entries[n].name, name) != 0)
				continue;
			if (lanes)
				add_lane_counters(entries[n].lane, data);
			else
				add_worker_counters(entries[n].worker, data);
			err = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int
handle_worker_command(const char *command, const char *params, struct rte_tel_data *data) {
	(void)command;
	return answer_request(false, params, data);
}

static int handle_lane_command(const char *command, const char *params, struct rte_tel_data *data) {
	(void)command;
	return answer_request(true, params, data);
}

int telemetry_start(void) {
	int err = dpdk_error_from_code(rte_telemetry_register_cmd(
		"/tocsin/worker", handle_worker_command,
		"List the workers; with a name, return its counters. Parameters: name"
	));

	if (err == 0)
		err = dpdk_error_from_code(rte_telemetry_register_cmd(
			"/tocsin/lane", handle_lane_command,
			"List the lanes; with a name, return its counters. Parameters: name"
		));
	return err;
}

static int name_add(const char *name, const struct worker *worker, const struct lane *lane) {
	int err = 0;

	if (name[0] == '\0' || strnlen(name, TELEMETRY_NAME_MAX + 1) > TELEMETRY_NAME_MAX)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	if (entry_count == TELEMETRY_NAMES_MAX) {
		err = -ENOSPC;
	} else {
		struct entry *entry = &entries[entry_count++];

		*entry = (struct entry){.worker = worker, .lane = lane};
		snprintf(entry->name, sizeof(entry->name), "%s", name);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int telemetry_add_worker(const char *name, const struct worker *worker) {
	return name_add(name, worker, NULL);
}

int telemetry_add_lane(const char *name, const struct lane *lane) {
	return name_add(name, NULL, lane);
}

void telemetry_remove(const void *object) {
	pthread_mutex_lock(&lock);
	for (uint32_t n = entry_count; n-- > 0;) {
		if (entries[n].worker == object || entries[n].lane == object)
			entries[n] = entries[--entry_count];
	}
	pthread_mutex_unlock(&lock);
}
