// SPDX-License-Identifier: BSD-3-Clause
// Decides when a handshake may begin. Each key has a backoff. Keys, and peers that fail, have a
// minimum interval. All handshakes share a rate limit, and the number of pairs is limited.
//
// The rate limit is a token bucket with a burst of one second. It is stored as the time at which
// the next handshake would be due at exactly that rate.
#include "fabric/pairing/pairing_inside.h"

#define RATE_BURST_NS PAIRING_NS_PER_SEC

// Return the backoff, which doubles with each try. Jitter is added, so that the first backoff is
// not too short. The maximum is lowered by the jitter, so that the last ones are not too long.
static uint64_t backoff_ns(struct pairing *pairing, const struct entry *entry) {
	const struct pairing_config *config = &pairing->config;
	uint64_t max_ns = entry->wanted ? config->backoff_wanted_ns : config->backoff_max_ns;
	// A timeout was a long wait already: the peer may be back since the last message.
	bool waited = entry->wanted && entry->failure.reason == PAIRING_TIMED_OUT;
	uint64_t delay_ns = config->backoff_ns;

	for (uint32_t n = 1; n < entry->tries && delay_ns < max_ns && !waited; n++)
		delay_ns *= 2;
	if (delay_ns > max_ns / 5 * 4)
		delay_ns = max_ns / 5 * 4;
	return delay_ns + pairing_random(pairing) % (delay_ns / 4 + 1);
}

void pace_failed(struct pairing *pairing, struct entry *entry) {
	uint32_t flags = pairing_reason_flags(&entry->failure);

	if (entry->failure.reason == PAIRING_IDLE || entry->failure.reason == PAIRING_SHUTDOWN) {
		entry->next_try_ns = pairing->now_ns;
		return;
	}
	entry->tries++;
	if ((flags & REASON_NEWS_ONLY) != 0)
		entry->next_try_ns = PAIRING_NEVER;
	else
		entry->next_try_ns = pairing->now_ns + backoff_ns(pairing, entry);
}

void pace_reset(struct pairing *pairing, struct entry *entry) {
	entry->tries = 0;
	entry->next_try_ns = pairing->now_ns;
}

uint64_t pace_wanted_at_ns(const struct pairing *pairing, const struct entry *entry) {
	if (entry->current != NULL || entry_obstacle(pairing, entry) != PAIRING_REASON_NONE)
		return PAIRING_NEVER;
	if (entry->offered)
		return entry->retired_count <= 1 ? 0 : PAIRING_NEVER;
	if ((!entry->wanted && entry->waiters == NULL) || entry->retired_count > 0)
		return PAIRING_NEVER;
	return entry->waiters != NULL && !entry->tombstone ? 0 : entry->next_try_ns;
}

uint64_t pace_due_at_ns(const struct pairing *pairing, const struct entry *entry) {
	uint64_t due_ns = pace_wanted_at_ns(pairing, entry);
	const struct peer *peer = entry->peer;
	uint64_t rate_due_ns =
		pairing->rate_ns > RATE_BURST_NS ? pairing->rate_ns - RATE_BURST_NS : 0;

	if (due_ns == PAIRING_NEVER)
		return due_ns;
	if (entry->begun_ns != PAIRING_NEVER)
		due_ns = pairing_time_later(due_ns, entry->begun_ns + pairing->config.gap_ns);
	if (peer->fault && peer->begun_ns != PAIRING_NEVER)
		due_ns = pairing_time_later(due_ns, peer->begun_ns + pairing->config.gap_ns);
	return pairing_time_later(due_ns, rate_due_ns);
}

void pace_begun(struct pairing *pairing, struct entry *entry) {
	entry->begun_ns = pairing->now_ns;
	entry->peer->begun_ns = pairing->now_ns;
	entry->deferred = false;
	pairing->rate_ns = pairing_time_later(pairing->rate_ns, pairing->now_ns) +
			   PAIRING_NS_PER_SEC / pairing->config.rate;
}

// Limits on the number of pairs

enum kind {
	KIND_WANTED,
	KIND_GUEST,
	KIND_DEMAND,
};

static enum kind entry_kind(const struct entry *entry) {
	const struct attempt *attempt = entry->current;
	bool guest = entry->offered ? entry->offer.wanted
				    : attempt != NULL && attempt->bound && attempt->theirs.wanted;

	if (entry->wanted)
		return KIND_WANTED;
	return guest ? KIND_GUEST : KIND_DEMAND;
}

static struct entry *kind_longest_unused(const struct pairing *pairing, enum kind kind) {
	struct entry *found = NULL;

	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->current == NULL || !entry->current->in_lane || entry_kind(entry) != kind)
			continue;
		if (pairing->now_ns < entry->used_ns + pairing->config.evict_ns)
			continue;
		if (found == NULL || entry->used_ns < found->used_ns)
			found = entry;
	}
	return found;
}

bool pace_make_room(struct pairing *pairing, struct entry *entry) {
	enum kind kind = entry_kind(entry);
	uint32_t max = kind == KIND_GUEST ? pairing->config.guest_max : pairing->config.demand_max;
	struct pairing_failure failure;
	struct entry *unused;
	uint32_t live = 0;

	if (kind == KIND_WANTED)
		return true;
	for (const struct entry *other = pairing->entries; other != NULL; other = other->next) {
		if (other->current != NULL && entry_kind(other) == kind)
			live++;
	}
	pairing_failure_set(&failure, PAIRING_IDLE, 0, "closed to make room for another pair");
	for (; live >= max; live--) { // more than one, if some became unwanted
		unused = kind_longest_unused(pairing, kind);
		if (unused == NULL)
			return false;
		pairing->counters.evicted++;
		attempt_fail(pairing, unused, &failure);
	}
	return true;
}
