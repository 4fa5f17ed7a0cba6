// SPDX-License-Identifier: BSD-3-Clause
// A world of software devices on memory wires, in virtual time, compared with a model of their
// results. It has one thread, and a seed always gives the same world.
//
// Each end of a pair has memory that only its peer reaches: a target area, words for atomics, and
// slots for receives. Requests are applied to the model in posting order, when their completion is
// seen. A request in flight when the pair broke may be executed or not; the model adopts whichever
// result it finds in memory.
#pragma once

#include <dataplane/soft.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 4
#define PAIRS_MAX 8
#define CQS_MAX 3
#define PIECES_MAX 16
#define WORKS_RING 256 // requests of one end; a power of two, much larger than any queue
#define RECEIVES_RING 64
#define INCOMING_RING 1024
#define SRQ_SLOTS 64
#define WORDS 8
#define BIG_BYTES 65536
#define NEVER UINT64_MAX

struct piece {
	uint32_t at, length; // offset and length in the memory of the device
	uint32_t lkey;
};

enum wrong {
	RIGHT,
	WRONG_RKEY,
	WRONG_RANGE,
	WRONG_RIGHTS, // a region without access for peers
	WRONG_PD,     // a region of another protection domain
	WRONG_LKEY,
	WRONG_LOCAL,	 // a read into a read-only region
	WRONG_ALIGNMENT, // a misaligned atomic
	WRONG_LENGTH,	 // a send longer than its receive
	WRONG_COUNT,
};

struct work {
	uint32_t id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	enum wrong wrong;
	uint32_t length;
	uint32_t immediate;
	uint32_t target; // offset in the memory of the peer's device
	uint64_t compare_add, swap;
	uint32_t piece_count;
	struct piece pieces[PIECES_MAX];
	// Arena tail after this request; the arena is free up to there when the request finished.
	uint64_t arena_end;
	bool failed; // finished with unknown effect
};

struct receive {
	uint32_t id; // 0: unused
	bool bad;
	uint32_t slot; // offset of its memory
	uint32_t piece_count;
	struct piece pieces[PIECES_MAX];
};

// A request sent to an end that consumes a receive; the ring keeps them in order.
struct incoming {
	uint32_t id; // id of the request at the sender
	enum ibv_wr_opcode opcode;
	uint32_t length, immediate;
	bool too_long;
};

struct end {
	struct model *model;
	struct pair *pair;
	struct end *peer;
	struct device *device;
	struct ibv_qp *qp;
	uint32_t send_cq, receive_cq;
	bool uses_srq;
	struct ibv_qp_cap cap;
	bool signal_all;
	uint8_t timeout, retries, rnr_retries;
	// Areas in the memory of the device.
	uint32_t arena, arena_bytes;
	uint32_t target, target_bytes;
	uint32_t words;
	uint32_t slots, slot_bytes, slot_count;
	// Requests in [kept, head) failed, those in [head, tail) are unfinished. The indexes never
	// wrap.
	uint32_t kept, head, tail;
	struct work works[WORKS_RING];
	uint64_t arena_head, arena_tail;
	uint32_t unsignalled; // number of latest requests in a row without IBV_SEND_SIGNALED
	uint32_t receive_head, receive_tail;
	struct receive receives[RECEIVES_RING];
	uint32_t incoming_head, incoming_tail;
	struct incoming incoming[INCOMING_RING];
	bool failed;	      // an error completion of a send request was seen
	bool receives_failed; // an error completion of a receive was seen
	bool bad_receives;    // bad receives were posted since the connection was made
	bool number_stays;    // the queue pair was reset, so old frames may reach its number
};

struct pair {
	struct end ends[2];
	uint32_t mtu;
	bool up;
	// Number of events that may make innocent requests fail.
	uint32_t spoils;
	uint64_t down_ns;
	uint64_t epoch;
};

struct device {
	struct model *model;
	char name[SOFT_NAME_MAX + 1];
	struct sock_addr address;
	struct ibv_context *context;
	struct ibv_pd *pd, *pd_other;
	struct ibv_mr *mr, *mr_again, *mr_local, *mr_read, *mr_other;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cqs[CQS_MAX];
	uint32_t cq_count;
	struct ibv_srq *srq;
	uint32_t srq_slots, srq_slot_bytes;
	struct receive srq_receives[SRQ_SLOTS];
	uint8_t *memory, *expected;
	uint32_t memory_bytes;
	uint32_t counter; // offset of a word to which all peers add
	// Additions that succeeded, and additions with unknown outcome.
	uint64_t counted, perhaps_counted;
};

struct model {
	uint64_t seed, random;
	uint32_t step, steps;
	bool trace;
	struct clock clock;
	struct soft_faults faults;
	char faults_text[160];
	bool heavy;		  // heavy loss, so that retries may be exhausted
	bool lives;		  // pairs are broken and connected again
	bool errs;		  // wrong requests are posted
	bool broke;		  // a pair was broken
	const char *faults_asked; // NULL: faults are random; else only these faults occur
	uint64_t quiet_ns;
	uint32_t device_count, pair_count;
	struct device devices[DEVICES_MAX];
	struct pair *pairs;
	uint32_t next_id;
	uint64_t posted, finished, received, reconnected, errors[32];
};

__attribute__((format(printf, 2, 3))) _Noreturn void
model_fail(const struct model *model, const char *format, ...);
__attribute__((format(printf, 2, 3))) void
model_trace(const struct model *model, const char *format, ...);
#define model_must(model, condition, ...)               \
	do {                                            \
		if (!(condition))                       \
			model_fail(model, __VA_ARGS__); \
	} while (0)

uint64_t draw(struct model *model);
uint32_t below(struct model *model, uint32_t bound);
bool one_in(struct model *model, uint32_t count);

// Functions of model_world.c.
void world_create(struct model *model);
void world_destroy(struct model *model);
struct end *end_random(struct model *model);
void end_create_qp(struct end *end);
// Run turns until nothing moves; return the number of turns with progress.
uint32_t turn_all(struct model *model);
bool advance(struct model *model); // advance to the next due time; false: nothing is ever due
void check_counters(struct model *model);

// Functions of model_connect.c.
void pair_connect(struct pair *pair);
void pair_spoil(struct pair *pair);
void pair_break(struct pair *pair); // break the pair in a random way
void pair_settle(struct pair *pair);
void async_drain(struct model *model);
void srqs_reclaim(struct model *model); // call only after all completions were polled

// Functions of model_post.c.
void post_work(struct end *end);
void post_receive(struct end *end);

// Functions of model_complete.c.
void poll_cq(struct device *device, uint32_t cq, uint32_t max);
void poll_all(struct model *model);
// Mark the remaining requests without completion as successful; they were not signalled.
void end_finish_unsignalled(struct end *end);
void end_forget(struct end *end); // call after the queue pair was reset or destroyed

// Functions of model_memory.c.
static inline struct work *work_at(struct end *end, uint32_t at) {
	return &end->works[at % WORKS_RING];
}
void paint(struct device *device, uint32_t at, uint32_t length, uint32_t id, uint32_t first);
void paint_expected(
	struct device *device, uint32_t at, uint32_t length, uint32_t id, uint32_t first
);
uint8_t byte_of(uint32_t id, uint32_t at);
bool is_write(enum ibv_wr_opcode opcode);
bool is_send(enum ibv_wr_opcode opcode);
bool is_atomic(enum ibv_wr_opcode opcode);
bool takes_receive(enum ibv_wr_opcode opcode);
// Check that the bytes of a write have arrived, except where later writes may have changed them.
void check_landed(struct end *end, uint32_t at);
void apply_write(struct end *end, const struct work *work);
void apply_read(struct end *end, uint32_t at);
void apply_atomic(struct end *end, const struct work *work);
void apply_receive(struct end *end, const struct receive *receive, const struct incoming *incoming);
// Accept memory of this end that a failed request may have changed.
void adopt_local(struct end *end, uint32_t at);
void adopt_receive(struct end *end, const struct receive *receive);
// Accept the target area, which failed writes may have changed.
void adopt_target(struct end *end);
void check_memory(struct model *model);
