// SPDX-License-Identifier: BSD-3-Clause
// Judges each communicator of a job from one snapshot of all of them.
//
// Pure, like the protocol core: the same snapshot gives the same findings. Times come from the
// ranks' reports: how long their counters have been unchanged, and what their processes did
// meanwhile. Each communicator is judged by its own sequence of collective operations. Totals of a
// process would hide in which communicator a rank is missing.
//
// Unknown facts are never guessed. A rank that reports launched operations only is never blamed for
// its device. If all ranks have launched the operation, but not all report started and completed
// operations, the cause is unknown. The table in docs/jobs.md lists the causes that each level of
// information can name.
//
// `waiting` needs `confirm_ns` without a move of any rank, and an operation that some rank waits
// in. `stuck` needs a proof in addition, or time. Proofs exclude a healthy wait: the late process
// is dead, stopped or frozen, the late rank has left, a path is down, or the order of operations
// can never resolve. A process that uses no processor time is no proof: it may write to a slow
// pipe. The time is `stuck_ns` if all ranks have launched the operation. It is `busy_ns` if some
// rank has not, is not seen, or only posted the operation. A rank held by a debugger is
// never stuck, and neither is one that is busy on purpose, unless ranks died or run different
// operations. Neither is the root of a broadcast that sleeps: an idle server looks like that.
#pragma once

#include <ras/comms.h>

#include <stdbool.h>
#include <stdint.h>

enum jobs_cause {
	JOBS_CAUSE_NONE,
	JOBS_CAUSE_DEAD_MEMBER,	   // a process that others wait for is gone
	JOBS_CAUSE_STOPPED_MEMBER, // a process is stopped inside the operation
	JOBS_CAUSE_MISSING_ENTER,  // a rank has not launched the operation that others wait in
	// the rank has launched the operation, but its device has not started it
	JOBS_CAUSE_DEVICE_BEHIND,
	JOBS_CAUSE_TRANSPORT, // all ranks have started the operation, and data does not arrive
	JOBS_CAUSE_MISMATCH,  // ranks run different operations at one position of the sequence
	JOBS_CAUSE_ORDERING,  // ranks wait for each other in different communicators
	// all ranks have started the same operation, and none completes it
	JOBS_CAUSE_SYMMETRIC,
	// the communicator moves, and one rank is usually the last to arrive
	JOBS_CAUSE_STRAGGLER,
	JOBS_CAUSE_UNKNOWN,
	JOBS_CAUSE_CALLS, // ranks wait for each other in calls between two ranks
	// a rank has posted the operation that others wait in, and does not wait for it itself
	JOBS_CAUSE_MISSING_WAIT,
	JOBS_CAUSE_COUNT,
};

const char *jobs_cause_name(enum jobs_cause cause); // "missing-enter"

enum jobs_grade {
	JOBS_QUIET, // no rank moves, and none is known to wait
	JOBS_MOVING,
	JOBS_ENDED, // finalized, aborted, or all processes are gone
	JOBS_WAITING,
	JOBS_STUCK,
};

const char *jobs_grade_name(enum jobs_grade grade);

struct jobs_limits {
	uint64_t confirm_ns; // 0: 10 s
	uint64_t stuck_ns;   // 0: 10 minutes; all ranks have launched the operation
	uint64_t busy_ns;    // 0: 1 hour; a late rank may be healthy
};

// A bad path between two nodes, described by the module that measures paths.
#define JOBS_PAIR_WORDS 192
struct jobs_pair {
	uint64_t node, peer;
	uint64_t median_ns, baseline_ns; // 0: unknown
	uint32_t lost_permille;
	bool silent;		     // no probe is answered
	char words[JOBS_PAIR_WORDS]; // printable: device, timing, port counters
};

#define JOBS_NAMED_MAX 8 // ranks of one communicator named in a finding
#define JOBS_CHAIN_MAX 8 // communicators of one cycle
#define JOBS_NOBODY UINT32_MAX

// A communicator in a chain of waits, and the rank that it waits for.
struct jobs_wait_for {
	uint32_t comm;	// index in the snapshot
	uint32_t place; // index of the rank that has not arrived there
	uint64_t seq;	// operation that the others wait in; 0: unknown
};

struct jobs_mismatch {
	uint64_t seq; // first operation that differs; 0: no mismatch known
	// indices of one rank that runs the most common operation, and of one that runs another
	uint32_t most, other;
	uint32_t other_count; // ranks that run another operation than most
	uint32_t alike_count; // ranks that run the operation of `other`; 0: proven by counts
	// proven by counts: `other` no longer reports the operation, and `seq` may be too large
	bool by_counts;
};

struct jobs_straggler {
	uint32_t place;	     // index of the rank
	uint32_t last, of;   // times it came last, and number of operations judged
	uint64_t late_us;    // median lateness against the median rank, microseconds
	bool seen_by_median; // operations were too fast to be compared one by one
};

struct jobs_finding {
	enum jobs_grade grade;
	enum jobs_cause cause;
	uint8_t knows;	    // RAS_RANK_KNOWS_* bits that all ranks report
	uint64_t seq;	    // number of the operation that ranks wait in; 0: none
	uint64_t waited_ms; // time without a move of any rank
	uint32_t waiting;   // ranks that wait in the operation
	uint32_t completed; // ranks that completed it
	uint32_t posted;    // with seq 0: ranks that posted operations and do not wait for them
	uint32_t alive;	    // ranks whose process is alive
	uint32_t absent;    // ranks that no agent reports
	// Late or dead ranks: indices of the first of them in the communicator's ranks. Each rank
	// of a dead node has JOBS_NOBODY, after all others.
	uint32_t late_count;
	uint32_t late[JOBS_NAMED_MAX];
	uint32_t left;		    // late ranks that finalized, and therefore never arrive
	bool death_times_are_known; // the end of each dead rank has a known time
	bool held;		    // a late rank is held by a debugger
	bool busy;		    // a late rank works, or moves in another communicator
	bool halted;		    // the process of a late rank is stopped or frozen
	bool blocked;	     // no late rank can leave the call between two ranks that it is inside
	bool none_started;   // all have launched the operation, and no device has started it
	uint64_t open_count; // with none_started: unfinished earlier operations of late[0]
	bool serves; // the late rank is the sleeping root of the broadcast that others wait in
	struct jobs_mismatch mismatch;
	// a communicator in which the only late rank's device waits, or JOBS_NOBODY
	uint32_t device_waits;
	uint32_t via; // the communicator in which the first late rank itself waits, or JOBS_NOBODY
	uint32_t chain_count;
	struct jobs_wait_for chain[JOBS_CHAIN_MAX]; // cycle of an ordering deadlock
	const struct jobs_pair *pair;		    // worst path between its nodes, or NULL
	struct jobs_straggler straggler;
};

struct jobs_wait_history;

struct jobs_snapshot {
	const struct jobs_limits *limits; // NULL: default limits
	const struct ras_merged_comm *comms;
	uint32_t comm_count;
	const struct jobs_pair *pairs;
	uint32_t pair_count;
	// Return whether a node is dead on both planes. NULL: no node is known to be dead.
	bool (*is_dead)(void *ctx, uint64_t node);
	void *ctx;
	const struct jobs_wait_history *book; // NULL: stragglers are not looked for
	const struct ras_memory *memory;
};

// Judge each communicator of a snapshot in steps, for a thread that must stay responsive. The
// snapshot and all it points to, the wait history included, must outlive the judging. Returns 0 or
// -ENOMEM.
struct jobs_judging;
int jobs_judging_create(
	const struct jobs_snapshot *look,
	struct jobs_finding *ret_findings,
	struct jobs_judging **ret_judging
);
// Judge whole communicators with about `ranks` ranks in total. Returns true once all are judged.
// JOBS_STEP_RANKS takes some milliseconds, for an event loop.
#define JOBS_STEP_RANKS 4096u
bool jobs_judging_step(struct jobs_judging *judging, uint32_t ranks);
struct jobs_judging *jobs_judging_destroy(struct jobs_judging *judging);

// Wait history: which rank arrives last in the communicators seen most recently. The rank that
// waits least arrives last.
int jobs_wait_history_create(
	const struct ras_memory *memory, struct jobs_wait_history **ret_book
); // -ENOMEM
struct jobs_wait_history *jobs_wait_history_destroy(struct jobs_wait_history *book);
// Add the operations of a communicator that earlier snapshots did not show.
void jobs_wait_history_add(struct jobs_wait_history *book, const struct ras_merged_comm *comm);

// Return how a rank ended: "unregistered", "finalized", "closed", "exited" or "aborted"; NULL if it
// has not ended.
const char *jobs_rank_end(const struct ras_comm_rank *rank);

// Size including the terminator, enough for a cycle of JOBS_CHAIN_MAX. Longer text is truncated.
#define JOBS_SENTENCE_BYTES 768
// Describe a finding in one sentence: "rank 3 (pid 17 on n2) has not launched operation 51, ...".
// The callback `node_name` writes the name of a node into at most `size` bytes.
struct jobs_name_resolver {
	void (*node_name)(void *ctx, uint64_t node, char *text, uint32_t size);
	void *ctx;
};
void jobs_describe_finding(
	const struct jobs_snapshot *look,
	uint32_t comm,
	const struct jobs_finding *finding,
	const struct jobs_name_resolver *words,
	char ret_text[static JOBS_SENTENCE_BYTES]
);
