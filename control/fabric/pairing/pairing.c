// SPDX-License-Identifier: BSD-3-Clause
// Lifecycle and timers of a pairing.
#include "fabric/pairing/pairing_inside.h"

#include <lib/splitmix.h>

#include <stdlib.h>

static uint64_t config_default(uint64_t value, uint64_t preset) {
	return value != 0 ? value : preset;
}

int pairing_create(
	const struct pairing_config *config,
	const struct pairing_ops *ops,
	struct pairing **ret_pairing
) {
	struct pairing *pairing = calloc(1, sizeof(*pairing));
	struct pairing_config *full;

	if (pairing == NULL)
		return -ENOMEM;
	pairing->config = *config;
	full = &pairing->config;
	full->handshake_ns = config_default(config->handshake_ns, 5 * PAIRING_NS_PER_SEC);
	full->resend_ns = config_default(config->resend_ns, 250 * PAIRING_NS_PER_MS);
	full->cold_ns = config_default(config->cold_ns, 5 * PAIRING_NS_PER_SEC);
	full->drain_ns = config_default(config->drain_ns, 30 * PAIRING_NS_PER_SEC);
	full->backoff_ns = config_default(config->backoff_ns, 250 * PAIRING_NS_PER_MS);
	full->backoff_max_ns = config_default(config->backoff_max_ns, 30 * PAIRING_NS_PER_SEC);
	full->backoff_wanted_ns =
		config_default(config->backoff_wanted_ns, 900 * PAIRING_NS_PER_MS);
	full->gap_ns = config_default(config->gap_ns, PAIRING_NS_PER_SEC);
	full->rate = (uint32_t)config_default(config->rate, 128);
	full->demand_max = (uint32_t)config_default(config->demand_max, 64);
	full->guest_max = (uint32_t)config_default(config->guest_max, 64);
	full->idle_ns = config_default(config->idle_ns, 600 * PAIRING_NS_PER_SEC);
	full->renew_ns = config_default(config->renew_ns, 600 * PAIRING_NS_PER_SEC);
	full->evict_ns = config_default(config->evict_ns, PAIRING_NS_PER_SEC);
	full->proved_ns = config_default(config->proved_ns, 10 * PAIRING_NS_PER_SEC);
	if (config->start == 0 || full->rate > PAIRING_NS_PER_SEC ||
	    full->backoff_ns > full->backoff_max_ns || full->backoff_ns > full->backoff_wanted_ns ||
	    full->resend_ns > full->handshake_ns) {
		free(pairing);
		return -EINVAL;
	}
	pairing->ops = *ops;
	pairing->random = config->random_seed;
	pairing->wake_ns = PAIRING_NEVER;
	pairing->entries_end = &pairing->entries;
	*ret_pairing = pairing;
	return 0;
}

struct pairing *pairing_destroy(struct pairing *pairing) {
	struct pairing_answer answer = {0};

	if (pairing == NULL)
		return NULL;
	pairing_failure_set(&answer.failure, PAIRING_SHUTDOWN, 0, "the agent is stopping");
	while (pairing->entries != NULL) {
		struct entry *entry = pairing->entries;

		waiters_answer(pairing, entry, &answer);
		attempts_free(entry);
		pairing->entries = entry->next;
		free(entry);
	}
	while (pairing->peers != NULL) {
		struct peer *peer = pairing->peers;

		pairing->peers = peer->next;
		free(peer);
	}
	free(pairing);
	return NULL;
}

void pairing_stop(struct pairing *pairing, uint64_t now_ns) {
	struct pairing_failure failure;

	pairing_enter(pairing, now_ns);
	pairing->stopping = true;
	pairing_failure_set(&failure, PAIRING_SHUTDOWN, 0, "the agent is stopping");
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->current != NULL || entry->offered || entry->waiters != NULL)
			attempt_fail(pairing, entry, &failure);
	}
	pairing_leave(pairing);
}

bool pairing_is_empty(const struct pairing *pairing) {
	for (const struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->current != NULL || entry->retired != NULL)
			return false;
	}
	return true;
}

const struct pairing_counters *pairing_counters(const struct pairing *pairing) {
	return &pairing->counters;
}

uint64_t pairing_random(struct pairing *pairing) {
	return splitmix_next(&pairing->random);
}

// Timers

void pairing_enter(struct pairing *pairing, uint64_t now_ns) {
	pairing->now_ns = pairing_time_later(pairing->now_ns, now_ns);
}

// Return when a pair that neither side wants has been unused for too long.
static uint64_t idle_ns(const struct pairing *pairing, const struct entry *entry) {
	const struct attempt *attempt = entry->current;

	if (attempt == NULL || !attempt->in_lane || entry->wanted || attempt->theirs.wanted)
		return PAIRING_NEVER;
	return entry->used_ns + pairing->config.idle_ns;
}

// Return when a pair is renewed, so that it takes another route through the fabric. If both sides
// want it, the side with the lower id renews it. A pair with a silent peer is not renewed: it is
// evidence that the peer lives, and could not be made again.
static uint64_t renew_ns(const struct pairing *pairing, const struct entry *entry) {
	const struct attempt *attempt = entry->current;

	if (attempt == NULL || !attempt->in_lane || !entry->wanted || pairing->stopping ||
	    entry_is_self(pairing, entry) || entry->peer->state != PAIRING_PEER_IS_ALIVE ||
	    attempt->own.endpoint.link != DEVICE_LINK_ETHERNET ||
	    (attempt->theirs.wanted && entry->key.peer < pairing->config.self))
		return PAIRING_NEVER;
	return entry->ready_ns + entry->lasts_ns;
}

static void entry_tick(struct pairing *pairing, struct entry *entry) {
	struct pairing_failure failure;
	struct attempt *next;
	uint64_t wish_ns;

	waiters_expire(pairing, entry);
	if (entry->current != NULL)
		attempt_tick(pairing, entry->current);
	for (struct attempt *attempt = entry->retired; attempt != NULL; attempt = next) {
		next = attempt->next;
		attempt_tick(pairing, attempt);
	}

	if (idle_ns(pairing, entry) <= pairing->now_ns) {
		pairing->counters.evicted++;
		pairing_failure_set(
			&failure, PAIRING_IDLE, 0, "closed after a long time without use"
		);
		attempt_fail(pairing, entry, &failure);
	}
	if (renew_ns(pairing, entry) <= pairing->now_ns) {
		pairing->counters.renewed++;
		pairing_failure_set(
			&failure, PAIRING_IDLE, 0, "replaced by a pair on another route"
		);
		attempt_fail(pairing, entry, &failure);
	}

	// Fail the waiters, and the offer of a peer, if no pair can be made at present.
	if (entry->current == NULL && (entry->offered || entry->waiters != NULL)) {
		if (entry_obstacle(pairing, entry) != PAIRING_REASON_NONE) {
			entry_obstacle_describe(pairing, entry, &failure);
			attempt_fail(pairing, entry, &failure);
		} else if (entry->offered && entry->offer_until_ns <= pairing->now_ns) {
			entry->offered = false;
		}
	}

	wish_ns = pace_wanted_at_ns(pairing, entry);
	if (pace_due_at_ns(pairing, entry) <= pairing->now_ns) {
		attempt_begin(pairing, entry);
	} else if (wish_ns <= pairing->now_ns && !entry->deferred) {
		entry->deferred = true;
		pairing->counters.deferred++;
	}
}

static uint64_t time_earlier(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

static uint64_t entry_next_ns(const struct pairing *pairing, const struct entry *entry) {
	uint64_t at_ns = time_earlier(waiters_next_ns(entry), pace_due_at_ns(pairing, entry));

	at_ns = time_earlier(
		at_ns, time_earlier(idle_ns(pairing, entry), entry_expire_at_ns(entry))
	);
	at_ns = time_earlier(at_ns, renew_ns(pairing, entry));
	if (entry->offered)
		at_ns = time_earlier(at_ns, entry->offer_until_ns);
	if (entry->current != NULL)
		at_ns = time_earlier(at_ns, attempt_next_ns(pairing, entry->current));
	for (const struct attempt *attempt = entry->retired; attempt != NULL;
	     attempt = attempt->next)
		at_ns = time_earlier(at_ns, attempt_next_ns(pairing, attempt));
	return at_ns;
}

void pairing_leave(struct pairing *pairing) {
	struct pairing_counters *counters = &pairing->counters;
	uint64_t at_ns = PAIRING_NEVER;

	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next)
		entry_tick(pairing, entry);
	counters->pending = 0;
	counters->ready = 0;
	counters->retired = 0;
	// One entry may have changed another, so states are updated only after all have run.
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		entry_update(pairing, entry);
		counters->retired += entry->retired_count;
		if (entry->current != NULL && entry->current->in_lane)
			counters->ready++;
		else if (entry->current != NULL)
			counters->pending++;
	}
	entries_expire(pairing);
	for (const struct entry *entry = pairing->entries; entry != NULL; entry = entry->next)
		at_ns = time_earlier(at_ns, entry_next_ns(pairing, entry));
	if (at_ns == pairing->wake_ns)
		return;
	pairing->wake_ns = at_ns;
	pairing->ops.wake(pairing->ops.ctx, at_ns);
}

void pairing_tick(struct pairing *pairing, uint64_t now_ns) {
	pairing_enter(pairing, now_ns);
	pairing->wake_ns = PAIRING_NEVER; // the timer has fired
	pairing_leave(pairing);
}
