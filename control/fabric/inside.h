// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: the structures of the fabric.
//
// Ownership: the fabric owns its devices and pairs. A keeper job owns what it creates until it has
// ended and its owner has taken the result. The worker owns a pair from LANE_REQUEST_ADD to
// LANE_EVENT_DRAINED, and a run from PROBER_REQUEST_RUN to PROBER_EVENT_ENDED.
#pragma once

#include "fabric/rails.h"

#include <control/fabric.h>
#include <control/keeper.h>
#include <dataplane/gpu_page.h>
#include <dataplane/memory.h>
#include <dataplane/pair.h>
#include <dataplane/pulse.h>
#include <dataplane/watch.h>

#include <string.h>

#define FABRIC_PAIR_DEPTH 64
// Scratch memory: one page for all pings, one page per device for its long probes, and
// WATCH_SHORT_READ_BYTES per watch.
#define FABRIC_SCRATCH_WATCHES ((size_t)(1 + FABRIC_DEVICES_MAX) * PULSE_BYTES)
#define FABRIC_SCRATCH_BYTES \
	(FABRIC_SCRATCH_WATCHES + (size_t)PROBE_PATHS_MAX * WATCH_SHORT_READ_BYTES)
#define FABRIC_OPS_MAX 4096
#define FABRIC_MEMORY_FAILURE_NS RAS_NS_PER_SEC
#define FABRIC_DRAIN_NS (2 * RAS_NS_PER_SEC)
// Opening a device loads a driver, pins memory and asks the kernel for interfaces. The kernel
// delays such requests while interfaces are added or removed: with 14 namespaces started at once on
// two processors it took more than 2 s.
#define FABRIC_OPEN_STUCK_NS (15 * RAS_NS_PER_SEC)
#define FABRIC_MESSAGE_LIFE_NS (5 * RAS_NS_PER_SEC)

// Objects of an open device. The keeper creates and destroys them together.
struct nic_parts {
	struct device *device;
	struct memory_registry *registry;
	struct lane *lane;
	struct memory_view pulse;      // page that peers read
	struct memory_view scratch;    // target of own reads
	struct memory_view write_sink; // target of peers' writes
	struct memory_view gpu;	       // page in GPU memory that peers read; region NULL: none
	struct device_facts facts;
};

#define FABRIC_GPUS_MAX 16

// A GPU whose page is exposed to peers, through each device that is configured for it. Calls into
// its driver run on a keeper of its own, so a hanging GPU driver blocks no RDMA device.
struct gpu_show {
	struct fabric *fabric;
	uint32_t ordinal;
	struct keeper *keeper;
	struct keeper_request making, dropping;
	struct loop_timer retry;
	struct gpu_page *page;		  // NULL: no page exists (yet)
	char reason[CUDA_REASON_MAX + 1]; // why there is no page; "": no failure
};

struct nic {
	struct fabric *fabric;
	uint32_t place;	 // index in fabric->nics
	uint32_t number; // number of the device in the pairing
	uint32_t worker;
	struct fabric_device config;
	struct keeper *keeper;
	enum fabric_device_state state;
	uint64_t since_ns;
	char reason[DEVICE_REASON_MAX + 1];
	enum fabric_device_state told; // state and reason in the last log message
	char logged_reason[DEVICE_REASON_MAX + 1];
	bool open; // `parts` is valid
	struct nic_parts parts;
	bool attached, attaching; // the worker polls its lane; attach or detach under way
	bool lost; // the device failed for good or was removed; it is closed, then opened later
	struct loop_source events;
	struct loop_timer retry;
	uint64_t retry_ns; // delay before the next retry
	uint64_t lost_ns;  // when the device was lost last; 0: never
	struct keeper_request opening, closing, refreshing, looking;
	uint64_t guid;			     // GUID at the last open; 0: unknown or not unique
	char open_name[DEVICE_NAME_MAX + 1]; // driver's name of the device at the last open
	bool refresh_again;
	bool eventless_logged; // the lack of completion events was logged
	bool tried;	       // at least one attempt to open it has ended
	bool retired;	       // replaced by other devices: it is closed and no longer listed
	uint64_t begun_ns;
	struct rail rail;    // facts of the rail, as announced to peers
	uint32_t rail_index; // index in the announced list; RAIL_NONE: not announced
	uint32_t opened, event_count;
	struct gpu_show *gpu; // NULL: no GPU page is configured
	struct keeper_request offering;
	char gpu_reason[MEMORY_REASON_MAX + 1]; // why the device does not expose the page
};

enum fabric_pair_stage {
	FABRIC_PAIR_MAKING,	// pair_create()
	FABRIC_PAIR_MADE,	//
	FABRIC_PAIR_CONNECTING, // pair_connect()
	FABRIC_PAIR_CONNECTED,	//
	FABRIC_PAIR_IN_LANE,	//
	FABRIC_PAIR_LEAVING,	// its path is being withdrawn; the lane is asked next
	FABRIC_PAIR_DRAINING,	// the lane drains the pair
	FABRIC_PAIR_OUT,	// no lane holds it; readers may still know its path
	FABRIC_PAIR_DESTROYING, // pair_destroy()
};

// A pair from its creation for the pairing until its destruction. Its generation identifies it.
struct fabric_pair {
	struct fabric_pair *next;
	struct fabric *fabric;
	struct nic *nic;
	uint32_t generation;
	enum fabric_pair_stage stage;
	struct pair *pair; // NULL until it is created
	struct pairing_end theirs;
	uint32_t flow_label;
	uint64_t peer;
	uint32_t path;	  // slot in the path table, or FABRIC_PATH_NONE
	uint64_t version; // path table version from which on the path is gone
	int drain_err;
	bool broken;  // the lane reported a failure
	bool cut_off; // its queue pair is being destroyed, or was, before the lane drained it
	bool drained; // the lane has drained it, and the pairing does not know yet
	struct keeper_request job; // pair_create(), pair_connect() or pair_destroy()
	struct keeper_request fail;
	struct keeper_request cut;
	struct loop_timer cut_off_retry;
};

#define FABRIC_PATH_NONE UINT32_MAX

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
	// liveness of each worker, as published in the pulse
	struct worker_life lives[FABRIC_WORKERS_MAX];
	void *scratch;
	// WATCH_WRITE_SINK_BYTES of memory that all peers may write to. Nobody reads it.
	void *write_sink;
	uint64_t start; // own start counter, as the pairing knows it
	struct nic nics[FABRIC_DEVICES_MAX];
	uint32_t nic_count;
	struct gpu_show gpus[FABRIC_GPUS_MAX];
	uint32_t gpu_count;
	struct fabric_pair *fabric_pairs;
	struct overlay_port port;
	struct overlay_listener listener;
	struct rails rails;
	struct news *news, **news_last;
	bool peer_events_lost;
	struct loop_job deliver_peer_events;
	struct loop_timer wake; // next tick of the pairing
	struct loop_timer want; // next pass over the wanted pairs
	struct loop_timer beat; // updates the pulse
	struct loop_source settled;
	struct loop_timer publish_retry;
	struct loop_job advance_fabric_pairs;
	struct waiting_record *waiting, **waiting_last;
	struct loop_timer post_retry;
	struct fabric_ping *pings;
	struct probing *probing;	    // NULL: standing probes were never enabled
	fabric_observation_fn *observation; // NULL: no subscriber
	fabric_hung_workers_fn *hung;	    // NULL: no subscriber
	void *observation_ctx;
	uint32_t runs;
	struct fabric_counters counters;
	void (*stopped)(void *ctx);
	void *stopped_ctx;
	bool stopping;
	struct loop_timer stop_deadline;
	struct loop_job report_stopped;
	struct fabric *left_next;
};

static inline uint64_t fabric_clock_ns(const struct fabric *fabric) {
	return loop_clock_ns(fabric->loop);
}

static inline bool pairing_keys_equal(const struct pairing_key *a, const struct pairing_key *b) {
	return a->device == b->device && a->peer == b->peer &&
	       strcmp(a->peer_device, b->peer_device) == 0;
}

// Fabrics that were destroyed while a device was open or a driver call was under way. The device
// may still access their memory, and a keeper may still use its objects. They stay in this list
// until the process ends. Only `parts` of a device that a keeper fails to close is still written.
extern struct fabric *fabric_left_behind;

// nic.c: one device.
int fabric_nic_init(
	struct fabric *fabric, struct nic *nic, uint32_t place, const struct fabric_device *config
);
void fabric_nic_fini(struct nic *nic);
void nic_open(struct nic *nic);
// Close the device if it has no pairs and no watches; otherwise do nothing. May be called again.
void nic_close(struct nic *nic);
bool nic_is_closed(const struct nic *nic);
// Return whether the lane may be accessed. While the device is being closed, the keeper owns it.
bool nic_has_lane(const struct nic *nic);
void nic_attached(struct nic *nic, int err);
void nic_detached(struct nic *nic, int err);
void nic_view(const struct nic *nic, struct fabric_device_view *ret_view);

// Give the device's current facts to the pairing, which announces them in later handshakes.
void nic_update_pairing(struct nic *nic);

// gpu.c: pages in GPU memory.
// Register the GPU page with the device, if both exist and no registration is under way.
void nic_register_gpu_page(struct nic *nic);
// Return the GPU page as the handshake announces it.
struct pairing_gpu nic_gpu_announced(const struct nic *nic);
// Return the entry of this GPU and create it if needed. Returns NULL on failure and sets *ret_err.
struct gpu_show *gpu_show_get(struct fabric *fabric, uint32_t ordinal, int *ret_err);
// Destroy the pages; no device may expose one any more. Returns whether all are gone. May be
// repeated.
bool gpus_stop(struct fabric *fabric);
// Free the keepers after the loop has ended. Returns whether all pages are gone; otherwise the
// fabric must be left behind.
bool gpus_fini(struct fabric *fabric);
struct fabric_gpu_view gpu_view(const struct nic *nic);

// Run the call on the device's keeper. `parts` is copied into the work; NULL when the device is
// opened.
int nic_run_on_keeper(
	struct nic *nic,
	int (*call)(void *),
	struct keeper_request *request,
	const struct nic_parts *parts
);
void nic_mark_lost(struct nic *nic, const char *why);
// Open the device now if it waits for a retry.
void nic_open_now(struct nic *nic);

// nic_parts.c: calls that run on the keeper.
struct nic_work {
	struct nic *nic; // valid as long as the work exists, but possibly left behind
	struct nic_parts parts;
	struct fabric_device config;
	struct lane_config lane;
	void *pulse, *scratch, *write_sink;
	const struct gpu_page *gpu;
	bool taken; // the nic owns the parts; dropping the work does not close them
	char reason[DEVICE_REASON_MAX + 1];
	char gpu_reason[MEMORY_REASON_MAX + 1];
	uint64_t guid;			     // GUID at the last open; 0: unknown
	char open_name[DEVICE_NAME_MAX + 1]; // driver's name at the last open; "": never open
	uint64_t others[FABRIC_DEVICES_MAX]; // GUIDs of other own devices
	uint32_t other_count;
};

int nic_work_open(void *arg);
// Check whether the device is still listed, under any name. Sets the GUID to 0 if several devices
// have it.
int nic_work_check_listed(void *arg);
int nic_work_close(void *arg);
int nic_work_refresh(void *arg);
int nic_work_register_gpu(void *arg);
void nic_work_drop(void *arg);

// fabric_pair.c: pairs between pairing, keeper and lane.
extern const struct pairing_ops fabric_pairing_ops;
struct fabric_pair *fabric_pair_find(const struct fabric *fabric, uint32_t generation);
struct fabric_pair *fabric_pair_find_by_pair(const struct fabric *fabric, const struct pair *pair);
void fabric_pair_failed(struct fabric_pair *fabric_pair, int err, enum ibv_wc_status status);
void fabric_pair_drained(struct fabric_pair *fabric_pair);
void fabric_pair_stuck(struct fabric_pair *fabric_pair);
// Cut off the broken pairs of a lost device. Their posted work never completes, so draining would
// not end.
void fabric_pairs_cut_off(const struct nic *nic);
// Advance the pairs whose paths were removed up to this table version.
void fabric_pairs_advance(struct fabric *fabric, uint64_t version);
// Free all pairs after the loop has ended.
void fabric_pairs_fini(struct fabric *fabric);

// path.c
int path_publish(struct fabric_pair *fabric_pair);
// Withdraw the pair's path. fabric_pair->stage must already say that the pair leaves. Sets
// fabric_pair->version to the table version from which on no reader knows the path.
void path_withdraw(struct fabric_pair *fabric_pair);
void paths_init(struct fabric *fabric);
int paths_start(struct fabric *fabric);
void paths_stop(struct fabric *fabric);

// post.c: requests to the workers.
void fabric_post(struct fabric *fabric, uint32_t worker, const struct worker_record *record);
void posts_init(struct fabric *fabric);
void posts_fini(struct fabric *fabric);

// neighbours.c: wanted pairs, and peer events for the pairing.
void neighbours_start(struct fabric *fabric);
void neighbours_stop(struct fabric *fabric);
// Report the overlay's state of all paired peers to the pairing again, before the loop turn ends.
void neighbours_resync_peers(struct fabric *fabric);
// Deliver pending peer events and update the wanted pairs, before the loop turn ends.
void neighbours_update_soon(struct fabric *fabric);
// Find the peer's device that an own device is paired with. Sets *ret_key for RAIL_FOUND.
enum rail_answer neighbours_find_key(
	const struct nic *nic, const struct ras_record *record, struct pairing_key *ret_key
);

// conns.c: implements overlay_contribute_fn.
bool fabric_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
);

// ping.c
void fabric_run_ended(struct fabric *fabric, struct probe_run *run);
void fabric_pings_fini(struct fabric *fabric);

// late.c: must be called when an own device is up. Retires the fallback device.
void nic_retire_fallbacks(const struct nic *nic);

// fabric.c: start updating the pulse.
void fabric_start_pulse(struct fabric *fabric);

// fabric.c: if the fabric is stopping, close what can be closed, and report the end once all is
// closed.
void fabric_check_stopped(struct fabric *fabric);
