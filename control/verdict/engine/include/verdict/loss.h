// SPDX-License-Identifier: BSD-3-Clause
// Packet loss of this agent's overlay links, measured by the kernel's TCP retransmissions.
//
// Pure. Each round takes the current counters of each link and reports links that lose more than
// the others. At most half of the other links may lose half as much. If most links lose, the fault
// is with this agent: then it blames no peer, and silence at its links proves nothing.
//
// A loss ends when so many segments passed at the first try that a continuing loss would have
// shown. An idle link carries one segment a second. A link that loses, or did lately, is therefore
// asked for an answer four times a second. Loss then shows within seconds. A heavy loss ends within
// seconds, a light one within half a minute. A single link has nothing to compare with, so it is
// never reported.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOSS_LINKS_MAX 256			 // further links are ignored
#define LOSS_ROUND_NS (2 * UINT64_C(1000000000)) // interval of the rounds
#define LOSS_PROBE_NS (UINT64_C(1000000000) / 4) // interval of requests for an answer
#define LOSS_DOUBT_ROUNDS 5 // rounds for which a link counts as doubtful after a retransmission
#define LOSS_ROUNDS_KEPT 40 // rounds kept; the last 40, 20 and 10 are judged
#define LOSS_UNSEEN_ROUNDS_MAX 10 // rounds after which a link that is gone is forgotten
#define LOSS_SENT_MIN 5		  // segments that must have been sent before a link is judged
#define LOSS_RESENT_MIN 3	  // retransmitted segments that make a link lossy
#define LOSS_RESENT_MIN_ALONE 2	  // the same where the other links retransmitted nothing
#define LOSS_OTHERS_TIMES 5	  // and sent at least this many times as many segments
#define LOSS_PERMILLE 50	  // a link is lossy from here on, until it loses half as much
#define LOSS_CLEAN 6000		  // loss ends once so many expected losses (x 1000) did not occur

// Counters of all open connections to one peer, since each was opened.
struct loss_count {
	uint32_t connections;
	uint64_t sent, again; // segments, and retransmitted segments
	bool unanswered;      // nothing came back since the last retransmission
};

struct loss_link {
	uint64_t peer;
	struct loss_count last;
	uint16_t sent[LOSS_ROUNDS_KEPT],
		again[LOSS_ROUNDS_KEPT]; // segments per round, saturated at UINT16_MAX
	uint32_t looks;
	uint32_t unseen;   // rounds since the link was last open; loss itself may have closed it
	uint32_t permille; // retransmitted share over the rounds kept
	uint32_t lost_permille; // loss rate that is certain, at the last retransmission
	uint64_t clean; // segments sent since the last retransmission, counted from `clean_from`
	struct loss_count clean_from;
	bool loses;
	bool seen, unanswered; // in the latest round
};

struct loss_book {
	struct loss_link links[LOSS_LINKS_MAX];
	uint32_t count;
	bool ourselves; // most links of this agent lose packets
};

// Sample all links in one round: loss_round_begin(), loss_round_add() for each link,
// loss_round_end().
//
// A counter below its previous value belongs to a new connection, if there was and is only one.
// Otherwise one of several connections closed, and the round says nothing about the link. A lossy
// link that is gone or was not added stays lossy for some rounds. An unanswered link keeps its
// state, since a dead host causes retransmissions, too. If most links are unanswered, this agent is
// the one that loses.
void loss_round_begin(struct loss_book *book);
void loss_round_add(struct loss_book *book, uint64_t peer, const struct loss_count *count);
// End the round. Calls `changed` for each lossy link, and once for a link that recovered.
typedef void loss_fn(void *ctx, uint64_t peer, bool loses, uint32_t permille);
void loss_round_end(struct loss_book *book, loss_fn *changed, void *ctx);
// Iterate over the links to request answers on: lossy and unanswered ones, and those with a
// retransmission in the last LOSS_DOUBT_ROUNDS rounds. The cursor begins at 0.
bool loss_next_to_probe(const struct loss_book *book, uint32_t *cursor, uint64_t *ret_peer);
// Update a link between two rounds with its current counters. Calls `changed` if the link
// recovered, or if it is answered again and turns out lossy.
void loss_recheck_link(
	struct loss_book *book,
	uint64_t peer,
	const struct loss_count *count,
	loss_fn *changed,
	void *ctx
);
// Return the loss rate of the link as last reported; 0: it does not lose, or is unknown.
uint32_t loss_link_permille(const struct loss_book *book, uint64_t peer);
