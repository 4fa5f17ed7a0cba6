// SPDX-License-Identifier: BSD-3-Clause
// One generation of a key: created, connected, given to a lane, drained and destroyed.
#include "fabric/pairing/pairing_inside.h"

#include <stdlib.h>

// Delays before a rejected request or a failed destruction is repeated.
#define REQUEST_RETRY_NS (100 * PAIRING_NS_PER_MS)
#define DESTROY_RETRY_NS PAIRING_NS_PER_SEC
#define RESEND_GROWTH 2

// Driver calls

static void cold_call_begin(struct pairing *pairing, struct attempt *attempt, enum cold_call cold) {
	attempt->cold = cold;
	attempt->cold_ns = pairing->now_ns;
}

// Record the answer to a driver call or drain, and set *ret_attempt to the attempt that requested
// it. Returns false if no attempt waits for this answer; the caller must then ignore the answer.
static bool cold_call_answered(
	struct pairing *pairing,
	uint32_t generation,
	enum cold_call cold,
	struct attempt **ret_attempt
) {
	struct attempt *attempt = attempt_find(pairing, generation);

	if (attempt == NULL || attempt->cold != cold) {
		pairing->counters.late++;
		return false;
	}
	attempt->cold = COLD_NONE;
	if (attempt->stuck) {
		attempt->stuck = false;
		pairing->devices[attempt->entry->key.device].stuck--;
	}
	*ret_attempt = attempt;
	return true;
}

static uint64_t
cold_call_deadline_ns(const struct pairing *pairing, const struct attempt *attempt) {
	if (attempt->cold == COLD_NONE || attempt->stuck)
		return PAIRING_NEVER;
	return attempt->cold_ns +
	       (attempt->cold == COLD_DRAIN ? pairing->config.drain_ns : pairing->config.cold_ns);
}

static void attempt_mark_stuck(struct pairing *pairing, struct attempt *attempt) {
	static const char *const what[] = {
		[COLD_CREATE] = "creating",
		[COLD_CONNECT] = "connecting",
		[COLD_DRAIN] = "draining",
		[COLD_DESTROY] = "destroying",
	};
	struct entry *entry = attempt->entry;
	struct pairing_failure failure;

	attempt->stuck = true;
	pairing->devices[entry->key.device].stuck++;
	pairing->counters.stuck++;
	pairing_failure_set(
		&failure, PAIRING_DEVICE_STUCK, 0,
		"a call into the driver of %s does not return: %s a queue pair",
		pairing->devices[entry->key.device].facts.name, what[attempt->cold]
	);
	if (entry->current == attempt) {
		attempt_fail(pairing, entry, &failure);
	} else if (entry->current == NULL) {
		entry->failure = failure;
		entry->tombstone = true;
	}
}

// Return the reason for an error of a call that sets up this agent's end of a pair.
static enum pairing_reason reason_from_errno(int err) {
	switch (err) {
	case -ENOMEM:
		return PAIRING_NO_MEMORY;
	case -ENOSPC:
	case -EAGAIN:
		return PAIRING_NO_ROOM;
	case -EBADMSG:
		return PAIRING_MALFORMED;
	case -EPROTONOSUPPORT:
		return PAIRING_NO_COMMON_FABRIC;
	case -EKEYREJECTED:
		return PAIRING_LIMITED_MEMBERS;
	default:
		return PAIRING_DRIVER;
	}
}

static void attempt_call_failed(
	struct pairing *pairing, struct entry *entry, int err, const char *what, const char *text
) {
	struct pairing_failure failure;
	const char *name = strerrorname_np(-err);

	if (text != NULL && text[0] != '\0')
		pairing_failure_set(&failure, reason_from_errno(err), err, "%s", text);
	else
		pairing_failure_set(
			&failure, reason_from_errno(err), err, "%s cannot %s: %s",
			pairing->devices[entry->key.device].facts.name, what,
			name != NULL ? name : "unknown error"
		);
	attempt_fail(pairing, entry, &failure);
}

// Making a pair

// FNV-1a. Any spread will do.
static uint64_t hash_mix(uint64_t hash, const void *data, size_t size) {
	const uint8_t *bytes = data;

	for (size_t n = 0; n < size; n++)
		hash = (hash ^ bytes[n]) * UINT64_C(0x100000001b3);
	return hash;
}

// Describe this agent's end with a new generation and with the next flow label of the entry.
static void attempt_describe_own_end(struct pairing *pairing, struct attempt *attempt) {
	const struct pairing_device *device = &pairing->devices[attempt->entry->key.device].facts;
	const struct pairing_key *key = &attempt->entry->key;
	uint32_t place = attempt->entry->flow++ % PAIRING_FLOWS;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	do {
		pairing->generation++;
	} while (!pairing_generation_valid(pairing->generation));
	hash = hash_mix(hash, &pairing->config.self, sizeof(pairing->config.self));
	hash = hash_mix(hash, &key->peer, sizeof(key->peer));
	hash = hash_mix(hash, &key->device, sizeof(key->device));
	hash = hash_mix(hash, key->peer_device, strlen(key->peer_device));
	hash = hash_mix(hash, &place, sizeof(place));
	attempt->own = (struct pairing_end){
		.start = pairing->config.start,
		.generation = pairing->generation,
		.responder = device->responder,
		.shares_overlay = device->shares_overlay,
		.flow_label = (uint32_t)(hash >> 32 ^ hash) & 0xfffff,
		.traffic_class = device->traffic_class,
		.pulse = device->pulse,
		.write_sink = device->write_sink,
		.gpu = device->gpu,
	};
	attempt->psn = pairing_random(pairing) & 0xffffff;
}

static void
attempt_fail_early(struct pairing *pairing, struct entry *entry, enum pairing_reason reason) {
	struct pairing_failure failure;

	pairing_failure_set(
		&failure, reason, 0,
		reason == PAIRING_NO_ROOM ? "the limit of pairs is reached, and all are in use"
					  : "out of memory"
	);
	attempt_fail(pairing, entry, &failure);
}

void attempt_begin(struct pairing *pairing, struct entry *entry) {
	struct attempt *attempt;
	int err;

	if (!pace_make_room(pairing, entry)) {
		attempt_fail_early(pairing, entry, PAIRING_NO_ROOM);
		return;
	}
	attempt = calloc(1, sizeof(*attempt));
	if (attempt == NULL) {
		attempt_fail_early(pairing, entry, PAIRING_NO_MEMORY);
		return;
	}
	attempt->entry = entry;
	attempt_describe_own_end(pairing, attempt);
	if (entry->offered) {
		attempt->bound = true;
		attempt->theirs = entry->offer;
		entry->offered = false;
		pairing->counters.answered++;
	}
	attempt->deadline_ns = pairing->now_ns + pairing->config.handshake_ns;
	attempt->resend_gap_ns = pairing->config.resend_ns;
	entry->current = attempt;
	entry->generation = attempt->own.generation;
	pairing->counters.begun++;
	pace_begun(pairing, entry);

	cold_call_begin(pairing, attempt, COLD_CREATE);
	err = pairing->ops.create(
		pairing->ops.ctx, &entry->key, attempt->own.generation, attempt->psn
	);
	if (err < 0) {
		attempt->cold = COLD_NONE;
		attempt_call_failed(pairing, entry, err, "create a queue pair", NULL);
	}
}

void attempt_advance(struct pairing *pairing, struct attempt *attempt) {
	struct entry *entry = attempt->entry;
	struct pairing_answer answer = {.generation = attempt->own.generation};
	int err;

	if (!attempt->exists || attempt->in_lane)
		return;
	if (attempt->bound && !attempt->connect_asked) {
		attempt->connect_asked = true;
		cold_call_begin(pairing, attempt, COLD_CONNECT);
		err = pairing->ops.connect(
			pairing->ops.ctx, attempt->own.generation, &attempt->theirs,
			attempt->own.flow_label
		);
		if (err < 0) {
			attempt->cold = COLD_NONE;
			attempt_call_failed(pairing, entry, err, "connect a queue pair", NULL);
		}
		return;
	}
	if (!attempt->connected || !attempt->peer_ready)
		return;
	err = pairing->ops.hand_over(pairing->ops.ctx, attempt->own.generation);
	if (err < 0) {
		attempt_call_failed(pairing, entry, err, "pass a queue pair to its worker", NULL);
		return;
	}
	attempt->in_lane = true;
	entry->ready_ns = pairing->now_ns;
	entry->used_ns = pairing->now_ns;
	// Vary by an eighth both ways, so that pairs that started together are not renewed
	// together.
	entry->lasts_ns = pairing->config.renew_ns - pairing->config.renew_ns / 8 +
			  pairing_random(pairing) % (pairing->config.renew_ns / 4 + 1);
	entry->took_ns = pairing->now_ns - entry->begun_ns;
	entry->tombstone = false;
	entry->peer->fault = false;
	pairing->counters.succeeded++;
	waiters_answer(pairing, entry, &answer);
}

static void attempt_drop(struct attempt *attempt) {
	struct entry *entry = attempt->entry;
	struct attempt **at = &entry->retired;

	while (*at != attempt)
		at = &(*at)->next;
	*at = attempt->next;
	entry->retired_count--;
	free(attempt);
}

// Do the next step of a retired attempt, if it can be done now. May free the attempt.
static void attempt_tear_down(struct pairing *pairing, struct attempt *attempt) {
	uint32_t generation = attempt->own.generation;
	enum cold_call cold = attempt->in_lane ? COLD_DRAIN : COLD_DESTROY;
	int err;

	if (attempt->cold != COLD_NONE || pairing->now_ns < attempt->again_ns)
		return;
	if (!attempt->exists) {
		attempt_drop(attempt);
		return;
	}
	cold_call_begin(pairing, attempt, cold);
	if (cold == COLD_DRAIN)
		err = pairing->ops.drain(pairing->ops.ctx, generation, &attempt->failure);
	else
		err = pairing->ops.destroy(pairing->ops.ctx, generation);
	if (err < 0) {
		attempt->cold = COLD_NONE;
		attempt->again_ns = pairing->now_ns + REQUEST_RETRY_NS;
	}
}

void pairing_created(
	struct pairing *pairing,
	uint64_t now_ns,
	uint32_t generation,
	int err,
	const struct device_endpoint *endpoint
) {
	struct attempt *attempt;

	pairing_enter(pairing, now_ns);
	if (cold_call_answered(pairing, generation, COLD_CREATE, &attempt)) {
		attempt->exists = err >= 0;
		if (err >= 0)
			attempt->own.endpoint = *endpoint;
		if (attempt->entry->current != attempt) {
			attempt_tear_down(pairing, attempt);
		} else if (err < 0) {
			attempt_call_failed(
				pairing, attempt->entry, err, "create a queue pair", NULL
			);
		} else {
			if (entry_is_self(pairing, attempt->entry)) {
				attempt->bound = true;
				attempt->theirs = attempt->own;
			} else {
				attempt_announce(pairing, attempt);
			}
			attempt_advance(pairing, attempt);
		}
	}
	pairing_leave(pairing);
}

void pairing_connected(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err, const char *text
) {
	struct attempt *attempt;

	pairing_enter(pairing, now_ns);
	if (cold_call_answered(pairing, generation, COLD_CONNECT, &attempt)) {
		if (attempt->entry->current != attempt) {
			attempt_tear_down(pairing, attempt);
		} else if (err < 0) {
			attempt_call_failed(
				pairing, attempt->entry, err, "connect a queue pair", text
			);
		} else {
			attempt->connected = true;
			if (entry_is_self(pairing, attempt->entry))
				attempt->peer_ready = true;
			else
				attempt_announce(pairing, attempt);
			attempt_advance(pairing, attempt);
		}
	}
	pairing_leave(pairing);
}

// Taking a pair down

static void attempt_retire(
	struct pairing *pairing, struct attempt *attempt, const struct pairing_failure *failure
) {
	struct entry *entry = attempt->entry;

	if ((pairing_reason_flags(failure) & REASON_SILENT) == 0)
		attempt_announce_end(pairing, attempt, failure);
	if (attempt->in_lane && pairing->now_ns - entry->ready_ns >= pairing->config.proved_ns)
		entry->tries = 0;
	entry->broken += failure->reason == PAIRING_BROKEN;
	// The peer never heard of this attempt, so the next one may begin at once.
	if (!attempt->announced && !attempt->bound)
		entry->begun_ns = PAIRING_NEVER;
	attempt->failure = *failure;
	entry->current = NULL;
	attempt->next = entry->retired;
	entry->retired = attempt;
	entry->retired_count++;
}

void attempt_fail(
	struct pairing *pairing, struct entry *entry, const struct pairing_failure *failure
) {
	struct attempt *attempt = entry->current;
	struct pairing_answer answer = {.failure = *failure};
	uint32_t flags = pairing_reason_flags(failure);

	if (attempt != NULL)
		attempt_retire(pairing, attempt, failure);
	else if (entry->offered)
		pairing_refuse(
			pairing, entry->key.peer, pairing->devices[entry->key.device].facts.name,
			entry->key.peer_device, &entry->offer, failure
		);
	entry->offered = false;
	entry->failure = *failure;
	entry->tombstone = (flags & REASON_TOMBSTONE) != 0;
	if ((flags & REASON_FAULT) != 0)
		entry->peer->fault = true;
	pairing->counters.failed[failure->reason]++;
	pace_failed(pairing, entry);
	if ((flags & REASON_KEEPS_WAITERS) == 0)
		waiters_answer(pairing, entry, &answer);
	if (attempt != NULL)
		attempt_tear_down(pairing, attempt);
}

void pairing_broken(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err, const char *text
) {
	struct attempt *attempt = attempt_find(pairing, generation);
	struct pairing_failure failure;

	pairing_enter(pairing, now_ns);
	if (attempt == NULL || !attempt->in_lane) {
		pairing->counters.late++;
	} else if (attempt->cold == COLD_NONE) {
		// The lane drains a broken pair by itself.
		cold_call_begin(pairing, attempt, COLD_DRAIN);
		pairing_failure_set(
			&failure, PAIRING_BROKEN, err, "%s",
			text != NULL ? text : "the queue pair failed"
		);
		if (attempt->entry->current == attempt)
			attempt_fail(pairing, attempt->entry, &failure);
	}
	pairing_leave(pairing);
}

void pairing_drained(
	struct pairing *pairing, uint64_t now_ns, uint32_t generation, const char *cause
) {
	struct attempt *attempt;

	pairing_enter(pairing, now_ns);
	if (cold_call_answered(pairing, generation, COLD_DRAIN, &attempt)) {
		struct entry *entry = attempt->entry;

		attempt->in_lane = false;
		if (cause != NULL && attempt->failure.reason == PAIRING_BROKEN &&
		    entry->failure.reason == PAIRING_BROKEN && entry->generation == generation)
			pairing_failure_set(
				&entry->failure, PAIRING_BROKEN, entry->failure.err, "%s", cause
			);
		attempt_tear_down(pairing, attempt);
	}
	pairing_leave(pairing);
}

void pairing_destroyed(struct pairing *pairing, uint64_t now_ns, uint32_t generation, int err) {
	struct attempt *attempt;

	pairing_enter(pairing, now_ns);
	if (cold_call_answered(pairing, generation, COLD_DESTROY, &attempt)) {
		if (err < 0)
			attempt->again_ns = pairing->now_ns + DESTROY_RETRY_NS;
		else
			attempt->exists = false;
		attempt_tear_down(pairing, attempt);
	}
	pairing_leave(pairing);
}

// Timers

void attempt_tick(struct pairing *pairing, struct attempt *attempt) {
	uint64_t gap_max_ns = RESEND_GROWTH * pairing->config.resend_ns;
	struct pairing_failure failure;

	if (cold_call_deadline_ns(pairing, attempt) <= pairing->now_ns) {
		attempt_mark_stuck(pairing, attempt);
		return;
	}
	if (attempt->entry->current != attempt) {
		attempt_tear_down(pairing, attempt);
		return;
	}
	if (attempt->in_lane)
		return;
	if (pairing->now_ns >= attempt->deadline_ns) {
		const char *awaited = "the peer to be ready";

		if (!attempt->exists)
			awaited = "the driver to create a queue pair";
		else if (!attempt->bound)
			awaited = "an answer from the peer";
		else if (!attempt->connected)
			awaited = "the driver to connect the queue pair";
		pairing_failure_set(
			&failure, PAIRING_TIMED_OUT, 0, "timed out, waiting for %s", awaited
		);
		attempt_fail(pairing, attempt->entry, &failure);
		return;
	}
	if (!attempt->announced || pairing->now_ns < attempt->resend_ns)
		return;
	pairing->counters.resent++;
	attempt->resend_gap_ns *= 2;
	if (attempt->resend_gap_ns > gap_max_ns)
		attempt->resend_gap_ns = gap_max_ns;
	attempt_announce(pairing, attempt);
}

uint64_t attempt_next_ns(const struct pairing *pairing, const struct attempt *attempt) {
	uint64_t at_ns = cold_call_deadline_ns(pairing, attempt);

	if (attempt->entry->current != attempt) {
		if (attempt->cold == COLD_NONE && attempt->again_ns < at_ns)
			at_ns = attempt->again_ns;
		return at_ns;
	}
	if (attempt->in_lane)
		return at_ns;
	if (attempt->deadline_ns < at_ns)
		at_ns = attempt->deadline_ns;
	if (attempt->announced && attempt->resend_ns < at_ns)
		at_ns = attempt->resend_ns;
	return at_ns;
}

void attempts_free(struct entry *entry) {
	while (entry->retired != NULL)
		attempt_drop(entry->retired);
	free(entry->current);
	entry->current = NULL;
}
