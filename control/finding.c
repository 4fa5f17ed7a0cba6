// SPDX-License-Identifier: BSD-3-Clause
#include <control/finding.h>
#include <control/overlay.h>

static const char *const cause_sentences[RAS_CAUSE_COUNT] = {
	[RAS_CAUSE_NONE] = "nothing is known against it",
	[RAS_CAUSE_SILENT] = "nothing was heard of it any more",
	[RAS_CAUSE_GONE] = "its host answers, its agent's process is gone",
	[RAS_CAUSE_RESET] = "its connection broke without a goodbye",
	[RAS_CAUSE_REFUSED] = "its host refused a connection: nobody listens there",
	[RAS_CAUSE_UNREACHABLE] = "the network knows no way to it",
	[RAS_CAUSE_TIMEOUT] = "it did not answer a connection in time",
	[RAS_CAUSE_STUCK] = "what was sent to it was not taken",
	[RAS_CAUSE_PROOF] = "it could not prove the cluster's key",
	[RAS_CAUSE_VERSION] = "it speaks no protocol version that is known here",
	[RAS_CAUSE_CLUSTER] = "it belongs to another cluster",
	[RAS_CAUSE_CONFLICT] = "another live agent holds its name",
	[RAS_CAUSE_DUPLICATE] = "another connection with it was kept",
	[RAS_CAUSE_DEGREE] = "it has all the links it wants",
	[RAS_CAUSE_IDLE] = "nobody needed the link",
	[RAS_CAUSE_LEAVE] = "it said goodbye",
	[RAS_CAUSE_DEATH] = "it was declared dead",
	[RAS_CAUSE_REPORT] = "a person, a job or its data plane reported it",
	[RAS_CAUSE_OWN_FAULT] = "this agent itself could not connect",
	[RAS_CAUSE_PROTOCOL] = "it sent what no agent sends",
	[RAS_CAUSE_RESTART] = "its agent was started anew",
	[RAS_CAUSE_REFUTED] = "it or another agent proved it alive",
	[RAS_CAUSE_BUSY] = "it was busy with other joins",
};

const char *finding_cause(enum ras_cause cause) {
	return (unsigned int)cause < RAS_CAUSE_COUNT ? cause_sentences[cause] : "unknown";
}

bool finding_is_agent_only(enum ras_cause cause) {
	return cause == RAS_CAUSE_GONE || cause == RAS_CAUSE_REFUSED;
}

void finding_of(const struct ras_peer *peer, struct finding *ret_finding) {
	struct finding finding = {FINDING_UNKNOWN, "unknown", finding_cause(peer->cause)};

	switch (peer->state) {
	case RAS_ALIVE:
		finding = (struct finding
		){FINDING_OK, "unknown", "its agent answers; its fabric is not looked at"};
		break;
	case RAS_SUSPECT:
		finding.grade = FINDING_WARNING;
		break;
	case RAS_UNREACHABLE:
		finding.evidence = "silent, but so are too many others to judge it";
		break;
	case RAS_DEAD:
		if (peer->sole) {
			finding.evidence = "dead to its only possible observer";
			break;
		}
		finding.grade = FINDING_CRITICAL;
		if (finding_is_agent_only(peer->cause))
			finding.verdict = "agent-down";
		break;
	case RAS_LEFT:
		finding = (struct finding){FINDING_OK, "-", finding_cause(RAS_CAUSE_LEAVE)};
		break;
	case RAS_UNKNOWN:
		finding.evidence = "expected, and not seen";
		break;
	}
	if (peer->maint) {
		finding.grade = FINDING_OK;
		finding.evidence = "under maintenance: no alarm";
	}
	*ret_finding = finding;
}

const char *finding_grade_name(enum finding_grade grade) {
	static const char *const names[] = {
		[FINDING_OK] = "ok",
		[FINDING_WARNING] = "warning",
		[FINDING_CRITICAL] = "critical",
		[FINDING_UNKNOWN] = "unknown",
	};

	return names[grade];
}

enum finding_grade finding_worse(enum finding_grade a, enum finding_grade b) {
	static const unsigned int weights[] = {
		[FINDING_OK] = 0,
		[FINDING_WARNING] = 1,
		[FINDING_UNKNOWN] = 2,
		[FINDING_CRITICAL] = 3,
	};

	return weights[a] >= weights[b] ? a : b;
}

static void add(struct finding_sum *sum, bool is_so, enum finding_grade grade, const char *reason) {
	if (!is_so || finding_worse(sum->grade, grade) == sum->grade)
		return;
	sum->grade = grade;
	sum->reason = reason;
}

static const char *reason_of(const struct ras_peer *peer) {
	switch (peer->state) {
	case RAS_DEAD:
		return peer->sole ? "PeersDeadSole" : "PeersDead";
	case RAS_UNREACHABLE:
		return "PeersUnreachable";
	default:
		return "PeersSuspect";
	}
}

// Only where the counts say that there is something to be found: tables are long.
static void add_peers(const struct ras *ras, const struct ras_view *view, struct finding_sum *sum) {
	struct finding finding;
	struct ras_peer peer;

	if (view->dead + view->unreachable + view->suspect == 0)
		return;
	for (uint32_t slot = 0; slot < view->slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) != 0)
			continue;
		finding_of(&peer, &finding);
		add(sum, finding.grade != FINDING_OK, finding.grade, reason_of(&peer));
	}
}

void finding_of_all(const struct overlay *overlay, struct finding_sum *ret_sum) {
	struct finding_sum sum = {FINDING_OK, "None"};
	const struct ras *ras = overlay_ras(overlay);
	struct ras_view view;
	uint32_t cursor = 0;

	ras_view(ras, &view);
	add(&sum, !view.joined, FINDING_UNKNOWN, "NotJoined");
	add(&sum, view.brake, FINDING_UNKNOWN, "MassSilence");
	add_peers(ras, &view, &sum);
	add(&sum, overlay_missing_next(overlay, &cursor) != NULL, FINDING_UNKNOWN, "PeersMissing");
	add(&sum, overlay_reach(overlay)->state == OVERLAY_REACH_UNPROVEN, FINDING_WARNING,
	    "AddressUnproven");
	*ret_sum = sum;
}
