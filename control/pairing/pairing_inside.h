// SPDX-License-Identifier: BSD-3-Clause
// Pairing from the inside: keys, what is made for them, peers and devices.
//
// An entry is what is known of a key. An attempt is one generation of it: a queue pair from the
// call that makes it to the one that destroys it. An entry has one that is current, pending or
// ready; when that ends it is retired, and goes its own way down: it waits for the call that is
// under way, is drained if a lane has it, then destroyed. So no answer of a driver, however late,
// finds an attempt that is not there, and none can touch the one that came after it.
//
// Each public function sets the time and acts (pairing_enter), then has everything looked at that
// time or the act may have made due (pairing_leave). Nothing calls back in between.
#pragma once

#include <control/pairing.h>
#include <lib/must.h>

#include <errno.h>
#include <string.h>

struct pairing_message;

// What was asked of a keeper or a lane and is not answered.
enum cold_call {
	COLD_NONE,
	COLD_CREATE,
	COLD_CONNECT,
	COLD_DRAIN,
	COLD_DESTROY,
};

struct attempt {
	struct attempt *next; // retired ones of the entry
	struct entry *entry;
	enum cold_call cold;
	uint64_t cold_ns;  // since when
	uint64_t again_ns; // when what was refused is asked for again
	bool stuck;
	bool exists; // there is a queue pair
	bool in_lane;
	bool announced; // the peer was told of it
	bool bound;	// `theirs` is known; from connect_asked on for good
	bool connect_asked, connected;
	bool peer_ready;
	uint32_t psn;
	uint64_t deadline_ns;
	uint64_t resend_ns, resend_gap_ns;
	uint64_t said_ns; // the last message about it
	struct pairing_end own, theirs;
	struct pairing_failure failure; // once retired
};

// What was told of a key.
struct report_pause {
	uint64_t next_ns, pause_ns; // when a reason is told again; 0: nothing was told
	uint32_t reasons;	    // told since the pause began, one bit for each
	uint32_t untold;	    // failures, since then
	enum pairing_state last;    // of absent, ready and failed
};

struct entry {
	struct entry *next;
	struct pairing_key key;
	struct peer *peer;
	struct attempt *current;
	struct attempt *retired;
	uint32_t retired_count;
	bool wanted;
	bool tombstone; // `failure` is served until next_try_ns
	bool deferred;	// waits for the rate, and was counted

	bool offered; // the peer has begun, and is not answered yet
	uint64_t offer_until_ns;
	struct pairing_end offer;
	// The newest of the peer's that was heard of, and whether it was said to be gone.
	uint64_t heard_start;
	uint32_t heard_generation;
	bool heard_gone;

	enum pairing_state state;
	uint64_t since_ns;
	uint32_t generation; // the last one
	uint32_t tries, broken;
	uint64_t next_try_ns;
	uint64_t begun_ns; // PAIRING_NEVER: never
	uint64_t ready_ns, took_ns, used_ns;
	uint32_t flow;	   // place of its next flow label
	uint64_t lasts_ns; // from ready on, before it is made anew
	struct pairing_failure failure;
	struct report_pause report_pause;
	struct pairing_waiter *waiters;
};

struct peer {
	struct peer *next;
	uint64_t id;
	uint64_t start; // 0: not known
	enum pairing_peer_state state;
	bool fault;	   // the last thing that happened with it went wrong
	uint64_t begun_ns; // PAIRING_NEVER: never
	uint32_t entries;
};

struct own_device {
	struct pairing_device facts;
	enum pairing_device_state state;
	char text[PAIRING_TEXT_MAX + 1]; // why it is not active
	uint32_t stuck;			 // attempts on it
};

struct pairing {
	struct pairing_config config;
	struct pairing_ops ops;
	uint64_t now_ns;
	uint64_t wake_ns; // asked for
	uint64_t random;
	uint64_t rate_ns; // when the next handshake is due at the configured rate
	uint32_t generation;
	bool stopping;
	struct own_device devices[PAIRING_DEVICES_MAX];
	uint32_t device_count;
	struct entry *entries, **entries_end;
	uint32_t entry_count;
	struct peer *peers;
	// A request under way, whose answer is returned and not called.
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
	REASON_TOMBSTONE = 0x01,     // served until the next try
	REASON_FAULT = 0x02,	     // of the peer or the way to it: slows down all that is for it
	REASON_NEWS_ONLY = 0x04,     // time does not mend it
	REASON_KEEPS_WAITERS = 0x08, // the next try may be at once
	REASON_SILENT = 0x10,	     // the peer knows, or cannot be told
};
uint32_t pairing_reason_flags(const struct pairing_failure *failure);
int pairing_reason_err(enum pairing_reason reason);
// err 0: what fits the reason.
__attribute__((format(printf, 4, 5))) void pairing_failure_set(
	struct pairing_failure *failure,
	enum pairing_reason reason,
	int err,
	const char *format,
	...
);

// entry.c
static inline uint64_t pairing_later(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}
struct entry *entry_find(const struct pairing *pairing, const struct pairing_key *key);
// *ret_entry is found or made. -ENOSPC, -ENOMEM, -EHOSTDOWN, -ENOENT (no such peer).
int entry_get(
	struct pairing *pairing,
	const struct pairing_key *key,
	bool wanted,
	struct entry **ret_entry
);
// Drops those of which nothing is left to know.
void entries_forget(struct pairing *pairing);
uint64_t entry_forget_ns(const struct entry *entry);
void entry_update(struct pairing *pairing, struct entry *entry);
bool entry_is_self(const struct pairing *pairing, const struct entry *entry);
struct peer *peer_find(const struct pairing *pairing, uint64_t id);
struct attempt *attempt_find(const struct pairing *pairing, uint32_t generation);

// attempt.c
static inline bool pairing_generation_valid(uint32_t generation) {
	return (generation & 0xffffff) != 0; // so much a lane looks at
}
void attempt_begin(struct pairing *pairing, struct entry *entry);
// Ends the current one, and what the entry was up to.
void attempt_fail(
	struct pairing *pairing, struct entry *entry, const struct pairing_failure *failure
);
// Connects or hands over, whatever is due.
void attempt_go_on(struct pairing *pairing, struct attempt *attempt);
void attempt_tick(struct pairing *pairing, struct attempt *attempt);
uint64_t attempt_next_ns(const struct pairing *pairing, const struct attempt *attempt);
void attempts_free(struct entry *entry);

// handshake.c
void attempt_say(struct pairing *pairing, struct attempt *attempt);
void attempt_say_gone(
	struct pairing *pairing, struct attempt *attempt, const struct pairing_failure *failure
);
void refuse(
	struct pairing *pairing,
	uint64_t peer,
	const char *device,
	const char *peer_device,
	const struct pairing_end *theirs,
	const struct pairing_failure *failure
);

// report_pause.c: whether ops.changed is called.
bool report_is_due(
	struct report_pause *report_pause,
	uint64_t now_ns,
	enum pairing_state state,
	enum pairing_reason reason
);

// pace.c
void pace_failed(struct pairing *pairing, struct entry *entry);
// When a handshake is wished for, and when it may begin; PAIRING_NEVER: not by time alone.
uint64_t pace_wish_ns(const struct pairing *pairing, const struct entry *entry);
uint64_t pace_due_ns(const struct pairing *pairing, const struct entry *entry);
void pace_begun(struct pairing *pairing, struct entry *entry);
void pace_news(struct pairing *pairing, struct entry *entry);
// Room for one more of its kind, made by closing another if need be.
bool pace_room(struct pairing *pairing, struct entry *entry);

// request.c
// Why none of the key can be made at present; REASON_NONE if one can.
enum pairing_reason entry_obstacle(const struct pairing *pairing, const struct entry *entry);
// In words, if there is one.
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
