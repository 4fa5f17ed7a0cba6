// SPDX-License-Identifier: BSD-3-Clause
// What the agent consists of. main.c makes it, parts.c starts and stops what is in it.
#pragma once

#include "options.h"

#include <control/checks.h>
#include <control/fabric.h>
#include <control/keeper.h>
#include <control/loop.h>
#include <control/overlay.h>
#include <control/spawn.h>
#include <control/webhook.h>
#include <dataplane/device.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>
#include <lib/sockaddr.h>
#include <ras/record.h>

#define AGENT_DETAIL_BYTES 1024

// Where nothing else is said.
#define CLIENT_PORT 28029
#define OVERLAY_PORT 28030
#define HTTP_PORT 28031

#define AGENT_WORKERS_MAX 64
#define AGENT_DEVICES_MAX FABRIC_DEVICES_MAX

struct agent_worker;
struct checks;
struct client_server;
struct comms_share;
struct config;
struct discovery;
struct fabric;
struct health;
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

// A SIGHUP under way: its files are read beside the loop.
struct agent_reload {
	struct keeper_request request;
	bool again; // another SIGHUP came meanwhile
};

// An RDMA device that was chosen, or one port of it.
struct agent_device {
	const struct verbs_calls *calls;
	char name[DEVICE_NAME_MAX + 1];	  // of the rail
	char device[DEVICE_NAME_MAX + 1]; // as the driver calls it
	struct device_settings settings;
	enum ras_link_layer link_layer;
	uint64_t guid;	     // 0: not known
	bool may_never_come; // as struct fabric_device
	bool stands_in;
	bool gpu; // likewise
	uint32_t gpu_ordinal;
};

// What the log was last told of the names to join through.
struct agent_join_told {
	uint64_t at_ns; // 0: nothing yet
	uint32_t count, failures;
	char error[160];
};

struct agent {
	const struct options *options;
	struct config *config;
	struct config *started_with; // of the start, once another was loaded; NULL: config
	struct clock clock;
	char detail[AGENT_DETAIL_BYTES]; // why a part did not start, in words

	struct spawn_helper spawn_helper; // until there is a loop to attach it to
	struct spawn *spawn;
	struct keeper_counters keeper_counters; // of all keepers
	struct loop *loop;
	struct loop_source signals;
	struct keeper *files; // reads what SIGHUP asks for, which may be on a disk that hangs
	struct agent_reload reload;
	struct loop_timer watchdog;
	struct state *state;
	const struct seal_keys *keys;
	char *key_path; // whose file the keys are of; NULL: keyless
	struct overlay *overlay;
	struct overlay_listener listener;
	struct peer_table *peers; // what other threads read
	struct publish *publish;
	struct loop_timer publish_timer;
	struct netif_watch *netwatch;
	struct keeper *netif; // asks the kernel and drivers for what there is
	struct keeper_request netif_request;
	bool netif_again; // something moved meanwhile
	struct loop_source netwatch_source;
	struct loop_timer netwatch_timer;
	bool address_there;	  // as far as we know
	bool address_untold;	  // listens there, and others know the one of before
	uint64_t address_next_ns; // no other one is taken before
	struct loop_timer address_again;
	struct agent_device devices[AGENT_DEVICES_MAX];
	uint32_t device_count;
	struct discovery *discovery; // what is asked for, and what is known of it
	struct keeper *discoverer;
	struct keeper_request discovering;
	bool discover_again;	   // something happened meanwhile
	bool device_came;	   // a uevent said so
	uint32_t discoveries_left; // that follow each other soon
	struct cpu_set near_cpus;  // the first device; empty: nobody knows
	char interface[16];	   // that the overlay uses, "" if an address was given
	struct path_table *paths;
	struct fabric *fabric;
	int uevents; // -1: none are to be had
	struct loop_source uevents_source;
	struct loop_timer devices_look;
	struct checks *checks;
	struct clock worker_clocks[AGENT_WORKERS_MAX]; // each its worker's, from its start on
	struct agent_worker *workers;
	uint32_t worker_count;
	struct health *health;	      // the store of verdicts
	struct webhook_part *webhook; // NULL: nobody is told of changes
	struct webhook_counters webhook_counters;
	struct jobhost *jobhost;	 // NULL: [job] is off
	struct comms_share *comms_share; // likewise
	struct client_server *clients;
	struct snapshots *snapshots; // NULL: HTTP is off
	struct loop_timer snapshot_timer;
	struct http *http;
	struct join_list *join;
	struct loop_timer join_again;
	struct agent_join_told join_told;
	bool joining; // overlay_join() was called

	struct overlay_listener refusals;
	struct loop_job give_up;
	enum agent_exit refusal;

	bool leaving;
	enum agent_exit exit;
	uint32_t leave_signal; // that asked to stop last, 0: none
	uint64_t leave_signal_ns;
};

// parts.c: 0, or -errno with detail; then nothing is left started.
int agent_start(struct agent *agent);
void agent_stop(struct agent *agent);

// devices.c: the section [device NAME], NULL if there is none.
const char *device_section(const struct config *config, const char *name);

// soft_device.c: the software device, by [device soft0]; it is opened when it comes into use. 0,
// or -errno with a reason.
int soft_device_config(
	struct agent *agent, struct parse_error *ret_error, struct soft_config *ret_config
);
// Whether its packets would go over a port of DPDK.
// It was given no address of its own.
bool soft_device_is_where_the_overlay_is(const struct config *config);
bool soft_device_needs_dpdk(const struct config *config);
// After a reload: its faults.
void soft_device_reload(struct agent *agent);
int soft_device_make(struct agent *agent, struct parse_error *ret_error);
// What is known of it before it is opened.
void soft_device_facts(struct device_facts *ret_facts);

// identity.c: who this node is, by configuration and by the system. 0 or -errno with detail.
int identity_find(struct agent *agent, struct ras_peer_info *ret_self);
// listen_address.c: where the overlay is spoken: 0 or -errno with detail.
struct listen_choice {
	struct sock_addr address;
	char interface[16]; // the one it was chosen on, "" if an address was given
};
int listen_address_choose(struct agent *agent, struct listen_choice *ret_choice);
// Whether the rules choose it, and not the configuration.
bool listen_address_is_chosen(const struct agent *agent);
// The rules; the policy keeps pointers to the configuration and to `peer`.
int listen_address_policy(
	struct agent *agent, char peer[static SOCK_ADDR_TEXT_BYTES], struct netif_policy *ret_policy
);
int listen_address_among(
	struct agent *agent,
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct listen_choice *ret_choice
);
// What others are told, if it is spoken there.
void listen_address_told(
	const struct agent *agent, const struct sock_addr *listen, struct sock_addr *ret_told
);

// signals.c
int signals_start(struct agent *agent);
void signals_stop(struct agent *agent);
void agent_leave(struct agent *agent, enum agent_exit status);

// refusal.c: leaves when the cluster does not want this node.
int refusal_start(struct agent *agent);
void refusal_stop(struct agent *agent);

// joining.c: keeps the addresses to join through up to date.
int joining_start(struct agent *agent);
void joining_stop(struct agent *agent);
int joining_restart(struct agent *agent);

// readers.c: what other threads read.
int rcu_start(struct agent *agent);
void rcu_stop(struct agent *agent);
int readers_start(struct agent *agent);
void readers_stop(struct agent *agent);

// netwatch.c: whether the overlay's address is still ours, and another one where it may be.
int netwatch_start(struct agent *agent);
void netwatch_stop(struct agent *agent);

// workers.c: DPDK's environment, and the polling threads.
int eal_part_start(struct agent *agent);
void eal_part_stop(struct agent *agent);
int workers_start(struct agent *agent);
void workers_stop(struct agent *agent);
// What the configuration says of them that can change while they run.
void workers_reload(struct agent *agent);
// Ends their threads, and no more.
void workers_halt(struct agent *agent);
// All of them, in order; room for AGENT_WORKERS_MAX.
void workers_list(const struct agent *agent, struct worker **workers, struct prober **probers);
// As checks ask for them; ctx is the agent.
bool workers_at(void *ctx, uint32_t n, struct checks_worker *ret_worker);

// devices.c: which RDMA devices there are for us, before anybody is told who we are.
int devices_start(struct agent *agent);
void devices_stop(struct agent *agent);
// What a later look found: those that are new are added.
void devices_came(struct agent *agent, const struct discovery *discovery);

// fabric.c
int paths_part_start(struct agent *agent);
void paths_part_stop(struct agent *agent);
int fabric_part_start(struct agent *agent);
void fabric_part_stop(struct agent *agent);
// SIGHUP: [probe].
void fabric_part_reload(struct agent *agent);
// A device that came later; errors are those of fabric_add_device().
int fabric_part_add(struct agent *agent, const struct agent_device *device);

// devwatch.c: whether RDMA devices came or went.
int devwatch_start(struct agent *agent);
void devwatch_stop(struct agent *agent);
// Somebody says that some did.
void devwatch_look_soon(struct agent *agent);

// node_checks.c: the local checks, and what the configuration says of them.
int checks_part_start(struct agent *agent);
void checks_part_stop(struct agent *agent);
void checks_part_reload(struct agent *agent);

// health.c
int health_part_start(struct agent *agent);
void health_part_stop(struct agent *agent);

// webhook.c: told of what changes in the store.
int webhook_part_start(struct agent *agent);
void webhook_part_stop(struct agent *agent);

// jobs.c: the processes of jobs, by their own socket.
int jobs_part_start(struct agent *agent);
void jobs_part_stop(struct agent *agent);

// http.c
int http_part_start(struct agent *agent);
void http_part_stop(struct agent *agent);

// reload.c: what SIGHUP does. The files are read by a keeper, and applied on the loop later; one
// more of it while that goes on is remembered once.
int reload_start(struct agent *agent);
void reload_stop(struct agent *agent);
void agent_reload(struct agent *agent);

// service.c: what systemd is told; nothing where there is none.
int service_start(struct agent *agent);
void service_stop(struct agent *agent);
void service_notify(const char *text);
// A reload begins; READY=1 ends it.
void service_notify_reloading(void);
