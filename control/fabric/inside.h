// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: what the fabric is made of.
//
// Who owns what: the fabric its devices and pairs; a job of a keeper what it makes, until it has
// ended and its owner took that out of it; the worker a pair between LANE_REQUEST_ADD and
// LANE_EVENT_DRAINED, and a run between PROBER_REQUEST_RUN and PROBER_EVENT_ENDED.
#pragma once

#include "fabric/rails.h"

#include <control/fabric.h>
#include <control/keeper.h>
#include <dataplane/gpu_page.h>
#include <dataplane/memory.h>
#include <dataplane/pair.h>
#include <dataplane/pulse.h>
#include <dataplane/watch.h>

#define FABRIC_PAIR_DEPTH 64
// A page for all pings, one for the long probes of each device, and a bit for each watch.
#define FABRIC_SCRATCH_WATCHES ((size_t)(1 + FABRIC_DEVICES_MAX) * PULSE_BYTES)
#define FABRIC_SCRATCH_BYTES (FABRIC_SCRATCH_WATCHES + (size_t)PROBE_PATHS_MAX * WATCH_OWN_BYTES)
#define FABRIC_OPS_MAX 4096
#define FABRIC_MEMORY_FAILURE_NS RAS_NS_PER_SEC
#define FABRIC_DRAIN_NS (2 * RAS_NS_PER_SEC)
// Opening loads a driver, pins memory and asks the kernel for interfaces, which waits for whoever
// adds or removes some (14 namespaces begun at once on two processors: more than 2 s).
#define FABRIC_OPEN_STUCK_NS (15 * RAS_NS_PER_SEC)
#define FABRIC_MESSAGE_LIFE_NS (5 * RAS_NS_PER_SEC)

// Made together on the keeper, and taken apart there.
struct nic_parts {
	struct device *device;
	struct memory_registry *registry;
	struct lane *lane;
	struct memory_view pulse;      // what peers read
	struct memory_view scratch;    // where own reads go
	struct memory_view write_sink; // where peers write to
	struct memory_view gpu;	       // a GPU's, that peers read; region NULL: none is shown
	struct device_facts facts;
};

#define FABRIC_GPUS_MAX 16

// A GPU whose memory is shown to peers, by each device that is to. What enters its driver runs on a
// keeper of its own: one that hangs holds no RDMA device up.
struct gpu_show {
	struct fabric *fabric;
	uint32_t ordinal;
	struct keeper *keeper;
	struct keeper_request making, dropping;
	struct loop_timer retry;
	struct gpu_page *page;		  // NULL: there is none (yet)
	char reason[CUDA_REASON_MAX + 1]; // "": none; else why there is no page
};

struct nic {
	struct fabric *fabric;
	uint32_t place;	 // in fabric->nics
	uint32_t number; // the pairing's
	uint32_t worker;
	struct fabric_device config;
	struct keeper *keeper;
	enum fabric_device_state state;
	uint64_t since_ns;
	char reason[DEVICE_REASON_MAX + 1];
	enum fabric_device_state told; // what the log was told last, and
	char told_reason[DEVICE_REASON_MAX + 1];
	bool open; // parts are there
	struct nic_parts parts;
	bool attached, attaching; // the worker polls its lane, or will
	bool lost;		  // the device failed for good: to be closed and opened again
	struct loop_source events;
	struct loop_timer retry;
	uint64_t retry_ns; // the next wait
	uint64_t lost_ns;  // when it was lost last; 0: never
	struct keeper_request opening, closing, refreshing, looking;
	uint64_t guid;			     // as it was open last; 0: it tells nothing
	char open_name[DEVICE_NAME_MAX + 1]; // what it was called then
	bool refresh_again;
	bool eventless; // it was said
	bool tried;	// it was opened once, or could not be
	bool retired;	// others have taken its place: it is closed, and shown no more
	uint64_t begun_ns;
	struct rail rail;    // as peers are told of it
	uint32_t rail_place; // in what they are told; RAIL_NONE: they are not
	uint32_t opened, event_count;
	struct gpu_show *gpu; // NULL: none is wanted
	struct keeper_request offering;
	char gpu_reason[MEMORY_REASON_MAX + 1]; // why the device does not show its page
};

enum fabric_pair_stage {
	FABRIC_PAIR_MAKING,	// pair_create()
	FABRIC_PAIR_MADE,	//
	FABRIC_PAIR_CONNECTING, // pair_connect()
	FABRIC_PAIR_CONNECTED,	//
	FABRIC_PAIR_IN_LANE,	//
	FABRIC_PAIR_LEAVING,	// its path is being taken away, then its lane is told
	FABRIC_PAIR_DRAINING,	// the lane drains it
	FABRIC_PAIR_OUT,	// no lane has it, readers may still know its path
	FABRIC_PAIR_DESTROYING, // pair_destroy()
};

// A pair on its way from the pairing to the lane and back; named by its generation.
struct fabric_pair {
	struct fabric_pair *next;
	struct fabric *fabric;
	struct nic *nic;
	uint32_t generation;
	enum fabric_pair_stage stage;
	struct pair *pair; // NULL until it is made
	struct pairing_end theirs;
	uint32_t flow_label;
	uint64_t peer;
	uint32_t path;	  // slot, PATH_NONE
	uint64_t version; // of the path table, from which on its path is gone
	int drain_err;
	bool broken;		   // the lane said that it failed
	bool cut_off;		   // its queue pair is being destroyed, or was
	bool drained;		   // and that it has let go of it
	struct keeper_request job; // making, connecting, destroying
	struct keeper_request fail;
	struct keeper_request cut;
	struct loop_timer cut_again;
};

#define PATH_NONE UINT32_MAX

// A request that waits for room in a worker's ring.
struct waiting_record {
	struct waiting_record *next;
	uint32_t worker;
	struct worker_record record;
};

struct fabric {
	struct loop *loop;
	struct overlay *overlay;
	struct fabric_config config;
	struct pairing_ops ops;
	struct pairing *pairing;
	struct pulse *pulse;
	struct worker_life lives[FABRIC_WORKERS_MAX]; // as its page tells
	void *scratch;
	// WATCH_LANDING_BYTES that peers write to, all at once, and nobody reads.
	void *write_sink;
	uint64_t start; // of this agent, as the pairing knows it
	struct nic nics[FABRIC_DEVICES_MAX];
	uint32_t nic_count;
	struct gpu_show gpus[FABRIC_GPUS_MAX];
	uint32_t gpu_count;
	struct fabric_pair *fabric_pairs;
	struct overlay_port port;
	struct overlay_listener listener;
	struct rails rails;
	struct news *news, **news_last;
	bool news_lost;
	struct loop_job tell_news;
	struct loop_timer wake; // the pairing's
	struct loop_timer want; // who is a neighbour now
	struct loop_timer beat; // of the pulse
	struct loop_source settled;
	struct loop_timer publish_again;
	struct loop_job look_fabric_pairs;
	struct waiting_record *waiting, **waiting_last;
	struct loop_timer post_again;
	struct fabric_ping *pings;
	struct probing *probing;	    // NULL: standing probes were never switched on
	fabric_observation_fn *observation; // NULL: nobody is told
	fabric_hung_fn *hung;		    // likewise
	void *observation_ctx;
	uint32_t runs;
	struct fabric_counters counters;
	void (*stopped)(void *ctx);
	void *stopped_ctx;
	bool stopping;
	struct loop_timer stop_limit;
	struct loop_job stop_done;
	struct fabric *left_next;
};

// Those that were destroyed while a device was open or a call into its driver under way: a device
// may still reach their memory, and a keeper what it works on. They stay known until the process
// ends; but for `parts` of devices that a keeper closes in vain nobody touches them.
extern struct fabric *fabric_left_behind;

// nic.c: one device.
int fabric_nic_init(
	struct fabric *fabric, struct nic *nic, uint32_t place, const struct fabric_device *config
);
void fabric_nic_fini(struct nic *nic);
void nic_open(struct nic *nic);
// When its pairs are gone. Again is harmless.
void nic_close(struct nic *nic);
bool nic_is_closed(const struct nic *nic);
// That may be looked at: while it is being closed it is the keeper's.
bool nic_has_lane(const struct nic *nic);
void nic_attached(struct nic *nic, int err);
void nic_detached(struct nic *nic, int err);
void nic_view(const struct nic *nic, struct fabric_device_view *ret_view);

// What the pairing tells of it from now on.
void nic_announce(struct nic *nic);

// gpu.c: pages in GPU memory.
// The device shows the page of its GPU, if both are there, and is not asked to yet.
void nic_offer_gpu(struct nic *nic);
// As the handshake tells it.
struct pairing_gpu gpu_told(const struct nic *nic);
// That of this GPU, made if there is none: NULL, and *ret_err says why.
struct gpu_show *gpus_take(struct fabric *fabric, uint32_t ordinal, int *ret_err);
// A device did not take the page: it is asked again.
void gpu_retry(struct gpu_show *show);
// No device shows any of them any more. Whether they are gone; again is harmless.
bool gpus_stop(struct fabric *fabric);
// With the loop ended. Whether they are gone, else the fabric is left behind with them.
bool gpus_fini(struct fabric *fabric);
struct fabric_gpu_view gpu_view(const struct nic *nic);

// Has the device's keeper make the call.
int nic_run(
	struct nic *nic,
	int (*call)(void *),
	struct keeper_request *request,
	const struct nic_parts *parts
);
void nic_lose(struct nic *nic, const char *why);
// At once, if it waits to be tried again.
void nic_hurry(struct nic *nic);

// nic_parts.c: on the keeper.
struct nic_work {
	struct nic *nic; // which is there as long as the work is, but may be left behind
	struct nic_parts parts;
	struct fabric_device config;
	struct lane_config lane;
	void *pulse, *scratch, *write_sink;
	const struct gpu_page *gpu;
	bool taken; // the parts are somebody else's now
	char reason[DEVICE_REASON_MAX + 1];
	char gpu_reason[MEMORY_REASON_MAX + 1];
	uint64_t guid;			     // that it had before; 0: not known
	char open_name[DEVICE_NAME_MAX + 1]; // that it had when it was open last; "": it was not
	uint64_t others[FABRIC_DEVICES_MAX]; // the GUIDs of other devices of ours
	uint32_t other_count;
};

int nic_work_open(void *arg);
// Whether it is still in the list, by whatever name; the GUID is 0 then if another one has it too.
int nic_work_look(void *arg);
int nic_work_close(void *arg);
int nic_work_refresh(void *arg);
int nic_work_offer_gpu(void *arg);
void nic_work_drop(void *arg);

// fabric_pair.c: pairs between pairing, keeper and lane.
extern const struct pairing_ops fabric_pairing_ops;
struct fabric_pair *fabric_pair_find(const struct fabric *fabric, uint32_t generation);
struct fabric_pair *fabric_pair_of(const struct fabric *fabric, const struct pair *pair);
void fabric_pair_failed(struct fabric_pair *fabric_pair, int err, enum ibv_wc_status status);
void fabric_pair_drained(struct fabric_pair *fabric_pair);
void fabric_pair_stuck(struct fabric_pair *fabric_pair);
// Its device was lost: nothing that was posted will complete, so no drain is waited for.
void fabric_pairs_cut_off(const struct nic *nic);
// Paths up to this version are gone.
void fabric_pairs_settled(struct fabric *fabric, uint64_t version);
// With the loop ended.
void fabric_pairs_fini(struct fabric *fabric);

// path.c
int path_show(struct fabric_pair *fabric_pair);
// With fabric_pair->stage telling that it goes; fabric_pair->version says from when on nobody knows
// it.
void path_hide(struct fabric_pair *fabric_pair);
void paths_init(struct fabric *fabric);
int paths_start(struct fabric *fabric);
void paths_stop(struct fabric *fabric);

// post.c: to the workers.
void fabric_post(struct fabric *fabric, uint32_t worker, const struct worker_record *record);
void posts_init(struct fabric *fabric);
void posts_fini(struct fabric *fabric);

// neighbours.c: which pairs are wanted, and news of peers.
void neighbours_start(struct fabric *fabric);
void neighbours_stop(struct fabric *fabric);
// What the overlay says of everybody is told to the pairing anew, before the turn ends.
void neighbours_tell_all(struct fabric *fabric);
// The same, and whose pairs are wanted: something has changed.
void neighbours_look_soon(struct fabric *fabric);
// What a device of ours is paired with at a peer.
enum rail_answer
neighbours_key(const struct nic *nic, const struct ras_record *record, struct pairing_key *ret_key);

// conns.c: an overlay_contribute_fn.
bool fabric_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
);

// ping.c
void fabric_run_ended(struct fabric *fabric, struct probe_run *run);
void fabric_pings_fini(struct fabric *fabric);

// late.c: a device of ours is up.
void late_one_is_up(const struct nic *nic);

// fabric.c: the pulse beats from now on.
void fabric_begin_beating(struct fabric *fabric);

// fabric.c: whether all is closed, looked at later.
void fabric_look_stopped(struct fabric *fabric);
