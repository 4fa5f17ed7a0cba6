// SPDX-License-Identifier: BSD-3-Clause
// Turns a member's state and verdict into one finding with grade and reason.
#include <control/finding.h>
#include <control/health.h>
#include <control/overlay.h>

bool finding_is_agent_only(enum ras_cause cause) {
	return ras_cause_is_gone(cause) || cause == RAS_CAUSE_REFUSED;
}

// Return the finding of the overlay alone.
static struct finding finding_of_overlay(const struct ras_peer *peer) {
	struct finding finding = {
		.grade = FINDING_UNKNOWN,
		.verdict = "unknown",
		.reason = "NotJudged",
		.evidence = ras_cause_text(peer->cause),
		.advice = VERDICT_ADVICE_SHOW,
	};

	switch (peer->state) {
	case RAS_ALIVE:
		finding.grade = FINDING_OK;
		finding.reason = "None";
		finding.evidence = "its agent answers; its fabric is not probed";
		finding.advice = VERDICT_ADVICE_NOTHING;
		break;
	case RAS_SUSPECT:
		finding.grade = FINDING_WARNING;
		finding.reason = "Suspected";
		finding.advice = VERDICT_ADVICE_WARN;
		break;
	case RAS_UNREACHABLE:
		finding.reason = "MassSilence";
		finding.evidence =
			"silent, but not judged, because too many others are silent as well";
		break;
	case RAS_DEAD:
		finding.reason = "AgentSilent";
		if (peer->sole) {
			finding.reason = "SoleObserver";
			finding.evidence = "declared dead by its only possible observer";
			break;
		}
		finding.grade = FINDING_CRITICAL;
		if (finding_is_agent_only(peer->cause))
			finding.verdict = verdict_name(VERDICT_AGENT_DOWN);
		break;
	case RAS_LEFT:
		finding.grade = FINDING_OK;
		finding.verdict = verdict_name(VERDICT_NONE);
		finding.reason = "None";
		finding.evidence = ras_cause_text(RAS_CAUSE_LEAVE);
		finding.advice = VERDICT_ADVICE_NOTHING;
		break;
	case RAS_UNKNOWN:
		finding.reason = "NeverSeen";
		finding.evidence = "expected by the roster; it never came, or was forgotten";
		break;
	}
	return finding;
}

static enum finding_grade finding_grade_for(const struct ras_peer *peer, enum verdict verdict) {
	static const enum finding_grade grades[] = {
		[VERDICT_GRADE_OK] = FINDING_OK,
		[VERDICT_GRADE_WARNING] = FINDING_WARNING,
		[VERDICT_GRADE_CRITICAL] = FINDING_CRITICAL,
		[VERDICT_GRADE_UNKNOWN] = FINDING_UNKNOWN,
	};
	enum finding_grade grade = grades[verdict_grade_of(verdict)];

	if (peer->state == RAS_DEAD && peer->sole)
		// A single agent's report causes no alarm and no action.
		return FINDING_UNKNOWN;
	// A dead agent needs attention, even if its verdict is only a warning.
	if (peer->state == RAS_DEAD && grade == FINDING_WARNING)
		return FINDING_CRITICAL;
	// A suspicion is resolved within seconds.
	if (peer->state == RAS_SUSPECT && grade == FINDING_UNKNOWN)
		return FINDING_WARNING;
	return grade;
}

void finding_for_peer(
	const struct health *health, const struct ras_peer *peer, struct finding *ret_finding
) {
	struct finding finding = finding_of_overlay(peer);

	if (health != NULL && peer->record != NULL &&
	    verdict_view_get(health_engine(health), peer->record->id, &finding.view) == 0) {
		finding.has_view = true;
		finding.grade = finding_grade_for(peer, finding.view.verdict);
		finding.verdict = verdict_name(finding.view.verdict);
		finding.reason = finding.view.reason;
		finding.evidence = finding.view.evidence;
		finding.advice = health_advice(health, &finding.view);
		finding.withheld = health_withheld_reason(health, &finding.view);
		finding.would = health_suppressed_advice(health, &finding.view);
	}
	if (peer->maint) {
		finding.grade = FINDING_OK;
		finding.advice = VERDICT_ADVICE_SHOW;
		finding.withheld = NULL;
		finding.would = VERDICT_ADVICE_NOTHING;
		if (!finding.has_view)
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

unsigned int finding_grade_rank(enum finding_grade grade) {
	static const unsigned int badness[] = {
		[FINDING_OK] = 0,
		[FINDING_WARNING] = 1,
		[FINDING_UNKNOWN] = 2,
		[FINDING_CRITICAL] = 3,
	};

	return badness[grade];
}

enum finding_grade finding_worse_grade(enum finding_grade a, enum finding_grade b) {
	return finding_grade_rank(a) >= finding_grade_rank(b) ? a : b;
}

bool finding_view_is_braked(const struct ras_view *view) {
	return view->brake && view->suspect + view->unreachable > 0;
}

static void finding_sum_add(
	struct cluster_finding *sum, bool is_so, enum finding_grade grade, const char *reason
) {
	if (!is_so || finding_worse_grade(sum->grade, grade) == sum->grade)
		return;
	sum->grade = grade;
	sum->reason = reason;
}

static void finding_sum_add_peer(
	const struct health *health, const struct ras_peer *peer, struct cluster_finding *sum
) {
	struct finding finding;
	const char *reason; // matched by alerts and schedulers

	finding_for_peer(health, peer, &finding);
	switch (peer->state) {
	case RAS_DEAD:
		reason = peer->sole ? "PeersDeadSole" : "PeersDead";
		break;
	case RAS_UNREACHABLE:
		reason = "PeersUnreachable";
		break;
	case RAS_SUSPECT:
		reason = "PeersSuspect";
		break;
	default:
		reason = finding.reason;
	}
	finding_sum_add(sum, finding.grade != FINDING_OK, finding.grade, reason);
}

void finding_for_cluster(
	const struct overlay *overlay, const struct health *health, struct cluster_finding *ret_sum
) {
	struct cluster_finding sum = {FINDING_OK, "None"};
	const struct ras *ras = overlay_ras(overlay);
	const struct verdict_engine *engine = health != NULL ? health_engine(health) : NULL;
	char words[STATE_TEXT_BYTES];
	uint32_t cursor = 0, mistakes = 0, unhealthy = 0;
	struct verdict_view judged;
	struct ras_view view;
	struct ras_peer peer;

	ras_view(ras, &view);
	finding_sum_add(&sum, !view.joined, FINDING_UNKNOWN, "NotJoined");
	finding_sum_add(&sum, finding_view_is_braked(&view), FINDING_UNKNOWN, "MassSilence");

	// Walk the table only if the counts show a node that is not alive, since tables are long.
	if (view.dead + view.unreachable + view.suspect > 0) {
		for (uint32_t slot = 0; slot < view.slots_max; slot++) {
			if (ras_peer_at(ras, slot, &peer) == 0 && peer.state != RAS_ALIVE)
				finding_sum_add_peer(health, &peer, &sum);
		}
	}
	// Add nodes whose agents answer but whose verdict is not healthy.
	while (engine != NULL && verdict_unhealthy_next(engine, &unhealthy, &judged)) {
		if (ras_peer_find(ras, judged.subject, &peer) == 0 && peer.state == RAS_ALIVE)
			finding_sum_add_peer(health, &peer, &sum);
	}

	finding_sum_add(
		&sum, overlay_missing_next(overlay, &cursor) != NULL, FINDING_UNKNOWN,
		"PeersMissing"
	);
	finding_sum_add(&sum, overlay_is_alone(overlay), FINDING_WARNING, "Alone");
	finding_sum_add(
		&sum, overlay_reach(overlay)->state == OVERLAY_REACH_UNPROVEN, FINDING_WARNING,
		"AddressUnproven"
	);
	finding_sum_add(
		&sum, overlay_mistake_next(overlay, &mistakes, words), FINDING_WARNING,
		"Misconfigured"
	);
	*ret_sum = sum;
}
