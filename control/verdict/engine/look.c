// SPDX-License-Identifier: BSD-3-Clause
// Queries: views, evidence, history, paths, counts.
#include "inside.h"
#include "unstable.h"

#include <errno.h>
#include <string.h>

// Fill the view of a member without evidence, by its state alone.
static void view_fill_by_state(
	const struct verdict_engine *engine, const struct member_row *row, struct verdict_view *view
) {
	view->confidence = VERDICT_SURE;
	view->reason = "None";
	view->evidence = "";
	view->verdict = VERDICT_HEALTHY;
	if (row->state == RAS_LEFT) {
		view->verdict = VERDICT_NONE;
	} else if (row->state == RAS_UNKNOWN) {
		view->verdict = VERDICT_UNKNOWN;
		view->reason = "NeverSeen";
	} else if (!engine->self.joined) {
		view->verdict = VERDICT_UNKNOWN;
		view->reason = "NotMember";
	}
	if (view->verdict == VERDICT_UNKNOWN)
		view->evidence = verdict_text_meaning(view->reason);
	view->advice = verdict_advice_of(view->verdict);
}

void verdict_view_fill(
	const struct verdict_engine *engine, uint32_t peer, struct verdict_view *ret_view
) {
	const struct member_row *row = &engine->members.rows[peer];
	const struct held *held;

	memset(ret_view, 0, sizeof(*ret_view));
	ret_view->subject = row->id;
	ret_view->maint = row->maint;
	// A subject whose evidence is all good may never have been judged.
	if (row->subject == NULL || row->subject->held.reason[0] == '\0') {
		view_fill_by_state(engine, row, ret_view);
		return;
	}
	held = &row->subject->held;
	ret_view->verdict = held->verdict;
	ret_view->confidence = held->confidence;
	ret_view->advice = judge_advice(held, row->maint);
	ret_view->both_planes = held->both_planes;
	ret_view->since_ns = held->since_ns;
	ret_view->looked_ns = held->looked_ns;
	ret_view->reason = held->reason;
	ret_view->evidence = held->evidence;
	ret_view->observer_count = held->observer_count;
	memcpy(ret_view->observers, held->observers, sizeof(ret_view->observers));
	if (row->subject->flap_history.unstable)
		unstable_view_fill(row->subject, row->maint, ret_view);
}

int verdict_view_get(
	const struct verdict_engine *engine, uint64_t id, struct verdict_view *ret_view
) {
	uint32_t row = members_find(&engine->members, id);

	if (row == MEMBERS_NONE)
		return -ENOENT;
	verdict_view_fill(engine, row, ret_view);
	return 0;
}

bool verdict_unhealthy_next(
	const struct verdict_engine *engine, uint32_t *cursor, struct verdict_view *ret_view
) {
	while (*cursor < engine->members.count) {
		uint32_t row = (*cursor)++;

		if (engine->members.rows[row].id == 0)
			continue;
		verdict_view_fill(engine, row, ret_view);
		if (ret_view->verdict > VERDICT_HEALTHY)
			return true;
	}
	return false;
}

void verdict_counts(const struct verdict_engine *engine, struct verdict_counts *ret_counts) {
	struct verdict_view view;

	*ret_counts = engine->counts;
	ret_counts->brake = engine->braking;
	for (uint32_t row = 0; row < engine->members.count; row++) {
		if (engine->members.rows[row].id == 0)
			continue;
		verdict_view_fill(engine, row, &view);
		ret_counts->of[view.verdict]++;
		ret_counts->maint += view.maint;
	}
}

// Return the index of the n-th newest observation. The table is small, so counting is fast enough.
static uint32_t nth_newest_observation(const struct subject *subject, uint32_t n) {
	for (uint32_t at = 0; at < subject->observation_count; at++) {
		uint32_t before = 0;

		for (uint32_t other = 0; other < subject->observation_count; other++)
			before += subject->observations[other].seen_ns >
					  subject->observations[at].seen_ns ||
				  (subject->observations[other].seen_ns ==
					   subject->observations[at].seen_ns &&
				   other < at);
		if (before == n)
			return at;
	}
	return 0;
}

bool verdict_observation_next(
	const struct verdict_engine *engine,
	uint64_t id,
	uint32_t *cursor,
	struct observation *ret_observation,
	uint64_t *ret_seen_ns
) {
	const struct subject *subject = subject_find(engine, id);
	uint32_t at;

	if (subject == NULL || *cursor >= subject->observation_count)
		return false;
	at = nth_newest_observation(subject, (*cursor)++);
	*ret_observation = subject->observations[at].observation;
	*ret_seen_ns = subject->observations[at].seen_ns;
	return true;
}

bool verdict_statement_next(
	const struct verdict_engine *engine,
	uint64_t id,
	uint32_t *cursor,
	struct statement *ret_statement,
	uint64_t *ret_said_ns
) {
	const struct subject *subject = subject_find(engine, id);

	while (subject != NULL && *cursor < subject->said_count &&
	       !said_is_in_force(&subject->said[*cursor]))
		(*cursor)++;
	if (subject == NULL || *cursor >= subject->said_count)
		return false;
	*ret_statement = subject->said[*cursor].statement;
	*ret_said_ns = subject->said[*cursor].said_ns;
	(*cursor)++;
	return true;
}

bool verdict_past_next(
	const struct verdict_engine *engine,
	uint64_t id,
	uint32_t *cursor,
	struct verdict_past *ret_past
) {
	const struct subject *subject = subject_find(engine, id);
	uint32_t at;

	if (subject == NULL || *cursor >= subject->past_count)
		return false;
	at = subject->past_next + VERDICT_HISTORY_MAX - 1 - *cursor;
	*ret_past = subject->past[at % VERDICT_HISTORY_MAX];
	(*cursor)++;
	return true;
}

bool verdict_bad_path_next(
	const struct verdict_engine *engine, uint32_t *cursor, struct verdict_path_view *ret_view
) {
	while (*cursor < engine->subject_count * VERDICT_SUBJECT_OBSERVATIONS_MAX) {
		const struct subject *subject =
			engine->subjects[*cursor / VERDICT_SUBJECT_OBSERVATIONS_MAX];
		uint32_t at = (*cursor)++ % VERDICT_SUBJECT_OBSERVATIONS_MAX;
		const struct evidence *evidence = &subject->observations[at];

		if (at >= subject->observation_count) {
			*cursor += VERDICT_SUBJECT_OBSERVATIONS_MAX - 1 - at;
			continue;
		}
		if (!observation_is_bad(evidence->observation.kind) &&
		    evidence->observation.reach != VERDICT_REACH_LOSES)
			continue;
		ret_view->observation = evidence->observation;
		ret_view->seen_ns = evidence->seen_ns;
		ret_view->since_ns = evidence->since_ns;
		ret_view->blame = triangulate_path(
			engine, subject, evidence, &ret_view->node, &ret_view->what
		);
		return true;
	}
	return false;
}
