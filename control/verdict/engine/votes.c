// SPDX-License-Identifier: BSD-3-Clause
// State of the overlay connections to a node, by the votes of all agents that tried.
#include "judge_parts.h"

#include <string.h>

// An observer may have several paths to the node; only its newest report counts.
static bool observation_is_superseded(const struct subject *subject, uint32_t at) {
	const struct observation *observation = &subject->observations[at].observation;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct observation *other = &subject->observations[n].observation;

		if (n == at || other->observer != observation->observer ||
		    other->reach == VERDICT_REACH_UNKNOWN)
			continue;
		if (subject->observations[n].seen_ns > subject->observations[at].seen_ns ||
		    (subject->observations[n].seen_ns == subject->observations[at].seen_ns && n < at
		    ))
			return true;
	}
	return false;
}

void votes_count_reach(
	const struct verdict_engine *engine, const struct subject *subject, struct votes *ret_votes
) {
	bool own = false;

	memset(ret_votes, 0, sizeof(*ret_votes));
	// Find out when an observer last found the node's overlay unanswered.
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (verdict_reach_is_unanswered(evidence->observation.reach) &&
		    triangulate_counts(engine, evidence) &&
		    evidence->seen_ns > ret_votes->newest_ns)
			ret_votes->newest_ns = evidence->seen_ns;
	}
	if (verdict_reach_is_unanswered(subject->reach) && subject->reach_ns > ret_votes->newest_ns)
		ret_votes->newest_ns = subject->reach_ns;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		enum verdict_reach reach = evidence->observation.reach;

		if (reach == VERDICT_REACH_UNKNOWN || !triangulate_counts(engine, evidence) ||
		    observation_is_superseded(subject, n))
			continue;
		// A lossy link is answered in the end.
		if (reach == VERDICT_REACH_LOSES)
			reach = VERDICT_REACH_ANSWERS;
		// Ignore an answer that is older than the reports that the node does not answer.
		if (reach == VERDICT_REACH_ANSWERS &&
		    evidence->seen_ns + GOOD_READ_VALID_NS < ret_votes->newest_ns)
			continue;
		own = own || evidence->observation.observer == engine->config.self;
		ret_votes->of[reach]++;
	}
	if (!own && subject->reach != VERDICT_REACH_UNKNOWN &&
	    (verdict_reach_is_unanswered(subject->reach) ||
	     subject->reach_ns + GOOD_READ_VALID_NS >= ret_votes->newest_ns))
		ret_votes->of[subject->reach]++;
	ret_votes->against = ret_votes->of[VERDICT_REACH_ACCEPTS] +
			     ret_votes->of[VERDICT_REACH_REFUSES] +
			     ret_votes->of[VERDICT_REACH_NONE];
	// The majority wins over an observer whose own link is bad, and over a beat that was still
	// under way.
	if (ret_votes->against > ret_votes->of[VERDICT_REACH_ANSWERS])
		ret_votes->of[VERDICT_REACH_ANSWERS] = 0;
}

bool votes_show_host_refuses(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct votes *votes
) {
	uint32_t first = NAMES_NONE;

	if (votes->of[VERDICT_REACH_REFUSES] < 2 ||
	    votes->against > votes->of[VERDICT_REACH_REFUSES] ||
	    votes->of[VERDICT_REACH_ANSWERS] > 0)
		return false;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		uint32_t host;

		if (evidence->observation.reach != VERDICT_REACH_REFUSES ||
		    evidence->observer == MEMBERS_NONE || !triangulate_counts(engine, evidence))
			continue;
		host = engine->members.rows[evidence->observer].host;
		if (first != NAMES_NONE && host != first)
			return true;
		first = host;
	}
	return engine->members.hosts_alive < 2;
}
