// SPDX-License-Identifier: BSD-3-Clause
// Which of the links of this agent lose packets, by what their kernel had to send again.
//
// Pure. Fed with the counts of each link, as they are at present; says which lose more than the
// others do: at most half of them lose half as much. Who loses on most of its links is what is bad
// about them: it blames nobody, and what it does not hear is no silence. A loss is over as soon as
// so much arrived at the first try that it would have shown. An idle link carries a segment a
// second, so one that loses, or has lost something lately, is asked for an answer four times a
// second: what is no chance shows within seconds of the first loss, a heavy loss that ends is over
// within seconds, and a light one within half a minute. With one link alone there is nothing to
// compare with, so nothing is said.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOSS_LINKS_MAX 256			// beyond it links are not looked at
#define LOSS_LOOK_NS (2 * UINT64_C(1000000000)) // between two looks
#define LOSS_ASK_NS (UINT64_C(1000000000) / 4)	// between two answers that are asked for
#define LOSS_DOUBT_LOOKS 5			// after the last that was sent again they are
#define LOSS_LOOKS 40				// are kept; all, half and a quarter are judged
#define LOSS_UNSEEN 10				// looks, and a link that is gone is forgotten
#define LOSS_SENT_MIN 5				// segments, before anything is said
#define LOSS_AGAIN_MIN 3			// of these, sent again
#define LOSS_AGAIN_ALONE 2			// or so, if none was on the others, and
#define LOSS_OTHERS_TIMES 5			// these sent so many times as much
#define LOSS_PERMILLE 50			// from there on it loses, until it is half as many,
#define LOSS_CLEAN 6000				// or so many thousandths would have been since

// Of the connections that are open between us and a peer, since each was made.
struct loss_count {
	uint32_t connections;
	uint64_t sent, again; // segments
	bool unanswered;      // nothing has come back since something was sent again
};

struct loss_link {
	uint64_t peer;
	struct loss_count last;
	uint16_t sent[LOSS_LOOKS], again[LOSS_LOOKS]; // at most so many as they hold
	uint32_t looks;
	uint32_t unseen;	// looks since it was there: it may be broken by what it loses
	uint32_t permille;	// sent again, over the looks that are kept
	uint32_t lost_permille; // what is certain of it, when some was last
	uint64_t clean;		// sent since the last that was sent again, counted from these
	struct loss_count clean_from;
	bool loses;
	bool seen, unanswered; // in the latest look
};

struct loss_book {
	struct loss_link links[LOSS_LINKS_MAX];
	uint32_t count;
	bool ourselves; // most of our links lose
};

// A look: begin, all links as they are, end. A count that is less than before is of another
// connection, made since, if there is one and was one; where there are or were more, one of them
// is gone, and the look says nothing. A link that loses and is gone, or is silent and so not added,
// loses for a while. One that is unanswered is as it was, since what is sent to a dead host is sent
// again, too; but where most are so it is we who lose.
void loss_begin(struct loss_book *book);
void loss_add(struct loss_book *book, uint64_t peer, const struct loss_count *count);
// Calls `changed` for each link that loses, and once for each that does no longer.
typedef void loss_fn(void *ctx, uint64_t peer, bool loses, uint32_t permille);
void loss_end(struct loss_book *book, loss_fn *changed, void *ctx);
// The links to ask for answers, one after the other: those that lose or are unanswered, and those
// to which something was sent again within LOSS_DOUBT_LOOKS. cursor begins at 0.
bool loss_next(const struct loss_book *book, uint32_t *cursor, uint64_t *ret_peer);
// Between two looks, of a link that is asked for answers, as it is then: calls `changed` if it
// loses no longer, or is answered and turns out to lose.
void loss_between(
	struct loss_book *book,
	uint64_t peer,
	const struct loss_count *count,
	loss_fn *changed,
	void *ctx
);
// What its link loses, as it was told last; 0: nothing, or there is none.
uint32_t loss_of(const struct loss_book *book, uint64_t peer);
