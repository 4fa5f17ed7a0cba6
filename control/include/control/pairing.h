// SPDX-License-Identifier: BSD-3-Clause
// The life of pairs on the control thread: which pairs are wanted, the handshake with the peer, and
// retries after a failure.
//
// Pairing is a pure state machine without sockets, clocks, threads or devices. Its inputs are the
// functions below, each with the time. Its outputs are the callbacks of struct pairing_ops. Driver
// calls are requested and answered later, in any order, or never. The relay carries the messages,
// and may lose, repeat, reorder or delay them.
//
// Rules for the caller: use one thread. A callback must not call back into the pairing. A now_ns
// before the last one counts as the last one: a timer passes the start time of its loop turn, and
// an answer may pass a later time.
//
// A key is (own device, peer, peer's device). A key has one queue pair after the other, and each
// has a generation. An agent never uses a generation twice, and all calls identify a pair by its
// generation. The states of a key are
//
//	absent -> pending -> ready -> draining -> absent
//
// or failed, with a backoff, instead of absent. Old pairs are drained and destroyed independently
// of the state of their key. So a peer that restarted gets the next generation at once, while the
// previous one still drains.
#pragma once

#include <dataplane/device.h>

#include <stdbool.h>
#include <stdint.h>

#define PAIRING_MESSAGE_BYTES_MAX 512 // message size limit of ops.send
#define PAIRING_TEXT_MAX 159	      // bytes of a reason text, without its NUL
#define PAIRING_DEVICES_MAX 17	      // own devices
#define PAIRING_PEER_ENTRIES_MAX 64   // keys of one peer
#define PAIRING_ENTRIES_MAX 1024      // keys of all peers; wanted keys beyond it are still kept
#define PAIRING_NEVER UINT64_MAX

#define PAIRING_NS_PER_MS UINT64_C(1000000)
#define PAIRING_NS_PER_SEC UINT64_C(1000000000)

struct pairing;

enum pairing_state {
	PAIRING_ABSENT,	  // no pair
	PAIRING_PENDING,  // from the creation of the queue pair until both ends are ready
	PAIRING_READY,	  // the lane has the pair
	PAIRING_DRAINING, // no pair but old ones that still drain
	PAIRING_FAILED,	  // no pair; the reason is kept until the next attempt
	PAIRING_STATE_COUNT,
};

// Reasons why there is no pair. The values are part of the protocol: append new ones at the end.
enum pairing_reason {
	PAIRING_REASON_NONE,
	PAIRING_TIMED_OUT,	   // the handshake exceeded its deadline
	PAIRING_UNREACHABLE,	   // a message was not delivered, or the peer does not exist
	PAIRING_NO_DEVICE,	   // no device of that name, or it is not usable now
	PAIRING_NO_COMMON_FABRIC,  // the two devices can never reach each other
	PAIRING_NO_COMMON_VERSION, // no common version of the handshake
	PAIRING_MALFORMED,	   // impossible values in a message
	PAIRING_NO_ROOM,	   // the limit of pairs is reached, or the lane is full
	PAIRING_NO_MEMORY,	   // no memory
	PAIRING_DRIVER,		   // the driver refused a call
	PAIRING_DEVICE_STUCK,	   // a driver call does not return
	PAIRING_DEVICE_GONE,	   // the device failed for good or was removed
	PAIRING_PEER_DEAD,	   // the peer died, left or restarted
	PAIRING_CLOSED,		   // the peer closed the pair
	PAIRING_REPLACED,	   // the peer opened a newer pair
	PAIRING_STALE,		   // the peer does not have the pair that was named
	PAIRING_BROKEN,		   // an operation on the pair failed
	PAIRING_IDLE,		   // unused for long, or another pair needed its place
	PAIRING_DEADLINE,	   // deadline of the requester; the handshake continues
	PAIRING_CANCELLED,	   // cancelled by the requester
	PAIRING_SHUTDOWN,	   // this agent is shutting down
	PAIRING_LIMITED_MEMBERS,   // both ends are limited members of their partition
	PAIRING_REASON_COUNT,
};

struct pairing_failure {
	enum pairing_reason reason;
	int err;      // -errno of the driver, or one that fits the reason; for lanes and callers
	bool by_peer; // the peer reported this failure
	char text[PAIRING_TEXT_MAX + 1];
};

struct pairing_key {
	uint32_t device; // own device, a number from pairing_device()
	uint64_t peer;	 // overlay id; may be our own
	char peer_device[DEVICE_NAME_MAX + 1];
};

// A page that peers may read.
struct pairing_pulse {
	uint64_t address;
	uint32_t key;
	uint16_t layout; // 0: none
};

// Memory that peers may write to. Nobody reads it.
struct pairing_write_sink {
	uint64_t address;
	uint32_t key;
	uint32_t length; // 0: none
};

// A page in GPU memory that peers may read.
struct pairing_gpu {
	uint64_t address;
	uint64_t word; // the value that fills the page
	uint32_t key;
	uint32_t length;  // 0: none
	uint16_t ordinal; // CUDA device number on the owner's host
};

// One end of a pair, as described to the other end.
struct pairing_end {
	uint64_t start; // agent start number, the upper part of its incarnation
	uint32_t generation;
	struct device_endpoint endpoint;
	enum device_responder responder;
	bool shares_overlay; // this end's device uses the overlay's interface
	bool wanted;	     // this end keeps the pair up permanently
	uint32_t flow_label; // 20 bits
	uint8_t traffic_class;
	struct pairing_pulse pulse;
	struct pairing_write_sink write_sink; // sent since handshake version 2
	struct pairing_gpu gpu;		      // sent since handshake version 4
};

struct pairing_ops {
	// Create the queue pair with pair_create(). pairing_created() must follow. On -errno, it
	// does not follow and the creation counts as failed with that error.
	int (*create)(void *ctx, const struct pairing_key *key, uint32_t generation, uint32_t psn);
	// Call pair_connect() with the peer's end, or with the pair's own end. pairing_connected()
	// must follow. flow_label is our own.
	int (*connect
	)(void *ctx, uint32_t generation, const struct pairing_end *theirs, uint32_t flow_label);
	// Give the pair to its lane; operations may use it at once. Returns 0, or -errno if the
	// lane did not accept it.
	int (*hand_over)(void *ctx, uint32_t generation);
	// Withdraw the pair from its lane; pending operations fail with `failure` as root cause.
	// pairing_drained() must follow. Not called after pairing_broken(). On -errno, it is called
	// again later.
	int (*drain)(void *ctx, uint32_t generation, const struct pairing_failure *failure);
	// Call pair_destroy() for a pair that no lane has. pairing_destroyed() must follow. On
	// -errno, it is called again later.
	int (*destroy)(void *ctx, uint32_t generation);

	// Send a message to OVERLAY_PORT_PAIRING of this start of the peer, which may be this node
	// itself. If the message is not delivered and `tag` is not 0, pairing_undelivered() may
	// follow. On -errno, the message counts as lost.
	int (*send
	)(void *ctx, uint64_t peer, uint64_t start, const void *bytes, size_t size, uint32_t tag);
	// Look up a peer that the pairing does not know. Returns 0 and its start, -EHOSTDOWN (dead
	// or left) or -ENOENT.
	int (*peer)(void *ctx, uint64_t peer, uint64_t *ret_start);
	// Call device_endpoint_check() with the facts of the device.
	int (*check
	)(void *ctx,
	  uint32_t device,
	  const struct device_endpoint *theirs,
	  char ret_reason[static DEVICE_REASON_MAX + 1]);
	// Request a call of pairing_tick() at this time; replaces the previous request.
	void (*wake)(void *ctx, uint64_t at_ns);
	// The state of a key changed; for the log. pairing_find() returns the details. For a pair
	// that fails repeatedly, calls are limited: one after each pause, and pauses grow from 2 s
	// to 10 min. A reason not yet reported in this pause is reported at once. May be NULL.
	void (*changed)(void *ctx, const struct pairing_key *key, enum pairing_state state);
	void *ctx;
};

// The configuration. A number 0 means the default, which is given below.
struct pairing_config {
	uint64_t self;		    // own id
	uint64_t start;		    // own start number
	uint64_t random_seed;	    // for jitter, packet sequence numbers and flow labels
	uint64_t handshake_ns;	    // 5 s, from creation to ready
	uint64_t resend_ns;	    // 250 ms, doubled for each retransmission
	uint64_t cold_ns;	    // 5 s; a longer driver call counts as stuck
	uint64_t drain_ns;	    // 30 s; a longer drain of a lane counts as stuck
	uint64_t backoff_ns;	    // 250 ms, doubled for each retry
	uint64_t backoff_max_ns;    // 30 s, maximum backoff
	uint64_t backoff_wanted_ns; // 900 ms, maximum backoff of wanted pairs
	uint64_t gap_ns;     // 1 s between two handshakes of one key, and of one failing peer
	uint32_t rate;	     // 128 handshakes a second, and as many at once
	uint32_t demand_max; // 64, maximum of live pairs that neither side keeps up
	uint32_t guest_max;  // 64, maximum of live pairs that only the peer keeps up
	uint64_t idle_ns;    // 10 min unused, then a pair that neither side keeps up is closed
	// 10 min ready, then a wanted pair on Ethernet is replaced. The new pair has another flow
	// label, and so another way through the fabric.
	uint64_t renew_ns;
	uint64_t evict_ns;  // 1 s unused, then a pair may be closed to make room for another
	uint64_t proved_ns; // 10 s ready, then the count of tries is reset
};

// Flow labels of one key. They are the same in each run, so that the results of each label can be
// compared. Each new pair uses the next one.
#define PAIRING_FLOWS 4

// Returns 0, -EINVAL (contradictory numbers) or -ENOMEM.
int pairing_create(
	const struct pairing_config *config,
	const struct pairing_ops *ops,
	struct pairing **ret_pairing
);
// Destroy the pairing without further callbacks, except that remaining waiters are answered with
// PAIRING_SHUTDOWN. `pairing` may be NULL.
struct pairing *pairing_destroy(struct pairing *pairing);
// Stop: close and drain all pairs, answer all waiters and reject new requests.
void pairing_stop(struct pairing *pairing, uint64_t now_ns);
// Return whether no pair is being created, drained or destroyed.
bool pairing_is_empty(const struct pairing *pairing);
void pairing_tick(struct pairing *pairing, uint64_t now_ns);
// Set a new start number of this agent. All pairs are closed, because peers consider them gone.
void pairing_restart(struct pairing *pairing, uint64_t now_ns, uint64_t start);

// An own device.

struct pairing_device {
	char name[DEVICE_NAME_MAX + 1];
	enum device_responder responder;
	bool shares_overlay;
	uint8_t traffic_class;
	struct pairing_pulse pulse;
	struct pairing_write_sink write_sink;
	struct pairing_gpu gpu;
};

enum pairing_device_state {
	PAIRING_DEVICE_DOWN, // no new pairs; ready pairs stay until they fail
	// repeated (PORT_ACTIVE, GID_CHANGE), it makes failed pairs retry at once
	PAIRING_DEVICE_ACTIVE,
	PAIRING_DEVICE_LOST, // failed or removed; all its pairs end
};

// Add a device, DOWN at first, or update a known one of the same name. The data is used from the
// next handshake on. Returns 0, -ENOSPC or -EINVAL (no name).
int pairing_device(
	struct pairing *pairing, const struct pairing_device *device, uint32_t *ret_device
);
void pairing_device_state(
	struct pairing *pairing,
	uint64_t now_ns,
	uint32_t device,
	enum pairing_device_state state,
	const char *text // the reason in words, unless ACTIVE
);
// Replace all pairs of a device, so that peers learn its changed data.
void pairing_device_renew(struct pairing *pairing, uint64_t now_ns, uint32_t device);

// Events of the overlay.

enum pairing_peer_state {
	PAIRING_PEER_IS_ALIVE,	// joined, rejoined or changed; always counts as news
	PAIRING_PEER_IS_SILENT, // declared dead for silence only; pairs that still work stay
	PAIRING_PEER_HAS_DIED,
	PAIRING_PEER_HAS_LEFT,
};

// Report the state of a peer. Unknown peers use no memory, so all events can be passed on.
void pairing_peer(
	struct pairing *pairing,
	uint64_t now_ns,
	uint64_t peer,
	enum pairing_peer_state state,
	uint64_t start
);
// Handle a received message. source_start is the one that the relay reports. Returns 0, or -EBADMSG
// if the message cannot be decoded and was ignored.
int pairing_receive(
	struct pairing *pairing,
	uint64_t now_ns,
	uint64_t source,
	uint64_t source_start,
	const void *bytes,
	size_t size
);
// Report a message that will not be delivered, or may not have been. `tag` is the sender's; 0 if
// unknown. 0 affects all handshakes with the peer that received no message yet.
void pairing_undelivered(
	struct pairing *pairing, uint64_t now_ns, uint64_t peer, uint32_t tag, const char *text
);

// Requests for pairs.

// Keep a pair up permanently, or stop doing so. Returns 0, -EINVAL (no such device, or no name) or
// -ENOMEM.
int pairing_set_wanted(
	struct pairing *pairing, uint64_t now_ns, const struct pairing_key *key, bool wanted
);

struct pairing_answer {
	uint32_t generation;		// of the ready pair, else 0
	struct pairing_failure failure; // REASON_NONE if the pair is ready
};

struct pairing_waiter {
	// Called once, not from inside pairing_request().
	void (*answered)(struct pairing_waiter *waiter, const struct pairing_answer *answer);
	struct pairing_waiter *next; // private from here on
	struct pairing_key key;
	uint64_t deadline_ns;
};

// Request a pair for one use. Returns true if *ret_answer has the answer; the waiter is not used.
// Returns false if the waiter will be called.
bool pairing_request(
	struct pairing *pairing,
	uint64_t now_ns,
	const struct pairing_key *key,
	uint64_t deadline_ns, // PAIRING_NEVER: no deadline
	struct pairing_waiter *waiter,
	struct pairing_answer *ret_answer
);
// Cancel a request. The waiter is called with PAIRING_CANCELLED before this returns. Returns 0, or
// -ENOENT if the waiter is not waiting.
int pairing_cancel(struct pairing *pairing, struct pairing_waiter *waiter);
// Report a successful operation on a pair, so that it is not idle and counts as proven.
void pairing_report_success(struct pairing *pairing, uint64_t now_ns, uint32_t generation);

// Answers of keepers and lanes. An answer with an unknown generation, or one that was not
// requested, is counted and ignored.

// pair_create() has returned: `err` is 0 or its -errno; `endpoint` is read only if 0. -ENOMEM and
// -ENOSPC do not mark the pair as failed: the next request tries again.
void pairing_created(
	struct pairing *pairing,
	uint64_t now_ns,
	uint32_t generation,
	int err,
	const struct device_endpoint *endpoint
);
// pair_connect() has returned. `text`: the reason for `err`, or NULL.
void pairing_connected(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err, const char *text
);
// The lane reports that the pair failed (LANE_EVENT_FAILED); pairing_drained() must follow.
void pairing_broken(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err, const char *text
);
// The lane has drained the pair. `cause`: a better explanation of the failure than the one given to
// pairing_broken(), or NULL.
void pairing_drained(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, const char *cause
);
// pair_destroy() has returned. On error, the device may still access the pair's memory, and
// destroying is tried again.
void pairing_destroyed(struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err);

// The current state of a key.

struct pairing_view {
	struct pairing_key key;
	enum pairing_state state;
	uint64_t since_ns; // start of the state
	bool wanted;	   // this node keeps the pair up
	bool guest;	   // the peer keeps the pair up
	bool stuck;	   // a driver call or a drain does not return
	uint32_t waiters;
	uint32_t retired;     // old pairs of this key that still drain
	uint32_t generation;  // own generation of the pending or ready pair, else of the last one
	uint32_t tries;	      // attempts since the last success
	uint32_t broken;      // pairs of this key that ended by a failed operation at either end
	uint64_t next_try_ns; // PAIRING_NEVER: no attempt without news
	uint64_t begun_ns;    // start of the last handshake
	uint64_t took_ns;     // duration of the last successful handshake
	uint64_t used_ns;
	struct pairing_failure failure;	 // the last failure, kept while the pair is ready again
	uint32_t untold;		 // failures not reported to ops.changed since its last call
	uint32_t flow_label;		 // own label
	struct device_endpoint endpoint; // own endpoint; zero until known
	struct pairing_end theirs;	 // the peer's end; generation 0 until known
};

// Return the next key, in no order. The cursor starts at 0. Returns false past the last.
bool pairing_next(const struct pairing *pairing, uint32_t *cursor, struct pairing_view *ret_view);
bool pairing_find(
	const struct pairing *pairing, const struct pairing_key *key, struct pairing_view *ret_view
);
// Return the key of an existing pair, even an old one that drains; NULL if there is none.
const struct pairing_key *pairing_key_of(const struct pairing *pairing, uint32_t generation);

struct pairing_counters {
	uint64_t begun;	   // handshakes started
	uint64_t answered; // the part of begun that the peer had started
	uint64_t succeeded;
	uint64_t failed[PAIRING_REASON_COUNT]; // failed handshakes and pairs, by reason
	uint64_t sent;			       // messages sent
	uint64_t resent;		       // the part of sent that are retransmissions
	uint64_t send_failed;
	uint64_t undelivered;
	uint64_t received;
	uint64_t malformed; // unreadable messages
	uint64_t forged;    // messages whose start differs from the relay's
	uint64_t stale;	    // late messages of an older generation or start
	uint64_t refused;   // handshakes of peers that this agent refused
	uint64_t repaired;  // READY messages sent again because the first was lost
	uint64_t replaced;  // pairs closed because the peer opened a newer one
	uint64_t deferred;  // handshakes delayed by a rate limit, in total or per peer
	uint64_t evicted;   // pairs closed for another, or for being idle
	uint64_t renewed;   // pairs replaced for another flow label
	uint64_t stuck;	    // driver calls and drains that exceeded their limit
	uint64_t late;	    // unrequested answers of keepers and lanes
	uint64_t waiters;   // requests
	uint64_t waiters_failed;
	uint32_t pending, ready, retired; // current numbers
};

const struct pairing_counters *pairing_counters(const struct pairing *pairing);

// Return a stable name for logs, JSON and tests.
const char *pairing_state_name(enum pairing_state state);
const char *pairing_reason_name(enum pairing_reason reason); // such as "NoCommonFabric"
