// SPDX-License-Identifier: BSD-3-Clause
// Contested deaths: others report the death of a peer that this agent hears. The peer is asked to
// refute it.
#include "live/contest.h"

#include "core/core.h"
#include "live/liveness_witness.h"

// Time for a round trip through two stalls of two seconds each, to a distant host.
#define CONTEST_NS (5 * RAS_NS_PER_SEC)

void contests_fini(struct ras *ras) {
	struct contests *contests = &ras->contests;

	memory_release(&ras->memory, contests->list, contests->capacity * sizeof(*contests->list));
	*contests = (struct contests){0};
}

static struct contest *contest_find(struct ras *ras, uint64_t id) {
	for (uint32_t n = 0; n < ras->contests.count; n++) {
		if (ras->contests.list[n].news.id == id)
			return &ras->contests.list[n];
	}
	return NULL;
}

static void contest_remove(struct ras *ras, struct contest *contest) {
	*contest = ras->contests.list[--ras->contests.count];
}

static void subject_notify(struct ras *ras, struct link *link, const struct peer_news *news) {
	struct peer_news told = *news;
	struct wire_writer writer;

	if (told.hops < UINT8_MAX)
		told.hops++;
	news_frame_begin(ras, &writer);
	message_news_encode(&told, &writer);
	link_send(ras, link, ras->scratch, wire_writer_used(&writer));
}

// Begin a contest. Returns false without memory; the death is then merged, and refuted a little
// later.
static bool contest_begin(struct ras *ras, struct link *link, const struct peer_news *news) {
	struct contests *contests = &ras->contests;
	struct contest *contest = contest_find(ras, news->id);

	if (contest != NULL) {
		if (news->incarnation > contest->news.incarnation ||
		    news->observer_count > contest->news.observer_count) {
			contest->news = *news;
			contest->news.record = NULL;
			subject_notify(ras, link, &contest->news);
		}
		return true;
	}
	if (contests->count == CONTESTS_MAX ||
	    memory_grow(
		    &ras->memory, (void **)&contests->list, &contests->capacity,
		    contests->count + 1, sizeof(*contests->list)
	    ) != 0)
		return false;
	contest = &contests->list[contests->count++];
	*contest = (struct contest){.news = *news, .due_ns = ras->observed_ns + CONTEST_NS};
	contest->news.record = NULL;
	ras_wake_at(ras, contest->due_ns);
	subject_notify(ras, link, &contest->news);
	return true;
}

// Turn a death with too few witnesses into a suspicion of the same start, which may be unknown
// here. Returns true if its record must be requested first.
static bool suspicion_from_death(struct ras *ras, uint32_t slot, const struct peer_news *news) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	struct peer_news alive = *news;

	if (!peer_is_member(entry) || news->incarnation < entry->incarnation)
		return false;
	if (ras_incarnation_start(news->incarnation) != ras_incarnation_start(entry->incarnation)) {
		if (news->record == NULL)
			return true;
		alive.state = RAS_ALIVE;
		alive.observer_count = 0;
		membership_apply(ras, &alive, NULL);
		entry = ras_entry(ras, slot);
	}
	// The peer may have refuted a death that never reached this agent.
	if (peer_is_member(entry) && news->incarnation >= entry->incarnation)
		liveness_death_reported(ras, slot, news);
	return false;
}

bool contest_death_is_accepted(struct ras *ras, uint32_t slot, const struct peer_news *news) {
	struct peer_entry *entry = slot != RAS_NO_SLOT ? ras_entry(ras, slot) : NULL;
	struct link *link;

	// A joiner takes over the table of a seed as it is.
	if (!ras->joined)
		return true;
	if (witnesses_reported(ras, news) < witnesses_needed(ras, slot))
		return entry != NULL && suspicion_from_death(ras, slot, news);
	if (entry == NULL || !peer_is_member(entry) || !ras->profile->evidence ||
	    ras_incarnation_start(news->incarnation) != ras_incarnation_start(entry->incarnation) ||
	    news->incarnation < entry->incarnation)
		return true;
	link = link_find(ras, slot);
	return link == NULL || !link_is_good(link) || !contest_begin(ras, link, news);
}

bool contest_end_if_refuted(struct ras *ras, uint32_t slot) {
	struct contest *contest = contest_find(ras, ras_entry(ras, slot)->record->id);

	if (contest == NULL || ras_entry(ras, slot)->incarnation <= contest->news.incarnation)
		return false;
	contest_remove(ras, contest);
	return true;
}

void contest_forget_peer(struct ras *ras, uint32_t slot) {
	struct contest *contest = contest_find(ras, ras_entry(ras, slot)->record->id);

	if (contest != NULL)
		contest_remove(ras, contest);
}

void contests_tick(struct ras *ras) {
	for (uint32_t n = 0; n < ras->contests.count;) {
		struct contest contest = ras->contests.list[n];
		uint32_t slot = peers_find(&ras->peers, contest.news.id);
		struct link *link = slot != RAS_NO_SLOT ? link_find(ras, slot) : NULL;

		if (contest.due_ns > ras->observed_ns && link != NULL && link_is_good(link)) {
			ras_wake_at(ras, contest.due_ns);
			n++;
			continue;
		}
		contest_remove(ras, &ras->contests.list[n]);
		membership_apply(ras, &contest.news, NULL);
	}
}
