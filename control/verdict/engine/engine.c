// SPDX-License-Identifier: BSD-3-Clause
// Life and inputs of the engine. Each input judges the subjects it concerns; verdict_tick() judges
// those that only time changes.
#include "inside.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

#define SETTLE_NS (5 * SEC)
#define STALE_NS (30 * SEC)
#define BRAKE_NODES 8
#define BRAKE_PERMILLE 200
#define BRAKE_CHANGES_MAX 4 // brake changes handled per input
#define SWEEP_SUBJECTS 16   // subjects checked for idleness per second
// After a pause this long, others may have reported this agent silent.
#define SILENT_PAUSE_NS (2 * SEC)

int verdict_engine_create(
	const struct verdict_config *config,
	const struct ras_memory *memory,
	const struct verdict_ops *ops,
	void *ops_ctx,
	struct verdict_engine **ret_engine
) {
	struct verdict_engine *engine = memory->allocate(memory->ctx, sizeof(*engine));

	if (engine == NULL)
		return -ENOMEM;
	engine->config = *config;
	if (config->settle_ns == 0)
		engine->config.settle_ns = SETTLE_NS;
	if (config->stale_ns == 0)
		engine->config.stale_ns = STALE_NS;
	if (config->brake_nodes == 0)
		engine->config.brake_nodes = BRAKE_NODES;
	if (config->brake_permille == 0)
		engine->config.brake_permille = BRAKE_PERMILLE;
	engine->memory = *memory;
	engine->ops = *ops;
	engine->ops_ctx = ops_ctx;
	engine->self.joined = true;
	engine->next_ns = RAS_NEVER;
	members_init(&engine->members, &engine->memory);
	*ret_engine = engine;
	return 0;
}

struct verdict_engine *verdict_engine_destroy(struct verdict_engine *engine) {
	struct ras_memory memory;

	if (engine == NULL)
		return NULL;
	memory = engine->memory;
	while (engine->subject_count > 0)
		subject_remove(engine, engine->subjects[engine->subject_count - 1]);
	array_release(
		&memory, engine->subjects, engine->subject_capacity, sizeof(struct subject *)
	);
	array_release(&memory, engine->due, engine->due_capacity, sizeof(struct subject *));
	members_fini(&engine->members);
	memory.release(memory.ctx, engine, sizeof(*engine));
	return NULL;
}

static void engine_wake(struct verdict_engine *engine, uint64_t at_ns) {
	if (at_ns == engine->next_ns)
		return;
	engine->next_ns = at_ns;
	if (engine->ops.wake != NULL)
		engine->ops.wake(engine->ops_ctx, at_ns);
}

static uint64_t engine_next_due_ns(const struct verdict_engine *engine) {
	return engine->due_count > 0 ? engine->due[0]->next_ns : RAS_NEVER;
}

// Judge all subjects after the brake changed. This may change the brake again, but ends, since the
// brake changes only when its count passes the limit.
static void engine_apply_brake_change(struct verdict_engine *engine, uint64_t now_ns) {
	for (uint32_t n = 0; engine->turned && n < BRAKE_CHANGES_MAX; n++) {
		engine->turned = false;
		hysteresis_apply_all(engine, now_ns);
		engine_wake(engine, engine_next_due_ns(engine));
	}
}

static void engine_judge(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns) {
	hysteresis_apply(engine, subject, now_ns);
	if (subject->next_ns < engine->next_ns)
		engine_wake(engine, subject->next_ns);
	engine_apply_brake_change(engine, now_ns);
}

// Judge an observer that reports several bad nodes: it may be the fault itself.
static void
engine_judge_observer(struct verdict_engine *engine, uint64_t observer, uint64_t now_ns) {
	struct subject *subject = subject_find(engine, observer);

	if (subject != NULL && subject->bad_reports > 1)
		engine_judge(engine, subject, now_ns);
}

// Judge all subjects of an observer whose credibility changed. A judgement may drop observations
// and move rows of the index. A row that moves to index `n` came from behind it, so it was judged
// already.
static void
engine_judge_subjects_of(struct verdict_engine *engine, uint32_t observer, uint64_t now_ns) {
	const struct observer_index *told = engine->members.rows[observer].told;

	for (uint32_t n = told != NULL ? told->count : 0; n-- > 0;) {
		told = engine->members.rows[observer].told;
		if (told == NULL)
			return;
		if (n < told->count)
			engine_judge(engine, engine->members.rows[told->rows[n]].subject, now_ns);
	}
}

static bool peer_is_same(
	const struct verdict_engine *engine, uint32_t row, const struct verdict_peer_update *peer
) {
	const struct member_row *held = &engine->members.rows[row];
	const struct subject *subject = held->subject;

	return held->incarnation == peer->incarnation && held->state == peer->state &&
	       held->cause == peer->cause && held->sole == peer->sole &&
	       held->maint == peer->maint &&
	       strcmp(member_name(&engine->members.hosts, held->host), peer->host) == 0 &&
	       strcmp(member_name(&engine->members.leaves, held->leaf), peer->leaf) == 0 &&
	       (subject != NULL ? subject->reach == peer->reach &&
					  subject->observer_count == peer->observer_count &&
					  memcmp(subject->observers, peer->observers,
						 peer->observer_count * sizeof(uint64_t)) == 0
				: !verdict_reach_is_unanswered(peer->reach));
}

// Return whether the member needs a subject. Without evidence it needs no memory beyond its row.
static bool peer_needs_subject(const struct verdict_peer_update *peer) {
	return peer->state == RAS_SUSPECT || peer->state == RAS_UNREACHABLE ||
	       peer->state == RAS_DEAD ||
	       (peer->state == RAS_ALIVE && verdict_reach_is_unanswered(peer->reach));
}

static void peer_apply(
	struct verdict_engine *engine,
	uint32_t at,
	uint64_t now_ns,
	const struct verdict_peer_update *peer
) {
	struct member_row *row = &engine->members.rows[at];
	struct subject *subject = row->subject;
	bool restarted = row->incarnation != 0 && ras_incarnation_start(row->incarnation) !=
							  ras_incarnation_start(peer->incarnation);

	if (subject != NULL) {
		if (row->state == RAS_ALIVE && peer->state != RAS_ALIVE)
			subject->doubt_began_ns = now_ns;
		if (row->state != RAS_ALIVE && peer->state == RAS_ALIVE) {
			subject->back_ns = now_ns;
			subject_handle_return(engine, subject);
		}
		// This agent's own state never changes. A higher incarnation shows that it refuted
		// its death.
		if (peer->state == RAS_ALIVE &&
		    (row->state == RAS_DEAD ||
		     (row->id == engine->config.self && peer->incarnation > row->incarnation)))
			subject_handle_refuted_death(engine, subject);
		if (restarted || peer->state == RAS_LEFT)
			subject_clear(engine, subject);
		if (restarted || row->state != peer->state)
			subject->state_ns = now_ns;
		// Healthy counts from the restart on.
		if (restarted && subject->held.verdict <= VERDICT_HEALTHY)
			subject->held.since_ns = now_ns;
		if (restarted || subject->reach != peer->reach)
			subject->reach_ns = now_ns;
		subject->reach = peer->reach;
		subject->observer_count = peer->observer_count;
		memcpy(subject->observers, peer->observers,
		       peer->observer_count * sizeof(uint64_t));
	}
	members_set_state(&engine->members, at, peer->state);
	row->incarnation = peer->incarnation;
	row->cause = (uint8_t)peer->cause;
	row->sole = peer->sole;
	row->maint = peer->maint;
}

int verdict_peer_update(
	struct verdict_engine *engine, uint64_t now_ns, const struct verdict_peer_update *peer
) {
	bool known = members_find(&engine->members, peer->id) != MEMBERS_NONE;
	struct subject *subject = NULL;
	bool turned;
	uint32_t row;
	int err;

	must(peer->id != 0 && peer->observer_count <= RAS_OBSERVERS_MAX);
	must((unsigned)peer->state <= RAS_LEFT && (unsigned)peer->reach < VERDICT_REACH_COUNT);
	err = members_add(&engine->members, peer->id, &row);
	if (err != 0)
		return err;
	if (known && peer_is_same(engine, row, peer))
		return 0;
	if (engine->members.rows[row].subject != NULL || peer_needs_subject(peer))
		err = subject_get_or_create(engine, row, &subject);
	if (err == 0)
		err = members_set_location(&engine->members, row, peer->host, peer->leaf);
	if (err == 0 && !known)
		err = observer_index_adopt(engine, row);
	if (err != 0) {
		if (!known && subject != NULL)
			subject_remove(engine, subject);
		if (!known)
			members_remove(&engine->members, row);
		return err;
	}
	turned = engine->members.rows[row].state != peer->state;
	peer_apply(engine, row, now_ns, peer);
	if (subject != NULL)
		engine_judge(engine, subject, now_ns);
	if (known && turned)
		engine_judge_subjects_of(engine, row, now_ns);
	return 0;
}

void verdict_peer_key_changed(struct verdict_engine *engine, uint64_t now_ns, uint64_t id) {
	uint32_t row = members_find(&engine->members, id);

	if (row != MEMBERS_NONE)
		engine->members.rows[row].key_changed_s = (uint32_t)(now_ns / SEC) + 1;
}

void verdict_peer_forget(struct verdict_engine *engine, uint64_t now_ns, uint64_t id) {
	uint32_t row = members_find(&engine->members, id);
	struct verdict_change change;
	struct verdict_view view;

	if (row == MEMBERS_NONE)
		return;
	verdict_view_fill(engine, row, &view);
	if (engine->members.rows[row].subject != NULL)
		subject_remove(engine, engine->members.rows[row].subject);
	members_set_state(&engine->members, row, RAS_LEFT);
	// Drop all observations that the forgotten observer made.
	while (engine->members.rows[row].told != NULL) {
		uint32_t subject_row = engine->members.rows[row].told->rows[0];
		struct subject *subject = engine->members.rows[subject_row].subject;

		subject_drop_observer(engine, subject, id);
		engine_judge(engine, subject, now_ns);
	}
	change.before = view.verdict;
	verdict_view_fill(engine, row, &view);
	change.now = &view;
	if (change.before > VERDICT_HEALTHY) {
		engine->counts.changes++;
		if (engine->ops.changed != NULL)
			engine->ops.changed(engine->ops_ctx, &change);
	}
	members_remove(&engine->members, row);
	brake_update(engine);
	engine_apply_brake_change(engine, now_ns);
}

// Return whether reports of this agent's silence may be about its own pause. Reports that waited in
// the sockets during the pause seem to be new.
static bool self_was_silent(const struct verdict_engine *engine, uint64_t now_ns) {
	return engine->self.paused_ns >= SILENT_PAUSE_NS && now_ns < engine->self.paused_until_ns;
}

// Return whether the observation belongs to an earlier start of the node, or is too old.
static bool observation_is_old(
	const struct verdict_engine *engine,
	const struct member_row *row,
	const struct observation *observation,
	uint64_t now_ns
) {
	uint64_t start = ras_incarnation_start(observation->incarnation);
	enum observation_kind kind = observation->kind;
	bool is_of_silence =
		kind == OBSERVATION_SILENT || kind == OBSERVATION_STANDING ||
		(kind == OBSERVATION_NO_PAIR && verdict_reach_is_unanswered(observation->reach));

	// The observation was made before this agent refuted its own death, or while this agent was
	// paused. An agent that was cut off or paused receives it late. If it still holds, it will
	// be repeated.
	if (row->id == engine->config.self && is_of_silence &&
	    (observation->incarnation < row->incarnation || self_was_silent(engine, now_ns)))
		return true;
	return (start != 0 && start < ras_incarnation_start(row->incarnation)) ||
	       observation->age_ms * MS >= engine->config.stale_ns;
}

int verdict_observation(
	struct verdict_engine *engine, uint64_t now_ns, const struct observation *observation
) {
	uint32_t row = members_find(&engine->members, observation->subject);
	struct subject *subject;
	uint64_t age_ns = observation->age_ms * MS;
	int err;

	if (row == MEMBERS_NONE) {
		engine->counts.observations_unknown++;
		return -ENOENT;
	}
	if (observation_is_old(engine, &engine->members.rows[row], observation, now_ns)) {
		engine->counts.observations_stale++;
		return -ESTALE;
	}
	err = subject_get_or_create(engine, row, &subject);
	if (err == 0)
		err = subject_add_observation(
			engine, subject, observation, now_ns > age_ns ? now_ns - age_ns : 0
		);
	if (err != 0) {
		if (err == -ESTALE)
			engine->counts.observations_stale++;
		else
			engine->counts.observations_dropped++;
		return err;
	}
	engine->counts.observations++;
	if (observation->kind == OBSERVATION_GOOD)
		subject_clear_stale(subject, STALE_OBSERVATIONS);
	engine_judge(engine, subject, now_ns);
	engine_judge_observer(engine, observation->observer, now_ns);
	if (observation_is_bad(observation->kind))
		return 0;
	// The subject is read well, so its observers with bad reads may be at fault.
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		if (observation_is_bad(subject->observations[n].observation.kind))
			engine_judge_observer(
				engine, subject->observations[n].observation.observer, now_ns
			);
	}
	return 0;
}

int verdict_statement(
	struct verdict_engine *engine, uint64_t now_ns, const struct statement *statement
) {
	uint32_t row = members_find(&engine->members, statement->subject);
	uint64_t age_ns = statement->age_s * SEC;
	struct subject *subject;
	int err;

	if (row == MEMBERS_NONE)
		return -ENOENT;
	if (age_ns >= engine->config.stale_ns)
		return -ESTALE;
	err = subject_get_or_create(engine, row, &subject);
	if (err == 0)
		err = subject_add_statement(
			engine, subject, statement, now_ns > age_ns ? now_ns - age_ns : 0
		);
	if (err != 0)
		return err;
	engine->counts.statements++;
	subject_clear_stale(subject, STALE_STATEMENTS);
	engine_judge(engine, subject, now_ns);
	if (subject->bad_reports > 0)
		engine_judge_subjects_of(engine, row, now_ns);
	return 0;
}

void verdict_self_update(
	struct verdict_engine *engine, uint64_t now_ns, const struct verdict_self_update *self
) {
	struct subject *subject;
	bool paused;

	if (self->joined == engine->self.joined && self->brake == engine->self.brake &&
	    self->silent == engine->self.silent && self->loses == engine->self.loses &&
	    self->paused_until_ns == engine->self.paused_until_ns)
		return;
	paused = self->paused_until_ns != engine->self.paused_until_ns;
	engine->self = *self;
	subject = subject_find(engine, engine->config.self);
	if (paused && subject != NULL && self->paused_ns >= SILENT_PAUSE_NS)
		subject_handle_refuted_death(engine, subject);
	brake_update(engine);
	engine->turned = true;
	engine_apply_brake_change(engine, now_ns);
}

bool verdict_brake_is_on(const struct verdict_engine *engine) {
	return engine->braking;
}

void verdict_tick(struct verdict_engine *engine, uint64_t now_ns) {
	bool sweep = now_ns >= engine->swept_ns + SEC;

	engine->next_ns = RAS_NEVER; // the requested wake-up has arrived
	engine->ticks++;
	while (engine->due_count > 0 && engine->due[0]->next_ns <= now_ns &&
	       engine->due[0]->ticked != engine->ticks) {
		struct subject *subject = engine->due[0];

		subject->ticked = engine->ticks;
		hysteresis_apply(engine, subject, now_ns);
		if (subject_is_idle(engine, subject))
			subject_remove(engine, subject);
	}
	// A subject without a scheduled judgement may become idle through inputs about others.
	// Check a few per second.
	if (sweep)
		engine->swept_ns = now_ns;
	for (uint32_t n = 0; sweep && n < SWEEP_SUBJECTS && engine->subject_count > 0; n++) {
		struct subject *subject;

		if (engine->swept >= engine->subject_count)
			engine->swept = 0;
		subject = engine->subjects[engine->swept++];
		if (subject->next_ns != RAS_NEVER || !subject_is_idle(engine, subject))
			continue;
		subject_remove(engine, subject);
		engine->swept--; // the last subject took this index
	}
	engine_apply_brake_change(engine, now_ns);
	engine_wake(engine, engine_next_due_ns(engine));
}
