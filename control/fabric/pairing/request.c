// SPDX-License-Identifier: BSD-3-Clause
// Requests for pairs: wanted for ever, or awaited once.
#include "fabric/pairing/pairing_inside.h"

static bool key_is_valid(const struct pairing *pairing, const struct pairing_key *key) {
	size_t length = strnlen(key->peer_device, sizeof(key->peer_device));

	return key->device < pairing->device_count && length > 0 &&
	       length < sizeof(key->peer_device);
}

enum pairing_reason entry_obstacle(const struct pairing *pairing, const struct entry *entry) {
	const struct own_device *device = &pairing->devices[entry->key.device];

	if (pairing->stopping)
		return PAIRING_SHUTDOWN;
	if (device->stuck > 0)
		return PAIRING_DEVICE_STUCK;
	if (device->state == PAIRING_DEVICE_LOST)
		return PAIRING_DEVICE_GONE;
	if (device->state != PAIRING_DEVICE_ACTIVE)
		return PAIRING_NO_DEVICE;
	if (entry->peer->state != PAIRING_PEER_IS_ALIVE)
		return PAIRING_PEER_DEAD;
	return PAIRING_REASON_NONE;
}

void entry_obstacle_describe(
	const struct pairing *pairing,
	const struct entry *entry,
	struct pairing_failure *ret_failure
) {
	const struct own_device *device = &pairing->devices[entry->key.device];
	enum pairing_reason reason = entry_obstacle(pairing, entry);

	if (reason == PAIRING_SHUTDOWN)
		pairing_failure_set(ret_failure, reason, 0, "the agent is stopping");
	else if (reason == PAIRING_DEVICE_STUCK)
		pairing_failure_set(
			ret_failure, reason, 0, "a call into the driver of %s does not return",
			device->facts.name
		);
	else if (reason == PAIRING_PEER_DEAD)
		pairing_failure_set(
			ret_failure, reason, 0,
			entry->peer->state == PAIRING_PEER_HAS_LEFT ? "the peer has left"
								    : "the peer is dead"
		);
	else
		pairing_failure_set(
			ret_failure, reason, 0, "%s: %s", device->facts.name, device->text
		);
}

// Answers

static void waiter_answer(
	struct pairing *pairing, struct pairing_waiter *waiter, const struct pairing_answer *answer
) {
	waiter->next = NULL;
	if (answer->failure.reason != PAIRING_REASON_NONE)
		pairing->counters.waiters_failed++;
	if (waiter == pairing->asking) {
		*pairing->asked = *answer;
		pairing->asking = NULL;
		return;
	}
	waiter->answered(waiter, answer);
}

void waiters_answer(
	struct pairing *pairing, struct entry *entry, const struct pairing_answer *answer
) {
	while (entry->waiters != NULL) {
		struct pairing_waiter *waiter = entry->waiters;

		entry->waiters = waiter->next;
		waiter_answer(pairing, waiter, answer);
	}
}

void waiters_expire(struct pairing *pairing, struct entry *entry) {
	struct pairing_waiter **at = &entry->waiters;
	struct pairing_answer late = {0};

	while (*at != NULL) {
		struct pairing_waiter *waiter = *at;

		if (waiter->deadline_ns > pairing->now_ns) {
			at = &waiter->next;
			continue;
		}
		*at = waiter->next;
		pairing_failure_set(
			&late.failure, PAIRING_DEADLINE, 0,
			"no pair was ready in time; its state is %s",
			pairing_state_name(entry->state)
		);
		waiter_answer(pairing, waiter, &late);
	}
}

uint64_t waiters_next_ns(const struct entry *entry) {
	uint64_t at_ns = PAIRING_NEVER;

	for (const struct pairing_waiter *waiter = entry->waiters; waiter != NULL;
	     waiter = waiter->next) {
		if (waiter->deadline_ns < at_ns)
			at_ns = waiter->deadline_ns;
	}
	return at_ns;
}

// Requests

static void entry_error_describe(struct pairing_failure *ret_failure, int err) {
	switch (err) {
	case -EHOSTDOWN:
		pairing_failure_set(ret_failure, PAIRING_PEER_DEAD, err, "the peer is dead");
		return;
	case -ENOMEM:
		pairing_failure_set(ret_failure, PAIRING_NO_MEMORY, err, "out of memory");
		return;
	case -ENOSPC:
		pairing_failure_set(
			ret_failure, PAIRING_NO_ROOM, err, "the limit of known pairs is reached"
		);
		return;
	default:
		pairing_failure_set(ret_failure, PAIRING_UNREACHABLE, err, "there is no such peer");
	}
}

// Answer at once if the entry's state allows it. Returns false if the waiter has to wait.
static bool
entry_answer_now(struct pairing *pairing, struct entry *entry, struct pairing_answer *ret_answer) {
	*ret_answer = (struct pairing_answer){0};
	if (entry->current != NULL && entry->current->in_lane) {
		entry->used_ns = pairing->now_ns;
		ret_answer->generation = entry->current->own.generation;
		return true;
	}
	if (entry->current != NULL)
		return false;
	if (entry_obstacle(pairing, entry) != PAIRING_REASON_NONE) {
		entry_obstacle_describe(pairing, entry, &ret_answer->failure);
		return true;
	}
	if (!entry->tombstone || entry->next_try_ns <= pairing->now_ns)
		return false;
	ret_answer->failure = entry->failure;
	return true;
}

// Returns false if the waiter was added to those of the entry.
static bool entry_request(
	struct pairing *pairing,
	const struct pairing_key *key,
	uint64_t deadline_ns,
	struct pairing_waiter *waiter,
	struct pairing_answer *ret_answer
) {
	struct entry *entry;
	int err;

	*ret_answer = (struct pairing_answer){0};
	if (!key_is_valid(pairing, key)) {
		pairing_failure_set(
			&ret_answer->failure, PAIRING_NO_DEVICE, 0, "there is no such device"
		);
		return true;
	}
	if (pairing->stopping) {
		pairing_failure_set(
			&ret_answer->failure, PAIRING_SHUTDOWN, 0, "the agent is stopping"
		);
		return true;
	}
	err = entry_get(pairing, key, false, &entry);
	if (err < 0) {
		entry_error_describe(&ret_answer->failure, err);
		return true;
	}
	if (entry_answer_now(pairing, entry, ret_answer))
		return true;
	waiter->key = *key;
	waiter->deadline_ns = deadline_ns;
	waiter->next = entry->waiters;
	entry->waiters = waiter;
	return false;
}

bool pairing_request(
	struct pairing *pairing,
	uint64_t now_ns,
	const struct pairing_key *key,
	uint64_t deadline_ns,
	struct pairing_waiter *waiter,
	struct pairing_answer *ret_answer
) {
	bool answered;

	pairing_enter(pairing, now_ns);
	pairing->counters.waiters++;
	answered = entry_request(pairing, key, deadline_ns, waiter, ret_answer);
	if (answered && ret_answer->failure.reason != PAIRING_REASON_NONE)
		pairing->counters.waiters_failed++;
	if (!answered) {
		pairing->asking = waiter;
		pairing->asked = ret_answer;
	}
	pairing_leave(pairing);
	if (!answered)
		answered = pairing->asking == NULL;
	pairing->asking = NULL;
	return answered;
}

int pairing_cancel(struct pairing *pairing, struct pairing_waiter *waiter) {
	struct entry *entry = entry_find(pairing, &waiter->key);
	struct pairing_waiter **at = entry != NULL ? &entry->waiters : NULL;
	struct pairing_answer cancelled = {0};

	while (at != NULL && *at != NULL && *at != waiter)
		at = &(*at)->next;
	if (at == NULL || *at == NULL)
		return -ENOENT;
	*at = waiter->next;
	pairing_failure_set(&cancelled.failure, PAIRING_CANCELLED, 0, "cancelled");
	waiter_answer(pairing, waiter, &cancelled);
	return 0;
}

int pairing_set_wanted(
	struct pairing *pairing, uint64_t now_ns, const struct pairing_key *key, bool wanted
) {
	struct entry *entry;
	int err = 0;

	if (!key_is_valid(pairing, key))
		return -EINVAL;
	pairing_enter(pairing, now_ns);
	entry = entry_find(pairing, key);
	if (entry == NULL && wanted)
		err = entry_get(pairing, key, true, &entry);
	if (err == 0 && entry != NULL && entry->wanted != wanted) {
		uint64_t soon_ns = pairing->now_ns + pairing->config.backoff_wanted_ns;

		entry->wanted = wanted;
		if (wanted && entry->next_try_ns != PAIRING_NEVER && entry->next_try_ns > soon_ns)
			entry->next_try_ns = soon_ns;
		// The peer keeps a pair that we want, so it must know.
		if (entry->current != NULL && entry->current->in_lane &&
		    !entry_is_self(pairing, entry))
			attempt_announce(pairing, entry->current);
	}
	pairing_leave(pairing);
	return err;
}

void pairing_report_success(struct pairing *pairing, uint64_t now_ns, uint32_t generation) {
	struct attempt *attempt = attempt_find(pairing, generation);

	if (attempt == NULL || attempt->entry->current != attempt || !attempt->in_lane)
		return;
	attempt->entry->used_ns = pairing_time_later(pairing->now_ns, now_ns);
	attempt->entry->tries = 0;
}
