// SPDX-License-Identifier: BSD-3-Clause
// A world of software devices on memory wires, on virtual time, beside a model of what must come of
// what is asked of them. One thread; one seed is one world, and always the same one.
//
// Each end of a pair has memory of its own that only its peer reaches: a target for writes and
// reads, words for atomics, and places for receives. Work is applied to the model in the order in
// which it was posted, when its completion is seen. What was under way when a pair went down may
// have been done or not; the memory has to show one of both, and the model takes it over.
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
#define WORKS_RING 256 // of an end; a power of two, much more than any queue
#define RECEIVES_RING 64
#define INCOMING_RING 1024
#define SRQ_SLOTS 64
#define WORDS 8
#define BIG_BYTES 65536
#define NEVER UINT64_MAX

struct piece {
	uint32_t at, length; // in the memory of the device
	uint32_t lkey;
};

enum wrong {
	RIGHT,
	WRONG_RKEY,
	WRONG_RANGE,
	WRONG_RIGHTS, // a region that peers may not reach
	WRONG_PD,     // a region of another protection domain
	WRONG_LKEY,
	WRONG_LOCAL,	 // a read into a region that is not to be written
	WRONG_ALIGNMENT, // of an atomic
	WRONG_LENGTH,	 // a send longer than what it meets
	WRONG_COUNT,
};

struct work {
	uint32_t id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	enum wrong wrong;
	uint32_t length;
	uint32_t immediate;
	uint32_t target; // in the memory of the peer's device
	uint64_t compare_add, swap;
	uint32_t piece_count;
	struct piece pieces[PIECES_MAX];
	uint64_t arena_end; // what is free again when it is finished
	bool failed;	    // finished, and nobody knows what it did
};

struct receive {
	uint32_t id; // 0: free
	bool bad;
	uint32_t slot; // where its memory begins
	uint32_t piece_count;
	struct piece pieces[PIECES_MAX];
};

// What was sent to an end and takes a receive, in order.
struct incoming {
	uint32_t id; // of the work over there
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
	// Places in the memory of the device.
	uint32_t arena, arena_bytes;
	uint32_t target, target_bytes;
	uint32_t words;
	uint32_t slots, slot_bytes, slot_count;
	// [kept, head) failed, [head, tail) are not finished; all run on.
	uint32_t kept, head, tail;
	struct work works[WORKS_RING];
	uint64_t arena_head, arena_tail;
	uint32_t unsignalled; // in a row, the latest ones
	uint32_t receive_head, receive_tail;
	struct receive receives[RECEIVES_RING];
	uint32_t incoming_head, incoming_tail;
	struct incoming incoming[INCOMING_RING];
	bool failed;	      // an error completion of the sending side was seen
	bool receives_failed; // and one of the receiving side
	bool bad_receives;    // some were posted since it was connected
	bool number_stays;    // it was reset: frames of the past may be for it
};

struct pair {
	struct end ends[2];
	uint32_t mtu;
	bool up;
	// What happened that lets more than the work itself fail.
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
	uint32_t counter;		   // a word that all peers add to
	uint64_t counted, perhaps_counted; // by those that succeeded; by those nobody knows of
};

struct model {
	uint64_t seed, random;
	uint32_t step, steps;
	bool trace;
	struct clock clock;
	struct soft_faults faults;
	char faults_text[160];
	bool heavy;		  // so many losses that retries may be used up
	bool lives;		  // pairs go down and come again
	bool errs;		  // wrong work is posted
	bool broke;		  // a pair went down
	const char *faults_asked; // NULL: drawn; else nothing but the wire goes wrong
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

// model_world.c
void world_create(struct model *model);
void world_destroy(struct model *model);
struct end *end_random(struct model *model);
void end_create_qp(struct end *end);
uint32_t turn_all(struct model *model); // until nothing moves; how many turns moved something
bool advance(struct model *model);	// to the next time at which something is due; false: never
void check_counters(struct model *model);

// model_connect.c
void pair_connect(struct pair *pair);
void pair_spoil(struct pair *pair);
void pair_break(struct pair *pair); // in one of many ways
void pair_settle(struct pair *pair);
void async_drain(struct model *model);
void srqs_reclaim(struct model *model); // all completions were seen

// model_post.c
void post_work(struct end *end);
void post_receive(struct end *end);

// model_complete.c
void poll_cq(struct device *device, uint32_t cq, uint32_t max);
void poll_all(struct model *model);
// Those that are left without a completion, which is theirs not to have, succeeded.
void end_finish_unsignalled(struct end *end);
void end_forget(struct end *end); // it was reset or destroyed

// model_memory.c
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
// The bytes of a write are where they belong, but for those that later ones may have changed.
void check_landed(struct end *end, uint32_t at);
void apply_write(struct end *end, const struct work *work);
void apply_read(struct end *end, uint32_t at);
void apply_atomic(struct end *end, const struct work *work);
void apply_receive(struct end *end, const struct receive *receive, const struct incoming *incoming);
// May have been read into, or not.
void adopt_local(struct end *end, uint32_t at);
void adopt_receive(struct end *end, const struct receive *receive);
// May have been written, or not.
void adopt_target(struct end *end);
void check_memory(struct model *model);
