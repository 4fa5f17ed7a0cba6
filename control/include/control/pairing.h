// SPDX-License-Identifier: BSD-3-Clause
// The life of pairs as the control thread sees it: who wants one, the handshake with the peer, what
// follows when it fails, and when it is tried again.
//
// A pure state machine: no socket, clock, thread or device inside. Inputs are the functions below,
// all with the time; outputs are the calls of struct pairing_ops. Work that goes into a driver is
// asked for and answered later, in any order with other news, or never. The relay carries the
// messages and may lose, repeat, reorder or delay them.
//
// Rules for the caller: one thread; an operation or a waiter called from inside never calls back
// into it. A now_ns that lies before the last one counts as the last one: a timer is told the time
// at which its turn of the loop began, an answer may be told a later one.
//
// A key is (own device, peer, peer's device); what is made for one key, one queue pair after the
// other, is told apart by its generation, which is never used twice by one agent and names the pair
// in all calls. Per key there is
//
//	absent -> pending -> ready -> draining -> absent
//
// and failed, with a back-off, instead of absent. What is being taken down is drained and
// destroyed behind the state of its key: a peer that started again is answered at once with the
// next generation, while the last one still drains.
#pragma once

#include <dataplane/device.h>

#include <stdbool.h>
#include <stdint.h>

#define PAIRING_MESSAGE_BYTES_MAX 512 // of what ops.send is given
#define PAIRING_TEXT_MAX 159	      // bytes of a reason in words, without the terminator
#define PAIRING_DEVICES_MAX 17	      // own ones
#define PAIRING_PEER_ENTRIES_MAX 64   // keys of one peer
#define PAIRING_ENTRIES_MAX 1024      // keys altogether; wanted ones beyond it are still kept
#define PAIRING_NEVER UINT64_MAX

#define PAIRING_NS_PER_MS UINT64_C(1000000)
#define PAIRING_NS_PER_SEC UINT64_C(1000000000)

struct pairing;

enum pairing_state {
	PAIRING_ABSENT,	  // nothing is held
	PAIRING_PENDING,  // from the call that makes the queue pair until both ends are known ready
	PAIRING_READY,	  // a lane has it
	PAIRING_DRAINING, // nothing but pairs being taken down
	PAIRING_FAILED,	  // nothing is held; the reason is served until the next try
	PAIRING_STATE_COUNT,
};

// Why there is no pair. Their numbers travel: new ones go to the end.
enum pairing_reason {
	PAIRING_REASON_NONE,
	PAIRING_TIMED_OUT,	   // the handshake did not end within its deadline
	PAIRING_UNREACHABLE,	   // a message could not be delivered, or there is no such peer
	PAIRING_NO_DEVICE,	   // there is none of that name, or it cannot be used at present
	PAIRING_NO_COMMON_FABRIC,  // the two devices cannot reach each other, ever
	PAIRING_NO_COMMON_VERSION, // of the handshake
	PAIRING_MALFORMED,	   // impossible values
	PAIRING_NO_ROOM,	   // as many pairs as may be, or no place in the lane
	PAIRING_NO_MEMORY,	   //
	PAIRING_DRIVER,		   // the driver refused a call
	PAIRING_DEVICE_STUCK,	   // the driver does not come back from a call
	PAIRING_DEVICE_GONE,	   // the device failed for good or was removed
	PAIRING_PEER_DEAD,	   // dead, left, or another start of it
	PAIRING_CLOSED,		   // the peer closed it
	PAIRING_REPLACED,	   // the peer opened a newer one
	PAIRING_STALE,		   // the peer does not have the pair this was about
	PAIRING_BROKEN,		   // an operation on it failed
	PAIRING_IDLE,		   // unused for long, or its place was needed
	PAIRING_DEADLINE,	   // of the one who asked; the handshake goes on
	PAIRING_CANCELLED,	   // by the one who asked
	PAIRING_SHUTDOWN,	   //
	PAIRING_LIMITED_MEMBERS,   // both ends are limited members of their partition
	PAIRING_REASON_COUNT,
};

struct pairing_failure {
	enum pairing_reason reason;
	int err;      // -errno of the driver, or what fits the reason; for lanes and callers
	bool by_peer; // it is the peer's, told by it
	char text[PAIRING_TEXT_MAX + 1];
};

struct pairing_key {
	uint32_t device; // own, as pairing_device() numbered it
	uint64_t peer;	 // id in the overlay, may be our own
	char peer_device[DEVICE_NAME_MAX + 1];
};

// A page that peers may read.
struct pairing_pulse {
	uint64_t address;
	uint32_t key;
	uint16_t layout; // 0: there is none
};

// Memory that peers may write to, and that nobody reads.
struct pairing_write_sink {
	uint64_t address;
	uint32_t key;
	uint32_t length; // 0: there is none
};

// A page in the memory of a GPU that peers may read.
struct pairing_gpu {
	uint64_t address;
	uint64_t word; // that it holds all over
	uint32_t key;
	uint32_t length;  // 0: there is none
	uint16_t ordinal; // of the GPU, as CUDA counts at that end
};

// What an end of a pair says of itself beside what the queue pair needs.
struct pairing_end {
	uint64_t start; // of the agent, the upper part of its incarnation
	uint32_t generation;
	struct device_endpoint endpoint;
	enum device_responder responder;
	bool shares_overlay; // its device uses the interface that the overlay uses
	bool wanted;	     // it keeps the pair up, not for a single use
	uint32_t flow_label; // 20 bits
	uint8_t traffic_class;
	struct pairing_pulse pulse;
	struct pairing_write_sink write_sink; // since version 2
	struct pairing_gpu gpu;		      // since version 4
};

struct pairing_ops {
	// Have the queue pair made, pair_create(); answered by pairing_created(). -errno: no answer
	// comes, as if that had been it.
	int (*create)(void *ctx, const struct pairing_key *key, uint32_t generation, uint32_t psn);
	// pair_connect() with the peer's end, or with its own; answered by pairing_connected().
	// flow_label is our own.
	int (*connect
	)(void *ctx, uint32_t generation, const struct pairing_end *theirs, uint32_t flow_label);
	// Give it to its lane; usable at once. -errno: the lane does not have it.
	int (*hand_over)(void *ctx, uint32_t generation);
	// Take it back from the lane: failure is the root cause for operations. Answered by
	// pairing_drained(). Not called after pairing_broken(). -errno: tried again.
	int (*drain)(void *ctx, uint32_t generation, const struct pairing_failure *failure);
	// pair_destroy(), of one no lane has; answered by pairing_destroyed(). -errno: tried again.
	int (*destroy)(void *ctx, uint32_t generation);

	// To OVERLAY_PORT_PAIRING of this start of the peer, which may be ourselves. If it is not
	// delivered, and tag is not 0, pairing_undelivered() may say so. -errno: as if lost.
	int (*send
	)(void *ctx, uint64_t peer, uint64_t start, const void *bytes, size_t size, uint32_t tag);
	// A peer that was not known here so far: 0 and its start, -EHOSTDOWN (dead, left), -ENOENT.
	int (*peer)(void *ctx, uint64_t peer, uint64_t *ret_start);
	// device_endpoint_check() with the facts of the device.
	int (*check
	)(void *ctx,
	  uint32_t device,
	  const struct device_endpoint *theirs,
	  char ret_reason[static DEVICE_REASON_MAX + 1]);
	// pairing_tick() is to be called then; replaces what was asked before.
	void (*wake)(void *ctx, uint64_t at_ns);
	// The state of a key changed: for the log. Ask pairing_find() for the rest. Of a pair that
	// fails again and again it is not called each time, but after pauses that grow from 2 s to
	// 10 min, or if it has a reason that was not told in this pause. May be NULL.
	void (*changed)(void *ctx, const struct pairing_key *key, enum pairing_state state);
	void *ctx;
};

// 0 in a number means its default.
struct pairing_config {
	uint64_t self;		    // our id
	uint64_t start;		    // ours
	uint64_t random_seed;	    // for jitter, packet sequence numbers and flow labels
	uint64_t handshake_ns;	    // 5 s, from create to ready
	uint64_t resend_ns;	    // 250 ms, then twice it
	uint64_t cold_ns;	    // 5 s: a call into the driver that takes longer is stuck
	uint64_t drain_ns;	    // 30 s: the same for a lane
	uint64_t backoff_ns;	    // 250 ms, doubled up to
	uint64_t backoff_max_ns;    // 30 s
	uint64_t backoff_wanted_ns; // 900 ms, the most for wanted pairs
	uint64_t gap_ns;     // 1 s between two handshakes of one key, and of one peer in a fault
	uint32_t rate;	     // 128 handshakes a second, and as many at once
	uint32_t demand_max; // 64 live pairs that nobody keeps up
	uint32_t guest_max;  // 64 live pairs that only the peer keeps up
	uint64_t idle_ns;    // 10 min unused, then a pair that nobody keeps up is closed
	uint64_t renew_ns;   // 10 min ready, then a wanted pair on Ethernet is made anew: its flow
			     // label, and so its way through the fabric, is another one
	uint64_t evict_ns;   // 1 s unused, then it may be closed for another
	uint64_t proved_ns;  // 10 s ready, then the count of tries starts anew
};

// Flow labels of one key, in turn: the same ones in each run, so that what each brought can be told
// apart. Each new pair has the next.
#define PAIRING_FLOWS 4

// -EINVAL (a number that contradicts another), -ENOMEM.
int pairing_create(
	const struct pairing_config *config,
	const struct pairing_ops *ops,
	struct pairing **ret_pairing
);
// No more ops; waiters that are left are answered with PAIRING_SHUTDOWN. NULL is fine.
struct pairing *pairing_destroy(struct pairing *pairing);
// No pair any more: all are closed and drained, who waits is answered, who asks is refused.
void pairing_stop(struct pairing *pairing, uint64_t now_ns);
// Nothing is made, drained or destroyed any more.
bool pairing_is_empty(const struct pairing *pairing);
void pairing_tick(struct pairing *pairing, uint64_t now_ns);
// Our start has become another one: peers take all pairs for gone, and so do we.
void pairing_restart(struct pairing *pairing, uint64_t now_ns, uint64_t start);

// Own devices.

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
	PAIRING_DEVICE_DOWN,   // no new pairs; those that are ready stay until they fail
	PAIRING_DEVICE_ACTIVE, // said again (PORT_ACTIVE, GID_CHANGE) it is news: failed pairs are
			       // tried at once
	PAIRING_DEVICE_LOST,   // failed or removed: all its pairs go
};

// A device by its name, new (DOWN at first) or known; what is said of it holds for handshakes from
// now on. -ENOSPC, -EINVAL (no name).
int pairing_device(
	struct pairing *pairing, const struct pairing_device *device, uint32_t *ret_device
);
void pairing_device_state(
	struct pairing *pairing,
	uint64_t now_ns,
	uint32_t device,
	enum pairing_device_state state,
	const char *text // why, in words, unless ACTIVE
);
// What is said of the device has changed, and peers are to know it: its pairs are made anew.
void pairing_device_renew(struct pairing *pairing, uint64_t now_ns, uint32_t device);

// The overlay.

enum pairing_peer_state {
	PAIRING_PEER_IS_ALIVE,	// joined, rejoined or other facts of it: always news
	PAIRING_PEER_IS_SILENT, // held for dead, and nobody saw it end: what still works stays
	PAIRING_PEER_HAS_DIED,
	PAIRING_PEER_HAS_LEFT,
};

// Of peers that no key names nothing is kept: all events may be passed on.
void pairing_peer(
	struct pairing *pairing,
	uint64_t now_ns,
	uint64_t peer,
	enum pairing_peer_state state,
	uint64_t start
);
// A message that came. source_start is the relay's. -EBADMSG: undecodable, nothing came of it.
int pairing_receive(
	struct pairing *pairing,
	uint64_t now_ns,
	uint64_t source,
	uint64_t source_start,
	const void *bytes,
	size_t size
);
// A message that will not be delivered, or nobody can say. tag: as it was sent; 0 if that is not
// known, then all of that peer's handshakes that have heard nothing yet are meant.
void pairing_undelivered(
	struct pairing *pairing, uint64_t now_ns, uint64_t peer, uint32_t tag, const char *text
);

// Who wants pairs.

// Kept up for ever, or no more. -EINVAL (no such device, no name), -ENOMEM.
int pairing_want(
	struct pairing *pairing, uint64_t now_ns, const struct pairing_key *key, bool wanted
);

struct pairing_answer {
	uint32_t generation;		// of the pair that is ready, else 0
	struct pairing_failure failure; // REASON_NONE if it is ready
};

struct pairing_waiter {
	// Once. Not from inside pairing_request().
	void (*answered)(struct pairing_waiter *waiter, const struct pairing_answer *answer);
	struct pairing_waiter *next; // private, as the rest
	struct pairing_key key;
	uint64_t deadline_ns;
};

// A pair for one use. True: *ret_answer is the answer, the waiter is not used. False: the waiter
// will be answered.
bool pairing_request(
	struct pairing *pairing,
	uint64_t now_ns,
	const struct pairing_key *key,
	uint64_t deadline_ns, // PAIRING_NEVER for none
	struct pairing_waiter *waiter,
	struct pairing_answer *ret_answer
);
// Answered with PAIRING_CANCELLED before this returns. -ENOENT: it does not wait (any more).
int pairing_cancel(struct pairing *pairing, struct pairing_waiter *waiter);
// An operation on it succeeded: it is not idle, and proved.
void pairing_used(struct pairing *pairing, uint64_t now_ns, uint32_t generation);

// Answers of keepers and lanes. One for a generation that is not held, or not asked for, is counted
// and left.

// err: 0, or -errno of pair_create(); then endpoint is not read. -ENOMEM and -ENOSPC are no failure
// of the pair: whoever asks next tries anew.
void pairing_created(
	struct pairing *pairing,
	uint64_t now_ns,
	uint32_t generation,
	int err,
	const struct device_endpoint *endpoint
);
// text: the reason that came with err, or NULL.
void pairing_connected(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err, const char *text
);
// The lane says that it failed (LANE_EVENT_FAILED); pairing_drained() will follow.
void pairing_broken(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err, const char *text
);
// cause: what really went wrong, if that is known better now than when it was broken; or NULL.
void pairing_drained(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, const char *cause
);
// err: the device may still reach its memory; tried again.
void pairing_destroyed(struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err);

// To look at.

struct pairing_view {
	struct pairing_key key;
	enum pairing_state state;
	uint64_t since_ns; // of the state
	bool wanted;	   // here
	bool guest;	   // the peer keeps it up
	bool stuck;	   // a call into the driver, or a drain, does not come back
	uint32_t waiters;
	uint32_t retired;     // pairs of it being taken down
	uint32_t generation;  // own, of the pending or ready one, else of the last
	uint32_t tries;	      // without success
	uint32_t broken;      // pairs of it that ended by a failed operation, here or there
	uint64_t next_try_ns; // PAIRING_NEVER: none, unless there is news
	uint64_t begun_ns;    // the last handshake
	uint64_t took_ns;     // the last one that succeeded
	uint64_t used_ns;
	struct pairing_failure failure; // the last, also while it is ready again
	uint32_t untold;     // failures that ops.changed was not called for, since it was
	uint32_t flow_label; // ours
	struct device_endpoint endpoint; // ours; zero until it is known
	struct pairing_end theirs;	 // generation 0 until it is known
};

// The cursor begins at 0; false past the last. Sorted by nothing.
bool pairing_next(const struct pairing *pairing, uint32_t *cursor, struct pairing_view *ret_view);
bool pairing_find(
	const struct pairing *pairing, const struct pairing_key *key, struct pairing_view *ret_view
);
// Key of a pair that exists, retired ones too; NULL if there is none.
const struct pairing_key *pairing_key_of(const struct pairing *pairing, uint32_t generation);

struct pairing_counters {
	uint64_t begun;	   // handshakes, of these
	uint64_t answered; // because the peer had begun
	uint64_t succeeded;
	uint64_t failed[PAIRING_REASON_COUNT]; // handshakes and pairs, by reason
	uint64_t sent;			       // messages
	uint64_t resent;		       // of these, since nothing was heard
	uint64_t send_failed;
	uint64_t undelivered;
	uint64_t received;
	uint64_t malformed; // could not be read at all
	uint64_t forged;    // in the name of another start than the relay says
	uint64_t stale;	    // late ones of an older generation or start
	uint64_t refused;   // handshakes of peers that we refused
	uint64_t repaired;  // our READY was lost, and the peer asked again
	uint64_t replaced;  // pairs that gave way to a newer one of the peer
	uint64_t deferred;  // handshakes that waited for the rate, of all or of one peer
	uint64_t evicted;   // for another, or for being idle
	uint64_t renewed;   // for another flow label
	uint64_t stuck;	    // calls that did not come back in time
	uint64_t late;	    // answers of keepers and lanes that nobody had asked for
	uint64_t waiters;   // requests that were made
	uint64_t waiters_failed;
	uint32_t pending, ready, retired; // now
};

const struct pairing_counters *pairing_counters(const struct pairing *pairing);

// Stable names for logs, JSON and tests.
const char *pairing_state_name(enum pairing_state state);
const char *pairing_reason_name(enum pairing_reason reason); // "NoCommonFabric"
