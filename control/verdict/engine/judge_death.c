// SPDX-License-Identifier: BSD-3-Clause
// Findings about a node that the overlay declared dead, or would declare dead without the brake.
#include "judge_parts.h"

#include <string.h>

static void finding_add_overlay(struct finding *finding, const struct subject *subject) {
	for (uint32_t n = 0; n < subject->observer_count; n++) {
		uint32_t at = 0;

		while (at < finding->observer_count &&
		       finding->observers[at] != subject->observers[n])
			at++;
		if (at == finding->observer_count && at < VERDICT_OBSERVERS_MAX)
			finding->observers[finding->observer_count++] = subject->observers[n];
	}
	finding->overlay = subject->observer_count;
	if (subject->state_ns > finding->looked_ns)
		finding->looked_ns = subject->state_ns;
}

// Judge a node whose death was declared for silence and not for refused connections.
static void judge_silent_death(
	const struct fabric_look *look, const struct votes *votes, struct finding *finding
) {
	bool unread = look->fabric == FABRIC_SILENT;

	if (look->fabric == FABRIC_STANDING)
		finding_set_by_silence(finding, VERDICT_AGENT_FROZEN, "PulseStands");
	else if (look->good > 0)
		finding_set_by_silence(finding, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	else if (votes->of[VERDICT_REACH_REFUSES] > 0)
		finding_set(finding, VERDICT_AGENT_DOWN, "AgentGone");
	else if (votes->of[VERDICT_REACH_ACCEPTS] > 0)
		finding_set_by_silence(finding, VERDICT_AGENT_FROZEN, "AgentMute");
	else if (unread && (!look->in_process || votes->of[VERDICT_REACH_NONE] > 0)) {
		finding_set_by_silence(finding, VERDICT_NODE_DOWN, "NodeSilent");
		finding->both_planes = true;
	} else if (votes->of[VERDICT_REACH_NONE] > 0)
		finding_set_by_silence(finding, VERDICT_NODE_DOWN, "OverlaySilent");
	else
		finding_set(finding, VERDICT_UNKNOWN, "HostOrAgent");
}

static const struct evidence *newest_evidence_of_kind(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	uint64_t after_ns
) {
	const struct evidence *newest = NULL;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (evidence->observation.kind != kind || evidence->since_ns <= after_ns ||
		    !triangulate_counts(engine, evidence))
			continue;
		if (newest == NULL || evidence->seen_ns > newest->seen_ns ||
		    (evidence->seen_ns == newest->seen_ns &&
		     evidence->observation.observer < newest->observation.observer))
			newest = evidence;
	}
	return newest;
}

// One data-plane observer suffices for a dead node: two overlay observers already support the
// death. A read of a standing counter outweighs a failed read, unless the failure came later.
static void triangulate_dead_node(
	const struct verdict_engine *engine, const struct subject *subject, struct fabric_look *look
) {
	const struct evidence *standing;
	const struct evidence *silent;
	const struct evidence *found;

	if (look->fabric == FABRIC_SILENT || look->fabric == FABRIC_STANDING)
		return;
	standing = newest_evidence_of_kind(engine, subject, OBSERVATION_STANDING, look->good_ns);
	silent = newest_evidence_of_kind(engine, subject, OBSERVATION_SILENT, look->good_ns);
	found = standing;
	if (found == NULL ||
	    (silent != NULL && standing->seen_ns + GOOD_READ_VALID_NS < silent->since_ns))
		found = silent;
	if (found == NULL)
		return;
	look->bad = look->bad_host_count = 1;
	look->example = &found->observation;
	look->observer_count = 1;
	look->observers[0] = found->observation.observer;
	look->in_process = found->observation.responder == OBSERVATION_RESPONDER_IN_PROCESS;
	look->fabric = found == standing ? FABRIC_STANDING : FABRIC_SILENT;
}

// Return the start of the reads that count for a death. The overlay takes far longer to declare a
// silent node dead, so reads shortly before fall into its silence.
static uint64_t reads_for_death_since_ns(const struct subject *subject) {
	return subject->state_ns > READS_BEFORE_DEATH_NS ? subject->state_ns - READS_BEFORE_DEATH_NS
							 : 0;
}

// Judge a dead node. A lossy node that some observers still read was declared dead for its lost
// beats: its agent and its network are still there.
void judge_dead(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	const struct member_row *peer = subject_peer(engine, subject);
	struct fabric_look look;
	struct votes votes;
	bool is_read;

	triangulate(engine, subject, reads_for_death_since_ns(subject), &look);
	triangulate_dead_node(engine, subject, &look);
	votes_count_reach(engine, subject, &votes);
	finding_set_observers(finding, &look);
	finding_add_overlay(finding, subject);
	if (set_address_conflict(&votes, finding))
		return;
	is_read = look.good > 0 && look.fabric != FABRIC_STANDING;
	if (ras_cause_is_gone(peer->cause) || peer->cause == RAS_CAUSE_RESET ||
	    peer->cause == RAS_CAUSE_REFUSED)
		finding_set(finding, VERDICT_AGENT_DOWN, "AgentGone");
	else if (!is_read || !set_path_lossy(engine, subject, RAS_ALIVE, finding))
		judge_silent_death(&look, &votes, finding);
	if (!peer->sole)
		return;
	// A single agent supports the finding, and may be cut off itself. If the node's host or NIC
	// answers, the silence is not that agent's own, so the verdict stays. Nobody acts on it.
	finding->sole = true;
	if (finding->verdict == VERDICT_NODE_DOWN || finding->verdict == VERDICT_UNKNOWN) {
		finding->both_planes = false;
		finding->by_silence = false;
		finding_set(finding, VERDICT_UNKNOWN, "SoleObserver");
	}
}

// Return whether the node's kernel or NIC answers two observers while its agent is silent. If the
// node was already found frozen, one observer is enough, unless it is the only agent left. After a
// partition heals, a kernel accepts connections a moment before the agent answers on them.
static bool agent_is_frozen(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	const struct fabric_look *look,
	const struct votes *votes
) {
	bool was_found = subject->held.verdict == VERDICT_AGENT_FROZEN;
	uint32_t need = was_found && engine->members.of_state[RAS_ALIVE] > 1 ? 1 : 2;
	bool stands = look->fabric == FABRIC_STANDING && look->bad >= need;
	bool answered = look->good == 0 && votes->of[VERDICT_REACH_ACCEPTS] >= need &&
			votes->of[VERDICT_REACH_REFUSES] == 0;
	enum fabric blame = stands || answered ? FABRIC_STANDING : FABRIC_UNSEEN;

	if (blame != subject->blame) {
		subject->blame = (uint8_t)blame;
		subject->blame_since_ns = now_ns;
	}
	if (blame == FABRIC_UNSEEN)
		return false;
	if (was_found || now_ns >= subject->blame_since_ns + RESUME_WAIT_NS)
		return true;
	hold_until(subject, subject->blame_since_ns + RESUME_WAIT_NS);
	return false;
}

// Return whether the agent was found gone, and nothing but refusals speaks of it since. Of three
// agents two may know that, and have no majority to declare it dead. Most of the view has to be
// heard: a firewall between two halves refuses as well.
static bool agent_is_still_gone(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look,
	const struct votes *votes
) {
	return subject->flap_history.word == VERDICT_AGENT_DOWN && look->good == 0 &&
	       votes_show_host_refuses(engine, subject, votes) &&
	       brake_missed_is_below_share(engine, 2);
}

// Judge a node whose death the brake holds back. The brake only doubts silence: an answer from its
// kernel or NIC proves that the node is frozen, however many others are. An earlier verdict is kept
// if most nodes are heard and few are missed.
void judge_unreachable(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	enum verdict named = subject->flap_history.word; // last verdict other than unknown
	struct fabric_look look;
	struct votes votes;
	struct heard heard;
	bool was_down;

	votes_count_reach(engine, subject, &votes);
	triangulate(engine, subject, reads_for_death_since_ns(subject), &look);
	finding_set_observers(finding, &look);
	finding_add_overlay(finding, subject);
	if (set_address_conflict(&votes, finding))
		return;
	heard_evaluate(engine, subject, now_ns, &heard);
	heard.most = heard.most && brake_missed_is_small_share(engine);
	finding->brake_free = true;
	was_down = look.good == 0 && named == VERDICT_NODE_DOWN;
	if (agent_is_frozen(engine, subject, now_ns, &look, &votes)) {
		finding_set_by_silence(
			finding, VERDICT_AGENT_FROZEN,
			look.fabric == FABRIC_STANDING ? "PulseStands" : "AgentMute"
		);
	} else if (agent_is_still_gone(engine, subject, &look, &votes)) {
		finding_set_by_silence(finding, VERDICT_AGENT_DOWN, "AgentGone");
		finding->overlay = votes.of[VERDICT_REACH_REFUSES];
	} else if (look.good > 0 && heard.most && named == VERDICT_MGMT_NET_DOWN) {
		finding_set_by_silence(finding, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	} else if (was_down && node_is_likely_down(finding, &votes, &heard)) {
		finding_set_by_silence(
			finding, VERDICT_NODE_DOWN,
			look.fabric == FABRIC_SILENT ? "NodeSilent" : "OverlaySilent"
		);
	} else {
		finding_set(finding, VERDICT_UNKNOWN, "Unreachable");
		finding->own_doubt = true;
	}
}
