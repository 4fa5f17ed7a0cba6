// SPDX-License-Identifier: BSD-3-Clause
// This node in the fabric: its RDMA devices, their lanes in the workers, and the pairs to peers.
//
// Wires the pure pairing (<control/pairing.h>) to the overlay's relay, to one keeper per device, to
// the workers and to the path table. A device that cannot be used at present is tried again, and
// what stands in the way is said once; a node without devices has an idle fabric.
//
// Each device is a rail. Pairs that are wanted: one of each with itself, and one with the rail of
// each neighbour on every ring that belongs to it: of the same subnet, then by order. Others are
// made on demand.
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
#include <verdict/path_memory.h>
#include <verdict/probe_schedule.h>

#include <stdbool.h>
#include <stdint.h>

// Sixteen rails, and the software device while they take its place.
#define FABRIC_DEVICES_MAX 17
#define FABRIC_WORKERS_MAX 64
#define FABRIC_STOP_NS (3 * RAS_NS_PER_SEC) // after it devices that do not answer are left behind

struct fabric;
struct keeper_counters;
struct state;

struct fabric_device {
	const struct verbs_calls *calls;
	char name[DEVICE_NAME_MAX + 1];	  // of the rail
	char device[DEVICE_NAME_MAX + 1]; // as the driver calls it; "": the same
	struct device_settings settings;
	// Perhaps nobody will ever bring its port up: no peer is told of it before it was open.
	bool may_never_come;
	// Only as long as there is no other: it goes when the first of the others is up.
	bool stands_in;
	bool gpu; // a page in the memory of this GPU is shown to peers beside the pulse
	uint32_t gpu_ordinal;
};

// Standing probes: all neighbours at a steady pace, the others in turn.
struct fabric_probe_config {
	bool on;
	bool rotation;
	uint64_t interval_ns; // 0 in a number: its default, see <verdict/probe_schedule.h>
	uint32_t packets;     // a second, both directions, as all that follow
	uint64_t bytes;
};

struct fabric_config {
	struct fabric_device devices[FABRIC_DEVICES_MAX];
	uint32_t device_count;
	// At least one if there are devices; they outlive the fabric.
	struct worker *workers[FABRIC_WORKERS_MAX];
	struct prober *probers[FABRIC_WORKERS_MAX]; // polled by the worker of the same place
	uint32_t worker_count;
	struct path_table *paths;	      // that their probers read
	char interface[16];		      // that the overlay uses, "" if it is not known
	uint32_t pair_max;		      // of one device
	struct keeper_counters *driver_calls; // of all keepers together; may be NULL
	uint64_t random_seed;
	struct fabric_probe_config probe;
	const char *cuda;    // libcuda; NULL: the system's
	struct state *state; // where what is usual on paths is kept; NULL: nowhere
	// How often a device's port sent something again, by its own counters, or
	// PATH_RESENT_UNKNOWN; NULL: nobody counts.
	uint64_t (*resent)(void *ctx, const char *device);
	void *resent_ctx;
	// Of the software device; NULL if there is none.
	void (*soft_counters)(struct soft_counters *ret_counters);
};

// 0, -ENOMEM, or what keepers and loop say. Devices are opened later, on their keepers.
int fabric_create(
	struct loop *loop,
	struct overlay *overlay,
	const struct fabric_config *config,
	struct fabric **ret_fabric
);
// Closes all pairs and devices; `done` is called when that is done or FABRIC_STOP_NS have passed.
// While the overlay can still tell the peers.
void fabric_stop(struct fabric *fabric, void (*done)(void *ctx), void *ctx);
// Workers do not run any more. What a device may still reach is left behind. NULL is fine.
struct fabric *fabric_destroy(struct fabric *fabric);
// Whether anything was, of any fabric of this process: then its devices still work, and calls into
// their drivers may be under way.
bool fabric_left_any_behind(void);

// Other settings of standing probes, from now on. What was learnt of neighbours is forgotten when
// they are switched off, also what was kept of it. -ENOMEM: as before.
int fabric_use_probe(struct fabric *fabric, const struct fabric_probe_config *config);

// Devices have come or gone, or may have: those that are awaited are looked for at once, and those
// that are open and in the list no more are given up. Some drivers cannot take a device from its
// users (Soft-RoCE of Linux 6.1): whoever removes it waits for us, and nothing else tells of it.
void fabric_look_at_devices(struct fabric *fabric);

// One more device, which becomes a rail when it is open: peers are told of it then, and asked for
// theirs. From now on each device that is opened may have as many pairs as are said here.
// -EEXIST (one of that name or, with a GUID, that one), -ENOSPC, -EAGAIN (the fabric is stopping),
// or as fabric_create().
int fabric_add_device(
	struct fabric *fabric, const struct fabric_device *device, uint64_t guid, uint32_t pair_max
);

// A record that a worker gave, if it is the fabric's.
bool fabric_worker_event(
	struct fabric *fabric, uint32_t worker, const struct worker_record *record
);

// To look at.

enum fabric_device_state {
	FABRIC_DEVICE_WAITING, // not open: reason, and it is tried again
	FABRIC_DEVICE_OPENING,
	FABRIC_DEVICE_UP,
	FABRIC_DEVICE_DOWN, // open, without an active port
	FABRIC_DEVICE_CLOSING,
	FABRIC_DEVICE_STUCK, // a call into its driver does not come back
	FABRIC_DEVICE_STATE_COUNT,
};

// A page in the memory of a GPU that this device shows to peers.
enum fabric_gpu_state {
	FABRIC_GPU_NONE,    // none is wanted
	FABRIC_GPU_AWAITED, // libcuda is being asked, or the device is not open
	FABRIC_GPU_SHOWN,
	FABRIC_GPU_MISSING, // reason; it is tried again
	FABRIC_GPU_STUCK,   // a call into libcuda does not come back
	FABRIC_GPU_STATE_COUNT,
};

struct fabric_gpu_view {
	enum fabric_gpu_state state;
	uint32_t ordinal;
	const char *pci;    // "" if it is not known
	const char *reason; // "" if there is none
};

const char *fabric_gpu_state_name(enum fabric_gpu_state state);

struct fabric_device_view {
	const char *name;
	enum fabric_device_state state;
	uint64_t since_ns;
	uint64_t stuck_ns;  // how long the call into its driver has taken
	const char *reason; // "" if there is none
	uint32_t worker;
	bool open; // then the following are known
	struct device_facts facts;
	struct lane_facts lane;
	struct lane_counters counters;
	uint32_t opened; // times
	uint32_t events; // of the driver
	struct fabric_gpu_view gpu;
};

uint32_t fabric_device_count(const struct fabric *fabric);
void fabric_device_at(const struct fabric *fabric, uint32_t n, struct fabric_device_view *ret_view);

struct fabric_pair_view {
	struct pairing_view pairing;
	const char *device;
	bool in_lane; // then the following are known
	uint32_t queue_number;
	struct pair_counters counters;
	bool timed;
	struct histogram_log2 times;
};

// The cursor begins at 0; false past the last. Behind the pairs come those of own rails to which no
// rail of a neighbour belongs: failed, NoCommonFabric, with the device "-".
bool fabric_pair_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_pair_view *ret_view
);

// What is seen of peers' pulses, and beside it how their hosts take the overlay's connections: of
// each path in each look, once a second or when something is amiss, but at most once in
// FABRIC_OBSERVATION_NS if it is as before; of those that are visited in turn at the end of each
// visit. At most one; NULL: nobody any more. It must not call back into the fabric.
#define FABRIC_OBSERVATION_NS (RAS_NS_PER_SEC / 2)

typedef void fabric_observation_fn(void *ctx, const struct observation *observation);
// Of a peer: so many of its workers hang, as its page says while its control goes on; 0: not any
// more. With each look that finds some, and the one after them.
typedef void fabric_hung_fn(void *ctx, uint64_t peer, uint32_t hung, uint32_t workers);
void fabric_observations(
	struct fabric *fabric, fabric_observation_fn *fn, fabric_hung_fn *hung, void *ctx
);

// What one flow label of a path brought, since the path is watched.
struct fabric_flow {
	uint32_t label;
	bool current;
	bool bad; // against the other labels: lost or late three times as often, or slow
	uint64_t probes, lost;
	uint64_t late;		    // of hardware: sent again by the device
	uint64_t median_ns, p99_ns; // of the smallest size; 0: not known
};

// A peer's page in the memory of a GPU, read over the same pair as its pulse.
enum fabric_gpu_seen {
	FABRIC_GPU_UNSEEN,  // not read yet
	FABRIC_GPU_GOOD,    //
	FABRIC_GPU_SLOW,    // twice what is usual of it and beyond what the pulse's reads show
	FABRIC_GPU_SILENT,  // not answered, while the pulse is
	FABRIC_GPU_REFUSED, // the peer's device says that it cannot reach that memory
	FABRIC_GPU_WRONG,   // something else comes than was put there
	FABRIC_GPU_SEEN_COUNT,
};

struct fabric_gpu_path {
	bool shown;	  // the peer shows one; else nothing of the following is known
	uint32_t ordinal; // of its GPU
	enum fabric_gpu_seen seen;
	uint64_t since_ns;
	uint64_t probes;
	uint64_t silent, refused, wrong; // of these, where the path was not to blame
	uint64_t median_ns, p99_ns;	 // of 8 bytes; 0: not known
	uint64_t usual_ns;		 // the least median of a window of them; likewise
};

const char *fabric_gpu_seen_name(enum fabric_gpu_seen seen);

struct fabric_path_view {
	uint64_t peer; // our own id: a device with itself
	const char *device;
	const char *peer_device;
	bool neighbour; // probed steadily, else in turn
	bool watched;	// a pair is up and being probed
	bool known;	// there was a pair, then the following are known
	uint32_t mtu, flow_label;
	enum device_responder responder;
	bool shares; // it uses the interface that the overlay uses
	struct path_summary summary;
	// Of a neighbour, else NULL; until control turns to the fabric again.
	const struct path_memory *memory;
	const struct histogram *latency; // of the small size
	uint32_t flow_count;		 // on Ethernet, likewise
	struct fabric_flow flows[PAIRING_FLOWS];
	struct fabric_gpu_path gpu; // likewise
};

// The cursor begins at 0; false past the last. Neighbours first.
bool fabric_path_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_path_view *ret_view
);

// As it stands in the collective PATHS.
void fabric_path_row(
	const struct fabric *fabric,
	const struct fabric_path_view *view,
	struct ras_path_row *ret_row
);

struct fabric_probe_counters {
	uint64_t sent[PATH_SIZES]; // reads
	uint64_t lost[PATH_SIZES]; // of these: nobody answered
	uint64_t written[PATH_SIZES];
	uint64_t writes_lost[PATH_SIZES];
	uint64_t gpu_sent; // reads of pages in GPU memory, of these:
	uint64_t gpu_lost, gpu_refused, gpu_wrong;
	uint64_t writes_refused; // peers that take no writes, although they offered to
	uint64_t answered;
	uint64_t ended;		     // with their pair, for another reason than silence
	uint64_t without_path;	     // planned, and the path was gone
	uint64_t skipped;	     // planned, and the worker was late or the one before under way
	uint64_t delayed;	     // for the budget, of neighbours and visits
	uint64_t skipped_budget;     // for the budget, not at all
	uint64_t urgent;	     // sent at once to confirm something
	uint64_t packets, bytes;     // planned, both directions
	uint64_t visits;	     // begun
	uint64_t visits_unpaired;    // for want of a pair
	uint64_t rounds;	     // all others were visited
	uint64_t outcomes_lost;	     // control did not ask in time
	uint64_t observations;	     // told
	uint64_t doubts;	     // of standing pulses, given to the overlay
	uint64_t pauses;	     // of our own, noticed here
	uint64_t baselines_taken;    // of what earlier runs or probed paths had learnt of paths
	uint64_t baselines_outdated; // of that: not taken, too old or of another device
	uint64_t path_files_unreadable; // files of it
	uint64_t neighbours;		// now, as the following
	uint64_t targets;
	uint64_t interval_ns; // between probes of a neighbour
	uint64_t coverage_ns; // in which all targets are visited
};

struct fabric_counters {
	uint64_t devices_opened, open_failures;
	uint64_t device_events;
	uint64_t driver_calls, driver_stuck; // of keepers
	uint64_t paths_published, paths_refused;
	uint64_t records_waited;		    // requests that found a worker's ring full
	uint64_t messages_lost;			    // could not be sent
	uint64_t rails_malformed;		    // messages about rails that nobody sends
	uint64_t left_behind;			    // things that a driver did not give back
	uint32_t devices, devices_up, pairs, paths; // now
};

// All that is counted.
struct fabric_numbers {
	struct fabric_counters counters;
	struct pairing_counters pairing;
	struct lane_counters lanes;	// summed
	struct worker_counters workers; // summed
	struct soft_counters soft;	// of the software device
	struct fabric_probe_counters probes;
};

void fabric_numbers(const struct fabric *fabric, struct fabric_numbers *ret_numbers);
const char *fabric_device_state_name(enum fabric_device_state state);

// Timed reads of a peer's page over RDMA, on a pair that is made if there is none.
#define FABRIC_PING_COUNT_MAX 1000000
#define FABRIC_PING_TIMES_MAX 65536 // 256 KiB of the agent's memory while it is under way
#define FABRIC_PINGS_MAX 16	    // under way at once

struct fabric_ping;

struct fabric_ping_request {
	uint64_t peer;
	char device[DEVICE_NAME_MAX + 1]; // own; "": of the pair that is there, or the first up
	char peer_device[DEVICE_NAME_MAX + 1]; // "": of the pair that is there, or its first
	uint32_t bytes;			       // 1 to PULSE_BYTES
	uint32_t count;
	uint64_t interval_ns; // between two beginnings; 0: one after the other
	uint64_t timeout_ns;  // of each
	bool keeps_times;     // of each read; count is at most FABRIC_PING_TIMES_MAX then
	// On the loop's clock: until then the first one must have ended, and the pair been made for
	// it if there was none. UINT64_MAX: whenever.
	uint64_t deadline_ns;
};

struct fabric_ping_result {
	// 0: there was a run; -ENETDOWN: no pair, failure says why; -ENODEV: no page to read.
	int err;
	struct pairing_failure failure;
	struct pairing_key key;
	const char *device; // own; valid during the call
	uint64_t paired_ns; // until there was a pair
	bool in_process;    // the peer's device answers only while its process runs
	enum probe_end end;
	uint32_t sent, answered;
	enum op_outcome outcome;	 // of the last one
	struct op_cause cause;		 // if that failed
	const struct histogram *latency; // nanoseconds; valid during the call
	const uint32_t *times_ns; // of each that was answered, in order, likewise; NULL: not kept
	uint64_t took_ns;	  // from the first one's beginning to the last one's end
};

typedef void fabric_ping_fn(void *ctx, const struct fabric_ping_result *result);

// `ended` is called once, never from inside this. -EINVAL (bytes, count), -ENOENT (no such peer),
// -EHOSTDOWN (dead or left), -ENODEV (no device here, or none there), -EAGAIN (FABRIC_PINGS_MAX),
// -ENOMEM.
int fabric_ping_start(
	struct fabric *fabric,
	const struct fabric_ping_request *request,
	fabric_ping_fn *ended,
	void *ctx,
	struct fabric_ping **ret_ping
);
// `ended` will not be called. From inside it, it does nothing.
void fabric_ping_cancel(struct fabric_ping *ping);

// The calls above that look or ask, for those who must not depend on a data plane: clients, and
// whoever copies counters. Tests put others in their place.
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
};

extern const struct fabric_calls fabric_calls;
