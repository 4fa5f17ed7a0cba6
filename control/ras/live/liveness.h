// SPDX-License-Identifier: BSD-3-Clause
// Liveness of peers: evidence, suspicion, confirmation by others, the brake.
//
// No peer is declared dead by one agent alone while another agent can look. A look is a check, made
// now, whether the peer answers on the observer's own link. An observer with evidence asks others
// to look, and each answers what it saw. A proof of life vetoes at once. Refused connects of two
// observers lead to death at once. Silence leads to death only after the time of the profile, with
// a last round of looks at its end.
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
#define CENSUS_AGREEING 2 // number of origins that must agree
// Age after which a census is too old to use. While a member is missed, censuses are made more
// often.
#define CENSUS_OLD_NS (40 * RAS_NS_PER_SEC)

// Result of one look.
enum observation {
	OBSERVATION_NONE, // no answer yet
	OBSERVATION_ALIVE,
	OBSERVATION_SILENT,
	OBSERVATION_GONE,
	OBSERVATION_UNABLE, // the observer could not look
	OBSERVATION_COUNT,
};

struct suspicion {
	uint32_t slot;
	uint64_t incarnation;
	enum ras_cause cause;
	uint64_t started_ns;
	uint64_t silent_ns; // start of the silence, as far as known
	uint64_t due_ns;    // next step
	uint32_t round;	    // token of the latest round of looks
	bool open;	    // a round is in progress; `due_ns` is its end
	bool agreed;	    // enough witnesses; the death waits for a census
	bool recounted;	    // the census was repeated once because a member had joined
	uint32_t asked_count;
	uint32_t asked[LIVENESS_ASKED_MAX];
	enum observation observations[LIVENESS_ASKED_MAX];
	uint32_t rounds;       // rounds so far; each round asks other observers
	struct peer_news told; // reported death with too few witnesses; id 0 if none
};

// A look at a peer on behalf of another observer, or of a newcomer that claims the peer's name.
struct look {
	uint32_t slot;
	uint32_t asker; // slot, RAS_NO_SLOT for a name claim
	uint32_t round;
	uint32_t claim; // connection handle of the newcomer
	uint64_t deadline_ns;
};

// Result of one census.
struct census_result {
	uint32_t reached; // reachable members, including the origin
	uint32_t members; // members of the origin's view
	// Reached members with a vote, and the same plus the opponents missed (liveness_votes.h).
	uint32_t voters, electorate;
	uint32_t subject_count;
	const uint64_t *subjects; // peers that the census asked about
	uint8_t heard;		  // bit n: a reached member hears subjects[n]
};

// A kept result of a census.
struct census_outcome {
	uint64_t origin;
	uint32_t reached, members, voters, electorate;
	uint32_t subject_count;
	uint64_t subjects[COLLECT_SUBJECTS_MAX];
	uint8_t heard;
	uint64_t from_ns; // start of the census
	uint64_t at_ns;	  // arrival of the result; 0: there is none
};

static inline uint32_t census_missed_count(const struct census_outcome *word) {
	return word->members > word->reached ? word->members - word->reached : 0;
}

struct census_start {
	uint64_t origin;
	uint64_t at_ns;
};

// State of the censuses. A result is valid if it is our own, or if two other origins agree on it.
struct census {
	struct census_outcome word; // the valid result, used for decisions
	struct census_outcome told; // latest result of another origin, not confirmed yet
	// Latest origin without a vote that missed a member, and when two such origins agreed.
	struct census_start missing;
	uint64_t missing_agreed_ns;
	uint32_t ours;	// members of our own view at the time of `word`
	uint32_t ended; // members that ended since: dead, left or forgotten
	// Latest two censuses begun by other origins, and the start of our own latest one.
	struct census_start starts[CENSUS_AGREEING];
	uint64_t own_ns;
	uint32_t own_members;  // members of our view at its start
	uint32_t own_voteless; // members that it asked for no vote
	uint64_t wanted_ns;    // since when a census is needed, 0 if none is
	uint64_t due_ns;       // start of our next census, if `due`
	bool due;
};

// Latest joins, including restarts of members.
#define VOTE_JOINS_MAX 32

struct vote_join {
	uint64_t id;
	uint64_t at_ns;
	bool beside;  // joined in a possible partition, as far as known
	bool weighed; // late already, or known to all members before
};

struct liveness {
	struct suspicion *suspicions;
	uint32_t suspicion_count, suspicion_capacity;
	struct look *looks;
	uint32_t look_count, look_capacity;
	uint32_t round; // latest token of a round of looks
	struct census census;
	uint64_t joined_ns; // latest join seen by this agent; 0: none
	bool brake;
	bool taken_back;			// a member, or this agent, has no vote
	struct vote_join joins[VOTE_JOINS_MAX]; // ring buffer of the latest joins
	uint32_t join_count;
	// Slots of the members without a vote. If there are more than fit, all slots must be
	// searched. A slot may have been reused; its entry then lacks the flag.
	uint32_t voteless_slots[COLLECT_CENSUS_MAX];
	uint32_t voteless_count;
	uint32_t late_reporter_count; // peers that hold this agent for a late joiner
	bool late_report_is_orphan;   // a report of a stranger, of a removed peer or an old start
	bool voteless_oppose; // members without a vote are opponents when missed; they vote later
	uint64_t view_whole_since_ns; // since when no member is missed; RAS_NEVER: some member is
	uint64_t brake_on_since_ns;
	// Since when the brake is on with this agent on the majority side.
	uint64_t brake_hold_start_ns;
	uint64_t brake_released_until_ns; // released by time: the brake stays off until then
	uint64_t brake_release_limit_ns;  // the release applies to silences that began before this
	uint32_t calm_census_count;	  // consecutive censuses within the limit of the brake
};

void liveness_fini(struct ras *ras);
void liveness_tick(struct ras *ras);

// Evidence about the peer of a link.
void liveness_peer_heard(struct ras *ras, struct link *link);
void liveness_peer_silent(struct ras *ras, struct link *link);
void liveness_peer_gone(struct ras *ras, struct link *link);
// Begin a census at the first refused connect, so that it is complete when the peer proves gone.
void liveness_peer_refused(struct ras *ras, struct link *link);
// Handle a reported death that has too few witnesses here.
void liveness_death_reported(struct ras *ras, uint32_t slot, const struct peer_news *news);
void liveness_absence_reported(struct ras *ras, uint32_t slot, uint64_t age_ns);
// Handle a subject that a member without a vote suspects, and that this agent does not hear. That
// member may not declare a death, and members with a vote may have no link to the subject. If this
// agent has a vote, it may suspect the subject itself.
void liveness_suspicion_delegated(struct ras *ras, uint64_t subject);
// Check a peer after an expired leg or a lost message; that is no reason for a suspicion.
void liveness_weak_evidence(struct ras *ras, uint32_t slot);
// Handle a proof of life. `observer` is the id of the agent that saw it, 0 for a message on our own
// link.
void liveness_proof_of_life(struct ras *ras, uint32_t slot, uint64_t observer);
// End the suspicions that began before a census which reached all members.
void liveness_census_reached_all(struct ras *ras, const struct census_outcome *word);
// Judge the suspicions that waited for a census.
void liveness_census_done(struct ras *ras);
// Schedule new looks at the peers that the brake held back.
void liveness_recheck_held(struct ras *ras);
// Restart all silences: until `link` was heard, this agent heard no peer at all.
void liveness_restart_silences(struct ras *ras, struct link *link);
// Discard looks and censuses from before a pause of this agent.
void liveness_resume(struct ras *ras);
// Drop all suspicions and restart all silences: peers held this agent for dead, or could not
// reach it, so their silence is no evidence.
void liveness_reset(struct ras *ras);
// Forget a peer that is no member any more, or that joined again.
void liveness_forget_peer(struct ras *ras, uint32_t slot);

// Look at a live peer whose name a newcomer claims. join_name_claim_decided() receives the answer.
void liveness_check_name_claim(struct ras *ras, uint32_t slot, struct conn *conn);

// Handle a message about a look, received over the relay.
void liveness_message(struct ras *ras, uint64_t source, struct wire_reader *reader);
