// SPDX-License-Identifier: BSD-3-Clause
#include <verdict/loss.h>

#include <string.h>

void loss_begin(struct loss_book *book) {
	for (uint32_t n = 0; n < book->count; n++)
		book->links[n].seen = false;
}

static struct loss_link *find(struct loss_book *book, uint64_t peer) {
	for (uint32_t n = 0; n < book->count; n++) {
		if (book->links[n].peer == peer)
			return &book->links[n];
	}
	if (book->count == LOSS_LINKS_MAX)
		return NULL;
	book->links[book->count] = (struct loss_link){.peer = peer};
	return &book->links[book->count++];
}

void loss_add(struct loss_book *book, uint64_t peer, uint64_t sent_total, uint64_t again_total) {
	struct loss_link *link = find(book, peer);
	uint64_t sent, again;

	if (link == NULL)
		return;
	link->seen = true;
	sent = sent_total - link->sent_total;
	again = again_total - link->again_total;
	// Of the first look nothing is known but where it begins, and so of another connection.
	if (link->looks == 0 || sent_total < link->sent_total || again_total < link->again_total ||
	    sent > UINT32_MAX || again > UINT32_MAX)
		sent = again = 0;
	link->sent_total = sent_total;
	link->again_total = again_total;
	link->sent[link->looks % LOSS_LOOKS] = (uint32_t)sent;
	link->again[link->looks % LOSS_LOOKS] = (uint32_t)again;
	link->looks++;
}

// Whether it stands out by itself; a few looks are one figure.
static bool loses_by_itself(struct loss_link *link) {
	uint32_t limit = link->loses ? LOSS_PERMILLE / 2 : LOSS_PERMILLE;
	uint64_t sent = 0, again = 0;

	for (uint32_t n = 0; n < LOSS_LOOKS; n++) {
		sent += link->sent[n];
		again += link->again[n];
	}
	if (again > sent)
		sent = again;
	link->permille = sent > 0 ? (uint32_t)(again * 1000 / sent) : 0;
	return sent >= LOSS_SENT_MIN && again >= LOSS_AGAIN_MIN && link->permille >= limit;
}

static void drop(struct loss_book *book, loss_fn *changed, void *ctx) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < book->count; n++) {
		const struct loss_link *link = &book->links[n];

		if (link->seen)
			book->links[kept++] = *link;
		else if (link->loses)
			changed(ctx, link->peer, false, 0);
	}
	book->count = kept;
}

void loss_end(struct loss_book *book, loss_fn *changed, void *ctx) {
	bool lose[LOSS_LINKS_MAX];
	uint32_t losing = 0;

	drop(book, changed, ctx);
	for (uint32_t n = 0; n < book->count; n++) {
		lose[n] = loses_by_itself(&book->links[n]);
		losing += lose[n];
	}
	book->ourselves = losing > 0 && 2 * losing >= book->count;
	for (uint32_t n = 0; n < book->count; n++) {
		struct loss_link *link = &book->links[n];
		bool loses = lose[n] && !book->ourselves;

		if (loses || link->loses)
			changed(ctx, link->peer, loses, loses ? link->permille : 0);
		link->loses = loses;
	}
}
