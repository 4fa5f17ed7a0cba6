// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment (EAL), and the polling threads with one prober each. The fabric adds lanes.
#include "agent.h"

#include <control/fabric.h>
#include <dataplane/cores.h>
#include <dataplane/dispatch.h>
#include <dataplane/eal.h>
#include <dataplane/near.h>
#include <dataplane/prober.h>
#include <dataplane/soft.h>
#include <dataplane/telemetry.h>
#include <dataplane/worker.h>
#include <lib/config.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/parse.h>
#include <ras/ras.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SYSFS_ROOT "/sys"
#define CPUS_TEXT_BYTES 128
#define NODE_TEXT_BYTES 16
#define EVENTS_PER_TURN 64

struct agent_worker {
	struct agent *agent;
	uint32_t place;
	struct loop_source events;
	struct worker *worker;
	struct prober *prober;
	char name[WORKER_NAME_MAX + 1];
	pid_t tid;
	struct cpu_set affinity; // CPU affinity at the start
};

// EAL.

static void eal_log_line(uint32_t level, const char *line, size_t length) {
	if (level <= EAL_LOG_ERROR)
		log_event(LOG_LEVEL_WARN, "eal", log_bytes("text", line, length));
	else
		log_event(LOG_LEVEL_DEBUG, "eal", log_bytes("text", line, length));
}

// Extra memory for a dpdk wire: the buffers and queues of a physical port.
#define WIRE_MIB 64

int eal_part_start(struct agent *agent) {
	struct ras_peer_info self;
	struct eal_config config = {
		.name = self.name,
		.memory = agent->settings->worker.huge_pages ? EAL_MEMORY_AUTO : EAL_MEMORY_PLAIN,
		.memory_mib = (uint32_t)(agent->settings->worker.memory_bytes >> 20),
		.log = eal_log_line,
	};
	char took[PARSE_TEXT_BYTES];
	struct eal_facts facts;
	int err = identity_find(agent, &self);

	if (soft_device_needs_dpdk(agent->settings)) {
		config.memory_mib += WIRE_MIB;
		config.loads_drivers = true;
		config.pci = true;
	}
	if (err == 0 && !eal_is_built()) {
		log_event(LOG_LEVEL_INFO, "eal_not_built", log_str("dpdk", "off"));
		return 0;
	}
	if (err == 0)
		err = eal_start(&config, &facts);
	if (err != 0)
		return err;
	err = telemetry_start();
	if (err != 0) {
		eal_stop();
		return err;
	}
	format_duration_ns(facts.start_ns - facts.start_ns % 1000000, took);
	log_event(
		LOG_LEVEL_INFO, "eal_started", log_bool("huge_pages", facts.huge_pages),
		log_str("took", took), log_str("telemetry", facts.runtime_dir)
	);
	return 0;
}

// An abandoned software device keeps running, possibly on a DPDK port, so EAL must stay up.
void eal_part_stop(struct agent *agent) {
	(void)agent;
	if (fabric_has_left_memory_behind())
		eal_remove_directory();
	else
		eal_stop();
}

// Workers.

// Return the idle policy of a worker. The last configured policy applies to all further workers.
static struct idle_config
worker_idle_config(const struct agent_settings *settings, uint32_t place) {
	const struct config_list *list = &settings->worker.idle;
	struct idle_config idle = {
		.window_ns = settings->worker.window_ns,
		.foresees = true,
	};

	must(idle_policy_parse(
		     list->items[place < list->count ? place : list->count - 1], &idle.policy
	     ) == 0);
	return idle;
}

// Choose the CPUs of the workers. *ret_named is true if the configuration names them; otherwise
// *ret_places holds the input of the rule.
static int workers_choose_cores(
	struct agent *agent,
	struct cores_constraints *ret_places,
	bool *ret_named,
	struct cpu_set *ret_cores
) {
	const char *given = agent->settings->worker.cores;
	struct parse_error error;
	int err = cpu_set_get_allowed(&ret_places->allowed);

	if (err != 0)
		return err;
	*ret_named = given[0] != '\0';
	if (!*ret_named) {
		cores_read_isolated(SYSFS_ROOT, &ret_places->isolated);
		ret_places->near = agent->near_cpus;
		ret_places->spins = worker_idle_config(agent->settings, 0).policy == IDLE_SPIN;
		return cores_choose(ret_places, 1, ret_cores);
	}
	err = cpu_set_parse_allowed(given, strlen(given), &ret_places->allowed, &error, ret_cores);
	if (err != 0)
		snprintf(agent->detail, sizeof(agent->detail), "[worker] cores: %s", error.text);
	return err;
}

// Dispatch the events of a worker. An event of an unknown kind is logged.
static void on_worker_events(struct loop_source *source, uint32_t events) {
	struct agent_worker *worker = container_of(source, struct agent_worker, events);
	struct worker_record records[EVENTS_PER_TURN];
	uint32_t count = worker_take_events(worker->worker, records, EVENTS_PER_TURN);

	(void)events;
	for (uint32_t n = 0; n < count; n++) {
		struct fabric *fabric = worker->agent->fabric;

		if (records[n].kind == WORKER_EVENT_CLOCK)
			log_event(
				LOG_LEVEL_WARN, "worker_clock_given_up",
				log_u64("worker", worker->place), log_str("clock", "monotonic"),
				log_str("reason", "the TSC jumped away from the kernel's clock")
			);
		else if (fabric == NULL || !fabric_worker_event(fabric, worker->place, &records[n]))
			log_event(LOG_LEVEL_WARN, "worker_event", log_u64("kind", records[n].kind));
	}
}

static int
worker_begin(struct agent *agent, struct agent_worker *worker, uint32_t cpu, const char *why) {
	struct clock *clock = &agent->worker_clocks[worker->place];
	bool pin = agent->settings->worker.pin;
	char *name = worker->name, cores[CPUS_TEXT_BYTES], node[NODE_TEXT_BYTES],
	     block[PARSE_TEXT_BYTES];
	struct worker_config config = {
		.name = name,
		.cpu = pin ? cpu : WORKER_CPU_ANY,
		.clock = clock,
		.kept_clock = clock,
		.idle = worker_idle_config(agent->settings, worker->place),
		.request = dispatch_worker_request,
	};
	const char *clock_name, *clock_why;
	struct worker_facts facts;
	int err;

	// Read the clock before the worker thread owns it.
	clock_name = clock_source_name(clock_source(clock));
	clock_why = clock_reason(clock);
	snprintf(name, sizeof(worker->name), "tocsin-w%u", (uint16_t)cpu);
	err = prober_create(
		agent->paths, agent->peers, clock, near_of_cpu(config.cpu), &worker->prober
	);
	if (err != 0)
		return err;
	config.polls[config.poll_count++] = prober_poll(worker->prober);
	err = worker_create(&config, &worker->worker);
	if (err == 0)
		err = telemetry_add_worker(name, worker->worker);
	if (err == 0)
		err = worker_start(worker->worker, &facts);
	if (err != 0)
		return err;
	worker->tid = facts.tid;
	worker->affinity = facts.affinity;
	worker->events = (struct loop_source){
		.fd = worker_event_fd(worker->worker),
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = on_worker_events,
	};
	cpu_set_format(&facts.affinity, cores, sizeof(cores));
	snprintf(node, sizeof(node), facts.memory_node < 0 ? "-" : "%d", facts.memory_node);
	format_duration_ns(facts.block_ns, block);
	log_event(
		LOG_LEVEL_INFO, "worker_started", log_str("name", name), log_str("cores", cores),
		log_str("cores_why", pin ? why : "not pinned"), log_str("memory_node", node),
		log_str("idle", idle_policy_name(config.idle.policy)), log_str("block_cost", block),
		log_str("clock", clock_name), log_str("clock_why", clock_why)
	);
	return loop_add(agent->loop, &worker->events);
}

int workers_start(struct agent *agent) {
	struct cores_constraints places = {.spins = false};
	struct cpu_set cores;
	struct clock clock;
	bool named = false;
	int err = workers_choose_cores(agent, &places, &named, &cores);

	if (err == 0 && agent->settings->worker.lock_memory)
		err = worker_lock_memory();
	if (err != 0)
		return err;
	if (cpu_set_count(&cores) > AGENT_WORKERS_MAX) {
		snprintf(
			agent->detail, sizeof(agent->detail),
			"[worker] cores: at most %d processors are allowed", AGENT_WORKERS_MAX
		);
		return -E2BIG;
	}
	agent->workers = calloc(cpu_set_count(&cores), sizeof(*agent->workers));
	if (agent->workers == NULL)
		return -ENOMEM;

	// Calibrate the clock once; each worker then keeps its own copy.
	clock_init_resynced(&clock);
	for (uint32_t n = 0; n < cpu_set_count(&cores); n++)
		agent->worker_clocks[n] = clock;

	for (uint32_t cpu = cpu_set_next(&cores, 0); cpu < CPU_SET_CPUS_MAX && err == 0;
	     cpu = cpu_set_next(&cores, cpu + 1)) {
		struct agent_worker *worker = &agent->workers[agent->worker_count];

		worker->agent = agent;
		worker->place = agent->worker_count++;
		err = worker_begin(agent, worker, cpu, named ? "named" : cores_why(&places, cpu));
	}
	if (err != 0)
		workers_stop(agent);
	return err;
}

void workers_stop_threads(struct agent *agent) {
	for (uint32_t n = 0; n < agent->worker_count; n++)
		worker_stop(agent->workers[n].worker);
}

void workers_stop(struct agent *agent) {
	for (uint32_t n = 0; n < agent->worker_count; n++) {
		loop_remove(&agent->workers[n].events);
		telemetry_remove(agent->workers[n].worker);
		worker_destroy(agent->workers[n].worker);
		prober_destroy(agent->workers[n].prober);
	}
	agent->worker_count = 0;
	free(agent->workers);
	agent->workers = NULL;
}

bool workers_describe(void *ctx, uint32_t n, struct checks_worker *ret_worker) {
	const struct agent *agent = ctx;
	const struct agent_worker *worker = &agent->workers[n];
	struct cpu_set allowed;

	if (n >= agent->worker_count)
		return false;
	*ret_worker = (struct checks_worker){.name = worker->name, .tid = worker->tid};
	worker_progress(worker->worker, &ret_worker->sign);
	if (cpu_set_get_thread(worker->tid, &allowed) == 0 &&
	    memcmp(&allowed, &worker->affinity, sizeof(allowed)) != 0) {
		ret_worker->allowed = allowed;
		ret_worker->wanted = worker->affinity;
	}
	return true;
}

// A thread that cannot be read keeps its zeros.
void workers_schedstats(void *ctx, struct schedstat ret_stats[FABRIC_THREADS_MAX]) {
	const struct agent *agent = ctx;
	pid_t engine = soft_engine_tid(SOFT_DEVICE_NAME);

	(void)schedstat_read(gettid(), &ret_stats[FABRIC_THREAD_CONTROL]);
	if (engine != 0)
		(void)schedstat_read(engine, &ret_stats[FABRIC_THREAD_ENGINE]);
	for (uint32_t n = 0; n < agent->worker_count && n < FABRIC_WORKERS_MAX; n++)
		(void)schedstat_read(agent->workers[n].tid, &ret_stats[FABRIC_THREAD_WORKER + n]);
}

void workers_list(const struct agent *agent, struct worker **workers, struct prober **probers) {
	for (uint32_t n = 0; n < agent->worker_count; n++) {
		workers[n] = agent->workers[n].worker;
		probers[n] = agent->workers[n].prober;
	}
}

void workers_reload(struct agent *agent) {
	for (uint32_t n = 0; n < agent->worker_count; n++) {
		struct idle_config idle = worker_idle_config(agent->settings, n);
		int err = worker_set_idle(agent->workers[n].worker, &idle);

		if (err == 0)
			log_event(
				LOG_LEVEL_INFO, "worker_idle", log_u64("worker", n),
				log_str("idle", idle_policy_name(idle.policy))
			);
		else
			log_event(
				LOG_LEVEL_ERROR, "worker_idle_not_reloaded", log_u64("worker", n),
				log_errno("error", err)
			);
	}
}
