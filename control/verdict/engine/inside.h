// SPDX-License-Identifier: BSD-3-Clause
// Internals shared by the parts of the verdict engine. Single-threaded; all memory comes from the
// caller's allocator.
#pragma once

#include "members.h"

#include <verdict/engine.h>

#include <stddef.h>
#include <string.h>

#define MS RAS_NS_PER_MS
#define SEC RAS_NS_PER_SEC

// Wait after two bad observations, so that observers with good reads can answer.
#define ANSWER_WAIT_NS (400 * MS)
// Longer wait, if all observers with bad reads are badly seen themselves. Then either they are at
// fault or the whole fabric is.
#define ANSWER_WAIT_DOUBTFUL_NS (2 * SEC)
// Validity of a good read against a later silence: a silent observer has missed reads for a second
// by then. Degraded and lossy are judged over windows, which take longer.
#define GOOD_READ_VALID_NS (750 * MS)
#define GOOD_WINDOW_VALID_NS (10 * SEC)
// A pulse that advanced for so long after the overlay got no answer outlives the overlay.
#define OUTLIVES_OVERLAY_NS (1500 * MS)
// A paused agent's pulse advances before its beats arrive. A node that only lost its overlay is
// read for longer than this.
#define RESUME_WAIT_NS (2 * SEC)
// Reads this long before a death count for it: the overlay needs at least three times as long to
// declare a silent node dead.
#define READS_BEFORE_DEATH_NS (2 * SEC)
// An agent that the overlay holds alive this long after its pulse fell silent is alive.
#define ALIVE_PROOF_NS (12 * SEC)
// A lossy node is sometimes silent to observers, which then cannot see the loss. For this long
// after it was lossy but still read, silence is attributed to loss.
#define LOSSY_RECENT_NS (15 * SEC)
// Nodes that fall silent within this window count as one event.
#define BRAKE_WINDOW_NS (60 * SEC)
// Bad evidence that nobody repeated for this many times `stale_ns` is forgotten.
#define STALE_FORGET_TIMES 10
// Own pauses keep evidence fresh for at most this many times `stale_ns`.
#define PAUSES_STALE_TIMES 3

struct evidence {
	struct observation observation;
	uint32_t observer;	      // row of the observer, MEMBERS_NONE: no member
	uint64_t seen_ns;	      // latest read of this kind
	uint64_t since_ns;	      // first read of this kind
	uint64_t first_ns;	      // first read over this path
	uint64_t unanswered_since_ns; // since when this observer's overlay link is unanswered
};

// Statement of a node. A withdrawn statement is kept as healthy until it expires, since a lossy
// link may deliver an older notice seconds later.
struct said {
	struct statement statement;
	uint64_t said_ns;
};

static inline bool said_is_in_force(const struct said *said) {
	return said->statement.verdict != VERDICT_HEALTHY;
}

// Result of one judgement, before hysteresis. Rebuilt for each judgement.
struct finding {
	enum verdict verdict;
	const char *reason;
	// Matching peer state. An alive agent that observers cannot reach is suspect.
	enum ras_state state;
	bool both_planes;
	bool sole;	       // one agent alone declared the node dead
	bool by_silence;       // counted by the brake
	bool is_fading;	       // two observers find the node silent, even if the verdict waits
	bool is_own_statement; // the subject states it of itself; no observer is needed
	bool own_doubt; // unknown for a reason of this agent, which proves nothing about the node
	// Set by judge_unreachable(), which requires more than silence. So the brake does not
	// replace the finding by unknown.
	bool brake_free;
	uint32_t bad;		 // observers with bad reads
	uint32_t bad_host_count; // the same, counted once per host
	uint32_t good;		 // observers that read an advancing pulse
	uint32_t reader_count;	 // observers that read the node or tried to
	uint32_t overlay;	 // overlay observers of its silence, or of refused connections
	uint64_t observers[VERDICT_OBSERVERS_MAX];
	uint32_t observer_count;
	uint64_t looked_ns;
	uint32_t walked; // subjects visited for this judgement
	// Source of figures; valid while the evidence is unchanged.
	const struct observation *example;
	const struct statement *statement;
};

struct held {
	enum verdict verdict;
	enum verdict_confidence confidence;
	enum ras_state state;
	bool both_planes;
	bool sole;	       // one agent alone declared the node dead
	bool drainable;	       // more than one observer supports the verdict
	bool is_own_statement; // the subject states it of itself
	bool ripe;	       // held long enough to see whether more nodes fall
	uint64_t since_ns;
	uint64_t told_ns; // time of the change to this verdict
	uint64_t looked_ns;
	uint32_t lost_permille; // largest loss of packets or probes so far
	uint32_t observer_count;
	uint64_t observers[VERDICT_OBSERVERS_MAX];
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// unstable.c: recent changes of the verdict.
#define FLAP_CHANGES_MAX 4 // changes within a minute that make a node unstable
struct flap_history {
	uint64_t at_ns[FLAP_CHANGES_MAX]; // ring of the latest changes
	uint32_t count;
	enum verdict word;   // last verdict other than unknown
	enum verdict before; // the verdict before `word`
	// This agent's own doubt came after `word`.
	bool own_doubt;
	bool unstable;
	uint64_t since_ns;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// State of one member. Exists only while there is evidence or history.
struct subject {
	uint32_t peer;	// row of the member
	uint32_t place; // index in engine->subjects

	// From the overlay.
	enum verdict_reach reach; // by this agent's own link
	uint64_t reach_ns;	  // time of the last change of `reach`
	uint64_t state_ns;	  // time of the last change of state
	uint64_t doubt_began_ns;  // when the overlay last began to doubt the node
	uint64_t back_ns;	  // when the overlay last found the node alive again
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];

	struct evidence *observations;
	uint32_t observation_count, observation_capacity;
	struct said *said;
	uint32_t said_count, said_capacity;
	uint32_t bad_reports; // bad observations that this node reports about others
	uint32_t tells[OBSERVATION_KIND_COUNT]; // the same by kind
	// Silent ones among the bad ones, whose own device reads nothing at all.
	uint32_t blind_reports;

	struct held held;
	struct flap_history flap_history;
	// Last reported advice (enum verdict_advice), without maintenance.
	uint8_t told_advice;
	uint64_t better_since_ns; // since when the evidence is better than `held`, or RAS_NEVER
	uint8_t blame;		  // enum fabric for which evidence is being gathered
	uint64_t blame_since_ns;  // when `blame` was set
	// When several observers last lost packets to the node while some still read it; 0: never.
	uint64_t lossy_but_read_ns;
	uint64_t stale_ns;	   // since when its bad evidence is stale, or RAS_NEVER
	uint8_t stale;		   // STALE_ flags: kinds of the stale evidence
	bool missed;		   // heard.c: the overlay misses the node, or is about to
	bool fading;		   // found silent, but not doubted by the overlay yet
	bool silent;		   // bad by silence
	bool counted;		   // counted by the brake
	bool braked;		   // held by the brake
	uint64_t silent_ns;	   // start of the silence
	uint64_t next_ns;	   // next judgement
	uint32_t due_place;	   // index in the heap, plus one; 0: not queued
	uint64_t ticked;	   // number of the tick that last judged it
	struct verdict_past *past; // ring of VERDICT_HISTORY_MAX
	uint32_t past_count, past_next;
};

struct verdict_engine {
	struct verdict_config config;
	struct ras_memory memory;
	struct verdict_ops ops;
	void *ops_ctx;
	struct members members;
	struct subject **subjects;
	uint32_t subject_count, subject_capacity;
	struct verdict_self_update self;
	uint32_t silent_recent;	  // subjects that the brake counts
	uint32_t fading;	  // subjects with `fading` set
	uint64_t last_missing_ns; // when a member was last found missing
	bool braking;
	bool turned;		    // the brake changed: all subjects must be judged anew
	uint32_t nonmember_reports; // observations whose observer is no member
	struct subject **due;	    // heap by next_ns, with room for all subjects
	uint32_t due_count, due_capacity;
	uint64_t ticks;
	uint32_t swept;		      // next index of the sweep for idle subjects
	uint64_t swept_ns;	      // when the last sweep ran
	uint64_t next_ns;	      // requested wake-up
	struct verdict_counts counts; // counters of inputs and changes
};

// Reason of a node at whose address another agent answers.
#define ADDRESS_CONFLICT "AddressConflict"

static inline const struct member_row *
subject_peer(const struct verdict_engine *engine, const struct subject *subject) {
	return &engine->members.rows[subject->peer];
}

// Return the subject of an id; NULL: the id is unknown, or there is no evidence about it.
static inline struct subject *subject_find(const struct verdict_engine *engine, uint64_t id) {
	uint32_t row = members_find(&engine->members, id);

	return row != MEMBERS_NONE ? engine->members.rows[row].subject : NULL;
}

// Return whether another agent answers at the node's address. Such a node is never drained, and
// does not count as a node out of service.
static inline bool subject_is_address_conflict(const struct subject *subject) {
	return strcmp(subject->held.reason, ADDRESS_CONFLICT) == 0;
}

// due.c: the queue of judgements. Call due_queue_update() after each change of next_ns.
void due_queue_update(struct verdict_engine *engine, struct subject *subject);
void due_queue_remove(struct verdict_engine *engine, struct subject *subject);

// subject.c: the evidence of one subject.

// Return the subject of a member, created if needed. Returns 0 or -ENOMEM.
int subject_get_or_create(
	struct verdict_engine *engine, uint32_t peer, struct subject **ret_subject
);
void subject_remove(struct verdict_engine *engine, struct subject *subject);
// Kinds of evidence.
#define STALE_OBSERVATIONS 0x1
#define STALE_STATEMENTS 0x2
// Drop stale evidence. Returns the kinds that contained something bad.
uint8_t subject_expire(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns);
// Clear the stale mark of these kinds, since they were repeated or withdrawn.
void subject_clear_stale(struct subject *subject, uint8_t kinds);
// Return when the next evidence becomes stale, or RAS_NEVER.
uint64_t subject_next_expiry_ns(const struct verdict_engine *engine, const struct subject *subject);
void subject_clear(struct verdict_engine *engine, struct subject *subject);
// Drop what was seen while the node did not run. Called when the node is alive again.
void subject_handle_return(struct verdict_engine *engine, struct subject *subject);
// Drop the explanation of a death that was refuted, this agent's own death included. The same
// evidence ends when this agent itself was paused.
void subject_handle_refuted_death(struct verdict_engine *engine, struct subject *subject);
bool subject_has_observer(const struct subject *subject, uint64_t observer);
// Drop all observations that this observer made of the subject.
void subject_drop_observer(
	struct verdict_engine *engine, struct subject *subject, uint64_t observer
);
// Return whether nothing is left that is worth its memory.
bool subject_is_idle(const struct verdict_engine *engine, const struct subject *subject);
// Add or update an observation or a statement. Returns 0, also if a repetition was not stored.
// -ESTALE: a newer one is known. -ENOSPC: the table is full. -ENOMEM: out of memory.
int subject_add_observation(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct observation *observation,
	uint64_t seen_ns
);
int subject_add_statement(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct statement *statement,
	uint64_t said_ns
);
static inline bool observation_is_bad(enum observation_kind kind) {
	return kind == OBSERVATION_STANDING || kind == OBSERVATION_DEGRADED ||
	       kind == OBSERVATION_LOSSY || kind == OBSERVATION_SILENT;
}
// Return whether a good read proves nothing about loss from `bytes` on: such sizes failed there
// too, or were not tried.
static inline bool observation_is_blind_to_loss(
	const struct observation *look, enum observation_kind kind, uint32_t bytes
) {
	return kind == OBSERVATION_LOSSY && look->lost_bytes != 0 && look->lost_bytes <= bytes;
}

// observer_index.c: the subjects of each observer.

// Reserve room for `more` subjects in an observer's list; MEMBERS_NONE is allowed. Returns 0, or
// -ENOMEM with nothing changed.
int observer_index_reserve(struct verdict_engine *engine, uint32_t observer, uint32_t more);
// Record that an observation of this observer is about to be added to the subject. Room must be
// reserved.
void observer_index_add(
	struct verdict_engine *engine, const struct subject *subject, uint64_t observer
);
// Record that an observation of this observer was removed from the subject.
void observer_index_drop(
	struct verdict_engine *engine, const struct subject *subject, uint64_t observer
);
// Index the observations that a new member made before it was one. Returns 0, or -ENOMEM with
// nothing changed.
int observer_index_adopt(struct verdict_engine *engine, uint32_t observer);

// triangulate.c and its parts: combined view of all observers on the data plane of one node.
enum fabric {
	FABRIC_UNSEEN,	 // no observer reads the node
	FABRIC_READABLE, // some observer reads the node well, and nothing is to blame
	FABRIC_SLOW,
	FABRIC_LOSSY,
	FABRIC_PORT,	 // one of its ports is silent, another is read
	FABRIC_PEERS,	 // the node reads no peer, while others read these peers
	FABRIC_STANDING, // read, but its counter does not advance
	FABRIC_SILENT,
};

struct fabric_look {
	enum fabric fabric;
	uint32_t bad;		 // distinct observers that report this state
	uint32_t bad_host_count; // the same, one per host if there are several hosts
	uint32_t reader_count;	 // distinct observers in all
	uint64_t observers[VERDICT_OBSERVERS_MAX];
	uint32_t observer_count;
	bool in_process; // only the agent itself responds there
	bool alone;	 // based on its own reads alone
	// Kind of the observations counted, and their port; NULL: all ports.
	enum observation_kind kind;
	const char *port;
	uint64_t bad_ns;    // since when the state is bad
	uint64_t good_ns;   // latest read with an advance, 0: none
	uint32_t good;	    // observers of an advance after `good_after_ns`
	uint64_t newest_ns; // latest observation of all
	uint32_t walked;    // other subjects visited to find the state
	const struct observation *example;
};

void triangulate(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
);
// Return whether too few observers remain without those that are badly seen themselves. Expensive:
// each observer is triangulated as well.
bool triangulate_is_doubtful(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look
);
// Triangulate a lossy node, where the silence that few observers report is attributed to loss.
void triangulate_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
);
// Return whether an observation may be used: its observer is able to read, and no fault of its own
// explains it.
bool triangulate_counts(const struct verdict_engine *engine, const struct evidence *evidence);
// Attribute one bad path, and name what is to blame.
enum path_blame triangulate_path(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence,
	uint64_t *ret_node,
	const char **ret_what
);
// Return how many otherwise unsuspected nodes this one reports silent, and since when the latest.
uint32_t triangulate_accused_count(
	const struct verdict_engine *engine, uint64_t observer, uint64_t *ret_since_ns
);
// Return how many observers must agree before a node is blamed.
uint32_t
triangulate_observers_needed(const struct verdict_engine *engine, const struct subject *subject);

// judge.c: the decision table from evidence to a finding.
void judge(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *ret_finding
);
// Return whether a verdict is possible in a peer state.
bool judge_verdict_fits_state(enum verdict verdict, enum ras_state state);
enum verdict_advice judge_advice(const struct held *held, bool maint);

// heard.c
struct heard {
	bool peer;  // this agent's own link to the node is not quiet, or there is none
	bool alone; // the node is not one of many that fall silent now
	bool most;  // `alone`, and most other nodes are heard
	bool named; // the node was already judged down before, so nothing is waited for
	bool now;   // its agent was heard after its pulse fell silent
};
// Update the fading state after a judgement. `silent`: two observers cannot read it, or two get no
// answer from its host.
void fading_update(
	struct verdict_engine *engine, struct subject *subject, bool silent, uint64_t now_ns
);
// Find out whether this agent hears the node and most others. Schedules a new judgement for when
// that may change.
void heard_evaluate(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct heard *ret_heard
);

// Return whether many other nodes fell silent a moment ago. Schedules a new judgement for when that
// is over.
bool fading_many_recently(
	const struct verdict_engine *engine, struct subject *subject, uint64_t now_ns
);

// hysteresis.c: hysteresis, brake, history.
void hysteresis_apply(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns);
// Judge all subjects anew, since the brake changed or this agent was paused.
void hysteresis_apply_all(struct verdict_engine *engine, uint64_t now_ns);
// Return how many nodes the overlay misses. Dead ones stay known for days, so only recently silent
// ones among them count.
uint32_t brake_missing_node_count(const struct verdict_engine *engine);
// Return whether most nodes are heard and too few are missed for a brake. If the brake is on, it is
// for lack of votes.
bool brake_missed_is_under_limit(const struct verdict_engine *engine);
// Return whether less than the view divided by `share` is missed, and at most as many as the brake
// allows.
bool brake_missed_is_below_share(const struct verdict_engine *engine, uint64_t share);
// Return whether less than a third of the view is missed, or only one node. With three agents, two
// can know that but have no majority. The cluster-wide census counts, too: an agent with few links
// across a partition misses few nodes itself.
bool brake_missed_is_small_share(const struct verdict_engine *engine);
// Recompute the brake after a change of its inputs.
void brake_update(struct verdict_engine *engine);
// Schedule a judgement at this time at the latest.
static inline void hold_until(struct subject *subject, uint64_t at_ns) {
	if (at_ns < subject->next_ns)
		subject->next_ns = at_ns;
}

// verdict_text.c: reasons and sentences.
void held_write_evidence(const struct finding *finding, struct held *held);
const char *verdict_text_meaning(const char *reason); // "" if the reason is unknown

// look.c
void verdict_view_fill(
	const struct verdict_engine *engine, uint32_t peer, struct verdict_view *ret_view
);
