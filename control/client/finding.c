// SPDX-License-Identifier: BSD-3-Clause
#include "finding.h"

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
		finding.evidence = "expected, and not known";
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
