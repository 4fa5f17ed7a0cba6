// SPDX-License-Identifier: BSD-3-Clause
// Decision tables: combine the evidence of overlay and data plane into one finding per node.
#include "judge_parts.h"

#include <string.h>

#define LIKELY_OBSERVERS_MIN \
	4 // as many as report (OBSERVATION_ENOUGH), or more than half of the observers

void finding_set_observers(struct finding *finding, const struct fabric_look *look) {
	finding->bad = look->bad;
	finding->bad_host_count = look->bad_host_count;
	finding->good = look->good;
	finding->reader_count = look->reader_count;
	finding->example = look->example;
	finding->walked = look->walked;
	finding->observer_count = look->observer_count;
	memcpy(finding->observers, look->observers, sizeof(finding->observers));
	if (look->newest_ns > finding->looked_ns)
		finding->looked_ns = look->newest_ns;
}

bool set_address_conflict(const struct votes *votes, struct finding *finding) {
	if (votes->of[VERDICT_REACH_OTHER] == 0)
		return false;
	finding_set(finding, VERDICT_UNKNOWN, ADDRESS_CONFLICT);
	return true;
}

// Return whether connections to the agent are refused, and no observer has reached it since.
static bool connections_are_refused(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	const struct votes *votes
) {
	const struct member_row *peer = subject_peer(engine, subject);

	if (peer->state != RAS_SUSPECT || peer->cause != RAS_CAUSE_GONE ||
	    votes->of[VERDICT_REACH_REFUSES] == 0)
		return false;
	if (now_ns >= subject->state_ns + ANSWER_WAIT_NS)
		return true;
	hold_until(subject, subject->state_ns + ANSWER_WAIT_NS);
	return false;
}

// Return whether only few observers report the fault. A lossy node is silent to some for a moment.
static bool is_reported_by_few(uint32_t bad, uint32_t reader_count) {
	return bad < LIKELY_OBSERVERS_MIN && 2 * bad <= reader_count;
}

// Return whether overlay, pulse and kernel are silent to two observers, before the overlay has
// decided. The verdict is only likely then, and nobody acts on it. Most other nodes must be heard:
// an agent in the smaller side of a partition cannot know which side is down.
bool node_is_likely_down(
	const struct finding *finding, const struct votes *votes, const struct heard *heard
) {
	if (finding->bad > 0 && is_reported_by_few(finding->bad, finding->reader_count))
		return false;
	return (finding->state == RAS_SUSPECT || finding->state == RAS_UNREACHABLE) &&
	       votes->of[VERDICT_REACH_NONE] >= 2 && votes->of[VERDICT_REACH_REFUSES] == 0 &&
	       votes->of[VERDICT_REACH_ACCEPTS] == 0 && heard->most;
}

// Return whether an observer heard the agent after its pulse fell silent. An observer that read it
// well before and does not read now heard it earlier.
static bool agent_was_heard_since(
	const struct verdict_engine *engine, const struct subject *subject, uint64_t bad_ns
) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		enum verdict_reach reach = evidence->observation.reach;

		if ((reach == VERDICT_REACH_ANSWERS || reach == VERDICT_REACH_LOSES) &&
		    (evidence->observation.kind == OBSERVATION_SILENT || evidence->seen_ns > bad_ns
		    ) &&
		    triangulate_counts(engine, evidence))
			return true;
	}
	return false;
}

// Judge a node whose pulse cannot be read. Beats heard before this agent's own link fell quiet
// prove nothing now.
static void judge_unread_pulse(
	const struct subject *subject,
	uint64_t now_ns,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	struct finding *finding
) {
	bool lives = subject->state_ns <= look->bad_ns && now_ns >= look->bad_ns + ALIVE_PROOF_NS;
	bool answers = lives || (heard->now && votes->of[VERDICT_REACH_ANSWERS] > 0);

	if (finding->state == RAS_ALIVE && answers) {
		finding_set_by_silence(finding, VERDICT_FABRIC_DOWN, "PulseUnread");
	} else if (finding->state == RAS_SUSPECT && votes->of[VERDICT_REACH_ACCEPTS] > 0) {
		finding_set_by_silence(finding, VERDICT_AGENT_FROZEN, "AgentMute");
	} else if (node_is_likely_down(finding, votes, heard)) {
		finding_set_by_silence(finding, VERDICT_NODE_DOWN, "NodeSilent");
	} else {
		finding_set(finding, VERDICT_UNKNOWN, "SilentBothWays");
	}
}

// Judge a node that other agents, or this agent, cannot reach over the overlay.
static void judge_suspect(
	struct subject *subject,
	uint64_t now_ns,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	struct finding *finding
) {
	uint64_t woken_ns = subject->blame_since_ns + RESUME_WAIT_NS;
	bool woken = look->good > 0 && now_ns < woken_ns;
	// An agent that hears few others has lost the network itself, unless their kernels still
	// answer.
	bool cut_off = !heard->most && (look->good > 0 || votes->of[VERDICT_REACH_ACCEPTS] == 0);
	bool says = !woken && !cut_off;

	if (woken)
		hold_until(subject, woken_ns);
	if (says && look->good > 0) {
		finding_set_by_silence(finding, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	} else if (says && votes->of[VERDICT_REACH_ACCEPTS] > 0) {
		finding_set_by_silence(finding, VERDICT_AGENT_FROZEN, "AgentMute");
	} else if (says && look->reader_count == 0 && node_is_likely_down(finding, votes, heard)) {
		finding_set_by_silence(finding, VERDICT_NODE_DOWN, "OverlaySilent");
	} else {
		finding_set(finding, VERDICT_UNKNOWN, "Suspected");
	}
}

// Return the fabric state of the evidence once it lasted for its wait, else FABRIC_UNSEEN.
// Observers with good reads answer meanwhile. No wait is longer than ANSWER_WAIT_DOUBTFUL_NS.
static enum fabric fabric_after_wait(
	const struct verdict_engine *engine,
	struct subject *subject,
	const struct fabric_look *look,
	bool against,
	uint64_t now_ns
) {
	uint8_t blame = look->fabric > FABRIC_READABLE ? (uint8_t)look->fabric : FABRIC_UNSEEN;
	uint64_t wait_ns = ANSWER_WAIT_NS;

	if (blame == FABRIC_UNSEEN && against) {
		blame = FABRIC_READABLE;
		wait_ns = RESUME_WAIT_NS;
	}
	if (blame != subject->blame) {
		subject->blame = blame;
		subject->blame_since_ns = now_ns;
	}
	if (blame == FABRIC_UNSEEN || now_ns >= subject->blame_since_ns + ANSWER_WAIT_DOUBTFUL_NS)
		return look->fabric;
	if (blame != FABRIC_READABLE && triangulate_is_doubtful(engine, subject, look))
		wait_ns = ANSWER_WAIT_DOUBTFUL_NS;
	if (now_ns >= subject->blame_since_ns + wait_ns)
		return look->fabric;
	hold_until(subject, subject->blame_since_ns + wait_ns);
	return FABRIC_UNSEEN;
}

static void judge_running_node(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	uint32_t need = triangulate_observers_needed(engine, subject);
	struct fabric_look look;
	struct votes votes;
	struct heard heard = {.peer = true, .alone = true, .most = true};
	uint64_t good_after_ns;
	enum fabric fabric;
	bool leaky, is_alive;

	votes_count_reach(engine, subject, &votes);
	if (finding->state == RAS_ALIVE && votes.of[VERDICT_REACH_ANSWERS] == 0 &&
	    votes.against >= need)
		finding->state = RAS_SUSPECT;
	good_after_ns = subject_peer(engine, subject)->state == RAS_SUSPECT ? subject->state_ns
									    : votes.newest_ns;
	triangulate(engine, subject, good_after_ns, &look);
	if (look.fabric == FABRIC_SILENT && is_reported_by_few(look.bad, look.reader_count) &&
	    losses_are_reported(engine, subject))
		triangulate_lossy(engine, subject, good_after_ns, &look);
	losses_record_lossy_but_read(engine, subject, &look, now_ns);
	finding->is_fading = look.fabric == FABRIC_SILENT || (votes.of[VERDICT_REACH_NONE] > 1 &&
							      votes.of[VERDICT_REACH_ANSWERS] == 0);
	fabric = fabric_after_wait(engine, subject, &look, finding->state == RAS_SUSPECT, now_ns);
	if (fabric == FABRIC_UNSEEN && look.fabric != FABRIC_UNSEEN &&
	    subject_peer(engine, subject)->state == RAS_ALIVE)
		finding->state = RAS_ALIVE;
	if (fabric == FABRIC_SILENT && now_ns < look.bad_ns + ALIVE_PROOF_NS)
		hold_until(subject, look.bad_ns + ALIVE_PROOF_NS);
	finding_set_observers(finding, &look);
	if (fabric == FABRIC_SILENT || finding->state == RAS_SUSPECT)
		heard_evaluate(engine, subject, now_ns, &heard);
	heard.now = heard.peer && heard.alone &&
		    (heard.named || agent_was_heard_since(engine, subject, look.bad_ns));
	is_alive = finding->state == RAS_ALIVE;
	leaky = fabric != FABRIC_SILENT &&
		losses_explain_suspicion(engine, subject, &look, &votes, &heard, finding);
	if (finding->state == RAS_SUSPECT && set_address_conflict(&votes, finding))
		return;
	if (fabric == FABRIC_STANDING && votes.of[VERDICT_REACH_ANSWERS] > 0 &&
	    finding->state == RAS_ALIVE) {
		finding_set(finding, VERDICT_UNKNOWN, "PulseContradicts");
	} else if (fabric == FABRIC_STANDING) {
		finding->state = RAS_SUSPECT;
		finding_set_by_silence(finding, VERDICT_AGENT_FROZEN, "PulseStands");
	} else if (connections_are_refused(engine, subject, now_ns, &votes) && look.good == 0) {
		// Counted as silence, since a local firewall may refuse many connections at once.
		finding_set_by_silence(finding, VERDICT_AGENT_DOWN, "AgentGone");
		finding->overlay = votes.of[VERDICT_REACH_REFUSES];
	} else if (losses_explain_silence(subject, fabric, finding->state, now_ns) || leaky) {
		losses_judge_suspect(engine, subject, finding);
	} else if (fabric == FABRIC_SILENT) {
		judge_unread_pulse(subject, now_ns, &look, &votes, &heard, finding);
	} else if (finding->state == RAS_SUSPECT) {
		judge_suspect(subject, now_ns, &look, &votes, &heard, finding);
	} else if (fabric == FABRIC_PEERS || fabric == FABRIC_PORT) {
		finding_set_by_silence(
			finding, VERDICT_FABRIC_DOWN,
			fabric == FABRIC_PEERS ? "PeersUnread" : "PortUnread"
		);
	} else if (fabric == FABRIC_LOSSY) {
		finding_set(finding, VERDICT_PATH_LOSSY, losses_reason(engine, subject));
	} else if (is_alive && losses_set_path_lossy_alone(engine, subject, now_ns, finding)) {
		return;
	} else if (fabric == FABRIC_SLOW) {
		finding_set(finding, VERDICT_PATH_DEGRADED, "PulseSlow");
	}
}

static void judge_own_statements(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	const struct said *worst = NULL;
	bool is_confirmed;

	for (uint32_t n = 0; n < subject->said_count; n++) {
		const struct said *said = &subject->said[n];

		if (!said_is_in_force(said))
			continue;
		if (worst == NULL || said->statement.verdict > worst->statement.verdict ||
		    (said->statement.verdict == worst->statement.verdict &&
		     strcmp(said->statement.reason, worst->statement.reason) < 0))
			worst = said;
	}
	if (worst == NULL || worst->statement.verdict < finding->verdict)
		return;
	// Observers on two hosts find the same. They stay observers, so the drain does not rest on
	// the word of the node alone.
	is_confirmed = worst->statement.verdict == finding->verdict && finding->bad_host_count > 1;
	finding_set(finding, worst->statement.verdict, worst->statement.reason);
	// A port that is down may be one of many behind a switch that restarts.
	finding->by_silence = worst->statement.verdict == VERDICT_FABRIC_DOWN;
	finding->is_own_statement = true;
	finding->both_planes = false;
	finding->statement = &worst->statement;
	if (is_confirmed)
		return;
	finding->observer_count = 1;
	finding->observers[0] = subject_peer(engine, subject)->id;
	finding->looked_ns = worst->said_ns;
}

void judge(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *ret_finding
) {
	enum ras_state state = subject_peer(engine, subject)->state;

	memset(ret_finding, 0, sizeof(*ret_finding));
	finding_set(ret_finding, VERDICT_HEALTHY, "None");
	ret_finding->state = state;
	switch (state) {
	case RAS_LEFT:
		finding_set(ret_finding, VERDICT_NONE, "None");
		return;
	case RAS_UNKNOWN:
		finding_set(ret_finding, VERDICT_UNKNOWN, "NeverSeen");
		return;
	case RAS_UNREACHABLE:
		judge_unreachable(engine, subject, now_ns, ret_finding);
		return;
	case RAS_DEAD:
		judge_dead(engine, subject, ret_finding);
		return;
	default:
		judge_running_node(engine, subject, now_ns, ret_finding);
		// A node that reads no peer counts as silent, like a node that no peer reads.
		if (ret_finding->verdict <= VERDICT_HEALTHY)
			ret_finding->by_silence = subject->blind_reports > 1;
		judge_own_statements(engine, subject, ret_finding);
		return;
	}
}

bool judge_verdict_fits_state(enum verdict verdict, enum ras_state state) {
	switch (state) {
	case RAS_ALIVE:
		return verdict != VERDICT_NONE && verdict != VERDICT_MGMT_NET_DOWN &&
		       verdict != VERDICT_AGENT_DOWN && verdict != VERDICT_AGENT_FROZEN &&
		       verdict != VERDICT_NODE_DOWN;
	case RAS_SUSPECT:
		return verdict != VERDICT_HEALTHY && verdict != VERDICT_NONE;
	case RAS_DEAD:
		return verdict == VERDICT_PATH_LOSSY || verdict == VERDICT_AGENT_DOWN ||
		       verdict == VERDICT_AGENT_FROZEN || verdict == VERDICT_MGMT_NET_DOWN ||
		       verdict == VERDICT_NODE_DOWN || verdict == VERDICT_UNKNOWN;
	case RAS_LEFT:
		return verdict == VERDICT_NONE;
	case RAS_UNREACHABLE:
		return verdict == VERDICT_UNKNOWN || verdict == VERDICT_MGMT_NET_DOWN ||
		       verdict == VERDICT_AGENT_DOWN || verdict == VERDICT_AGENT_FROZEN ||
		       verdict == VERDICT_NODE_DOWN;
	default:
		return verdict == VERDICT_UNKNOWN;
	}
}

enum verdict_advice judge_advice(const struct held *held, bool maint) {
	enum verdict_advice advice = verdict_advice_of(held->verdict);
	enum verdict_advice most = VERDICT_ADVICE_DRAIN;
	bool doubted = held->state == RAS_SUSPECT || held->state == RAS_UNREACHABLE;

	if (maint || held->sole)
		most = VERDICT_ADVICE_SHOW;
	else if (doubted || !held->drainable || !held->ripe)
		most = VERDICT_ADVICE_WARN;
	return advice < most ? advice : most;
}
