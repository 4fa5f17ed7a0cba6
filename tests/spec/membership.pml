// SPDX-License-Identifier: BSD-3-Clause
// The rules of deaths, votes and the brake as a model that spin checks exhaustively.
//
// The rules are those of docs/internals/membership.md, as control/ras implements them. A comment
// names each rule by its number. N agents are members of one ring. Partitions, crashes, departures
// and restarts come at any moment, in limited numbers (CUTS, CRASHES, LEAVES, RESTARTS). One step
// of the model is one event at one agent. Every order of events is tried.
//
// Properties, each an assertion:
//   P1  Two sides of a partition never declare members of each other dead (V16). Sole deaths are
//       exempt, because in a view of two neither side waits (B8).
//   P2  When no step is left, an agent that reaches a running peer has this peer as alive in its
//       table: the peer refutes its death (T4, L6, R3).
//   P3  A member that is dead, left or readmitted is no voter of a census (V2, V10).
//   P4  In a view of more than two, a side that reached no more than half of the electorate
//       declares nobody (B6, B8, D10, V1). The electorate is counted here member by member.
//   P5  Nobody is declared dead while the brake holds (B6).
//   P6  A peer that a reached member hears is not declared dead (B3).
//   P7  A death has two witnesses, except in a view of two (D8, R1).
//
// Abstractions:
//   - Time. Short timers may fire in any order. The long ones (V11, and the age of a census, of a
//     join and of a vote) fire only when no short step is left. V11: an agent gives votes back only
//     after all members of its view have made the voteless opponents; the code ensures this by 55 s.
//   - A census is one step, with the looks of its round. Its result is stored, and a death may be
//     declared by it later. Silence and refused connects are the same (B6).
//   - A partition does not shift between a census and a death declared by it, nor before the news
//     of that death has spread. With -DANY_MOMENT it may, and P1 does not hold: see V16.
//   - Partitions have two sides that cannot speak at all. One-way or partial loss is left out. So
//     are own pauses (C2, C3), hosts with several agents (D6, E1 to E4), looks without answer (D5,
//     D12), and the bar of 30 s (U1), which only delays.
//   - Agents go by their own census. B2 and V13 let two others serve them.
//   - The brake of large rings (over 8 missed), its release by time (B7, B9) and orders of a person
//     (B10 to B12) are left out. They concern larger rings, or a decision of a person.
//   - A late joiner has no vote until V11. V6 to V9 give it back earlier. V15 only starts looks.
//   - A restarted agent joins at once through a member on its side. It founds no ring (J5, S4).
//   - All are linked, keys are honest, and all messages between linked agents arrive.
//
// tests/spec/membership_test.py runs the model. MUTANT_... breaks one rule each; spin must then
// find an error.

#ifndef N
#define N 3
#endif
#ifndef CUTS
#define CUTS 2
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif

// Life of a peer in the table of an agent (T4). SOLE is a death with one witness, DEAD one with two.
// The order is that of T1 and T2.
#define ALIVE 0
#define SUSPECT 1
#define UNREACHABLE 2
#define SOLE 3
#define DEAD 4
#define LEFT 5

// Vote of a peer: one of the first three. OPPONENT is added to READMITTED or LATE once the missing
// peer counts in the electorate (V11).
#define VOTE 0
#define READMITTED 1
#define LATE 2
#define OPPONENT 4

// With four members an agent notices in one step all that it misses, or hears again.
#if N == 3
#define COARSE false
#else
#define COARSE true
#endif

#define START 8 // incarnation = start * START + refutations

#define BRAKE_ON 2 // the brake lets go after two censuses of no minority (B7)

typedef Agent {
	byte life[N];
	byte incarnation[N]; // at the own index: the own one
	byte vote[N];
	byte joined_since[N]; // members that joined since the last message of this peer (V4)
	byte reached;         // agents that the last census reached, with ANY_MOMENT only
	byte asked;           // suspects at the time of the last census
	byte witnessed;       // suspects that another agent saw silent, too (D8)
	byte heard;           // suspects that a reached member hears (B3)
	byte reported;        // suspects whose death was reported with too few witnesses (R1)
	byte missed;          // members missed by the last census, less those that died or left since
	byte brake;
	byte deaths_reported; // own deaths below this incarnation are known
	bit minority;         // the last census reached no more than half (V1)
	bit misses;           // the last census missed somebody in a view of more than two
	bit voteless;         // the agent itself has no vote
	bit opposes;          // members without a vote are opponents (V11)
	bit young;            // joined lately, so it believes that it has no vote (V3)
	byte declared;        // P1: agents on the other side that this agent declared dead
	byte fallen;          // P3: peers held dead since the last return of votes
	bit lawful;           // P4: the last census reached more than half
}

Agent a[N];
byte net[N]; // agents that each can reach by the network
byte up;
byte recount; // agents whose last census may be outdated
byte cuts, crashes, leaves, restarts;

hidden byte x, y, z, reach, voters, members, present, lacking, electorate, truth, number;
hidden byte has_vote, was_member, is_death;

#define BIT(n) (1 << (n))
#define IN(mask, n) (((mask) >> (n)) & 1)
#define UP(p) IN(up, p)
#define WAY(p, q) (UP(p) && UP(q) && IN(net[p], q))
#define MEMBER(p, q) (a[p].life[q] <= UNREACHABLE)
#define IS_SILENT(p, q) (a[p].life[q] == SUSPECT || a[p].life[q] == UNREACHABLE)
#define GONE(p, q) (a[p].life[q] == SOLE || a[p].life[q] == DEAD)
#define LINK(p, q) (WAY(p, q) && a[p].life[q] == ALIVE && a[q].life[p] == ALIVE)
#define RANK(p, q) (MEMBER(p, q) -> ALIVE : a[p].life[q])
#define SAME_START(m, n) ((m) / START == (n) / START)
#define WEIGHT(p, q) (a[p].life[q] == SOLE -> 1 : 2)

#if N == 3
#define SUM(p, f) (f(p, 0) + f(p, 1) + f(p, 2))
#define EACH(A) A(0) A(1) A(2)
#else
#define SUM(p, f) (f(p, 0) + f(p, 1) + f(p, 2) + f(p, 3))
#define EACH(A) A(0) A(1) A(2) A(3)
#endif
#if N == 3
#define PAIRS(A) A(0, 1) A(0, 2) A(1, 0) A(1, 2) A(2, 0) A(2, 1)
// Speaker, hearer, subject. The subject may be the speaker.
#define TRIPLES(A) A(0, 1, 0) A(0, 1, 2) A(0, 2, 0) A(0, 2, 1) A(1, 0, 1) A(1, 0, 2) A(1, 2, 1) \
	A(1, 2, 0) A(2, 0, 2) A(2, 0, 1) A(2, 1, 2) A(2, 1, 0)
#else
#define PAIRS(A) A(0, 1) A(0, 2) A(0, 3) A(1, 0) A(1, 2) A(1, 3) A(2, 0) A(2, 1) A(2, 3) A(3, 0) \
	A(3, 1) A(3, 2)
#define TRIPLES(A) A(0, 1, 0) A(0, 1, 2) A(0, 1, 3) A(0, 2, 0) A(0, 2, 1) A(0, 2, 3) A(0, 3, 0) \
	A(0, 3, 1) A(0, 3, 2) A(1, 0, 1) A(1, 0, 2) A(1, 0, 3) A(1, 2, 1) A(1, 2, 0) A(1, 2, 3) \
	A(1, 3, 1) A(1, 3, 0) A(1, 3, 2) A(2, 0, 2) A(2, 0, 1) A(2, 0, 3) A(2, 1, 2) A(2, 1, 0) \
	A(2, 1, 3) A(2, 3, 2) A(2, 3, 0) A(2, 3, 1) A(3, 0, 3) A(3, 0, 1) A(3, 0, 2) A(3, 1, 3) \
	A(3, 1, 0) A(3, 1, 2) A(3, 2, 3) A(3, 2, 0) A(3, 2, 1)
#endif

#define MEMBERS(p) SUM(p, MEMBER)
// Number of members that p suspects or holds unreachable.
#define SILENT_COUNT(p) SUM(p, IS_SILENT)
#define WHOLE(p) (SILENT_COUNT(p) == 0 && a[p].missed == 0)
// Witnesses that a death of q needs at p (D8, R1).
#define ABLE(p, q) (MEMBERS(p) - MEMBER(p, q))
#define NEEDED(p, q) (ABLE(p, q) < 2 -> ABLE(p, q) : 2)
// A member without a vote that misses anybody is on a minority side (V15).
#define MINORITY(p) (a[p].minority || (a[p].voteless && a[p].misses))

// Guards of the steps.

#define CAN_HEAR(p, q) (WAY(p, q) && IS_SILENT(p, q) && MEMBER(q, p))
#define CAN_MISS(p, q) (UP(p) && a[p].life[q] == ALIVE && !WAY(p, q))
#define CAN_CALL(p, q) (WAY(p, q) && !MEMBER(p, q))
#define NEWER(p, h, q) (a[p].incarnation[q] > a[h].incarnation[q] || \
	(a[p].incarnation[q] == a[h].incarnation[q] && RANK(p, q) > RANK(h, q)))
#define STARTS_AGREE(p, h, q) SAME_START(a[p].incarnation[q], a[h].incarnation[q])
// A hearer that still hears the subject does not take its death over (R3).
#define CAN_TELL(p, h, q) (LINK(p, h) && NEWER(p, h, q) && (!GONE(p, q) || \
	((a[h].life[q] != ALIVE || !STARTS_AGREE(p, h, q)) && \
	 (WEIGHT(p, q) >= NEEDED(h, q) || (IS_SILENT(h, q) && !IN(a[h].reported, q))))))
#define CAN_CONTEST(p, h, q) (LINK(p, h) && NEWER(p, h, q) && GONE(p, q) && LINK(h, q) && \
	STARTS_AGREE(p, h, q))
#define IS_UNASKED_SUSPECT(p, q) (a[p].life[q] == SUSPECT && !IN(a[p].asked, q))
#define CAN_COUNT(p) (UP(p) && (SUM(p, IS_UNASKED_SUSPECT) > 0 || \
	(IN(recount, p) && (SILENT_COUNT(p) > 0 || a[p].brake > 0))))
#define DUE(p, q) (UP(p) && IS_SILENT(p, q) && IN(a[p].asked, q))
#ifdef MUTANT_HEARD_IGNORED
#define IS_HEARD_BY_NONE(p, q) true
#else
#define IS_HEARD_BY_NONE(p, q) (!IN(a[p].heard, q))
#endif
#ifdef MUTANT_BRAKE_IGNORED
#define IS_FREE(p) (!MINORITY(p))
#else
#define IS_FREE(p) (!MINORITY(p) && a[p].brake == 0)
#endif
#ifdef MUTANT_ONE_WITNESS
#define WITNESSED(p, q) true
#else
#define WITNESSED(p, q) (MEMBERS(p) == 2 || IN(a[p].witnessed, q))
#endif
#define CAN_DECLARE(p, q) (DUE(p, q) && IS_FREE(p) && IS_HEARD_BY_NONE(p, q) && WITNESSED(p, q))
#define CAN_HOLD(p, q) (DUE(p, q) && a[p].life[q] == SUSPECT && (a[p].brake > 0 || MINORITY(p)))
#define CAN_ADOPT(p, q) (DUE(p, q) && MINORITY(p) && IN(a[p].reported, q))

// Terms for the disjunctions below. An OR_ macro adds one condition for each agent, pair or triple.
#define OR_COUNT(p) || CAN_COUNT(p)
#define OR_DECLARE(p, q) || CAN_DECLARE(p, q)
#define OR_PAIR(p, q) || CAN_HEAR(p, q) || CAN_MISS(p, q) || CAN_CALL(p, q) || \
	CAN_DECLARE(p, q) || CAN_HOLD(p, q) || CAN_ADOPT(p, q)
#define OR_TRIPLE(p, h, q) || CAN_TELL(p, h, q) || CAN_CONTEST(p, h, q)
#define OR_LOST(p, q) || (WAY(p, q) && a[p].life[q] != ALIVE)
#define BUSY (false EACH(OR_COUNT) PAIRS(OR_PAIR) TRIPLES(OR_TRIPLE))
#ifdef ANY_MOMENT
#define IS_SETTLED true
#else
#define IS_SETTLED (!(false PAIRS(OR_DECLARE) TRIPLES(OR_TRIPLE)))
#endif

#define LACKS_VOTE(p, q) (a[p].vote[q] != VOTE)
#define ANY_VOTELESS(p) (a[p].voteless || SUM(p, LACKS_VOTE) > 0)
#define CAN_OPPOSE(p) (UP(p) && WHOLE(p) && ANY_VOTELESS(p) && !a[p].opposes)
#define VOTELESS_AT(p, q) (a[q].voteless || a[q].vote[0] != VOTE || a[q].vote[1] != VOTE || \
	a[q].vote[2] != VOTE || a[q].vote[N - 1] != VOTE)
#define IS_BEHIND(p, q) (UP(q) && MEMBER(p, q) && VOTELESS_AT(p, q) && !a[q].opposes)
#define CAN_RESTORE(p) (UP(p) && a[p].opposes && WHOLE(p) && SUM(p, IS_BEHIND) == 0)
#define CAN_EXPIRE(p) (UP(p) && SILENT_COUNT(p) == 0 && a[p].missed > 0)
#define JOIN_CAN_AGE(p) (UP(p) && a[p].young) // the join stops being recent (V3)

#define CAN_RESTART(p, q) (restarts < RESTARTS && !UP(p) && UP(q) && IN(net[p], q))

// Set `reach` to all agents that p reaches by the network.
inline reach_by_ways(p) {
	reach = BIT(p);
	for (z : 1 .. N - 1) {
		for (x : 0 .. N - 1) {
			for (y : 0 .. N - 1) {
				if
				:: IN(reach, x) && WAY(x, y) -> reach = reach | BIT(y)
				:: else -> skip
				fi
			}
		}
	}
}

// Set `reach` to all agents that a census of p reaches (B1).
inline reach_by_links(p) {
	reach = BIT(p);
	for (z : 1 .. N - 1) {
		for (x : 0 .. N - 1) {
			for (y : 0 .. N - 1) {
				if
				:: IN(reach, x) && LINK(x, y) -> reach = reach | BIT(y)
				:: else -> skip
				fi
			}
		}
	}
}

// An agent that misses anybody repeats its census (B10). Only a change is worth a step here.
inline recount_request(mask) {
	for (x : 0 .. N - 1) {
		if
		:: IN(mask, x) && UP(x) && (SILENT_COUNT(x) > 0 || a[x].brake > 0) ->
			recount = recount | BIT(x)
		:: else -> skip
		fi
	}
}

inline census_forget(p) {
	a[p].reached = 0;
	a[p].asked = 0;
	a[p].witnessed = 0;
	a[p].heard = 0;
	a[p].minority = 0;
	a[p].misses = 0;
	a[p].lawful = 0
}

inline suspicion_forget(p, q) {
	a[p].asked = a[p].asked & ~BIT(q);
	a[p].witnessed = a[p].witnessed & ~BIT(q);
	a[p].heard = a[p].heard & ~BIT(q);
	a[p].reported = a[p].reported & ~BIT(q);
	if
	:: a[p].asked == 0 -> census_forget(p)
	:: else -> skip
	fi
}

inline vote_withdraw(p, q, how) {
	a[p].vote[q] = how;
	a[p].opposes = 0
}

inline own_vote_withdraw(p) {
	a[p].voteless = 1;
	a[p].opposes = 0
}

inline membership_end(p, q, how) {
	if
	:: MEMBER(p, q) && a[p].missed > 0 -> a[p].missed--
	:: else -> skip
	fi;
	suspicion_forget(p, q);
	a[p].joined_since[q] = 0;
	a[p].fallen = a[p].fallen | BIT(q);
	a[p].life[q] = how
}

// Enter a new start of q at p. Sets has_vote (V2).
inline join(p, q) {
	was_member = MEMBER(p, q);
	has_vote = a[p].vote[q] == VOTE && (WHOLE(p) ||
		(was_member && a[p].brake == 0 && a[p].missed <= 1 && SILENT_COUNT(p) <= 1));
	suspicion_forget(p, q);
	a[p].fallen = a[p].fallen & ~BIT(q);
	a[p].life[q] = ALIVE;
	a[p].incarnation[q] = number;
	for (x : 0 .. N - 1) {
		if
		:: has_vote && !was_member && x != p && x != q && MEMBER(p, x) && !WAY(p, x) ->
			a[p].joined_since[x] = a[p].joined_since[x] | BIT(q) // V4
		:: else -> skip
		fi
	}
	if
	:: has_vote -> skip
	:: !has_vote && a[p].vote[q] % OPPONENT == READMITTED -> vote_withdraw(p, q, READMITTED)
	:: else -> vote_withdraw(p, q, LATE) // V5
	fi
}

// Merge at p that q lives in a higher incarnation, `number` (T1).
inline life_merge(p, q) {
	if
	:: !SAME_START(number, a[p].incarnation[q]) -> join(p, q)
	:: else ->
#ifndef MUTANT_READMITTED_VOTES
		if
		:: !MEMBER(p, q) -> vote_withdraw(p, q, READMITTED) // V2
		:: else -> skip
		fi;
#endif
		suspicion_forget(p, q);
		a[p].life[q] = ALIVE; // D7
		a[p].incarnation[q] = number
	fi
}

// Agent q learns its own death in the incarnation `number`, or only a suspicion
// of it if is_death is false.
inline own_death_refute(q) {
	if
	:: SAME_START(number, a[q].incarnation[q]) ->
#ifndef MUTANT_NO_REFUTATION
		if
		:: number >= a[q].incarnation[q] -> a[q].incarnation[q] = number + 1
		:: else -> skip
		fi;
#endif
		assert(a[q].incarnation[q] % START < START - 1);
		if
		:: is_death && number < a[q].incarnation[q] && number >= a[q].deaths_reported ->
			a[q].deaths_reported = number + 1;
			census_forget(q);
			a[q].reported = 0;
			for (x : 0 .. N - 1) {
				a[q].joined_since[x] = 0;
				if
				:: IS_SILENT(q, x) -> a[q].life[x] = ALIVE // D11
				:: else -> skip
				fi
			}
#ifndef MUTANT_READMITTED_VOTES
			own_vote_withdraw(q) // V2
#endif
		:: else -> skip
		fi
	:: else -> skip
	fi
}

inline late_votes_withdraw(p) {
	for (x : 0 .. N - 1) {
		for (y : 0 .. N - 1) {
			if
			:: IS_SILENT(p, x) && IN(a[p].joined_since[x], y) && a[p].vote[y] == VOTE ->
				vote_withdraw(p, y, LATE) // V4
			:: else -> skip
			fi
		}
		if
		:: IS_SILENT(p, x) -> a[p].joined_since[x] = 0
		:: else -> skip
		fi
	}
}

// Count as agent p: `voters`, `electorate`, `present` and `members`. `truth` is the electorate
// counted member by member.
inline votes_count(p) {
	reach_by_links(p);
	present = 0; voters = 0; lacking = 0; truth = 0;
	members = MEMBERS(p);
	for (x : 0 .. N - 1) {
		if
#ifdef MUTANT_DEAD_COUNTED
		:: IN(reach, x) ->
#else
		:: IN(reach, x) && MEMBER(p, x) -> // V10
#endif
			present++;
			if
			:: x != p && a[p].vote[x] != VOTE && a[x].young && a[x].vote[p] == VOTE ->
				own_vote_withdraw(x) // V3
			:: else -> skip
			fi;
			if
			:: !a[x].voteless && a[p].vote[x] == VOTE ->
				assert(MEMBER(p, x) && !IN(a[p].fallen, x)); // P3
				voters++;
				truth++
			:: else -> skip
			fi
		:: !IN(reach, x) && MEMBER(p, x) && a[p].vote[x] != READMITTED -> truth++ // V5, V11
		:: else -> skip
		fi;
		if
		:: MEMBER(p, x) && a[p].vote[x] == READMITTED -> lacking++
		:: else -> skip
		fi
	}
	// votes_electorate(): numbers only, since a census sums numbers.
	x = (members > present -> members - present : 0);
	y = present - voters - a[p].voteless;
	lacking = (lacking > y -> lacking - y : 0);
	electorate = voters + x - (lacking < x -> lacking : x);
	assert(electorate >= truth);
#ifdef MUTANT_SUBJECT_NOT_COUNTED
	electorate = voters
#endif
}

// A census of p, with the looks of its last round (D1, B1).
inline census(p) {
#ifdef ANY_MOMENT
	// A result is used for 4 s, and silence takes 8.7 s (D1). So a census of p in which x is silent
	// voids each stored result that had reached both p and x.
	for (y : 0 .. N - 1) {
		for (x : 0 .. N - 1) {
			if
			:: UP(x) && IS_SILENT(p, x) && IN(a[y].reached, p) && IN(a[y].reached, x) ->
				census_forget(y)
			:: else -> skip
			fi
		}
	}
#endif
	late_votes_withdraw(p);
	votes_count(p);
	census_forget(p);
#ifdef ANY_MOMENT
	a[p].reached = reach;
#endif
#ifdef MUTANT_HALF_DECLARES
	a[p].minority = members > 2 && 2 * voters < electorate;
#else
	a[p].minority = members > 2 && 2 * voters <= electorate; // V1, B8
#endif
	a[p].lawful = members <= 2 || 2 * voters > truth;
	a[p].missed = (members > present -> members - present : 0);
	a[p].misses = members > 2 && a[p].missed > 0;
	for (y : 0 .. N - 1) {
		for (x : 0 .. N - 1) {
			if
			:: IS_SILENT(p, y) && IN(reach, x) && (x == y || a[x].life[y] == ALIVE) ->
				a[p].heard = a[p].heard | BIT(y) // B3
			:: IS_SILENT(p, y) && IN(reach, x) && x != p && a[p].life[x] == ALIVE && IS_SILENT(x, y) ->
				a[p].witnessed = a[p].witnessed | BIT(y) // D8
			:: else -> skip
			fi
		}
		if
		:: IS_SILENT(p, y) -> a[p].asked = a[p].asked | BIT(y)
		:: else -> skip
		fi
	}
	recount = recount & ~BIT(p);
	if
	:: a[p].brake > 0 && MINORITY(p) -> a[p].brake = BRAKE_ON
	:: a[p].brake > 0 && !MINORITY(p) ->
		a[p].brake--; // B7
		recount = recount | BIT(p)
	:: else -> skip
	fi;
	if
	:: a[p].asked == 0 -> census_forget(p)
	:: else -> skip
	fi;
	if
	:: SILENT_COUNT(p) == 0 && a[p].brake == 0 -> recount = recount & ~BIT(p)
	:: else -> skip
	fi
}

inline declare(p, q) {
	assert(!IN(a[p].heard, q)); // P6
	if
	:: MEMBERS(p) > 2 ->
		assert(a[p].lawful); // P4
		assert(a[p].brake == 0); // P5
		assert(IN(a[p].witnessed, q)); // P7
		membership_end(p, q, DEAD);
		reach_by_ways(p);
		if
		:: UP(q) && !IN(reach, q) ->
			a[p].declared = a[p].declared | BIT(q);
			members = reach;
			reach_by_ways(q);
			for (x : 0 .. N - 1) {
				for (y : 0 .. N - 1) {
					assert(!(IN(reach, x) && IN(members, y) && IN(a[x].declared, y))) // P1
				}
			}
		:: else -> skip
		fi
	:: else -> membership_end(p, q, SOLE) // D8
	fi
}

// Clear all that a process loses when it ends. The own start is on disk.
inline process_end(p) {
	up = up & ~BIT(p);
	census_forget(p);
	recount = recount & ~BIT(p);
	a[p].reported = 0; a[p].missed = 0; a[p].brake = 0; a[p].deaths_reported = 0;
	a[p].voteless = 0; a[p].opposes = 0; a[p].young = 0; a[p].declared = 0;
	a[p].fallen = 0;
	for (x : 0 .. N - 1) {
		a[p].life[x] = ALIVE; a[p].vote[x] = VOTE; a[p].joined_since[x] = 0;
		a[x].declared = a[x].declared & ~BIT(p);
		if
		:: x != p -> a[p].incarnation[x] = 0
		:: else -> skip
		fi
	}
	recount_request(up)
}

inline leave(p) {
	number = a[p].incarnation[p] - a[p].incarnation[p] % START + START - 1; // K9
	a[p].incarnation[p] = number;
	for (y : 0 .. N - 1) {
		if
		:: y != p && LINK(y, p) ->
			membership_end(y, p, LEFT);
			a[y].incarnation[p] = number
		:: else -> skip
		fi
	}
	process_end(p)
}

// A new start of p joins through q and takes its table (J1).
inline restart(p, q) {
	number = a[p].incarnation[p] - a[p].incarnation[p] % START + START;
	up = up | BIT(p);
	a[p].incarnation[p] = number;
	join(q, p);
	a[p].voteless = !has_vote; // V2
	a[p].young = 1;
	for (x : 0 .. N - 1) {
		if
		:: x != p ->
			a[p].life[x] = RANK(q, x);
			a[p].incarnation[x] = a[q].incarnation[x]
		:: else -> skip
		fi
	}
}

inline partition(mask) {
	for (x : 0 .. N - 1) {
		net[x] = 0;
		for (y : 0 .. N - 1) {
			if
			:: IN(mask, x) == IN(mask, y) ->
				net[x] = net[x] | BIT(y);
				a[x].joined_since[y] = 0
			:: else -> skip
			fi
		}
		a[x].declared = 0
	}
	recount_request(up)
}

mtype = {
	HEAR, MISS, CALL, DECLARE, HOLD, ADOPT, TELL, CONTEST, COUNT, OPPOSE, RESTORE, EXPIRE, AGE,
	CRASH, LEAVE, RESTART, PARTITION, NOTHING
};
mtype act; // the step that is taken
byte i, j, k; // its agent, the subject, the hearer

#define TAKE_PAIR(p, q) \
	:: CAN_HEAR(p, q) -> act = HEAR; i = p; j = q \
	:: CAN_MISS(p, q) -> act = MISS; i = p; j = q \
	:: CAN_CALL(p, q) -> act = CALL; i = p; j = q \
	:: CAN_DECLARE(p, q) -> act = DECLARE; i = p; j = q \
	:: CAN_HOLD(p, q) -> act = HOLD; i = p; j = q \
	:: CAN_ADOPT(p, q) -> act = ADOPT; i = p; j = q \
	:: CAN_RESTART(p, q) -> act = RESTART; i = p; j = q
#define TAKE_TRIPLE(p, h, q) \
	:: CAN_TELL(p, h, q) -> act = TELL; i = p; k = h; j = q \
	:: CAN_CONTEST(p, h, q) -> act = CONTEST; i = p; k = h; j = q
#define TAKE_ONE(p) \
	:: CAN_COUNT(p) -> act = COUNT; i = p \
	:: crashes < CRASHES && UP(p) -> act = CRASH; i = p \
	:: leaves < LEAVES && UP(p) -> act = LEAVE; i = p
#define TAKE_LONG(p) \
	:: CAN_OPPOSE(p) -> act = OPPOSE; i = p \
	:: CAN_RESTORE(p) -> act = RESTORE; i = p \
	:: CAN_EXPIRE(p) -> act = EXPIRE; i = p \
	:: JOIN_CAN_AGE(p) -> act = AGE; i = p
// All agents are alike at first, so one partition of each size is enough then.
#define IS_FIRST(mask) (cuts + crashes + leaves == 0 && (mask) != 4 * (N - 2) && \
	(N == 3 || (mask) != 12))
#define TAKE_SIDES(mask) \
	:: net[0] != BIT(N) - 1 - (mask) && !IS_FIRST(mask) -> act = PARTITION; i = mask

inline step() {
	if
	:: act == HEAR ->
		for (y : 0 .. N - 1) {
			if
			:: CAN_HEAR(i, y) && (y == j || COARSE) ->
				a[i].life[y] = ALIVE; // D7
				suspicion_forget(i, y);
				a[i].joined_since[y] = 0
			:: else -> skip
			fi
		}
	:: act == MISS ->
		for (y : 0 .. N - 1) {
			if
			:: CAN_MISS(i, y) && (y == j || COARSE) -> a[i].life[y] = SUSPECT // D1, D4
			:: else -> skip
			fi
		}
	:: act == CALL -> // S1, L6
		number = a[i].incarnation[j];
		is_death = true;
		own_death_refute(j);
		number = a[j].incarnation[j];
		if
		:: number > a[i].incarnation[j] -> life_merge(i, j)
		:: else -> skip
		fi;
		assert(MEMBER(i, j)) // P2
	:: act == DECLARE -> declare(i, j)
	:: act == HOLD -> // B6, D10
		a[i].life[j] = UNREACHABLE;
		if
		:: a[i].brake == 0 -> a[i].brake = BRAKE_ON
		:: else -> skip
		fi
	:: act == ADOPT -> membership_end(i, j, SOLE) // R2
	:: act == TELL ->
		number = a[i].incarnation[j];
		if
		:: MEMBER(i, j) -> life_merge(k, j)
		:: a[i].life[j] == LEFT || (GONE(i, j) && WEIGHT(i, j) >= NEEDED(k, j)) ->
			membership_end(k, j, a[i].life[j]);
			a[k].incarnation[j] = number
		:: else -> a[k].reported = a[k].reported | BIT(j) // R1
		fi
	:: act == CONTEST -> // R3
		number = a[i].incarnation[j];
		is_death = WEIGHT(i, j) >= NEEDED(k, j);
		own_death_refute(j);
		number = a[j].incarnation[j];
		if
		:: number > a[k].incarnation[j] -> life_merge(k, j)
		:: else -> skip
		fi
	:: act == COUNT -> census(i)
	:: act == OPPOSE -> // V11
		a[i].opposes = 1;
		for (x : 0 .. N - 1) {
			if
			:: a[i].vote[x] != VOTE && a[i].vote[x] < OPPONENT ->
				a[i].vote[x] = a[i].vote[x] + OPPONENT
			:: else -> skip
			fi
		}
	:: act == RESTORE -> // V11
		a[i].opposes = 0;
		a[i].voteless = 0;
		for (x : 0 .. N - 1) {
			if
			:: MEMBER(i, x) -> a[i].fallen = a[i].fallen & ~BIT(x)
			:: else -> skip
			fi
		}
		for (x : 0 .. N - 1) {
			a[i].vote[x] = VOTE
		}
	:: act == EXPIRE -> a[i].missed = 0
	:: act == AGE -> a[i].young = 0
	:: act == CRASH -> crashes++; process_end(i)
	:: act == LEAVE -> leaves++; leave(i)
	:: act == RESTART -> restarts++; restart(i, j)
	:: act == PARTITION -> cuts++; partition(i); i = 0
	:: else -> skip
	fi;
	if
	:: act == COUNT || act == EXPIRE || act == AGE || act == CRASH || act == LEAVE ||
	   act == PARTITION || act == NOTHING -> skip
	:: else ->
		reach_by_ways(i);
		recount_request(reach)
	fi
}

active proctype world() {
	d_step {
		up = BIT(N) - 1;
		for (x : 0 .. N - 1) {
			net[x] = BIT(N) - 1
		}
		skip
	}
	do
	:: atomic {
		if
		PAIRS(TAKE_PAIR)
		TRIPLES(TAKE_TRIPLE)
		EACH(TAKE_ONE)
		:: !BUSY ->
			assert(!(false PAIRS(OR_LOST))); // P2
			if
			EACH(TAKE_LONG)
			:: else -> act = NOTHING
			fi
		:: cuts < CUTS && IS_SETTLED ->
			if
			TAKE_SIDES(0)
			TAKE_SIDES(2)
			TAKE_SIDES(4)
			TAKE_SIDES(6)
#if N == 4
			TAKE_SIDES(8)
			TAKE_SIDES(10)
			TAKE_SIDES(12)
			TAKE_SIDES(14)
#endif
			fi
		fi;
		printf("%e: agent %d, subject %d, hearer %d\n", act, i, j, k);
		d_step {
			step();
			act = 0; i = 0; j = 0; k = 0
		}
	}
	od
}
