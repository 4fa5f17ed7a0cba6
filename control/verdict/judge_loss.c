// SPDX-License-Identifier: BSD-3-Clause
// Findings about a node that loses packets, and silence that loss explains.
#include "judge_parts.h"
#include "triangulate.h"

#include <string.h>

// Return whether the observation shows loss: the observer retransmits much to the node, or loses
// reads of a node that the overlay does not hear. Lost reads of an alive node are judged
// separately.
static bool loses_packets(const struct observation *observation, enum ras_state state) {
	return observation->reach == VERDICT_REACH_LOSES ||
	       (state != RAS_ALIVE && observation->kind == OBSERVATION_LOSSY);
}

// Observers that lose packets to or from the node, each once.
struct losers {
	uint32_t hosts[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t ids[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint32_t bad, eyes;
	uint32_t good; // observers that lost packets before and no longer do
	const struct observation *example;
};

static void losers_add(
	struct losers *losers,
	const struct observation *observation,
	const struct member_row *observer
) {
	uint32_t at = 0;

	if (losers->example == NULL || observation->lost_permille > losers->example->lost_permille)
		losers->example = observation;
	while (at < losers->bad && losers->ids[at] != observation->observer)
		at++;
	if (at < losers->bad)
		return;
	losers->ids[losers->bad++] = observation->observer;
	for (at = 0; at < losers->eyes && losers->hosts[at] != observer->host; at++)
		;
	if (at == losers->eyes)
		losers->hosts[losers->eyes++] = observer->host;
}

// Return whether two observers retransmit much to the node, on different hosts if possible: packets
// to or from it are lost. False if half of those observers have recovered. An agent whose links all
// lose reports no loss (<verdict/loss.h>), so only the ends of a bad path report it.
static bool is_losing(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum ras_state state,
	struct losers *ret_losers
) {
	memset(ret_losers, 0, sizeof(*ret_losers));
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		const struct member_row *observer = triangulate_observer(engine, evidence);

		if (observer == NULL || !triangulate_counts(engine, evidence))
			continue;
		if (loses_packets(&evidence->observation, state))
			losers_add(ret_losers, &evidence->observation, observer);
		else if (evidence->observation.device[0] == '\0')
			ret_losers->good += evidence->observation.reach == VERDICT_REACH_ANSWERS;
	}
	return ret_losers->bad >= triangulate_need(engine, subject) && ret_losers->bad >= 2 &&
	       ret_losers->good < ret_losers->bad &&
	       (ret_losers->eyes >= 2 || engine->members.hosts_alive <= 2);
}

static void find_losses(const struct losers *losers, struct finding *finding) {
	finding_set(finding, VERDICT_PATH_LOSSY, "PacketsLost");
	finding->bad = losers->bad;
	finding->eyes = losers->eyes;
	finding->example = losers->example;
	finding->observer_count =
		losers->bad < VERDICT_OBSERVERS_MAX ? losers->bad : VERDICT_OBSERVERS_MAX;
	memcpy(finding->observers, losers->ids, finding->observer_count * sizeof(uint64_t));
}

bool losses_are_told(const struct verdict_engine *engine, const struct subject *subject) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (loses_packets(&evidence->observation, RAS_SUSPECT) &&
		    triangulate_counts(engine, evidence) &&
		    !triangulate_is_hampered(triangulate_observer(engine, evidence)))
			return true;
	}
	return false;
}

bool losses_hide_suspect(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	const struct finding *finding
) {
	if (finding->state != RAS_SUSPECT || votes->of[VERDICT_REACH_ACCEPTS] > 0)
		return false;
	if (look->good == 0 && judge_is_likely_down(finding, votes, heard))
		return false;
	return losses_are_told(engine, subject);
}

bool losses_find(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum ras_state state,
	struct finding *finding
) {
	struct losers losers;

	if (!is_losing(engine, subject, state, &losers))
		return false;
	find_losses(&losers, finding);
	return true;
}

const char *losses_reason(const struct verdict_engine *engine, const struct subject *subject) {
	uint32_t lossy = 0, of_any_size = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (evidence->observation.kind != OBSERVATION_LOSSY ||
		    !triangulate_counts(engine, evidence))
			continue;
		lossy++;
		of_any_size += evidence->observation.lost_bytes == 0;
	}
	return 2 * of_any_size > lossy ? "ReadsLost" : "LargeLost";
}

// Not set while many nodes are about to fall silent: segments to such nodes are retransmitted, too.
bool losses_find_alone(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	struct losers losers;

	if (!is_losing(engine, subject, finding->state, &losers))
		return false;
	if (subject->held.verdict != VERDICT_PATH_LOSSY && many_fade(engine, subject, now_ns))
		return false;
	find_losses(&losers, finding);
	return true;
}

void losses_note_leaky(
	const struct verdict_engine *engine,
	struct subject *subject,
	const struct fabric_look *look,
	uint64_t now_ns
) {
	struct losers losers;

	if (look->fabric != FABRIC_SILENT && look->fabric != FABRIC_STANDING &&
	    is_losing(engine, subject, RAS_ALIVE, &losers))
		subject->leaky_ns = now_ns;
}

bool losses_are_recent(const struct subject *subject, uint64_t now_ns) {
	return subject->leaky_ns != 0 && now_ns < subject->leaky_ns + LEAKY_NS;
}

// Return whether recent loss explains the silence: failed reads, and connections that are accepted
// but stay silent.
bool losses_explain_silence(
	struct subject *subject, enum fabric fabric, enum ras_state state, uint64_t now_ns
) {
	bool silent = fabric == FABRIC_SILENT || fabric == FABRIC_PEERS || fabric == FABRIC_PORT;

	if (!(silent || state == RAS_SUSPECT) || !losses_are_recent(subject, now_ns))
		return false;
	hold_until(subject, subject->leaky_ns + LEAKY_NS);
	return true;
}

// Judge a suspected node whose silence is attributed to loss. The beats that still arrive prove
// that its network and agent are there.
void losses_judge_suspect(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	if (losses_find(engine, subject, finding->state, finding))
		return;
	if (subject->held.verdict == VERDICT_PATH_LOSSY)
		finding_set(finding, VERDICT_PATH_LOSSY, "PacketsLost");
	else
		finding_set(finding, VERDICT_UNKNOWN, "Suspected");
}
