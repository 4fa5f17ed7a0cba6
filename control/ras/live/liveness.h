// SPDX-License-Identifier: BSD-3-Clause
// Who is alive: evidence, suspicion, confirmation by others, the brake.
//
// Nobody is declared dead on one agent's word as long as another one can look. An observer
// that has evidence asks others; each of them looks for itself, now, and answers with what it
// saw: a proof of life vetoes at once, refused connects of two observers kill at once, silence
// kills only after the profile's time and a last round of looks at its end.
#pragma once

#include "collect/collect_message.h"
#include "member/peers.h"

#include <ras/ras.h>

struct conn;
struct link;
struct ras;
struct wire_reader;

#define LIVENESS_ASKED_MAX 3
#define LIVENESS_SUSPICIONS_MAX 1024
#define LIVENESS_LOOKS_MAX 1024
#define CENSUS_COUNTERS 2 // who have to agree
// Where anybody is missed they are counted more often than this.
#define CENSUS_OLD_NS (40 * RAS_NS_PER_SEC)

// What an observer saw when it looked.
enum observation {
	OBSERVATION_NONE, // no answer yet
	OBSERVATION_ALIVE,
	OBSERVATION_SILENT,
	OBSERVATION_GONE,
	OBSERVATION_UNABLE, // it could not look
	OBSERVATION_COUNT,
};

struct suspicion {
	uint32_t slot;
	uint64_t incarnation;
	enum ras_cause cause;
	uint64_t started_ns;
	uint64_t silent_ns; // since when, as far as we can tell
	uint64_t due_ns;    // next step
	uint32_t round;	    // token of the looks asked for
	bool open;	    // a round is under way; `due_ns` is its end
	bool agreed;	    // enough saw it; it waits for a count
	bool recounted;	    // once more, since somebody had joined
	uint32_t asked_count;
	uint32_t asked[LIVENESS_ASKED_MAX];
	enum observation observations[LIVENESS_ASKED_MAX];
	uint32_t rounds;       // so far: others are asked in the next one
	struct peer_news told; // the death that one alone declared, if that was heard; id 0 if not
};

// A look at a peer for somebody else: another observer, or a newcomer that claims its name.
struct look {
	uint32_t slot;
	uint32_t asker; // slot, RAS_NO_SLOT for a claim
	uint32_t round;
	uint32_t claim; // handle of the newcomer's connection
	uint64_t deadline_ns;
};

// What somebody found who counted.
struct census_result {
	uint32_t reached; // members that can be reached, the one who counted included
	uint32_t members; // of its view
	// Of either, those who count for a majority: not who was taken back a moment ago.
	uint32_t voters, electorate;
	uint32_t subject_count;
	const uint64_t *subjects; // whom it asked about,
	uint8_t heard;		  // and which of them are heard by somebody, a bit each
};

// The same, kept.
struct census_word {
	uint64_t origin;
	uint32_t reached, members, voters, electorate;
	uint32_t subject_count;
	uint64_t subjects[COLLECT_SUBJECTS_MAX];
	uint8_t heard;
	uint64_t from_ns; // when the count began
	uint64_t at_ns;	  // when we had it; 0: there is none
};

static inline uint32_t census_silent(const struct census_word *word) {
	return word->members > word->reached ? word->members - word->reached : 0;
}

struct census_start {
	uint64_t origin;
	uint64_t at_ns;
};

// What the latest census found: ours, or one that two others agree on.
struct census {
	struct census_word word; // that we go by
	struct census_word told; // the latest by one other alone
	// Who without a vote missed somebody last, and when two came to that last.
	struct census_start missing;
	uint64_t missing_ns;
	uint32_t ours;	// members of our own view at the time of `word`
	uint32_t ended; // of them, since: dead, left or forgotten
	// The latest two that began, of different members, and the latest one of ours.
	struct census_start starts[CENSUS_COUNTERS];
	uint64_t own_ns;
	uint32_t own_members;	// as it began
	uint32_t own_uncounted; // of them, whom it asked for no vote
	uint64_t wanted_ns;	// since when we wait for a count, 0 if we do not
	uint64_t due_ns;	// ours begins then
	bool due;
};

// Who joined, or started anew.
#define VOTE_JOINS_MAX 32

struct vote_join {
	uint64_t id;
	uint64_t at_ns;
	bool beside;  // a gap, as far as is known
	bool weighed; // it is late already, or was known to all before
};

struct liveness {
	struct suspicion *suspicions;
	uint32_t suspicion_count, suspicion_capacity;
	struct look *looks;
	uint32_t look_count, look_capacity;
	uint32_t round; // last token given out
	struct census census;
	uint64_t joined_ns; // when somebody joined last, as this node saw it; 0: nobody
	bool brake;
	bool taken_back;			// somebody, or we
	struct vote_join joins[VOTE_JOINS_MAX]; // the latest, in a ring
	uint32_t join_count;
	// Where they stand; more than that: anywhere. A slot may be another's by now, without
	// the flag.
	uint32_t taken_slots[COLLECT_CENSUS_MAX];
	uint32_t taken_count;
	uint32_t late_tellers; // who told us that we are late, and did not take it back
	bool missed_again;     // such a one is, if it is not reached: it votes later
	uint64_t whole_ns; // since when nobody is suspected or unreachable; RAS_NEVER: somebody is
	uint64_t brake_began_ns;
	uint64_t brake_ns;	 // since when it is on and we are with the larger part
	uint64_t brake_free_ns;	 // released by time: until then it is not on again
	uint64_t brake_freed_ns; // for those who fell silent before this
	uint32_t calm;		 // counts in a row that found no more silent than may be
};

void liveness_fini(struct ras *ras);
void liveness_tick(struct ras *ras);

// Evidence against a link's peer.
void liveness_silent(struct ras *ras, struct link *link);
void liveness_gone(struct ras *ras, struct link *link);
// It was refused for the first time: should it be gone, all are counted by then.
void liveness_refused(struct ras *ras, struct link *link);
// One alone declared it dead.
void liveness_told(struct ras *ras, uint32_t slot, const struct peer_news *news);
void liveness_reported(struct ras *ras, uint32_t slot, uint64_t age_ns);
// One without a vote counts, and asks who hears it: it may declare nobody, and maybe none of those
// who may has a link to it. Not heard here it is looked at, if we have a vote.
void liveness_passed_on(struct ras *ras, uint64_t subject);
// An expired leg, a lost message: worth a look, no more.
void liveness_weak_evidence(struct ras *ras, uint32_t slot);
// Proof of life, from the peer itself.
void liveness_proof(struct ras *ras, uint32_t slot, uint64_t observer);
// A count reached all members: who was silent before it began is alive.
void liveness_all_reached(struct ras *ras, const struct census_word *word);
// A count is at hand: those who waited for one are judged.
void liveness_counted(struct ras *ras);
// Those whom the brake held may be judged again: looks at them anew, soon.
void liveness_released(struct ras *ras);
// Nobody was heard until now: the silence of each begins now.
void liveness_was_deaf(struct ras *ras);
// After a pause of our own: what others saw and counted is from before it.
void liveness_resume(struct ras *ras);
// We were held for dead and spoken to by nobody: that silence is no evidence against anybody.
void liveness_begin_anew(struct ras *ras);
// The peer is out of the table's members, or newly in.
void liveness_forget(struct ras *ras, uint32_t slot);

// A newcomer claims a live peer's name: it is answered through join_claimed().
void liveness_claim(struct ras *ras, uint32_t slot, struct conn *conn);

// Questions and answers about a peer, brought by the relay.
void liveness_message(struct ras *ras, uint64_t source, struct wire_reader *reader);
