// SPDX-License-Identifier: BSD-3-Clause
// Parts of the agent in the order of their start; they stop in reverse order.
#include "agent.h"
#include "socket_path.h"

#include <control/client.h>
#include <control/jobhost.h>
#include <control/overlay.h>
#include <control/state.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/seal_keys.h>
#include <lib/show.h>

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// Minimum limits. An agent in a cluster of a few nodes holds about sixty descriptors and threads.
#define OPEN_FILES_MIN 256
#define PROCESSES_MIN 256
#define ADDRESS_SPACE_MIN (UINT64_C(4) << 30)

#define LOW_LIMITS_TEXT_BYTES 256

struct part {
	const char *name;
	int (*start)(struct agent *agent); // returns 0, or -errno and optionally agent->detail
	void (*stop)(struct agent *agent);
};

static int loop_start(struct agent *agent) {
	clock_init_monotonic(&agent->clock);
	return loop_create(&agent->clock, &agent->loop);
}

static void loop_end(struct agent *agent) {
	agent->loop = loop_destroy(agent->loop);
}

// This part is first, because the process must fork before there are threads that hold locks.
static int helper_start(struct agent *agent) {
	return spawn_fork(&agent->spawn_helper);
}

static void helper_stop(struct agent *agent) {
	spawn_helper_end(&agent->spawn_helper);
}

static int state_start_part(struct agent *agent) {
	const char *directory = agent->settings->node.state_directory;

	if (directory[0] == '\0')
		return 0;
	return state_open(
		directory, agent->settings->node.journal_size_bytes, agent->detail, &agent->state
	);
}

static void state_stop(struct agent *agent) {
	agent->state = state_close(agent->state);
}

static void keys_stop(struct agent *agent) {
	seal_keys_put(agent->keys);
	agent->keys = NULL;
	free(agent->key_path);
	agent->key_path = NULL;
}

static int keys_start(struct agent *agent) {
	const char *path = agent->settings->overlay.key;
	const char *cluster = agent->settings->overlay.cluster;
	int err;

	if (path[0] != '\0') {
		agent->key_path = strdup(path);
		if (agent->key_path == NULL)
			return -ENOMEM;
		err = seal_keys_load(path, agent->detail, &agent->keys);
		if (err != 0)
			keys_stop(agent);
		if (err != 0 && err != -ENOMEM)
			agent->exit = AGENT_EXIT_USAGE; // same exit status as --check-config
		return err;
	}
	log_event(LOG_LEVEL_WARN, "no_key", log_str("effect", "the overlay uses loopback only"));
	return seal_keys_create_keyless(cluster, &agent->keys);
}

static void overlay_stop(struct agent *agent) {
	agent->overlay = overlay_destroy(agent->overlay);
}

static int overlay_start(struct agent *agent) {
	struct overlay_config config = {
		.cluster = agent->settings->overlay.cluster,
		.keys = agent->keys,
		.state = agent->state,
		.key_directory =
			agent->state != NULL ? agent->settings->node.state_directory : NULL,
		.conns_max = agent->settings->overlay.connections,
	};
	struct listen_choice choice;
	int err = identity_find(agent, &config.self);

	if (err == 0)
		err = listen_address_choose(agent, &choice);
	if (err != 0)
		return err;
	config.profile = ras_profile_find(agent->settings->overlay.profile == 0 ? "fast" : "nccl");
	config.listen = choice.address;
	config.interface = choice.interface[0] != '\0' ? choice.interface : NULL;
	memcpy(agent->interface, choice.interface, sizeof(agent->interface));

	// A device that may never come up is left out; peers learn of it after it opened.
	for (uint32_t n = 0; n < agent->device_count; n++) {
		struct ras_device *device = &config.self.devices[config.self.device_count];

		if (agent->devices[n].announce_after_open)
			continue;
		if (config.self.device_count == RAS_DEVICES_MAX)
			break;
		memcpy(device->name, agent->devices[n].name, sizeof(device->name));
		device->link_layer = agent->devices[n].link_layer;
		config.self.device_count++;
	}
	config.self.address_count = 1;
	listen_address_advertised(agent, &choice.address, &config.self.addresses[0]);
	err = overlay_create(agent->loop, &config, agent->detail, &agent->overlay);
	if (err != 0)
		return err;
	err = overlay_set_roster(agent->overlay, agent->settings->overlay.expect);
	if (err != 0)
		overlay_stop(agent);
	return err;
}

static int clients_start(struct agent *agent) {
	const char *listen = agent->settings->client.listen;
	const char *group_name = agent->settings->client.group;
	const struct group *group;
	struct client_config config;
	char path[SOCKET_PATH_BYTES];
	int err;

	client_config_init(&config);
	config.version = TOCSIN_VERSION;
	config.cluster = agent->settings->overlay.cluster;
	config.clients_max = agent->settings->client.connections;
	config.idle_ns = agent->settings->client.idle_ns;
	config.spawn = spawn_counters(agent->spawn);
	config.keepers = &agent->keeper_counters;
	config.webhook = &agent->webhook_counters;
	config.http = &agent->http_counters;
	config.jobs = agent->jobhost != NULL ? jobhost_counters(agent->jobhost) : NULL;
	config.ask_level = agent->jobhost != NULL ? jobhost_request_level : NULL;
	config.jobhost = agent->jobhost;
	config.socket_path = path;
	config.health = agent->health;
	config.history = agent->history;
	config.job_limits.confirm_ns = agent->settings->job.waiting_ns;
	config.job_limits.stuck_ns = agent->settings->job.stuck_ns;
	config.job_limits.busy_ns = agent->settings->job.stuck_busy_ns;
	config.socket_mode = 0666; // open to all; each request is authorized by the peer's user
	if (listen[0] != '\0')
		must(sock_addr_parse(listen, strlen(listen), CLIENT_PORT, NULL, &config.listen) == 0
		);
	err = socket_path_make(agent->settings, path, agent->detail);
	if (err != 0)
		return err;
	if (group_name[0] != '\0') {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): before other threads ask
		group = getgrnam(group_name);
		if (group == NULL) {
			snprintf(
				agent->detail, sizeof(agent->detail),
				"[client] group: there is no group %s", group_name
			);
			return -ENOENT;
		}
		config.has_group = true;
		config.group = group->gr_gid;
	}
	return client_server_create(
		agent->loop, &config, agent->overlay, agent->detail, &agent->clients
	);
}

static void clients_stop(struct agent *agent) {
	agent->clients = client_server_destroy(agent->clients);
}

// The order has these reasons. The key precedes the state directory, so that a configuration error
// leaves no trace in that directory. Signals precede everything that creates threads, so that all
// threads block them.
// The state directory and the port precede EAL. EAL's runtime directory is named after the node,
// and eal_stop() removes it. An agent whose state directory or port is taken must therefore fail
// before EAL. Otherwise it would remove the directory of the running agent.
// clang-format off
static const struct part parts[] = {
	{"helper", helper_start, helper_stop},
	{"loop", loop_start, loop_end},
	{"signals", signals_start, signals_stop},
	{"spawn", programs_start, programs_stop},
	{"files", reload_start, reload_stop},
	{"program_report", program_report_start, program_report_stop},
	{"rcu", rcu_start, rcu_stop},
	{"key", keys_start, keys_stop},
	{"state", state_start_part, state_stop},
	{"devices", devices_start, devices_stop},
	{"overlay", overlay_start, overlay_stop},
	{"readers", readers_start, readers_stop},
	{"netwatch", netwatch_start, netwatch_stop},
	{"health", health_part_start, health_part_stop},
	{"history", history_part_start, history_part_stop},
	{"webhook", webhook_part_start, webhook_part_stop},
	{"jobs", jobs_part_start, jobs_part_stop},
	{"clients", clients_start, clients_stop},
	{"http", http_part_start, http_part_stop},
	{"eal", eal_part_start, eal_part_stop},
	{"paths", paths_part_start, paths_part_stop},
	{"workers", workers_start, workers_stop},
	{"fabric", fabric_part_start, fabric_part_stop},
	{"devwatch", devwatch_start, devwatch_stop},
	{"checks", checks_part_start, checks_part_stop},
	{"refusal", refusal_start, refusal_stop},
	{"join", joining_start, joining_stop},
	{"service", service_start, service_stop},
};
// clang-format on
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

static void parts_stop_started(struct agent *agent, size_t started) {
	while (started-- > 0)
		parts[started].stop(agent);
}

static void text_append_item(char *text, const char *words) {
	size_t used = strlen(text);

	snprintf(text + used, LOW_LIMITS_TEXT_BYTES - used, "%s%s", used > 0 ? "; " : "", words);
}

// Describe the resource limits of this process that are too low for an agent; "" if there are none.
static void low_limits_describe(char ret_text[static LOW_LIMITS_TEXT_BYTES]) {
	char words[160], size[SHOW_BYTES];
	struct rlimit limit;

	ret_text[0] = '\0';
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < OPEN_FILES_MIN) {
		snprintf(
			words, sizeof(words), "%" PRIu64 " open files (ulimit -n, LimitNOFILE)",
			(uint64_t)limit.rlim_cur
		);
		text_append_item(ret_text, words);
	}
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < ADDRESS_SPACE_MIN) {
		show_bytes(limit.rlim_cur, size);
		snprintf(words, sizeof(words), "%s of address space (ulimit -v, LimitAS)", size);
		text_append_item(ret_text, words);
	}
	if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < PROCESSES_MIN) {
		snprintf(
			words, sizeof(words), "%" PRIu64 " threads (ulimit -u, LimitNPROC)",
			(uint64_t)limit.rlim_cur
		);
		text_append_item(ret_text, words);
	}
}

int agent_start(struct agent *agent) {
	for (size_t n = 0; n < PART_COUNT; n++) {
		const char *part = parts[n].name, *reason = agent->detail;
		char limits[LOW_LIMITS_TEXT_BYTES];
		int err;

		agent->detail[0] = '\0';
		err = parts[n].start(agent);
		if (err == 0)
			continue;
		if (reason[0] == '\0')
			reason = strerrordesc_np(-err);
		low_limits_describe(limits);
		if (limits[0] == '\0')
			log_event(
				LOG_LEVEL_ERROR, "start_failed", log_str("part", part),
				log_errno("error", err), log_str("reason", reason)
			);
		else
			log_event(
				LOG_LEVEL_ERROR, "start_failed", log_str("part", part),
				log_errno("error", err), log_str("reason", reason),
				log_str("low_limits", limits)
			);
		parts_stop_started(agent, n);
		return err;
	}
	return 0;
}

void agent_stop(struct agent *agent) {
	parts_stop_started(agent, PART_COUNT);
}
