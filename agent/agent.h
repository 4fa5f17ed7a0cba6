// SPDX-License-Identifier: BSD-3-Clause
// State of the agent. main.c creates it; parts.c starts and stops its parts.
#pragma once

#include "options.h"
#include "settings.h"

#include <control/checks.h>
#include <control/counters.h>
#include <control/fabric.h>
#include <control/http.h>
#include <control/keeper.h>
#include <control/loop.h>
#include <control/overlay.h>
#include <control/spawn.h>
#include <control/webhook.h>
#include <dataplane/device.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>
#include <lib/schedstat.h>
#include <lib/sockaddr.h>
#include <ras/record.h>

#define AGENT_DETAIL_BYTES 1024

// Default ports.
#define CLIENT_PORT 28029
#define OVERLAY_PORT 28030
#define HTTP_PORT 28031

#define AGENT_WORKERS_MAX 64
#define AGENT_DEVICES_MAX FABRIC_DEVICES_MAX

struct agent_worker;
struct checks;
struct client_server;
struct comms_share;
struct discovery;
struct fabric;
struct health;
struct history;
struct webhook_part;
struct http;
struct jobhost;
struct join_list;
struct overlay;
struct parse_error;
struct path_table;
struct prober;
struct worker;
struct netif_policy;
struct netif_table;
struct netif_watch;
struct peer_table;
struct publish;
struct seal_keys;
struct snapshots;
struct soft_config;
struct state;

// One SIGHUP in progress. A keeper reads the files, so that the loop does not block.
struct agent_reload {
	struct keeper_request request;
	bool again; // another SIGHUP arrived during this one
};

// RDMA device that was selected, or one port of it.
struct agent_device {
	const struct verbs_calls *calls;
	char name[DEVICE_NAME_MAX + 1];	  // name of the rail
	char device[DEVICE_NAME_MAX + 1]; // name used by the driver
	struct device_settings settings;
	enum ras_link_layer link_layer;
	uint64_t guid;		  // node GUID; 0: unknown
	bool announce_after_open; // same meaning as in struct fabric_device
	bool is_fallback;
	bool gpu; // memory of this GPU is exposed to peers
	uint32_t gpu_ordinal;
};

// Last report in the log about resolving the join names.
struct agent_join_report {
	uint64_t at_ns; // 0: no report yet
	uint32_t count, failures;
	char error[160];
};

struct agent {
	const struct options *options;
	struct config *config;
	const struct agent_settings *settings; // values of `config`
	// Configuration at the start, if a reload replaced it; else NULL.
	struct config *started_with;
	struct clock clock;
	char detail[AGENT_DETAIL_BYTES]; // text of the reason why a part failed to start

	struct spawn_helper spawn_helper; // used until the loop exists
	struct spawn *spawn;
	struct spawn *root_spawn;	      // programs of other users, by the root helper
	char user_name[SPAWN_USER_BYTES_MAX]; // own user, if it may not change to another; else ""
	struct keeper_counters keeper_counters; // totals over all keepers
	struct loop *loop;
	struct loop_source signals;
	struct keeper *files; // reads the files for SIGHUP, because their disk may hang
	struct agent_reload reload;
	struct keeper *programs; // looks at the programs of the configuration
	struct keeper_request programs_request;
	struct loop_timer watchdog;
	struct state *state;
	const struct seal_keys *keys;
	char *key_path; // path of the key file; NULL: keyless
	struct overlay *overlay;
	struct history *history; // NULL without a state directory
	struct overlay_listener listener;
	struct peer_table *peers; // RCU table for other threads
	struct publish *publish;
	struct loop_timer publish_timer;
	struct netif_watch *netwatch;
	struct keeper *netif; // thread that queries the kernel and drivers for interfaces
	struct keeper_request netif_request;
	bool netif_gather_is_queued; // interfaces changed during the running request
	struct loop_source netwatch_source;
	struct loop_timer netwatch_timer;
	bool address_is_present;  // the overlay's address exists, as far as known
	bool address_unannounced; // the overlay listens on a new address that peers do not know yet
	uint64_t next_address_change_ns; // earliest time of the next address change
	struct loop_timer address_retry_timer;
	struct agent_device devices[AGENT_DEVICES_MAX];
	uint32_t device_count;
	struct discovery *discovery; // targets and results of device discovery
	struct keeper *discoverer;
	struct keeper_request discovering;
	bool rescan_is_queued;	  // a rescan was requested during the running one
	bool rescan_is_forced;	  // the next rescan must not skip an unchanged device list
	uint32_t rescans_left;	  // rescans that may still follow at short intervals
	struct cpu_set near_cpus; // CPUs near the first device; empty: unknown
	char interface[16];	  // interface of the overlay; "" if an address was configured
	struct path_table *paths;
	struct fabric *fabric;
	int uevents; // netlink socket; -1: unavailable
	struct loop_source uevents_source;
	struct loop_timer device_rescan_timer;
	struct checks *checks;
	// Each owned by its worker, once that has started.
	struct clock worker_clocks[AGENT_WORKERS_MAX];
	struct agent_worker *workers;
	uint32_t worker_count;
	struct health *health;	      // store of verdicts
	struct webhook_part *webhook; // NULL: no webhook configured
	struct webhook_counters webhook_counters;
	struct jobhost *jobhost;	 // NULL: [job] is off
	struct comms_share *comms_share; // NULL: [job] is off
	struct client_server *clients;
	struct snapshots *snapshots; // NULL: HTTP is off
	struct loop_timer snapshot_timer;
	struct http *http;
	struct http_counters http_counters;
	struct join_list *join;
	struct loop_timer join_refresh_timer;
	struct agent_join_report join_last_report;
	bool joining; // overlay_join() was called

	struct overlay_listener refusals;
	struct loop_job give_up;
	enum agent_exit refusal;

	bool leaving;
	enum agent_exit exit;
	uint32_t leave_signal; // last signal that asked the agent to stop; 0: none
	uint64_t leave_signal_ns;
};

// parts.c: start all parts. Returns 0, or -errno with agent->detail after stopping the parts that
// had started.
int agent_start(struct agent *agent);
void agent_stop(struct agent *agent);

// devices.c: return the section [device NAME], or NULL if it does not exist.
const struct device_section *
device_section_find(const struct agent_settings *settings, const char *name);

// soft_device.c: return the section [device soft0], or one with empty texts if it does not exist.
const struct device_section *soft_device_section(const struct agent_settings *settings);
// Fill the configuration of the software device from that section. The device is opened only when
// it is first used. Returns 0, or -errno with a reason.
int soft_device_config(
	struct agent *agent, struct parse_error *ret_error, struct soft_config *ret_config
);
// soft_device_uses_overlay_address() returns true if the device has no configured address.
// soft_device_needs_dpdk() returns true if its packets use a DPDK port.
bool soft_device_uses_overlay_address(const struct agent_settings *settings);
bool soft_device_needs_dpdk(const struct agent_settings *settings);
// Apply the injected faults after a reload.
void soft_device_reload(struct agent *agent);
int soft_device_make(struct agent *agent, struct parse_error *ret_error);
// Return the facts that are known before the device is opened.
void soft_device_facts(struct device_facts *ret_facts);

// identity.c: fill the node's identity from the configuration and the system. Returns 0, or -errno
// with agent->detail.
int identity_find(struct agent *agent, struct ras_peer_info *ret_self);
// listen_address.c: address on which the overlay listens. Functions return 0, or -errno with
// agent->detail.
struct listen_choice {
	struct sock_addr address;
	char interface[16]; // interface of the address; "" if the address was configured
};
int listen_address_choose(struct agent *agent, struct listen_choice *ret_choice);
// Return true if the rules choose the address, not the configuration.
bool listen_address_is_automatic(const struct agent *agent);
// Return the rules as a policy. The policy keeps pointers into the configuration and `peer`.
int listen_address_policy(
	struct agent *agent, char peer[static SOCK_ADDR_TEXT_BYTES], struct netif_policy *ret_policy
);
int listen_address_choose_from(
	struct agent *agent,
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct listen_choice *ret_choice
);
// Return the address to advertise to peers when the agent listens on `listen`.
void listen_address_advertised(
	const struct agent *agent, const struct sock_addr *listen, struct sock_addr *ret_told
);

// signals.c
int signals_start(struct agent *agent);
void signals_stop(struct agent *agent);
void agent_leave(struct agent *agent, enum agent_exit status);

// refusal.c: leaves when the cluster refuses this node.
int refusal_start(struct agent *agent);
void refusal_stop(struct agent *agent);

// joining.c: keeps the list of join addresses up to date.
int joining_start(struct agent *agent);
void joining_stop(struct agent *agent);
int joining_restart(struct agent *agent);

// readers.c: RCU tables that other threads read.
int rcu_start(struct agent *agent);
void rcu_stop(struct agent *agent);
int readers_start(struct agent *agent);
void readers_stop(struct agent *agent);

// netwatch.c: watches the overlay's address, and changes it if the rules allow.
int netwatch_start(struct agent *agent);
void netwatch_stop(struct agent *agent);

// workers.c: DPDK's environment (EAL), and the polling threads.
int eal_part_start(struct agent *agent);
void eal_part_stop(struct agent *agent);
int workers_start(struct agent *agent);
void workers_stop(struct agent *agent);
// Apply the settings that can change while workers run.
void workers_reload(struct agent *agent);
// Stop the worker threads. Their memory stays until workers_stop().
void workers_stop_threads(struct agent *agent);
// List all workers and probers in order. Each array has room for AGENT_WORKERS_MAX.
// Read the processor times of the agent's threads, for fabric_config.schedstats.
void workers_schedstats(void *ctx, struct schedstat ret_stats[FABRIC_THREADS_MAX]);
void workers_list(const struct agent *agent, struct worker **workers, struct prober **probers);
// Describe the n-th worker for checks; `ctx` is the agent. Returns false if n is out of range.
bool workers_describe(void *ctx, uint32_t n, struct checks_worker *ret_worker);

// devices.c: finds the RDMA devices. Runs before the overlay, whose record lists them.
int devices_start(struct agent *agent);
void devices_stop(struct agent *agent);
// Add the new devices that a later discovery found.
void devices_add_discovered(struct agent *agent, const struct discovery *discovery);

// fabric.c
int history_part_start(struct agent *agent);
void history_part_stop(struct agent *agent);
int paths_part_start(struct agent *agent);
void paths_part_stop(struct agent *agent);
int fabric_part_start(struct agent *agent);
void fabric_part_stop(struct agent *agent);
// Apply the section [probe] after SIGHUP.
void fabric_part_reload(struct agent *agent);
// Add a device that appeared later. Returns the errors of fabric_add_device().
int fabric_part_add(struct agent *agent, const struct agent_device *device);

// devwatch.c: watches for RDMA devices that appear or disappear.
int devwatch_start(struct agent *agent);
void devwatch_stop(struct agent *agent);
// Request a rescan, because devices may have changed.
void devwatch_rescan_soon(struct agent *agent);

// node_checks.c: the local checks and their configuration.
int checks_part_start(struct agent *agent);
void checks_part_stop(struct agent *agent);
void checks_part_reload(struct agent *agent);

// health.c
int health_part_start(struct agent *agent);
void health_part_stop(struct agent *agent);

// webhook.c: runs the webhook on changes of verdicts.
int webhook_part_start(struct agent *agent);
void webhook_part_stop(struct agent *agent);

// jobs.c: serves job processes on a socket of their own.
int jobs_part_start(struct agent *agent);
void jobs_part_stop(struct agent *agent);

// http.c
int http_part_start(struct agent *agent);
void http_part_stop(struct agent *agent);

// reload.c: handles SIGHUP. A keeper reads the files, and the loop applies them later. A SIGHUP
// during a reload starts one more reload after it.
int reload_start(struct agent *agent);
void reload_stop(struct agent *agent);
void agent_reload(struct agent *agent);

// program_report.c: reports programs of the configuration that will not be run, at the start and
// after a reload.
int program_report_start(struct agent *agent);
void program_report_stop(struct agent *agent);
void program_report_begin(struct agent *agent);

// programs.c: the spawn of the agent's own programs, and that of the root helper's.
int programs_start(struct agent *agent);
void programs_stop(struct agent *agent);
// Return whether the root helper must run the programs of a user, because this agent may not.
bool programs_need_root_helper(const struct agent *agent, const char *user);

// service.c: notifies systemd; does nothing without systemd.
int service_start(struct agent *agent);
void service_stop(struct agent *agent);
void service_notify(const char *text);
// Announce the start of a reload; READY=1 ends it.
void service_notify_reloading(void);
