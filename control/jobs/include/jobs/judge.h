// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with each communicator, from one look at all of them.
//
// Pure, as the protocol core: same look, same findings. Time is in what ranks tell: how long their
// counters have stood, and what their processes did meanwhile. The key is the communicator's own
// sequence of collective operations: totals of a process hide who is missing where.
//
// What is not known is not said. A rank that tells launched operations only is never blamed for its
// device; where nobody tells what has started, all that has been launched and not completed is of
// unknown cause. docs/jobs.md has the table of what each level of information can name.
//
// `waiting` needs `confirm_ns` without a move of any rank and an operation that somebody waits in.
// `stuck` needs a proof beside it (the process that is waited for does not work, a path is down,
// the order of operations can never be resolved), or time: `stuck_ns` where nobody knows whether
// the one who is waited for works, `busy_ns` where it does. A rank held by a debugger is never
// stuck, nor is the root of a broadcast that sleeps: an idle server looks so.
#pragma once

#include <ras/comms.h>

#include <stdbool.h>
#include <stdint.h>

enum jobs_cause {
	JOBS_CAUSE_NONE,
	JOBS_CAUSE_DEAD_MEMBER,	   // a process is gone that others wait for
	JOBS_CAUSE_STOPPED_MEMBER, // a process is stopped inside the operation
	JOBS_CAUSE_MISSING_ENTER,  // a rank has not launched what others wait in
	JOBS_CAUSE_DEVICE_BEHIND,  // it has launched it, and its device has not started it
	JOBS_CAUSE_TRANSPORT,	   // all have started it, and data does not arrive
	JOBS_CAUSE_MISMATCH,	   // ranks run different operations at one place of the sequence
	JOBS_CAUSE_ORDERING,	   // ranks wait for each other in different communicators
	JOBS_CAUSE_SYMMETRIC,	   // all are equal, all have started, and none completes
	JOBS_CAUSE_STRAGGLER,	   // all moves, and one rank is always the last to arrive
	JOBS_CAUSE_UNKNOWN,
	JOBS_CAUSE_COUNT,
};

const char *jobs_cause_name(enum jobs_cause cause); // "missing-enter"

enum jobs_grade {
	JOBS_QUIET, // nothing that is known to wait
	JOBS_MOVING,
	JOBS_ENDED, // finalized, aborted, or all processes are gone
	JOBS_WAITING,
	JOBS_STUCK,
};

const char *jobs_grade_name(enum jobs_grade grade);

struct jobs_limits {
	uint64_t confirm_ns; // 0: 10 s
	uint64_t stuck_ns;   // 0: 10 minutes
	uint64_t busy_ns;    // 0: 1 hour
};

// A path between two nodes that is bad, in the words of whoever measures paths.
#define JOBS_PAIR_WORDS 192
struct jobs_pair {
	uint64_t node, peer;
	uint64_t median_ns, baseline_ns; // 0 not known
	uint32_t lost_permille;
	bool silent;		     // nothing answers on it
	char words[JOBS_PAIR_WORDS]; // device, timing, port counters
};

#define JOBS_NAMED_MAX 8 // ranks of one communicator that are named
#define JOBS_CHAIN_MAX 8 // communicators of one cycle
#define JOBS_NOBODY UINT32_MAX

// A rank that another one waits for, and where.
struct jobs_wait_for {
	uint32_t comm; // place in the look
	uint32_t rank; // that has not come there
};

struct jobs_mismatch {
	uint64_t seq;	      // the first operation that differs; 0: none is known to
	uint32_t most, other; // places of a rank of either side
	uint32_t other_count; // ranks that run another one than most
};

struct jobs_straggler {
	uint32_t place;	     // of the rank
	uint32_t last, of;   // how often it came last, of so many operations
	uint64_t late_us;    // median, behind the median rank
	bool seen_by_median; // operations were too fast to be compared one by one
};

struct jobs_finding {
	enum jobs_grade grade;
	enum jobs_cause cause;
	uint8_t knows;	    // RAS_RANK_KNOWS_* that all ranks tell
	uint64_t seq;	    // of the operation that is waited in; 0 none
	uint64_t waited_ms; // in which no rank moved
	uint32_t waiting;   // ranks that wait in it
	uint32_t alive;	    // ranks whose process lives
	uint32_t absent;    // ranks that no agent holds
	// Those who are waited for: places in the communicator's ranks, the first of them; then
	// JOBS_NOBODY for each whose node is dead.
	uint32_t late_count;
	uint32_t late[JOBS_NAMED_MAX];
	uint32_t left; // of these: finalized, and will not come
	bool dated;    // of the dead: each of these ended at a time that is known
	bool held;     // one of these is held by a debugger
	bool busy;     // at least one of them works, or moves elsewhere
	bool unseen;   // whether they work is not known
	bool serves;   // it is the root of the broadcast that others wait in, and sleeps
	struct jobs_mismatch mismatch;
	uint32_t device_waits; // a communicator where the device of the only one stands, or NOBODY
	uint32_t via; // the communicator where the first of these waits itself, or JOBS_NOBODY
	uint32_t chain_count;
	struct jobs_wait_for chain[JOBS_CHAIN_MAX]; // of an ordering deadlock
	const struct jobs_pair *pair;		    // the worst between its nodes, or NULL
	struct jobs_straggler straggler;
};

struct jobs_book;

struct jobs_look {
	const struct jobs_limits *limits; // NULL: the defaults
	const struct ras_merged_comm *comms;
	uint32_t comm_count;
	const struct jobs_pair *pairs;
	uint32_t pair_count;
	// A node that is dead by both planes; NULL: nobody knows of any.
	bool (*is_dead)(void *ctx, uint64_t node);
	void *ctx;
	const struct jobs_book *book; // NULL: no stragglers are looked for
	const struct ras_memory *memory;
};

// One finding for each communicator of the look, in steps, for a thread that has other things to
// do. The look and all it points to, the book as well, stay until the end. -ENOMEM.
struct jobs_judging;
int jobs_judging_create(
	const struct jobs_look *look,
	struct jobs_finding *ret_findings,
	struct jobs_judging **ret_judging
);
// Looks at about so many ranks, of whole communicators. true: all is judged. For an event loop:
// some milliseconds.
#define JOBS_STEP_RANKS 4096u
bool jobs_judging_step(struct jobs_judging *judging, uint32_t ranks);
struct jobs_judging *jobs_judging_destroy(struct jobs_judging *judging);

// Who arrives last, look by look: the one that waits least. A book of the communicators seen last.
int jobs_book_create(const struct ras_memory *memory, struct jobs_book **ret_book); // -ENOMEM
struct jobs_book *jobs_book_destroy(struct jobs_book *book);
// Takes down what a look at a communicator shows that earlier ones did not.
void jobs_book_note(struct jobs_book *book, const struct ras_merged_comm *comm);

// Size with the terminator: for the longest, a cycle of JOBS_CHAIN_MAX. What is longer is cut.
#define JOBS_SENTENCE_BYTES 768
// The finding in one sentence: "rank 3 (pid 17 on n2) has not launched operation 51, ...".
// `node_name` writes the name of a node into at most `size` bytes.
struct jobs_words {
	void (*node_name)(void *ctx, uint64_t node, char *text, uint32_t size);
	void *ctx;
};
void jobs_say(
	const struct jobs_look *look,
	uint32_t comm,
	const struct jobs_finding *finding,
	const struct jobs_words *words,
	char ret_text[static JOBS_SENTENCE_BYTES]
);
