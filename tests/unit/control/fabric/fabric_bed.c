// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/fabric_bed.h"

#include <dataplane/dispatch.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_NS UINT64_C(1000000000000)
#define TURNS_MAX 200000

struct bed bed;

// Allocation functions that the sources under test are built to call.

void *faulty_malloc(size_t size);
void *faulty_calloc(size_t count, size_t size);
void *faulty_aligned_alloc(size_t alignment, size_t size);

static _Atomic uint32_t fail_nth;
static _Atomic bool failed;

static bool allocation_fails(void) {
	if (atomic_load(&fail_nth) == 0 || atomic_fetch_sub(&fail_nth, 1) != 1)
		return false;
	atomic_store(&failed, true);
	return true;
}

void *faulty_malloc(size_t size) {
	return allocation_fails() ? NULL : malloc(size);
}

void *faulty_calloc(size_t count, size_t size) {
	return allocation_fails() ? NULL : calloc(count, size);
}

void *faulty_aligned_alloc(size_t alignment, size_t size) {
	return allocation_fails() ? NULL : aligned_alloc(alignment, size);
}

void bed_fail_allocation(uint32_t nth) {
	atomic_store(&failed, false);
	atomic_store(&fail_nth, nth);
}

bool bed_allocation_failed(void) {
	return atomic_load(&failed);
}

// Workers.

const struct clock *worker_clock(const struct worker *worker) {
	(void)worker;
	return &bed.clock;
}

void worker_progress(const struct worker *worker, struct worker_progress *ret_sign) {
	*ret_sign = (struct worker_progress){.asleep_until_ns = worker->hangs ? 0 : IDLE_NEVER};
}

struct near worker_near(const struct worker *worker) {
	(void)worker;
	return (struct near){.known = false};
}

uint32_t worker_cpu(const struct worker *worker) {
	(void)worker;
	return WORKER_CPU_ANY;
}

int worker_post_request(struct worker *worker, const struct worker_record *record) {
	if (worker->request_count >= worker->room)
		return -EAGAIN;
	worker->requests[worker->request_count++] = *record;
	return 0;
}

// Workers have no threads: the bed makes their steps.
void worker_wake(struct worker *worker) {
	(void)worker;
}

int worker_event(struct worker *worker, const struct worker_record *record) {
	if (worker->event_count == BED_RING)
		return -ENOBUFS;
	worker->events[worker->event_count++] = *record;
	return 0;
}

uint32_t worker_free_event_slot_count(const struct worker *worker) {
	return BED_RING - worker->event_count;
}

int worker_poll_add(struct worker *worker, const struct worker_poll *poll) {
	if (worker->poll_count >= worker->polls_max)
		return -ENOSPC;
	worker->polls[worker->poll_count++] = *poll;
	return 0;
}

int worker_poll_remove(struct worker *worker, const void *ctx) {
	for (uint32_t n = 0; n < worker->poll_count; n++) {
		if (worker->polls[n].ctx != ctx)
			continue;
		worker->polls[n] = worker->polls[--worker->poll_count];
		return 0;
	}
	return -ENOENT;
}

void worker_counters(const struct worker *worker, struct worker_counters *ret_counters) {
	*ret_counters = (struct worker_counters){.requests = worker->request_count};
}

static void worker_work(struct worker *worker) {
	uint64_t now_ns = clock_now_ns(&bed.clock);

	if (worker->halted)
		return;
	rcu_thread_online(now_ns);
	for (uint32_t n = 0; n < worker->request_count; n++)
		dispatch_worker_request(NULL, worker, &worker->requests[n]);
	worker->request_count = 0;
	for (uint32_t n = 0; n < worker->poll_count; n++) {
		struct idle_step_findings found = {.now_ns = now_ns, .due_ns = IDLE_NEVER};

		worker->polls[n].poll(worker->polls[n].ctx, &found);
	}
	rcu_thread_offline();
}

static void worker_tell(struct bed_agent *agent, uint32_t number) {
	struct worker *worker = &agent->workers[number];
	struct worker_record events[BED_RING];
	uint32_t count = worker->event_count;

	memcpy(events, worker->events, count * sizeof(events[0]));
	worker->event_count = 0;
	for (uint32_t n = 0; n < count; n++) {
		if (agent->fabric != NULL)
			assert_true(fabric_worker_event(agent->fabric, number, &events[n]));
	}
}

void bed_link(uint32_t a, uint32_t b, bool linked) {
	played_link(a, b, linked);
}

uint64_t bed_id(uint32_t agent) {
	return played_id(agent);
}

void bed_say(uint32_t observer, uint32_t agent, enum ras_state state) {
	played_say(observer, agent, state);
}

// Start and stop.

static void worker_begin(struct bed_agent *agent, uint32_t number) {
	struct worker *worker = &agent->workers[number];

	*worker = (struct worker){.room = BED_RING, .polls_max = WORKER_POLLS_MAX};
	assert_int_equal(
		prober_create(agent->paths, NULL, &bed.clock, (struct near){0}, &worker->prober), 0
	);
	worker->polls[worker->poll_count++] = prober_poll(worker->prober);
	agent->config.workers[number] = worker;
	agent->config.probers[number] = worker->prober;
}

static void agent_open(uint32_t number, uint32_t devices) {
	struct bed_agent *agent = &bed.agents[number];

	agent->overlay = &played.agents[number];
	assert_int_equal(path_table_create(&agent->paths), 0);
	agent->config = (struct fabric_config){
		.device_count = devices,
		.worker_count = devices > 0 ? devices : 1,
		.paths = agent->paths,
		.pair_max = 8,
		.random_seed = number + 1,
		.probe = {BED_PROBES},
	};
	for (uint32_t n = 0; n < devices; n++) {
		char name[16];

		played_device_name(number, n, name);
		agent->fakes[n] = fake_device_add(name);
		agent->config.devices[n].calls = &fake_verbs_calls;
		memcpy(agent->config.devices[n].name, name, sizeof(name));
		agent->config.devices[n].settings = device_settings_default;
	}
	for (uint32_t n = 0; n < agent->config.worker_count; n++)
		worker_begin(agent, n);
}

void bed_open(uint32_t agents, uint32_t devices) {
	memset(&bed, 0, sizeof(bed));
	played_begin(agents, devices);
	bed_fail_allocation(0);
	bed_let_go();
	clock_init_fake(&bed.clock, BEGIN_NS);
	fake_verbs_init(&bed.clock);
	fake_verbs_share();
	fake_verbs_on_call(bed_call, NULL);
	assert_int_equal(loop_create(&bed.clock, &bed.loop), 0);
	bed.agent_count = agents;
	bed.device_count = devices;
	for (uint32_t n = 0; n < agents; n++)
		agent_open(n, devices);
}

void bed_start(uint32_t number) {
	struct bed_agent *agent = &bed.agents[number];

	agent->stopped = false;
	assert_int_equal(
		fabric_create(bed.loop, agent->overlay, &agent->config, &agent->fabric), 0
	);
}

static void note_stopped(void *ctx) {
	((struct bed_agent *)ctx)->stopped = true;
}

void bed_stop(uint32_t number) {
	struct bed_agent *agent = &bed.agents[number];

	fabric_stop(agent->fabric, note_stopped, agent);
}

void bed_destroy(uint32_t number) {
	struct bed_agent *agent = &bed.agents[number];
	bool closed = true;

	for (uint32_t n = 0; n < agent->fabric->nic_count; n++)
		closed = closed && nic_is_closed(&agent->fabric->nics[n]);
	bed.left_behind = bed.left_behind || !closed;
	agent->fabric = fabric_destroy(agent->fabric);
	for (uint32_t n = 0; n < agent->config.worker_count; n++) {
		prober_destroy(agent->workers[n].prober);
		worker_begin(agent, n);
	}
}

static void fabric_close(uint32_t number) {
	struct bed_agent *agent = &bed.agents[number];

	if (agent->fabric == NULL)
		return;
	if (!agent->fabric->stopping)
		bed_stop(number);
	bed_until(agent->stopped);
	assert_null(agent->fabric->fabric_pairs);
	for (uint32_t n = 0; n < bed.device_count; n++)
		assert_true(nic_is_closed(&agent->fabric->nics[n]));
	assert_int_equal(agent->fabric->counters.paths, 0);
	agent->fabric = fabric_destroy(agent->fabric);
}

static void agent_close(struct bed_agent *agent) {
	for (uint32_t n = 0; n < agent->config.worker_count; n++) {
		assert_int_equal(agent->workers[n].poll_count, 1);
		prober_destroy(agent->config.probers[n]);
	}
	path_table_destroy(agent->paths);
}

void bed_close(void) {
	const char *told;

	bed_let_go();
	fake_verbs_fail_no_more();
	bed_wait_left_behind();
	for (uint32_t n = 0; n < bed.agent_count; n++)
		fabric_close(n);
	for (uint32_t n = 0; n < bed.agent_count; n++)
		agent_close(&bed.agents[n]);
	loop_destroy(bed.loop);
	played_end();
	told = fake_verbs_fini();
	if (told != NULL && !(bed.left_behind && strncmp(told, "alive", 5) == 0))
		fail_msg("%s", told);
}

int bed_pair_open(void **state) {
	(void)state;
	bed_open(2, 1);
	bed_link(0, 1, true);
	return 0;
}

int bed_pair_close(void **state) {
	(void)state;
	bed_close();
	return 0;
}

// Time.

// Readers block the publication of another table; it is retried later. These readers run in real
// time, so real time must pass.
static bool waits_for_publication(const struct fabric_pair *fabric_pair) {
	return (fabric_pair->stage == FABRIC_PAIR_LEAVING || fabric_pair->stage == FABRIC_PAIR_OUT
	       ) &&
	       fabric_pair->version == UINT64_MAX;
}

static bool any_waits_for_publication(void) {
	for (uint32_t n = 0; n < bed.agent_count; n++) {
		const struct fabric *fabric = bed.agents[n].fabric;

		for (const struct fabric_pair *fabric_pair = fabric != NULL ? fabric->fabric_pairs
									    : NULL;
		     fabric_pair != NULL; fabric_pair = fabric_pair->next) {
			if (waits_for_publication(fabric_pair))
				return true;
		}
	}
	return false;
}

static bool gpus_are_at_work(const struct fabric *fabric) {
	for (uint32_t n = 0; n < fabric->gpu_count && !bed.gpus_hang; n++) {
		if (fabric->gpus[n].making.job != NULL || fabric->gpus[n].dropping.job != NULL)
			return true;
	}
	return false;
}

static bool fabric_is_at_work(const struct fabric *fabric) {
	if (gpus_are_at_work(fabric))
		return true;
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (keeper_busy_ns(fabric->nics[n].keeper) > 0 ||
		    fabric->nics[n].opening.job != NULL || fabric->nics[n].closing.job != NULL ||
		    fabric->nics[n].refreshing.job != NULL || fabric->nics[n].looking.job != NULL ||
		    fabric->nics[n].offering.job != NULL)
			return true;
	}
	for (const struct fabric_pair *fabric_pair = fabric->fabric_pairs; fabric_pair != NULL;
	     fabric_pair = fabric_pair->next) {
		if ((fabric_pair->stage == FABRIC_PAIR_LEAVING &&
		     !waits_for_publication(fabric_pair)) ||
		    fabric_pair->job.job != NULL || fabric_pair->fail.job != NULL ||
		    fabric_pair->cut.job != NULL ||
		    (fabric_pair->stage == FABRIC_PAIR_OUT && fabric_pair->drained &&
		     !waits_for_publication(fabric_pair)))
			return true;
	}
	return false;
}

static bool is_at_work(void) {
	for (uint32_t n = 0; n < bed.agent_count; n++) {
		if (bed.agents[n].fabric != NULL && fabric_is_at_work(bed.agents[n].fabric))
			return true;
	}
	return false;
}

static void turn(int timeout_ms) {
	assert_int_equal(loop_turn(bed.loop, timeout_ms), 0);
	played_deliver();
	for (uint32_t n = 0; n < bed.agent_count; n++) {
		for (uint32_t m = 0; m < bed.agents[n].config.worker_count; m++) {
			worker_work(&bed.agents[n].workers[m]);
			worker_tell(&bed.agents[n], m);
		}
	}
}

void bed_turn(void) {
	bool busy = is_at_work();

	turn(busy || any_waits_for_publication() ? 1 : 0);
	if (!busy)
		clock_advance(&bed.clock, BED_PASS_NS);
}

void bed_turn_until(uint32_t turns, const char *condition) {
	if (turns == TURNS_MAX)
		fail_msg("never: %s", condition);
	bed_turn();
}

void bed_pass(uint64_t ns) {
	for (uint64_t passed = 0; passed < ns; passed += BED_PASS_NS) {
		turn(0);
		clock_advance(&bed.clock, BED_PASS_NS);
	}
}

void bed_settle(void) {
	bed_until(!is_at_work() && played_is_silent());
	turn(0);
	bed_until(!is_at_work() && played_is_silent());
}

// Queries.

bool bed_find_pair(uint32_t agent, uint32_t peer, struct fabric_pair_view *ret_view) {
	uint32_t cursor = 0;

	while (fabric_pair_next(bed.agents[agent].fabric, &cursor, ret_view)) {
		if (ret_view->pairing.key.peer == bed_id(peer) && ret_view->pairing.key.device == 0)
			return true;
	}
	return false;
}

bool bed_is_ready(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;

	return bed_find_pair(agent, peer, &view) && view.pairing.state == PAIRING_READY;
}

struct fabric_pair *bed_fabric_pair(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;

	assert_true(bed_find_pair(agent, peer, &view));
	return fabric_pair_find(bed.agents[agent].fabric, view.pairing.generation);
}

struct ibv_qp *bed_qp(uint32_t agent, uint32_t peer) {
	struct fabric_pair *fabric_pair = bed_fabric_pair(agent, peer);

	assert_non_null(fabric_pair);
	return fake_qp_find(bed.agents[agent].fakes[0], pair_queue_number(fabric_pair->pair));
}

enum fabric_device_state bed_device(uint32_t agent) {
	struct fabric_device_view view;

	fabric_device_at(bed.agents[agent].fabric, 0, &view);
	return view.state;
}

// Pings.

static void note_end(void *ctx, const struct fabric_ping_result *result) {
	struct bed_ping *ping = ctx;
	struct histogram_summary summary;

	histogram_summarize(result->latency, &summary);
	ping->count = summary.count;
	ping->result = *result;
	ping->result.latency = NULL;
	ping->sum_ns = 0;
	for (uint32_t n = 0; result->times_ns != NULL && n < result->answered; n++)
		ping->sum_ns += result->times_ns[n];
	ping->ended++;
	ping->ping = NULL;
}

void bed_start_both(void) {
	bed_start(0);
	bed_start(1);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
	bed_until(bed_is_ready(0, 0) && bed_is_ready(1, 1));
}

struct fabric_ping_request bed_ping_request(uint32_t peer) {
	return (struct fabric_ping_request){
		.peer = bed_id(peer),
		.bytes = 8,
		.count = 3,
		.timeout_ns = 2 * RAS_NS_PER_SEC,
		.deadline_ns = clock_now_ns(&bed.clock) + 5 * RAS_NS_PER_SEC,
	};
}

int bed_ping(uint32_t agent, const struct fabric_ping_request *request, struct bed_ping *ping) {
	*ping = (struct bed_ping){0};
	return fabric_ping_start(bed.agents[agent].fabric, request, note_end, ping, &ping->ping);
}

void bed_ping_held(struct bed_ping *ping) {
	struct fabric_ping_request request = bed_ping_request(1);

	fake_qp_hold(bed_qp(0, 1));
	request.timeout_ns = 60 * RAS_NS_PER_SEC;
	assert_int_equal(bed_ping(0, &request, ping), 0);
	bed_pass(10 * RAS_NS_PER_MS);
}
