// SPDX-License-Identifier: BSD-3-Clause
// Packet loss of this agent's links, by the share of retransmitted segments. Pure.
#include <verdict/loss.h>

#include <string.h>

void loss_round_begin(struct loss_book *book) {
	for (uint32_t n = 0; n < book->count; n++)
		book->links[n].seen = book->links[n].unanswered = false;
}

// Count segments sent since the last retransmission.
static void count_clean_segments(struct loss_link *link, const struct loss_count *count) {
	if (count->again != link->clean_from.again || count->sent < link->clean_from.sent)
		link->clean_from = *count;
	link->clean = count->sent - link->clean_from.sent;
}

static uint16_t saturate_u16(uint64_t value) {
	return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

// Return segments sent and retransmitted since the last round.
static void segments_since_last_round(
	const struct loss_link *link,
	const struct loss_count *count,
	uint64_t *ret_sent,
	uint64_t *ret_again
) {
	const struct loss_count *last = &link->last;
	bool fell = count->sent < last->sent || count->again < last->again;
	bool is_one = last->connections <= 1 && count->connections <= 1;

	*ret_sent = *ret_again = 0;
	// The first round only sets the starting point.
	if (link->looks == 0)
		return;
	if (!fell) {
		*ret_sent = count->sent - last->sent;
		*ret_again = count->again - last->again;
	} else if (is_one && last->sent <= count->sent + UINT32_MAX / 2) {
		// The counters fell: the connection is new, so all its segments are new. With
		// several connections the remaining one may be old. A large drop means that a
		// 32-bit counter wrapped.
		*ret_sent = count->sent;
		*ret_again = count->again;
	}
}

void loss_round_add(struct loss_book *book, uint64_t peer, const struct loss_count *count) {
	struct loss_link *link;
	uint64_t sent, again;
	uint32_t at = 0;

	while (at < book->count && book->links[at].peer != peer)
		at++;
	if (at == LOSS_LINKS_MAX)
		return;
	link = &book->links[at];
	if (at == book->count) {
		*link = (struct loss_link){.peer = peer};
		book->count++;
	}
	link->unseen = 0;
	link->unanswered = count->unanswered;
	if (link->unanswered)
		return;
	link->seen = true;
	segments_since_last_round(link, count, &sent, &again);
	link->last = *count;
	link->sent[link->looks % LOSS_ROUNDS_KEPT] = saturate_u16(sent);
	link->again[link->looks % LOSS_ROUNDS_KEPT] = saturate_u16(again);
	link->looks++;
	count_clean_segments(link, count);
}

// Return the loss rate that is certain: few losses may be half chance, so subtract the square root
// of their number. Rounds before the first loss are skipped.
static uint32_t certain_permille(const struct loss_link *link) {
	uint32_t looks = link->looks < LOSS_ROUNDS_KEPT ? link->looks : LOSS_ROUNDS_KEPT;
	uint32_t sent = 0, again = 0, root = 1;

	for (uint32_t n = looks; n > 0; n--) {
		uint32_t at = (link->looks - n) % LOSS_ROUNDS_KEPT;

		if (again + link->again[at] == 0)
			continue;
		sent += link->sent[at];
		again += link->again[at];
	}
	while ((uint64_t)root * root < again)
		root++;
	if (again > sent)
		sent = again;
	return sent > 0 && again > root ? (uint32_t)((uint64_t)(again - root) * 1000 / sent) : 0;
}

// Return whether a continuing loss would have let so many segments pass by chance only once in four
// hundred cases.
static bool link_has_passed_enough(const struct loss_link *link) {
	uint64_t lost = link->lost_permille;
	// The weight of one passed segment as evidence that the loss ended, in thousandths: the
	// first terms of -ln(1 - p). The weight exceeds p where p is large.
	uint64_t weight = lost + lost * lost / 2000 + lost * lost * lost / 3000000;

	return link->clean * weight >= LOSS_CLEAN;
}

static void link_reset_losses(struct loss_link *link) {
	memset(link->sent, 0, sizeof(link->sent));
	memset(link->again, 0, sizeof(link->again));
	link->permille = 0;
}

// Return the retransmitted share of the segments sent in the last round_count rounds. Returns 0 if
// fewer than retransmit_min segments were retransmitted.
static uint32_t
retransmit_permille(const struct loss_link *link, uint32_t round_count, uint32_t retransmit_min) {
	uint32_t sent = 0, again = 0;

	for (uint32_t n = 1; n <= round_count && n <= link->looks; n++) {
		sent += link->sent[(link->looks - n) % LOSS_ROUNDS_KEPT];
		again += link->again[(link->looks - n) % LOSS_ROUNDS_KEPT];
	}
	if (again > sent)
		sent = again;
	return sent >= LOSS_SENT_MIN && again >= retransmit_min ? again * 1000 / sent : 0;
}

// Return whether the other links retransmitted nothing, over several times as many segments. An
// idle link sends a segment in two seconds, so two retransmissions stand out against hundreds of
// segments without any.
static bool other_links_lose_nothing(const struct loss_book *book, const struct loss_link *link) {
	uint32_t sent = 0, own = 0;

	for (uint32_t n = 0; n < book->count; n++) {
		const struct loss_link *other = &book->links[n];

		for (uint32_t look = 0; look < LOSS_ROUNDS_KEPT; look++) {
			if (other == link)
				own += other->sent[look];
			else if (other->again[look] > 0)
				return false;
			else
				sent += other->sent[look];
		}
	}
	return sent >= LOSS_OTHERS_TIMES * own;
}

// Return whether the link is lossy on its own figures. The last 40, 20 and 10 rounds are judged.
static bool link_is_lossy(const struct loss_book *book, struct loss_link *link) {
	uint32_t retransmit_min = LOSS_RESENT_MIN;

	link->permille = retransmit_permille(link, LOSS_ROUNDS_KEPT, 0);
	if (link->again[(link->looks - 1) % LOSS_ROUNDS_KEPT] > 0)
		link->lost_permille = certain_permille(link);
	// The loss is over.
	if (link->loses && link_has_passed_enough(link)) {
		link_reset_losses(link);
		return false;
	}
	// A lossy link is asked for answers, so it carries more than the others.
	if (link->loses ||
	    (link->permille >= LOSS_PERMILLE / 2 && other_links_lose_nothing(book, link)))
		retransmit_min = LOSS_RESENT_MIN_ALONE;
	for (uint32_t looks = LOSS_ROUNDS_KEPT; looks >= LOSS_ROUNDS_KEPT / 4; looks /= 2) {
		uint32_t permille = retransmit_permille(link, looks, retransmit_min);

		if (permille > link->permille)
			link->permille = permille;
	}
	return retransmit_permille(link, LOSS_ROUNDS_KEPT, retransmit_min) > 0 &&
	       link->permille >= (link->loses ? LOSS_PERMILLE / 2 : LOSS_PERMILLE);
}

// Return whether most other links lose less than half as much. An agent that begins to lose on all
// links notices one of them first.
static bool
link_loses_more_than_others(const struct loss_book *book, const struct loss_link *link) {
	uint32_t alike = 0;

	for (uint32_t n = 0; n < book->count; n++)
		alike += 2 * book->links[n].permille >= link->permille;
	return 2 * alike < book->count || (book->count == 2 && alike == 1);
}

void loss_round_end(struct loss_book *book, loss_fn *changed, void *ctx) {
	bool lose[LOSS_LINKS_MAX];
	uint32_t losing = 0, kept = 0;

	// Drop links that were not seen for long.
	for (uint32_t n = 0; n < book->count; n++) {
		struct loss_link *link = &book->links[n];

		if (link->seen || link->unanswered || link->unseen++ < LOSS_UNSEEN_ROUNDS_MAX)
			book->links[kept++] = *link;
		else if (link->loses)
			changed(ctx, link->peer, false, 0);
	}
	book->count = kept;
	for (uint32_t n = 0; n < book->count; n++) {
		lose[n] = book->links[n].seen ? link_is_lossy(book, &book->links[n])
					      : book->links[n].loses;
		// With only one link, either end may be the one that is cut off.
		losing += lose[n] || (book->links[n].unanswered && book->count > 1);
	}
	// Decide whether the fault is with this agent. With two links, one lossy link may be the
	// fault of either end: each accuses the other. The faulty agent loses on both of its links.
	book->ourselves = book->count == 2 ? losing == 2 : losing > 0 && 2 * losing >= book->count;
	for (uint32_t n = 0; n < book->count; n++) {
		struct loss_link *link = &book->links[n];
		bool loses = lose[n] && !book->ourselves && link_loses_more_than_others(book, link);

		if (loses || link->loses)
			changed(ctx, link->peer, loses, loses ? link->permille : 0);
		link->loses = loses;
	}
}

bool loss_next_to_probe(const struct loss_book *book, uint32_t *cursor, uint64_t *ret_peer) {
	while (*cursor < book->count) {
		const struct loss_link *link = &book->links[(*cursor)++];
		bool probes = link->loses || link->unanswered;

		// A recent retransmission makes the link doubtful. More traffic soon shows whether
		// it is lossy.
		for (uint32_t n = 1; !probes && n <= LOSS_DOUBT_ROUNDS && n <= link->looks; n++)
			probes = link->again[(link->looks - n) % LOSS_ROUNDS_KEPT] > 0;
		if (!probes)
			continue;
		*ret_peer = link->peer;
		return true;
	}
	return false;
}

void loss_recheck_link(
	struct loss_book *book,
	uint64_t peer,
	const struct loss_count *count,
	loss_fn *changed,
	void *ctx
) {
	uint32_t at = 0;
	struct loss_link *link;

	while (at < book->count && book->links[at].peer != peer)
		at++;
	if (at == book->count || count->unanswered)
		return;
	link = &book->links[at];
	if (link->unanswered) {
		// Make up for a round that was missed while the link was unanswered.
		loss_round_add(book, peer, count);
		link->loses = link->loses || (link_is_lossy(book, link) && !book->ourselves &&
					      link_loses_more_than_others(book, link));
		if (link->loses)
			changed(ctx, peer, true, link->permille);
		return;
	}
	if (!link->loses)
		return;
	count_clean_segments(link, count);
	if (!link_has_passed_enough(link))
		return;
	link_reset_losses(link);
	link->last = *count;
	link->loses = false;
	changed(ctx, peer, false, 0);
}

uint32_t loss_link_permille(const struct loss_book *book, uint64_t peer) {
	for (uint32_t n = 0; n < book->count; n++) {
		if (book->links[n].peer == peer && book->links[n].loses)
			return book->links[n].permille > 0 ? book->links[n].permille : 1;
	}
	return 0;
}
