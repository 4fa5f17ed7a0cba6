// SPDX-License-Identifier: BSD-3-Clause
// Findings about a node that loses packets, and silence that loss explains.
#include "judge_parts.h"
#include "triangulate.h"

#include <string.h>

// Return whether the observation shows loss: the observer retransmits much to the node, or loses
// reads of a node that the overlay does not hear. Lost reads of an alive node are judged
// separately.
static bool observation_shows_loss(const struct observation *observation, enum ras_state state) {
	return observation->reach == VERDICT_REACH_LOSES ||
	       (state != RAS_ALIVE && observation->kind == OBSERVATION_LOSSY);
}

// Observers that lose packets to or from the node, each once.
struct lossy_observers {
	uint32_t hosts[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t ids[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint32_t bad, bad_host_count;
	uint32_t good; // observers that lost packets before and no longer do
	const struct observation *example;
};

static void lossy_observers_add(
	struct lossy_observers *lossy_observers,
	const struct observation *observation,
	const struct member_row *observer
) {
	uint32_t at = 0;

	if (lossy_observers->example == NULL ||
	    observation->lost_permille > lossy_observers->example->lost_permille)
		lossy_observers->example = observation;
	while (at < lossy_observers->bad && lossy_observers->ids[at] != observation->observer)
		at++;
	if (at < lossy_observers->bad)
		return;
	lossy_observers->ids[lossy_observers->bad++] = observation->observer;
	for (at = 0;
	     at < lossy_observers->bad_host_count && lossy_observers->hosts[at] != observer->host;
	     at++)
		;
	if (at == lossy_observers->bad_host_count)
		lossy_observers->hosts[lossy_observers->bad_host_count++] = observer->host;
}

// Return whether two observers retransmit much to the node, on different hosts if possible: packets
// to or from it are lost. False if half of those observers have recovered. An agent whose links all
// lose reports no loss (<verdict/loss.h>), so only the ends of a bad path report it.
static bool node_is_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum ras_state state,
	struct lossy_observers *ret_losers
) {
	memset(ret_losers, 0, sizeof(*ret_losers));
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		const struct member_row *observer = evidence_observer_row(engine, evidence);

		if (observer == NULL || !triangulate_counts(engine, evidence))
			continue;
		if (observation_shows_loss(&evidence->observation, state))
			lossy_observers_add(ret_losers, &evidence->observation, observer);
		else if (evidence->observation.device[0] == '\0')
			ret_losers->good += evidence->observation.reach == VERDICT_REACH_ANSWERS;
	}
	return ret_losers->bad >= triangulate_observers_needed(engine, subject) &&
	       ret_losers->bad >= 2 && ret_losers->good < ret_losers->bad &&
	       (ret_losers->bad_host_count >= 2 || engine->members.hosts_alive <= 2);
}

static void
finding_set_losses(const struct lossy_observers *lossy_observers, struct finding *finding) {
	finding_set(finding, VERDICT_PATH_LOSSY, "PacketsLost");
	finding->bad = lossy_observers->bad;
	finding->bad_host_count = lossy_observers->bad_host_count;
	finding->example = lossy_observers->example;
	finding->observer_count = lossy_observers->bad < VERDICT_OBSERVERS_MAX
					  ? lossy_observers->bad
					  : VERDICT_OBSERVERS_MAX;
	memcpy(finding->observers, lossy_observers->ids,
	       finding->observer_count * sizeof(uint64_t));
}

bool losses_are_reported(const struct verdict_engine *engine, const struct subject *subject) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (observation_shows_loss(&evidence->observation, RAS_SUSPECT) &&
		    triangulate_counts(engine, evidence) &&
		    !member_is_lossy_or_slow(evidence_observer_row(engine, evidence)))
			return true;
	}
	return false;
}

bool losses_explain_suspicion(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	const struct finding *finding
) {
	if (finding->state != RAS_SUSPECT || votes->of[VERDICT_REACH_ACCEPTS] > 0)
		return false;
	if (look->good == 0 && node_is_likely_down(finding, votes, heard))
		return false;
	return losses_are_reported(engine, subject);
}

bool set_path_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum ras_state state,
	struct finding *finding
) {
	struct lossy_observers lossy_observers;

	if (!node_is_lossy(engine, subject, state, &lossy_observers))
		return false;
	finding_set_losses(&lossy_observers, finding);
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
bool losses_set_path_lossy_alone(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	struct lossy_observers lossy_observers;

	if (!node_is_lossy(engine, subject, finding->state, &lossy_observers))
		return false;
	if (subject->held.verdict != VERDICT_PATH_LOSSY &&
	    fading_many_recently(engine, subject, now_ns))
		return false;
	finding_set_losses(&lossy_observers, finding);
	return true;
}

void losses_record_lossy_but_read(
	const struct verdict_engine *engine,
	struct subject *subject,
	const struct fabric_look *look,
	uint64_t now_ns
) {
	struct lossy_observers lossy_observers;

	if (look->fabric != FABRIC_SILENT && look->fabric != FABRIC_STANDING &&
	    node_is_lossy(engine, subject, RAS_ALIVE, &lossy_observers))
		subject->lossy_but_read_ns = now_ns;
}

bool losses_are_recent(const struct subject *subject, uint64_t now_ns) {
	return subject->lossy_but_read_ns != 0 &&
	       now_ns < subject->lossy_but_read_ns + LOSSY_RECENT_NS;
}

// Return whether recent loss explains the silence: failed reads, and connections that are accepted
// but stay silent.
bool losses_explain_silence(
	struct subject *subject, enum fabric fabric, enum ras_state state, uint64_t now_ns
) {
	bool silent = fabric == FABRIC_SILENT || fabric == FABRIC_PEERS || fabric == FABRIC_PORT;

	if (!(silent || state == RAS_SUSPECT) || !losses_are_recent(subject, now_ns))
		return false;
	hold_until(subject, subject->lossy_but_read_ns + LOSSY_RECENT_NS);
	return true;
}

// Judge a suspected node whose silence is attributed to loss. The beats that still arrive prove
// that its network and agent are there.
void losses_judge_suspect(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	if (set_path_lossy(engine, subject, finding->state, finding))
		return;
	if (subject->held.verdict == VERDICT_PATH_LOSSY)
		finding_set(finding, VERDICT_PATH_LOSSY, "PacketsLost");
	else
		finding_set(finding, VERDICT_UNKNOWN, "Suspected");
}
