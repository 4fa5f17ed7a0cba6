// SPDX-License-Identifier: BSD-3-Clause
// Decides whether an own path must be published, and when, by its last report and by others'
// reports on the same node.
#include "exchange_parts.h"

#include <string.h>

// Delay after which a report is repeated that says: the overlay gets no answer from the peer, but
// the peer's pulse still advances. The pulse is the page that peers read over RDMA.
#define OUTLIVED_REPEAT_NS (2 * SEC)
// Delay after which an answer is repeated, before it expires at other agents.
#define ANSWER_REPEAT_NS (15 * SEC)

bool observation_reports_fault(const struct observation *observation) {
	return observation_is_bad(observation->kind) || observation->reach > VERDICT_REACH_ANSWERS;
}

bool own_path_reported_fault(const struct own_path *path) {
	return path->told_ns != 0 &&
	       (observation_is_bad(path->told_kind) || path->told_reach > VERDICT_REACH_ANSWERS);
}

static uint64_t good_read_validity_ns(enum observation_kind kind) {
	return observation_kind_uses_windows(kind) ? GOOD_WINDOW_VALID_NS : GOOD_READ_VALID_NS;
}

bool own_path_answer_is_wanted(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
) {
	const struct subject *subject = subject_find(exchange->engine, path->observation.subject);
	uint64_t since_ns = 0;
	uint64_t cover_ns = 0;
	uint64_t last = 0;
	uint32_t others = 0;

	if (path->observation.kind != OBSERVATION_GOOD || subject == NULL)
		return false;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (!observation_is_bad(evidence->observation.kind) ||
		    evidence->observation.observer == exchange->self ||
		    observation_is_blind_to_loss(
			    &path->observation, evidence->observation.kind,
			    evidence->observation.lost_bytes
		    ) ||
		    path->seen_ns + good_read_validity_ns(evidence->observation.kind) <
			    evidence->since_ns)
			continue;
		others += evidence->observation.observer != last;
		last = evidence->observation.observer;
		if (evidence->since_ns + good_read_validity_ns(evidence->observation.kind) >
		    since_ns + cover_ns) {
			since_ns = evidence->since_ns;
			cover_ns = good_read_validity_ns(evidence->observation.kind);
		}
	}
	if (others < triangulate_observers_needed(exchange->engine, subject)) {
		if (subject->bad_reports < 2 ||
		    triangulate_accused_count(
			    exchange->engine, path->observation.subject, &since_ns
		    ) < 2 ||
		    path->seen_ns + GOOD_READ_VALID_NS < since_ns)
			return false;
		cover_ns = GOOD_READ_VALID_NS;
	}
	return path->told_ns == 0 || path->told_seen_ns + cover_ns < since_ns ||
	       now_ns >= path->told_ns + ANSWER_REPEAT_NS;
}

// Return how many other observers reported the same since then.
static uint32_t count_same_reports(
	const struct observation_exchange *exchange,
	const struct observation *observation,
	uint64_t since_ns
) {
	const struct subject *subject = subject_find(exchange->engine, observation->subject);
	uint32_t count = 0;

	for (uint32_t n = 0; subject != NULL && n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		count += evidence->observation.observer != exchange->self &&
			 evidence->observation.kind == observation->kind &&
			 evidence->observation.reach == observation->reach &&
			 strcmp(evidence->observation.peer_device, observation->peer_device) == 0 &&
			 evidence->seen_ns >= since_ns;
	}
	return count;
}

// Return true if the peer's pulse advances although the overlay gets no answer from the peer. A
// pulse that stops soon afterwards proves nothing. So return false once this was reported twice.
static bool path_may_outlive_overlay(const struct own_path *path) {
	bool advances = path->observation.kind == OBSERVATION_GOOD ||
			path->observation.kind == OBSERVATION_DEGRADED ||
			path->observation.kind == OBSERVATION_LOSSY;

	return advances && verdict_reach_is_unanswered(path->observation.reach) && !path->again;
}

void own_path_schedule(
	struct observation_exchange *exchange, struct own_path *path, uint64_t now_ns
) {
	bool against = observation_reports_fault(&path->observation);
	bool news;

	if (against)
		news = !own_path_reported_fault(path) ||
		       path->told_kind != path->observation.kind ||
		       path->told_reach != path->observation.reach;
	else
		news = own_path_reported_fault(path) ||
		       own_path_answer_is_wanted(exchange, path, now_ns);
	if (own_path_reported_fault(path) && !against)
		path->clears = CLEAR_REPEATS;
	if (against)
		path->clears = 0;
	if (path->quiet && path->due_ns != RAS_NEVER &&
	    path->quiet_kind == path->observation.kind &&
	    path->quiet_reach == path->observation.reach)
		return;
	path->quiet = false;
	if (news && path->due_ns > now_ns + REPORT_WAIT_MAX_NS)
		path->due_ns = now_ns + exchange_random_below(exchange, REPORT_WAIT_MAX_NS);
	else if (!news && path->due_ns == RAS_NEVER && (against || path->clears > 0))
		path->due_ns = path->told_ns +
			       (path_may_outlive_overlay(path) ? OUTLIVED_REPEAT_NS
							       : OBSERVATION_REPEAT_NS) +
			       exchange_random_below(exchange, REPORT_WAIT_MAX_NS);
	exchange_wake(exchange, path->due_ns);
}

// Schedule all own paths to a subject that others reported on.
static void schedule_paths_to_subject(
	struct observation_exchange *exchange, uint64_t subject, uint64_t now_ns
) {
	for (uint32_t at = own_paths_bucket(exchange, subject); at != 0;
	     at = exchange->paths[at - 1].next) {
		if (exchange->paths[at - 1].observation.subject == subject)
			own_path_schedule(exchange, &exchange->paths[at - 1], now_ns);
	}
}

// A node that reports others bad may be at fault itself.
void own_paths_schedule(
	struct observation_exchange *exchange,
	const struct observation *observation,
	uint64_t now_ns
) {
	schedule_paths_to_subject(exchange, observation->subject, now_ns);
	if (observation_is_bad(observation->kind))
		schedule_paths_to_subject(exchange, observation->observer, now_ns);
}

bool own_path_is_redundant(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
) {
	const struct subject *self = subject_find(exchange->engine, exchange->self);
	bool against = observation_reports_fault(&path->observation);
	bool changed = path->told_ns != 0 && path->told_ns + OWN_PATH_KEEP_NS > now_ns &&
		       (own_path_reported_fault(path) != against ||
			observation_kind_excuses(path->told_kind, path->observation.kind));
	uint64_t since_ns = now_ns > OBSERVATION_REPEAT_NS ? now_ns - OBSERVATION_REPEAT_NS : 0;

	// If others found that this agent is cut off, its failed reads blame nobody.
	if (against && self != NULL && self->held.verdict == VERDICT_FABRIC_DOWN)
		return true;
	// A repetition must show that the pulse still advances, so earlier reports of others do not
	// count.
	if (path_may_outlive_overlay(path) && own_path_reported_fault(path) &&
	    since_ns < path->told_ns + OUTLIVES_OVERLAY_NS)
		since_ns = path->told_ns + OUTLIVES_OVERLAY_NS;
	return !changed && path->clears == 0 &&
	       count_same_reports(exchange, &path->observation, since_ns) >= OBSERVATION_ENOUGH;
}
