// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the engine share. One thread; all memory is of the caller's allocator.
#pragma once

#include "members.h"

#include <verdict/engine.h>

#include <stddef.h>

#define MS RAS_NS_PER_MS
#define SEC RAS_NS_PER_SEC

// Two who see badly do not suffice at once: those who see well are asked by that, and get so long.
#define GATHER_NS (400 * MS)
// And so long if all of them are seen badly themselves: then they are what is bad, or everything
// is.
#define GATHER_DOUBT_NS (2 * SEC)
// A read that was answered so long before others turned silent speaks against them nevertheless:
// who turned silent had missed for a second by then. And what is judged over windows takes longer.
#define COVER_NS (750 * MS)
#define COVER_WINDOWS_NS (10 * SEC)
// A pulse that was seen to advance so long after the overlay went unanswered has outlived it.
#define OUTLIVES_NS (1500 * MS)
// The pulse of one that was stopped goes on before its beats are heard: one that is cut off from
// the overlay alone is read for longer.
#define WOKEN_NS (2 * SEC)
// The overlay takes thrice as long at least to hold a silent one for dead.
#define LAST_READ_NS (2 * SEC)
// An agent that the overlay still holds alive so long after its pulse fell silent is alive.
#define ALIVE_PROOF_NS (12 * SEC)
// A node that loses packets is silent to some now and then, who then cannot tell that it loses: so
// long after it was lossy and still read by some, silence is of its losses.
#define LEAKY_NS (15 * SEC)
// Silence of so many that it began within this is one event.
#define BRAKE_WINDOW_NS (60 * SEC)
// Nobody repeated what was bad for so many times `stale`: it is not bad any more.
#define STALE_FORGET_TIMES 10
// By how many times `stale` pauses of our own keep evidence fresh at most.
#define PAUSES_STALE_TIMES 3

struct evidence {
	struct observation observation;
	uint32_t observer; // its row, MEMBERS_NONE: it is no member
	uint64_t seen_ns;  // the latest look that said so
	uint64_t since_ns; // the first one of its kind
	uint64_t first_ns; // the first of all that are kept
	uint64_t mute_ns;  // the first since which the overlay of the same observer is not answered
};

// One that was taken back is kept as healthy for as long as it would have stood: a link that loses
// packets may hold up for seconds what was told before.
struct said {
	struct statement statement;
	uint64_t said_ns;
};

static inline bool said_stands(const struct said *said) {
	return said->statement.verdict != VERDICT_HEALTHY;
}

// What the evidence says now, before hysteresis. Plain values: it is made anew each time.
struct finding {
	enum verdict verdict;
	const char *reason;
	enum ras_state
		state; // that goes with it: alive agents that others cannot talk to are suspect
	bool both_planes;
	bool sole;	  // one agent alone holds it for dead
	bool by_silence;  // counted by the brake
	bool is_fading;	  // what two find of it is silence, also if that is not told yet
	bool own_words;	  // a statement of its own: no observer is needed
	bool own_doubt;	  // unknown, for a reason of ours: it says nothing of the node
	bool brake_free;  // not only silence stands behind it: the brake does not hide it
	uint32_t bad;	  // observers
	uint32_t eyes;	  // the same, those of one host once
	uint32_t good;	  // who read a pulse that advances
	uint32_t lookers; // all who could look
	uint32_t overlay; // observers of the overlay
	uint64_t observers[VERDICT_OBSERVERS_MAX];
	uint32_t observer_count;
	uint64_t looked_ns;
	uint32_t walked;		   // subjects that were looked at beside it
	const struct observation *example; // for figures; valid while the evidence is unchanged
	const struct statement *statement;
};

struct held {
	enum verdict verdict;
	enum verdict_confidence confidence;
	enum ras_state state;
	bool both_planes;
	bool sole;	// one agent alone holds it for dead
	bool drainable; // more than one observer stands behind it
	bool own_words; // by a statement of its own
	bool ripe;	// it has held for long enough to see whether others fall as well
	uint64_t since_ns;
	uint64_t told_ns; // when it became this word
	uint64_t looked_ns;
	uint32_t lost_permille; // of packets or probes, at most so far
	uint32_t observer_count;
	uint64_t observers[VERDICT_OBSERVERS_MAX];
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// unstable.c: how often its word changed of late.
#define SWINGS_MAX 4 // changes within a minute that make it unstable
struct swings {
	uint64_t at_ns[SWINGS_MAX]; // a ring of the last ones
	uint32_t count;
	enum verdict word;   // the last that was no doubt
	enum verdict before; // the one before that
	bool own_doubt;	     // what came after `word` was a doubt of our own
	bool unstable;
	uint64_t since_ns;
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// What there is to say of one peer. Made when there is something, gone when there is not.
struct subject {
	uint32_t peer;	// its row
	uint32_t place; // among the engine's subjects

	// Of the overlay.
	enum verdict_reach reach; // of our own
	uint64_t reach_ns;	  // since when
	uint64_t state_ns;	  // since when it is in its state
	uint64_t doubt_ns;	  // since when the overlay doubted it the last time
	uint64_t back_ns;	  // until when it did
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];

	struct evidence *observations;
	uint32_t observation_count, observation_capacity;
	struct said *said;
	uint32_t said_count, said_capacity;
	uint32_t tells_bad; // observations that it told of others, and that are bad
	uint32_t tells[OBSERVATION_KIND_COUNT]; // the same by kind
	uint32_t tells_blind; // of the silent ones, with an own port that reads nobody either

	struct held held;
	struct swings swings;
	uint8_t told_advice;	   // the last that was told of what is held, without maintenance
	uint64_t better_ns;	   // since when the evidence is better than what is held, RAS_NEVER
	uint8_t blame;		   // enum fabric of what is being gathered
	uint64_t blame_ns;	   // since when
	uint64_t leaky_ns;	   // several lost packets to it last, and some of it was read; 0
	uint64_t stale_ns;	   // what was bad was not repeated since, RAS_NEVER
	uint8_t stale;		   // STALE_: of which kinds that was
	bool missed;		   // heard.c: there is a sign of its silence,
	bool fading;		   // before the overlay doubts it
	bool silent;		   // bad by silence
	bool counted;		   // by the brake
	bool braked;		   //
	uint64_t silent_ns;	   // since when it is silent
	uint64_t next_ns;	   // to be judged again
	uint32_t due_place;	   // in the heap, plus one; 0: it waits for nothing
	uint64_t ticked;	   // the tick that judged it last
	struct verdict_past *past; // a ring of VERDICT_HISTORY_MAX
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
	struct verdict_self self;
	uint32_t silent_recent; // subjects that the brake counts
	uint32_t fading;	// subjects that are
	uint64_t faded_ns;	// when the last of those that are missed was
	bool braking;
	bool turned;		    // the brake did: all are to be judged anew
	uint32_t told_by_strangers; // observations whose observer is no member
	struct subject **due;	    // a heap by next_ns; room for all
	uint32_t due_count, due_capacity;
	uint64_t ticks;
	uint32_t swept;		      // from there on idle subjects are looked for,
	uint64_t swept_ns;	      // the last time then
	uint64_t next_ns;	      // asked for
	struct verdict_counts counts; // of inputs and changes
};

static inline const struct member_row *
subject_peer(const struct verdict_engine *engine, const struct subject *subject) {
	return &engine->members.rows[subject->peer];
}

// due.c: when each is to be judged again; to be called when its next_ns has changed.
void due_set(struct verdict_engine *engine, struct subject *subject);
void due_remove(struct verdict_engine *engine, struct subject *subject);

// subject.c: the evidence itself.

// The subject of a peer, made if need be. -ENOMEM.
int subject_make(struct verdict_engine *engine, uint32_t peer, struct subject **ret_subject);
void subject_remove(struct verdict_engine *engine, struct subject *subject);
// Drops what is stale; of which kinds something bad was.
#define STALE_OBSERVATIONS 0x1
#define STALE_WORDS 0x2
uint8_t subject_expire(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns);
// What went stale of these kinds has been said anew, or taken back.
void subject_refresh(struct subject *subject, uint8_t kinds);
// When the next of it will be stale, RAS_NEVER.
uint64_t subject_stale_ns(const struct verdict_engine *engine, const struct subject *subject);
void subject_clear(struct verdict_engine *engine, struct subject *subject);
// It is back: what was seen of it while it did not run says nothing of now.
void subject_is_back(struct verdict_engine *engine, struct subject *subject);
// The same after a death, that of ourselves in others' eyes included.
void subject_outlived_death(struct verdict_engine *engine, struct subject *subject);
bool subject_told_by(const struct subject *subject, uint64_t observer);
// Drops what this observer told of it.
void subject_untell(struct verdict_engine *engine, struct subject *subject, uint64_t observer);
// Nothing is left that is worth its memory.
bool subject_is_idle(const struct verdict_engine *engine, const struct subject *subject);
// 0, also if it was not kept because it is known; -ESTALE, -ENOSPC, -ENOMEM.
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
// Whether a good look says nothing of a loss from so many bytes on: such did not pass there either,
// or were not tried.
static inline bool observation_is_mute_about(
	const struct observation *look, enum observation_kind kind, uint32_t bytes
) {
	return kind == OBSERVATION_LOSSY && look->lost_bytes != 0 && look->lost_bytes <= bytes;
}

// observer_index.c: of whom each observer told something.

// Room for so many more subjects of an observer's row, MEMBERS_NONE too. -ENOMEM, and all is as it
// was.
int observer_index_room(struct verdict_engine *engine, uint32_t observer, uint32_t more);
// A observation of this observer is about to be one of the subject's; there is room.
void observer_index_add(
	struct verdict_engine *engine, const struct subject *subject, uint64_t observer
);
// One has been taken from it.
void observer_index_drop(
	struct verdict_engine *engine, const struct subject *subject, uint64_t observer
);
// What a new member told before it was one. -ENOMEM, and all is as it was.
int observer_index_adopt(struct verdict_engine *engine, uint32_t observer);

// triangulate.c and its parts: what the observers together say of the data plane of one node.
enum fabric {
	FABRIC_UNSEEN,	 // nobody looks
	FABRIC_READABLE, // somebody reads it well, and nothing of it is to blame
	FABRIC_SLOW,
	FABRIC_LOSSY,
	FABRIC_PORT,	 // one of its ports is silent, another is read
	FABRIC_PEERS,	 // it reads nobody, and those it does not read are read by others
	FABRIC_STANDING, // read, and its counter stands
	FABRIC_SILENT,
};

struct fabric_look {
	enum fabric fabric;
	uint32_t bad;	  // distinct observers to whom it is so
	uint32_t eyes;	  // those of one host once, if there is more than one host
	uint32_t lookers; // distinct observers in all
	uint64_t observers[VERDICT_OBSERVERS_MAX];
	uint32_t observer_count;
	bool in_process;	    // nobody but the agent itself answers there
	bool alone;		    // nobody else accuses it
	enum observation_kind kind; // else of these observations, of this port, NULL: of all
	const char *port;
	uint64_t bad_ns;    // since when
	uint64_t good_ns;   // the latest that advanced, 0: none
	uint32_t good;	    // who saw that after `good_after_ns`
	uint64_t newest_ns; // the latest of all
	uint32_t walked;    // other subjects that were looked at for that
	const struct observation *example;
};

void triangulate(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
);
// Whether without observers that are seen badly themselves there are too few. Dear: each of them is
// looked at as well.
bool triangulate_is_doubtful(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look
);
// The same of one that loses packets, where the silence that a few tell is of its losses.
void triangulate_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
);
// Whether this observation counts at all: its observer can look, and nothing of its own explains
// it.
bool triangulate_counts(const struct verdict_engine *engine, const struct evidence *evidence);
// Who is to blame for one bad path, and the name of what it is.
enum path_blame triangulate_path(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence,
	uint64_t *ret_node,
	const char **ret_what
);
// Of how many that nobody blames this node says that they are silent, and since when of the last.
uint32_t
triangulate_accused(const struct verdict_engine *engine, uint64_t observer, uint64_t *ret_since_ns);
// How many observers are needed for blame, if there are so many.
uint32_t triangulate_need(const struct verdict_engine *engine, const struct subject *subject);

// judge.c: the table of the design.
void judge(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *ret_finding
);
// Whether a verdict goes with a state: the second table of the design.
bool judge_goes_with(enum verdict verdict, enum ras_state state);
enum verdict_advice judge_advice(const struct held *held, bool maint);

// heard.c
struct heard {
	bool peer;  // its link, if we have one, is not quiet
	bool alone; // it is not one of many who fall silent at this moment
	bool most;  // it is not, and of the others most are heard
	bool named; // it was named before: it waits for nobody
	bool now;   // its agent was heard since its pulse fell silent
};
// It has just been judged; `silent`: two find it so, or one that nobody answers there.
void fade_note(
	struct verdict_engine *engine, struct subject *subject, bool silent, uint64_t now_ns
);
// The subject is judged again when that may have changed.
void hear_links(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct heard *ret_heard
);

// Many others fell silent a moment ago; it is judged again when that is over.
bool many_fade(const struct verdict_engine *engine, struct subject *subject, uint64_t now_ns);

// hysteresis.c: hysteresis, the brake, history.
void hysteresis_apply(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns);
// The brake turned, or we were paused: everybody is judged anew.
void hysteresis_apply_all(struct verdict_engine *engine, uint64_t now_ns);
// How many the overlay does not hear. The dead are remembered for days: of them those were there a
// moment ago that are among the silent.
uint32_t brake_missed(const struct verdict_engine *engine);
// Most are heard, and as few are missed as make no brake: that one holds is for lack of votes.
bool brake_few_missed(const struct verdict_engine *engine);
// Not a third is missed, or nobody else: of three agents two may know that, and have no votes. Also
// by the count of all: who has few links across a split misses few of the other part itself.
bool brake_one_of_few(const struct verdict_engine *engine);
// Something that the brake depends on changed.
void brake_again(struct verdict_engine *engine);
// Judge it no later than that.
static inline void hold_until(struct subject *subject, uint64_t at_ns) {
	if (at_ns < subject->next_ns)
		subject->next_ns = at_ns;
}

// verdict_text.c: reasons and sentences.
void story_tell(const struct finding *finding, struct held *held);
const char *verdict_text_meaning(const char *reason); // "" of one that is none

// look.c
void look_view(const struct verdict_engine *engine, uint32_t peer, struct verdict_view *ret_view);
