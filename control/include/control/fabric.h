// SPDX-License-Identifier: BSD-3-Clause
// The fabric of this node: its RDMA devices, their lanes in the workers, and the pairs to peers.
//
// The fabric connects the pure pairing (<control/pairing.h>) to the rest of the agent. That is the
// overlay's relay, one keeper per device, the workers and the path table. A device that cannot be
// used now is tried again, and the reason is logged once. Without devices, the fabric is idle.
//
// Each device is a rail. Wanted pairs are: one of each device with itself, and one with the
// matching rail of each neighbour on every ring. Rails are matched by subnet, and rails of unknown
// subnet by name, then by order (fabric/rail_match.h). Other pairs are made on demand.
#pragma once

#include <control/loop.h>
#include <control/overlay.h>
#include <control/pairing.h>
#include <dataplane/device.h>
#include <dataplane/lane.h>
#include <dataplane/pair.h>
#include <dataplane/path_table.h>
#include <dataplane/prober.h>
#include <dataplane/soft.h>
#include <dataplane/worker.h>
#include <lib/schedstat.h>
#include <verdict/path_memory.h>
#include <verdict/probe_schedule.h>

#include <stdbool.h>
#include <stdint.h>

// Sixteen rails, and the software device while it is replaced by them.
#define FABRIC_DEVICES_MAX 17
#define FABRIC_WORKERS_MAX 64
#define FABRIC_STOP_NS (3 * RAS_NS_PER_SEC) // devices that do not answer within it are left behind

struct fabric;
struct keeper_counters;
struct state;

struct fabric_device {
	const struct verbs_calls *calls;
	char name[DEVICE_NAME_MAX + 1];	  // name of the rail
	char device[DEVICE_NAME_MAX + 1]; // name that the driver uses; "": same as `name`
	struct device_settings settings;
	// The port may stay down for ever, so peers learn of the rail only after it opened.
	bool announce_after_open;
	// A fallback, which is closed as soon as another device is up.
	bool is_fallback;
	bool gpu; // peers may read a page in this GPU's memory, besides the pulse
	uint32_t gpu_ordinal;
};

// Steady probes: all neighbours at a fixed interval, other peers in rotation.
struct fabric_probe_config {
	bool on;
	bool rotation;
	uint64_t interval_ns; // a number 0 means its default, see <verdict/probe_schedule.h>
	uint32_t packets;     // packets a second, both directions; bytes likewise
	uint64_t bytes;
};

// Indices of this agent's threads in fabric_config.schedstats.
#define FABRIC_THREAD_CONTROL 0
#define FABRIC_THREAD_ENGINE 1 // of the software device
#define FABRIC_THREAD_WORKER 2 // the first worker
#define FABRIC_THREADS_MAX (FABRIC_THREAD_WORKER + FABRIC_WORKERS_MAX)

struct fabric_config {
	struct fabric_device devices[FABRIC_DEVICES_MAX];
	uint32_t device_count;
	// At least one if there are devices. They must outlive the fabric.
	struct worker *workers[FABRIC_WORKERS_MAX];
	struct prober *probers[FABRIC_WORKERS_MAX]; // probers[n] is polled by workers[n]
	uint32_t worker_count;
	struct path_table *paths;	      // read by the probers
	char interface[16];		      // interface that the overlay uses, "" if unknown
	uint32_t pair_max;		      // per device
	struct keeper_counters *driver_calls; // totals over all keepers; may be NULL
	uint64_t random_seed;
	struct fabric_probe_config probe;
	const char *cuda;    // path of libcuda; NULL: the system's
	struct state *state; // stores the path baselines; NULL: not stored
	// Returns the port's retransmissions as the device counts them, or PATH_RESENT_UNKNOWN.
	// NULL: no counters.
	uint64_t (*resent)(void *ctx, const char *device);
	void *resent_ctx;
	// Reads the processor times of this agent's threads; zeros: no such thread. NULL: unknown.
	void (*schedstats)(void *ctx, struct schedstat ret_stats[FABRIC_THREADS_MAX]);
	void *schedstats_ctx;
	// Gets each probe of a path to a neighbour. latency_ns is 0 unless a read of the smallest
	// size was answered. NULL: nobody wants them.
	void (*probed
	)(void *ctx,
	  const struct pairing_key *key,
	  const char *device,
	  bool answered,
	  uint64_t latency_ns);
	void *probed_ctx;
	// Reads the counters of the software device; NULL: no such device.
	void (*soft_counters)(struct soft_counters *ret_counters);
};

// Create the fabric. Returns 0, -ENOMEM, or the error of a keeper or of the loop. Devices are
// opened later, on their keepers.
int fabric_create(
	struct loop *loop,
	struct overlay *overlay,
	const struct fabric_config *config,
	struct fabric **ret_fabric
);
// Close all pairs and devices. `done` is called after that, or after FABRIC_STOP_NS. Must be called
// while the overlay still has links, so that peers are notified.
void fabric_stop(struct fabric *fabric, void (*done)(void *ctx), void *ctx);
// Destroy the fabric, after the workers have stopped. Memory that a device may still access is left
// behind. `fabric` may be NULL.
struct fabric *fabric_destroy(struct fabric *fabric);
// Return whether any fabric of this process left memory behind. Its devices still work then, and
// driver calls may still be running.
bool fabric_has_left_memory_behind(void);

// Change the settings of the steady probes. When probing is switched off, the baselines of
// neighbours are forgotten, on disk too. Returns 0, or -ENOMEM with the old settings kept.
int fabric_configure_probes(struct fabric *fabric, const struct fabric_probe_config *config);

// Look for devices that may have appeared or disappeared. Awaited devices are opened at once. Open
// devices that are no longer in the system's list are closed. Some drivers cannot withdraw a device
// from its users (Soft-RoCE of Linux 6.1). There the removal waits for this agent, and only the
// list shows it.
void fabric_rescan_devices(struct fabric *fabric);

// Add a device. It becomes a rail when it is open, and then peers are notified and asked for their
// rails. From now on each opened device may have pair_max pairs. Returns 0, -ENOSPC, or an error of
// fabric_create(). Returns -EEXIST for a known name, or a known non-zero GUID unless the port is
// another one. Returns -EAGAIN while the fabric is stopping.
int fabric_add_device(
	struct fabric *fabric, const struct fabric_device *device, uint64_t guid, uint32_t pair_max
);

// Handle a record from a worker. Returns whether the record belongs to the fabric.
bool fabric_worker_event(
	struct fabric *fabric, uint32_t worker, const struct worker_record *record
);

// The current state of devices and pairs.

enum fabric_device_state {
	FABRIC_DEVICE_WAITING, // not open; `reason` explains, and opening is tried again
	FABRIC_DEVICE_OPENING,
	FABRIC_DEVICE_UP,
	FABRIC_DEVICE_DOWN, // open, without an active port
	FABRIC_DEVICE_CLOSING,
	FABRIC_DEVICE_STUCK, // a driver call does not return
	FABRIC_DEVICE_STATE_COUNT,
};

// State of the page in GPU memory that a device offers to peers.
enum fabric_gpu_state {
	FABRIC_GPU_NONE,    // not configured
	FABRIC_GPU_AWAITED, // waits for libcuda or for the device
	FABRIC_GPU_SHOWN,
	FABRIC_GPU_MISSING, // `reason` explains; tried again
	FABRIC_GPU_STUCK,   // a call into libcuda does not return
	FABRIC_GPU_STATE_COUNT,
};

struct fabric_gpu_view {
	enum fabric_gpu_state state;
	uint32_t ordinal;
	const char *pci;    // "" if unknown
	const char *reason; // "" if none
};

const char *fabric_gpu_state_name(enum fabric_gpu_state state);

struct fabric_device_view {
	const char *name;
	enum fabric_device_state state;
	uint64_t since_ns;  // time when the state began
	uint64_t stuck_ns;  // duration of the driver call so far
	const char *reason; // "" if none
	uint32_t worker;
	bool open; // the fields below are valid
	struct device_facts facts;
	struct lane_facts lane;
	struct lane_counters counters;
	uint32_t opened; // times opened
	uint32_t events; // events of the driver
	struct fabric_gpu_view gpu;
};

uint32_t fabric_device_count(const struct fabric *fabric);
void fabric_device_at(const struct fabric *fabric, uint32_t n, struct fabric_device_view *ret_view);

struct fabric_pair_view {
	struct pairing_view pairing;
	const char *device;
	bool in_lane; // the fields below are valid
	uint32_t queue_number;
	struct pair_counters counters;
	bool timed;
	struct histogram_log2 times;
};

// Return the next pair. The cursor starts at 0. Returns false past the last. After the pairs follow
// own rails that no neighbour's rail matches: failed, NoCommonFabric, with the device "-".
bool fabric_pair_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_pair_view *ret_view
);

// Set the callbacks for observations. An observation reports how a peer's pulse is read and whether
// its host accepts overlay connections. Steady paths are observed once a second, or at once on a
// problem. Unchanged observations are at least FABRIC_OBSERVATION_NS apart. Visited paths are
// observed at the end of each visit. There is one subscriber; NULL removes it. A callback must not
// call back into the fabric.
#define FABRIC_OBSERVATION_NS (RAS_NS_PER_SEC / 2)

typedef void fabric_observation_fn(void *ctx, const struct observation *observation);
// Reports how many workers of a peer hang, according to its pulse page while its control thread
// runs. Called for each read that finds some, and once more with 0.
typedef void fabric_hung_workers_fn(void *ctx, uint64_t peer, uint32_t hung, uint32_t workers);
void fabric_observations(
	struct fabric *fabric, fabric_observation_fn *fn, fabric_hung_workers_fn *hung, void *ctx
);

// Results of one flow label of a path, counted since the path first used the label.
struct fabric_flow {
	uint32_t label;
	bool current;
	bool bad; // worse than the other labels: slow, or 3 times the share of lost or late probes
	uint64_t probes, lost;
	uint64_t late;		    // retransmitted by the device; hardware only
	uint64_t median_ns, p99_ns; // of the smallest size; 0: unknown
};

// State of a peer's page in GPU memory, read over the same pair as its pulse.
enum fabric_gpu_seen {
	FABRIC_GPU_UNSEEN, // not read yet
	FABRIC_GPU_GOOD,   // the expected value, in the usual time
	// more than twice its baseline, and more than the pulse's own slowdown explains
	FABRIC_GPU_SLOW,
	FABRIC_GPU_SILENT,  // no answer, while the pulse answers
	FABRIC_GPU_REFUSED, // the peer's device reports that it cannot access the memory
	FABRIC_GPU_WRONG,   // a wrong value was read
	FABRIC_GPU_SEEN_COUNT,
};

struct fabric_gpu_path {
	bool shown;	  // the peer offers a page; otherwise the fields below are invalid
	uint32_t ordinal; // CUDA device number on the peer
	enum fabric_gpu_seen seen;
	uint64_t since_ns;
	uint64_t probes;
	uint64_t silent, refused, wrong; // failed reads for which the path is not to blame
	uint64_t median_ns, p99_ns;	 // of reads of 8 bytes; 0: unknown
	uint64_t usual_ns;		 // baseline: the lowest median of a window; 0: unknown
};

const char *fabric_gpu_seen_name(enum fabric_gpu_seen seen);

struct fabric_path_view {
	uint64_t peer; // own id: a device to itself
	const char *device;
	const char *peer_device;
	bool neighbour; // probed steadily, otherwise in rotation
	bool watched;	// a pair is up and being probed
	bool known;	// there was a pair, and the fields below are valid
	uint32_t mtu, flow_label;
	enum device_responder responder;
	bool shares; // uses the interface that the overlay uses
	struct path_summary summary;
	// NULL unless a neighbour; valid until the control thread runs the fabric again.
	const struct path_memory *memory;
	const struct histogram *latency; // of the small size; NULL unless a neighbour
	uint32_t flow_count;		 // 0 unless a neighbour on Ethernet
	struct fabric_flow flows[PAIRING_FLOWS];
	struct fabric_gpu_path gpu; // neighbours only
};

// Return the next path, neighbours first. The cursor starts at 0. Returns false past the last.
bool fabric_path_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_path_view *ret_view
);

// Convert a path to a row of the collective PATHS.
void fabric_path_row(
	const struct fabric *fabric,
	const struct fabric_path_view *view,
	struct ras_path_row *ret_row
);

struct fabric_probe_counters {
	uint64_t sent[PATH_SIZES]; // reads sent, by size
	uint64_t lost[PATH_SIZES]; // reads without an answer
	uint64_t written[PATH_SIZES];
	uint64_t writes_lost[PATH_SIZES];
	uint64_t gpu_sent; // reads of pages in GPU memory, and their failures:
	uint64_t gpu_lost, gpu_refused, gpu_wrong;
	uint64_t writes_refused; // peers that reject writes although they offered a write sink
	uint64_t answered;
	uint64_t ended;	       // ended with their pair, other than by silence
	uint64_t without_path; // planned for a path that has gone
	// planned, but the worker was late or the previous probe was still running
	uint64_t skipped;
	uint64_t delayed;	  // delayed by the budget: neighbours and visits
	uint64_t skipped_budget;  // dropped because of the budget
	uint64_t urgent;	  // sent at once to confirm a suspicion
	uint64_t packets, bytes;  // planned, both directions
	uint64_t visits;	  // visits started
	uint64_t visits_unpaired; // visits without a pair
	uint64_t rounds;	  // complete rotations over all other peers
	uint64_t outcomes_lost;	  // overwritten before the control thread read them
	uint64_t observations;	  // observations reported
	uint64_t doubts;	  // stalled pulses reported to the overlay as a suspicion
	uint64_t pauses;	  // pauses of this agent, detected here
	uint64_t excluded;	  // reads whose latency waiting for a processor explains
	// baselines restored from an earlier run or an earlier probed path
	uint64_t baselines_taken;
	// baselines rejected: too old, or the device or its MTU or speed changed
	uint64_t baselines_outdated;
	uint64_t path_files_unreadable; // unreadable baseline files
	uint64_t neighbours;		// current number, as the fields below
	uint64_t targets;
	uint64_t interval_ns; // between two probes of a neighbour
	uint64_t coverage_ns; // time to visit all targets once
};

struct fabric_counters {
	uint64_t devices_opened, open_failures;
	uint64_t device_events;
	uint64_t driver_calls, driver_stuck; // calls by keepers; stuck ones
	uint64_t paths_published, paths_refused;
	uint64_t records_waited;		    // requests that found the ring of a worker full
	uint64_t messages_lost;			    // messages that could not be sent
	uint64_t rails_malformed;		    // malformed rail announcements
	uint64_t left_behind;			    // objects that a driver did not release
	uint32_t devices, devices_up, pairs, paths; // current numbers
};

// All counters of the fabric.
struct fabric_numbers {
	struct fabric_counters counters;
	struct pairing_counters pairing;
	struct lane_counters lanes;	// sum over all lanes
	struct worker_counters workers; // sum over all workers
	struct soft_counters soft;	// of the software device
	struct fabric_probe_counters probes;
};

void fabric_numbers(const struct fabric *fabric, struct fabric_numbers *ret_numbers);

// Whether this agent is short of processor time.
struct fabric_waits {
	bool is_short;
	uint64_t for_ns;   // duration of the shortage
	uint32_t permille; // share of the last second in which one thread waited
	// Steady paths, and those whose latency cannot be judged
	uint32_t paths, unjudged;
};
void fabric_waits(const struct fabric *fabric, struct fabric_waits *ret_waits);
const char *fabric_device_state_name(enum fabric_device_state state);

// Timed RDMA reads of a peer's page, on a pair that is made if there is none.
#define FABRIC_PING_COUNT_MAX 1000000
#define FABRIC_PING_TIMES_MAX 65536 // limits one ping to 256 KiB of the agent's memory
#define FABRIC_PINGS_MAX 16	    // at the same time

struct fabric_ping;

struct fabric_ping_request {
	uint64_t peer;
	// own device; "": of an existing pair, or the first one that is up
	char device[DEVICE_NAME_MAX + 1];
	char peer_device[DEVICE_NAME_MAX + 1]; // "": of an existing pair, or the peer's first
	uint32_t bytes;			       // 1 to PULSE_BYTES
	uint32_t count;
	uint64_t interval_ns; // from one start to the next; 0: back to back
	uint64_t timeout_ns;  // of each read
	bool keeps_times;     // of each read; then count is at most FABRIC_PING_TIMES_MAX
	// Deadline on the loop's clock for a new pair and for the end of the first read.
	// UINT64_MAX: no deadline.
	uint64_t deadline_ns;
};

struct fabric_ping_result {
	// 0: reads were made. -ENETDOWN: no pair; `failure` explains. -ENODEV: no page to read.
	int err;
	struct pairing_failure failure;
	struct pairing_key key;
	const char *device; // own device; valid during the callback
	uint64_t paired_ns; // time until the pair was ready
	bool in_process;    // the peer's device answers only while its process runs
	enum probe_end end;
	uint32_t sent, answered;
	enum op_outcome outcome;	 // of the last read
	struct op_cause cause;		 // its cause, if that read failed
	const struct histogram *latency; // nanoseconds; valid during the callback
	// of each answered read, in order; valid during the callback; NULL: not kept
	const uint32_t *times_ns;
	uint64_t took_ns; // from the start of the first read to the end of the last
};

typedef void fabric_ping_fn(void *ctx, const struct fabric_ping_result *result);

// Start a ping. `ended` is called once, never from inside this call. Returns 0, -EINVAL (bytes or
// count), -EAGAIN (FABRIC_PINGS_MAX) or -ENOMEM. Returns -ENOENT (no such peer), -EHOSTDOWN (dead
// or left) or -ENODEV (no device here or there).
int fabric_ping_start(
	struct fabric *fabric,
	const struct fabric_ping_request *request,
	fabric_ping_fn *ended,
	void *ctx,
	struct fabric_ping **ret_ping
);
// Cancel a ping; `ended` is not called any more. Has no effect inside `ended`.
void fabric_ping_cancel(struct fabric_ping *ping);

// The query functions above as a table, for users that must not link against a data plane: clients,
// and the copying of counters. Tests replace the functions.
struct fabric_calls {
	uint32_t (*device_count)(const struct fabric *fabric);
	void (*device_at
	)(const struct fabric *fabric, uint32_t n, struct fabric_device_view *ret_view);
	bool (*pair_next
	)(const struct fabric *fabric, uint32_t *cursor, struct fabric_pair_view *ret_view);
	int (*ping_start
	)(struct fabric *fabric,
	  const struct fabric_ping_request *request,
	  fabric_ping_fn *ended,
	  void *ctx,
	  struct fabric_ping **ret_ping);
	void (*ping_cancel)(struct fabric_ping *ping);
	void (*numbers)(const struct fabric *fabric, struct fabric_numbers *ret_numbers);
	bool (*path_next
	)(const struct fabric *fabric, uint32_t *cursor, struct fabric_path_view *ret_view);
	void (*path_row
	)(const struct fabric *fabric,
	  const struct fabric_path_view *view,
	  struct ras_path_row *ret_row);
	void (*waits)(const struct fabric *fabric, struct fabric_waits *ret_waits);
};

extern const struct fabric_calls fabric_calls;
