// SPDX-License-Identifier: BSD-3-Clause
// Internals of the pairing: keys, the pairs made for them, peers and devices.
//
// An entry is the state of one key. An attempt is one generation of the key: a queue pair from the
// call that creates it to the call that destroys it. An entry has at most one current attempt,
// which is pending or ready. An attempt that ends is retired: it waits for the call under way, is
// drained if a lane has it, then destroyed. So a late answer of a driver finds its own attempt, and
// never touches a newer one.
//
// Each public function calls pairing_enter(), which sets the time, and acts. pairing_leave() then
// runs everything that has become due. No callback calls back in between.
#pragma once

#include <control/pairing.h>
#include <lib/must.h>

#include <errno.h>
#include <string.h>

struct pairing_message;

// Request to a keeper or a lane that is not answered yet.
enum cold_call {
	COLD_NONE,
	COLD_CREATE,
	COLD_CONNECT,
	COLD_DRAIN,
	COLD_DESTROY,
};

struct attempt {
	struct attempt *next; // next retired attempt of the entry
	struct entry *entry;
	enum cold_call cold;
	uint64_t cold_ns;  // start of the call
	uint64_t again_ns; // when a rejected request is repeated
	bool stuck;
	bool exists; // the queue pair exists
	bool in_lane;
	bool announced; // a message about the attempt was sent to the peer
	bool bound;	// `theirs` is set; its queue pair may change until connect_asked is set
	bool connect_asked, connected;
	bool peer_ready;
	uint32_t psn;
	uint64_t deadline_ns;
	uint64_t resend_ns, resend_gap_ns;
	uint64_t said_ns; // time of the last message about the attempt
	struct pairing_end own, theirs;
	struct pairing_failure failure; // set when retired
};

// State that limits how often changes of a key are reported.
struct report_pause {
	uint64_t next_ns, pause_ns; // end and length of the pause; 0: nothing was reported
	uint32_t reasons;	    // reported since the pause began, one bit each
	uint32_t untold;	    // failures since the last report
	enum pairing_state last;    // last reported state of absent, ready and failed
};

struct entry {
	struct entry *next;
	struct pairing_key key;
	struct peer *peer;
	struct attempt *current;
	struct attempt *retired;
	uint32_t retired_count;
	bool wanted;
	bool tombstone; // requests get `failure` until next_try_ns
	bool deferred;	// the rate limit delays the entry, which was counted once

	bool offered; // `offer` begins a handshake of the peer and is not answered yet
	uint64_t offer_until_ns;
	struct pairing_end offer;
	// Newest start and generation in messages of the peer, and whether the peer closed that
	// generation.
	uint64_t heard_start;
	uint32_t heard_generation;
	bool heard_gone;

	enum pairing_state state;
	uint64_t since_ns;
	uint32_t generation; // last own generation
	uint32_t tries, broken;
	uint64_t next_try_ns;
	uint64_t begun_ns; // start of the last handshake; PAIRING_NEVER: none
	uint64_t ready_ns, took_ns, used_ns;
	uint32_t flow;	   // index of the next flow label
	uint64_t lasts_ns; // time from ready until the pair is renewed
	struct pairing_failure failure;
	struct report_pause report_pause;
	struct pairing_waiter *waiters;
};

struct peer {
	struct peer *next;
	uint64_t id;
	uint64_t start; // start counter; 0: unknown
	enum pairing_peer_state state;
	bool fault;	   // the last handshake or pair failed, so new handshakes are delayed
	uint64_t begun_ns; // start of the last handshake; PAIRING_NEVER: none
	uint32_t entries;
};

struct own_device {
	struct pairing_device facts;
	enum pairing_device_state state;
	char text[PAIRING_TEXT_MAX + 1]; // why the device is not active
	uint32_t stuck;			 // attempts with a stuck call
};

struct pairing {
	struct pairing_config config;
	struct pairing_ops ops;
	uint64_t now_ns;
	uint64_t wake_ns; // last time given to ops.wake
	uint64_t random;
	uint64_t rate_ns; // when the next handshake is due at the configured rate
	uint32_t generation;
	bool stopping;
	struct own_device devices[PAIRING_DEVICES_MAX];
	uint32_t device_count;
	struct entry *entries, **entries_end;
	uint32_t entry_count;
	struct peer *peers;
	// A request under way, whose answer is returned instead of passed to its callback.
	struct pairing_waiter *asking;
	struct pairing_answer *asked;
	struct pairing_counters counters;
};

// pairing.c
void pairing_enter(struct pairing *pairing, uint64_t now_ns);
void pairing_leave(struct pairing *pairing);
uint64_t pairing_random(struct pairing *pairing);

// reason.c
enum reason_flags {
	REASON_TOMBSTONE = 0x01, // requests get this failure until the next try
	REASON_FAULT = 0x02,	 // the peer or its network failed: slows down all its handshakes
	REASON_NEWS_ONLY = 0x04, // only news mends it, time does not
	REASON_KEEPS_WAITERS = 0x08, // waiters stay, because the next try may be at once
	REASON_SILENT = 0x10,	     // no message to the peer: it knows, or is unreachable
};
uint32_t pairing_reason_flags(const struct pairing_failure *failure);
int pairing_reason_err(enum pairing_reason reason);
// Set the failure. err 0: use the default error of the reason.
__attribute__((format(printf, 4, 5))) void pairing_failure_set(
	struct pairing_failure *failure,
	enum pairing_reason reason,
	int err,
	const char *format,
	...
);

// entry.c
static inline uint64_t pairing_time_later(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}
struct entry *entry_find(const struct pairing *pairing, const struct pairing_key *key);
// Find or create the entry of a key. Returns 0, -ENOSPC, -ENOMEM, -EHOSTDOWN, or -ENOENT (no such
// peer).
int entry_get(
	struct pairing *pairing,
	const struct pairing_key *key,
	bool wanted,
	struct entry **ret_entry
);
// Remove entries without any state worth keeping.
void entries_expire(struct pairing *pairing);
uint64_t entry_expire_at_ns(const struct entry *entry);
void entry_update(struct pairing *pairing, struct entry *entry);
bool entry_is_self(const struct pairing *pairing, const struct entry *entry);
struct peer *peer_find(const struct pairing *pairing, uint64_t id);
struct attempt *attempt_find(const struct pairing *pairing, uint32_t generation);

// attempt.c
static inline bool pairing_generation_valid(uint32_t generation) {
	return (generation & 0xffffff) != 0; // a lane uses 24 bits
}
void attempt_begin(struct pairing *pairing, struct entry *entry);
// End the current attempt, if there is one, and reject a waiting offer. Waiters get the failure,
// unless the next try may be at once.
void attempt_fail(
	struct pairing *pairing, struct entry *entry, const struct pairing_failure *failure
);
// Connect the attempt or hand it to its lane, if that is due.
void attempt_advance(struct pairing *pairing, struct attempt *attempt);
void attempt_tick(struct pairing *pairing, struct attempt *attempt);
uint64_t attempt_next_ns(const struct pairing *pairing, const struct attempt *attempt);
void attempts_free(struct entry *entry);

// handshake.c
void attempt_announce(struct pairing *pairing, struct attempt *attempt);
void attempt_announce_end(
	struct pairing *pairing, struct attempt *attempt, const struct pairing_failure *failure
);
void pairing_refuse(
	struct pairing *pairing,
	uint64_t peer,
	const char *device,
	const char *peer_device,
	const struct pairing_end *theirs,
	const struct pairing_failure *failure
);

// report_pause.c: decides whether ops.changed is called.
bool report_is_due(
	struct report_pause *report_pause,
	uint64_t now_ns,
	enum pairing_state state,
	enum pairing_reason reason
);

// pace.c
void pace_failed(struct pairing *pairing, struct entry *entry);
// Return when the entry wants a handshake, and when the limits allow one. PAIRING_NEVER: time alone
// does not help.
uint64_t pace_wanted_at_ns(const struct pairing *pairing, const struct entry *entry);
uint64_t pace_due_at_ns(const struct pairing *pairing, const struct entry *entry);
void pace_begun(struct pairing *pairing, struct entry *entry);
void pace_reset(struct pairing *pairing, struct entry *entry);
// Make room for one more pair of the entry's kind, by closing an unused pair if needed. Returns
// false if there is no room.
bool pace_make_room(struct pairing *pairing, struct entry *entry);

// request.c
// Return why no pair of the key can be made at present; REASON_NONE if one can.
enum pairing_reason entry_obstacle(const struct pairing *pairing, const struct entry *entry);
// Describe the obstacle in words. There must be one.
void entry_obstacle_describe(
	const struct pairing *pairing,
	const struct entry *entry,
	struct pairing_failure *ret_failure
);
void waiters_answer(
	struct pairing *pairing, struct entry *entry, const struct pairing_answer *answer
);
void waiters_expire(struct pairing *pairing, struct entry *entry);
uint64_t waiters_next_ns(const struct entry *entry);

// news.c
void peer_restarted(struct pairing *pairing, struct peer *peer, uint64_t start);
