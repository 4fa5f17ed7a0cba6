// SPDX-License-Identifier: BSD-3-Clause
// Evidence of one subject: storage, replacement and expiry.
#include "inside.h"

#include <errno.h>
#include <string.h>

// The pulse of an agent that stops falls silent at most this long before the overlay doubts the
// agent.
#define SILENCE_BEFORE_DOUBT_NS (3 * SEC)

int subject_get_or_create(
	struct verdict_engine *engine, uint32_t peer, struct subject **ret_subject
) {
	struct member_row *row = &engine->members.rows[peer];
	struct subject *subject = row->subject;
	int err;

	if (subject != NULL) {
		*ret_subject = subject;
		return 0;
	}
	err = array_grow(
		&engine->memory, (void **)&engine->subjects, &engine->subject_capacity,
		engine->subject_count + 1, sizeof(struct subject *)
	);
	if (err == 0)
		err = array_grow(
			&engine->memory, (void **)&engine->due, &engine->due_capacity,
			engine->subject_count + 1, sizeof(struct subject *)
		);
	if (err != 0)
		return err;
	subject = engine->memory.allocate(engine->memory.ctx, sizeof(*subject));
	if (subject == NULL)
		return -ENOMEM;
	subject->peer = peer;
	subject->place = engine->subject_count;
	subject->held.verdict = VERDICT_HEALTHY;
	subject->held.state = RAS_ALIVE;
	subject->held.reason[0] = '\0';
	subject->flap_history.word = subject->flap_history.before = VERDICT_HEALTHY;
	subject->better_since_ns = RAS_NEVER;
	subject->stale_ns = RAS_NEVER;
	subject->next_ns = RAS_NEVER;
	engine->subjects[engine->subject_count++] = subject;
	row->subject = subject;
	*ret_subject = subject;
	return 0;
}

static bool observer_reads_nothing(const struct observation *observation) {
	return observation->kind == OBSERVATION_SILENT && !observation->own_good;
}

// Uncount a dropped observation at its observer.
static void observation_uncount(struct verdict_engine *engine, const struct evidence *evidence) {
	struct subject *observer_subject;

	if (!observation_is_bad(evidence->observation.kind) || evidence->observer == MEMBERS_NONE)
		return;
	observer_subject = engine->members.rows[evidence->observer].subject;
	if (observer_subject == NULL || observer_subject->tells[evidence->observation.kind] == 0)
		return;
	observer_subject->tells[evidence->observation.kind]--;
	observer_subject->blind_reports -= observer_reads_nothing(&evidence->observation);
	observer_subject->bad_reports--;
}

static void observation_drop(struct verdict_engine *engine, struct subject *subject, uint32_t at) {
	uint64_t observer = subject->observations[at].observation.observer;

	observation_uncount(engine, &subject->observations[at]);
	subject->observations[at] = subject->observations[--subject->observation_count];
	observer_index_drop(engine, subject, observer);
}

bool subject_has_observer(const struct subject *subject, uint64_t observer) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		if (subject->observations[n].observation.observer == observer)
			return true;
	}
	return false;
}

void subject_drop_observer(
	struct verdict_engine *engine, struct subject *subject, uint64_t observer
) {
	for (uint32_t n = subject->observation_count; n-- > 0;) {
		if (subject->observations[n].observation.observer == observer)
			observation_drop(engine, subject, n);
	}
}

void subject_clear(struct verdict_engine *engine, struct subject *subject) {
	while (subject->observation_count > 0)
		observation_drop(engine, subject, subject->observation_count - 1);
	subject->said_count = 0;
	subject_clear_stale(subject, STALE_OBSERVATIONS | STALE_STATEMENTS);
	subject->blame = FABRIC_UNSEEN;
}

static bool observation_kind_is_silence(enum observation_kind kind) {
	return kind == OBSERVATION_SILENT || kind == OBSERVATION_STANDING;
}

// Return whether the observation concerns the overlay connections alone.
static bool observation_is_of_overlay(const struct observation *observation) {
	return observation->kind == OBSERVATION_NO_PAIR &&
	       (verdict_reach_is_unanswered(observation->reach) ||
		observation->reach == VERDICT_REACH_OTHER);
}

// The evidence that explained a death ends with it. Nobody reads a dead node, so nobody would
// withdraw that evidence. If it still holds, observers report it again within seconds.
void subject_handle_refuted_death(struct verdict_engine *engine, struct subject *subject) {
	for (uint32_t n = subject->observation_count; n-- > 0;) {
		const struct observation *observation = &subject->observations[n].observation;

		if (observation_is_of_overlay(observation) ||
		    observation_kind_is_silence(observation->kind))
			observation_drop(engine, subject, n);
	}
	subject_clear_stale(subject, STALE_OBSERVATIONS);
}

void subject_handle_return(struct verdict_engine *engine, struct subject *subject) {
	for (uint32_t n = subject->observation_count; n-- > 0;) {
		const struct evidence *evidence = &subject->observations[n];

		// Bad reads that began long before the doubt have another cause.
		if (observation_is_of_overlay(&evidence->observation) ||
		    (observation_kind_is_silence(evidence->observation.kind) &&
		     evidence->since_ns + SILENCE_BEFORE_DOUBT_NS >= subject->doubt_began_ns))
			observation_drop(engine, subject, n);
	}
}

void subject_remove(struct verdict_engine *engine, struct subject *subject) {
	const struct ras_memory *memory = &engine->memory;
	struct subject *last = engine->subjects[--engine->subject_count];

	subject_clear(engine, subject);
	due_queue_remove(engine, subject);
	if (subject->counted)
		engine->silent_recent--;
	if (subject->fading)
		engine->fading--;
	engine->subjects[subject->place] = last;
	last->place = subject->place;
	engine->members.rows[subject->peer].subject = NULL;
	array_release(
		memory, subject->observations, subject->observation_capacity,
		sizeof(*subject->observations)
	);
	array_release(memory, subject->said, subject->said_capacity, sizeof(*subject->said));
	if (subject->past != NULL)
		memory->release(
			memory->ctx, subject->past, VERDICT_HISTORY_MAX * sizeof(*subject->past)
		);
	memory->release(memory->ctx, subject, sizeof(*subject));
}

// Return the time from which evidence ages. While this agent was paused, nobody could reach it, so
// the pause does not age evidence. The limit keeps evidence from staying fresh for ever when pauses
// repeat.
static uint64_t evidence_ages_from_ns(const struct verdict_engine *engine, uint64_t at_ns) {
	uint64_t latest_ns = at_ns + PAUSES_STALE_TIMES * engine->config.stale_ns;
	uint64_t paused_ns = engine->self.paused_until_ns;

	if (paused_ns > latest_ns)
		paused_ns = latest_ns;
	return at_ns > paused_ns ? at_ns : paused_ns;
}

static bool
evidence_is_stale(const struct verdict_engine *engine, uint64_t at_ns, uint64_t now_ns) {
	return evidence_ages_from_ns(engine, at_ns) + engine->config.stale_ns <= now_ns;
}

// Return whether evidence explains a death, and so lasts as long as the death. Nobody reads a dead
// node, so nothing replaces it. An advancing pulse is excluded, since it may stop at any time.
static bool observation_explains_death(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
) {
	return subject_peer(engine, subject)->state == RAS_DEAD &&
	       evidence->observation.kind != OBSERVATION_GOOD &&
	       evidence->observation.kind != OBSERVATION_DEGRADED &&
	       evidence->observation.kind != OBSERVATION_LOSSY &&
	       evidence_ages_from_ns(engine, evidence->seen_ns) + engine->config.stale_ns >
		       subject->state_ns;
}

void subject_clear_stale(struct subject *subject, uint8_t kinds) {
	subject->stale &= (uint8_t)~kinds;
	if (subject->stale == 0)
		subject->stale_ns = RAS_NEVER;
}

// Return whether the subject was read well after `seen_ns`, which withdraws older bad evidence.
static bool is_withdrawn_by_good_read(const struct subject *subject, uint64_t seen_ns) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (evidence->observation.kind == OBSERVATION_GOOD && evidence->seen_ns > seen_ns)
			return true;
	}
	return false;
}

uint8_t subject_expire(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns) {
	uint8_t kinds = 0;

	for (uint32_t n = subject->observation_count; n-- > 0;) {
		const struct evidence *evidence = &subject->observations[n];

		if (!evidence_is_stale(engine, evidence->seen_ns, now_ns) ||
		    observation_explains_death(engine, subject, evidence))
			continue;
		if ((observation_is_bad(evidence->observation.kind) ||
		     verdict_reach_is_unanswered(evidence->observation.reach)) &&
		    !is_withdrawn_by_good_read(subject, evidence->seen_ns))
			kinds |= STALE_OBSERVATIONS;
		observation_drop(engine, subject, n);
	}
	for (uint32_t n = subject->said_count; n-- > 0;) {
		if (!evidence_is_stale(engine, subject->said[n].said_ns, now_ns))
			continue;
		if (said_is_in_force(&subject->said[n]))
			kinds |= STALE_STATEMENTS;
		subject->said[n] = subject->said[--subject->said_count];
	}
	return kinds;
}

uint64_t
subject_next_expiry_ns(const struct verdict_engine *engine, const struct subject *subject) {
	uint64_t first_ns = RAS_NEVER;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		uint64_t at_ns =
			evidence_ages_from_ns(engine, evidence->seen_ns) + engine->config.stale_ns;

		if (at_ns < first_ns && !observation_explains_death(engine, subject, evidence))
			first_ns = at_ns;
	}
	for (uint32_t n = 0; n < subject->said_count; n++) {
		uint64_t at_ns = evidence_ages_from_ns(engine, subject->said[n].said_ns) +
				 engine->config.stale_ns;

		first_ns = at_ns < first_ns ? at_ns : first_ns;
	}
	return first_ns;
}

bool subject_is_idle(const struct verdict_engine *engine, const struct subject *subject) {
	uint8_t state = subject_peer(engine, subject)->state;

	return subject->observation_count == 0 && subject->said_count == 0 &&
	       subject->bad_reports == 0 && subject->past_count == 0 &&
	       !subject->flap_history.unstable && subject->stale_ns == RAS_NEVER &&
	       (state == RAS_ALIVE || state == RAS_LEFT) &&
	       (subject->held.verdict == VERDICT_HEALTHY || subject->held.verdict == VERDICT_NONE);
}

static uint32_t subject_observations_by(const struct subject *subject, uint64_t observer) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++)
		count += subject->observations[n].observation.observer == observer;
	return count;
}

// Drop one observation to make room: the oldest one of the observer with most entries. So an
// observer with many paths cannot displace others. Returns -ENOSPC if all are fresher and their
// observers have no more entries.
static int observation_make_room(
	struct verdict_engine *engine, struct subject *subject, const struct evidence *one
) {
	uint32_t own = subject_observations_by(subject, one->observation.observer) + 1;
	uint32_t most = 0, oldest = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		uint64_t observer = subject->observations[n].observation.observer;
		uint32_t told = observer == one->observation.observer
					? own
					: subject_observations_by(subject, observer);

		if (told < most || (told == most && subject->observations[n].seen_ns >=
							    subject->observations[oldest].seen_ns))
			continue;
		most = told;
		oldest = n;
	}
	if (most <= own && subject->observations[oldest].seen_ns >= one->seen_ns)
		return -ENOSPC;
	observation_drop(engine, subject, oldest);
	return 0;
}

// Find the entry for an observation: that of the same path, a new one, or that of a dropped one.
static int observation_find_slot(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct evidence *one,
	uint32_t *ret_at
) {
	int err = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *held = &subject->observations[n];
		const struct observation *a = &held->observation, *b = &one->observation;

		if (a->observer != b->observer ||
		    strncmp(a->device, b->device, sizeof(a->device)) != 0 ||
		    strncmp(a->peer_device, b->peer_device, sizeof(a->peer_device)) != 0)
			continue;
		*ret_at = n;
		// A lossy link delays a notice without changing its recorded age. Such a notice
		// looks newer than what its observer published later on another route, so the
		// number decides.
		if (held->seen_ns > one->seen_ns || (b->number != 0 && b->number < a->number))
			return -ESTALE;
		return 0;
	}
	if (subject->observation_count == VERDICT_SUBJECT_OBSERVATIONS_MAX)
		err = observation_make_room(engine, subject, one);
	if (err == 0)
		err = array_grow(
			&engine->memory, (void **)&subject->observations,
			&subject->observation_capacity, subject->observation_count + 1,
			sizeof(*subject->observations)
		);
	if (err == 0)
		*ret_at = subject->observation_count;
	return err;
}

int subject_add_observation(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct observation *observation,
	uint64_t seen_ns
) {
	const struct evidence one = {.observation = *observation, .seen_ns = seen_ns};
	uint32_t observer = members_find(&engine->members, observation->observer);
	struct subject *observer_subject = NULL;
	struct evidence *evidence;
	uint32_t at;
	int err;

	if (observation_kind_is_silence(observation->kind) && seen_ns < subject->back_ns)
		return -ESTALE;

	// Creating the observer's subject may fail, so it comes before any change.
	if (observation_is_bad(observation->kind) && observer != MEMBERS_NONE) {
		err = subject_get_or_create(engine, observer, &observer_subject);
		if (err != 0)
			return err;
	}
	err = observation_find_slot(engine, subject, &one, &at);
	if (err == 0 && at == subject->observation_count)
		err = observer_index_reserve(engine, observer, 1);
	if (err != 0)
		return err;
	evidence = &subject->observations[at];
	if (at == subject->observation_count) {
		observer_index_add(engine, subject, observation->observer);
		subject->observation_count++;
		evidence->since_ns = seen_ns;
		evidence->first_ns = seen_ns;
		evidence->unanswered_since_ns = seen_ns;
	} else {
		observation_uncount(engine, evidence);
		if (evidence->observation.kind != observation->kind)
			evidence->since_ns = seen_ns;
		if (!verdict_reach_is_unanswered(evidence->observation.reach))
			evidence->unanswered_since_ns = seen_ns;
	}
	if (observer_subject != NULL) {
		observer_subject->tells[observation->kind]++;
		observer_subject->blind_reports += observer_reads_nothing(observation);
		observer_subject->bad_reports++;
	}
	evidence->observation = *observation;
	evidence->observer = observer;
	evidence->seen_ns = seen_ns;
	return 0;
}

// Return room for one more statement. A full table gives up a withdrawn statement, or one that is
// less important than the new one. Returns 0, -ENOSPC or -ENOMEM.
static int statement_slot_get(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct statement *statement,
	struct said **ret_said
) {
	int err;

	if (subject->said_count == VERDICT_STATEMENTS_MAX) {
		struct said *least = &subject->said[0];

		for (uint32_t n = 1; n < subject->said_count; n++) {
			struct said *said = &subject->said[n];

			uint32_t weight = statement_weight(&said->statement);
			uint32_t least_weight = statement_weight(&least->statement);

			// A recent withdrawal keeps a late older notice from reviving a statement.
			if (weight < least_weight ||
			    (weight == least_weight && said->said_ns < least->said_ns))
				least = said;
		}
		if (said_is_in_force(least) &&
		    statement_weight(&least->statement) >= statement_weight(statement))
			return -ENOSPC;
		*ret_said = least;
		return 0;
	}
	err = array_grow(
		&engine->memory, (void **)&subject->said, &subject->said_capacity,
		subject->said_count + 1, sizeof(*subject->said)
	);
	if (err == 0)
		*ret_said = &subject->said[subject->said_count++];
	return err;
}

int subject_add_statement(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct statement *statement,
	uint64_t said_ns
) {
	const char *reason = statement->reason;
	struct said *said = NULL;
	int err;

	for (uint32_t n = 0; n < subject->said_count && said == NULL; n++) {
		if (strncmp(subject->said[n].statement.reason, reason, sizeof(statement->reason)) ==
		    0)
			said = &subject->said[n];
	}
	if (said != NULL &&
	    (said->said_ns > said_ns ||
	     (statement->number != 0 && statement->number < said->statement.number)))
		return -ESTALE;
	// Own statements never arrive late, so a withdrawn one needs no record.
	if (statement->verdict == VERDICT_HEALTHY && statement->number == 0) {
		if (said != NULL)
			*said = subject->said[--subject->said_count];
		return 0;
	}
	if (said == NULL) {
		err = statement_slot_get(engine, subject, statement, &said);
		if (err != 0)
			return err;
	}
	*said = (struct said){.statement = *statement, .said_ns = said_ns};
	return 0;
}
