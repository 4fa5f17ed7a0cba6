// SPDX-License-Identifier: BSD-3-Clause
// Hysteresis: turns the current finding into the held verdict. Also the brake and the history.
#include "judge_parts.h"
#include "unstable.h"

#include <stdio.h>
#include <string.h>

#define SETTLE_WINDOWS_NS (3 * SEC)
#define SETTLE_OVERLAY_NS (3 * SEC)
#define SETTLE_PACKET_LOSS_NS SEC
// Path verdicts: other observers of the same path report within this time.
#define PATH_VERDICT_MIN_NS (8 * SEC)
#define BRAKE_RECHECK_NS SEC	// the number of missed nodes changes without an input
#define HEAVY_LOSS_PERMILLE 200 // retransmitted share from which a loss is heavy

static bool verdict_is_good(enum verdict verdict) {
	return verdict == VERDICT_NONE || verdict == VERDICT_HEALTHY;
}

static bool verdict_is_of_paths(enum verdict verdict) {
	return verdict == VERDICT_PATH_DEGRADED || verdict == VERDICT_PATH_LOSSY;
}

static void finding_set_unknown(struct finding *finding, const char *reason) {
	finding->verdict = VERDICT_UNKNOWN;
	finding->reason = reason;
	finding->is_own_statement = false;
	finding->brake_free = false;
	finding->both_planes = false;
	finding->statement = NULL;
}

uint32_t brake_missing_node_count(const struct verdict_engine *engine) {
	const uint32_t *of_state = engine->members.of_state;
	uint32_t dead = of_state[RAS_DEAD] < engine->silent_recent ? of_state[RAS_DEAD]
								   : engine->silent_recent;

	return of_state[RAS_SUSPECT] + of_state[RAS_UNREACHABLE] + dead;
}

// Return how many nodes may fall silent together before the brake acts.
static uint32_t brake_limit(const struct verdict_engine *engine) {
	uint64_t view =
		(uint64_t)engine->members.of_state[RAS_ALIVE] + brake_missing_node_count(engine);
	uint64_t share = view * engine->config.brake_permille / 1000;

	return share > engine->config.brake_nodes ? (uint32_t)share : engine->config.brake_nodes;
}

bool brake_missed_is_under_limit(const struct verdict_engine *engine) {
	uint64_t missed = brake_missing_node_count(engine);
	uint64_t view = engine->members.of_state[RAS_ALIVE] + missed;

	return missed <= brake_limit(engine) && engine->silent_recent <= brake_limit(engine) &&
	       view > 2 * missed;
}

bool brake_missed_is_below_share(const struct verdict_engine *engine, uint64_t share) {
	uint64_t missed = brake_missing_node_count(engine);
	uint64_t view = engine->members.of_state[RAS_ALIVE] + missed;
	uint64_t most = engine->self.silent > missed ? engine->self.silent : missed;

	return brake_missed_is_under_limit(engine) && most <= brake_limit(engine) &&
	       share * most < view;
}

bool brake_missed_is_small_share(const struct verdict_engine *engine) {
	uint32_t missed = brake_missing_node_count(engine);
	uint32_t most = engine->self.silent > missed ? engine->self.silent : missed;

	return most == 1 || brake_missed_is_below_share(engine, 3);
}

void brake_update(struct verdict_engine *engine) {
	bool braking = engine->self.brake || engine->silent_recent > brake_limit(engine);

	if (braking == engine->braking)
		return;
	engine->braking = braking;
	engine->turned = true;
	for (uint32_t n = 0; n < engine->subject_count; n++)
		engine->subjects[n]->braked = braking && engine->subjects[n]->counted;
}

// Update the count of nodes that fell silent at about the same time, for as long as they stay
// silent.
static void brake_update_subject(
	struct verdict_engine *engine, struct subject *subject, bool silent, uint64_t now_ns
) {
	bool counted = silent;

	if (silent && !subject->silent)
		subject->silent_ns = now_ns;
	// A node that was judged silent earlier does not belong to a new event.
	if (silent && !subject->braked && now_ns >= subject->silent_ns + BRAKE_WINDOW_NS)
		counted = false;
	if (counted && !subject->braked)
		hold_until(subject, subject->silent_ns + BRAKE_WINDOW_NS);
	subject->silent = silent;
	if (counted != subject->counted)
		engine->silent_recent += counted ? 1 : -1u;
	subject->counted = counted;
	subject->braked = counted && engine->braking;
	brake_update(engine);
}

// The node is well only because its bad evidence was not repeated: make it unknown until that is
// forgotten.
static void finding_apply_stale(
	struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	uint64_t forget_ns = subject->stale_ns + STALE_FORGET_TIMES * engine->config.stale_ns;

	if (subject->stale == 0)
		return;
	if ((finding->state != RAS_ALIVE && finding->state != RAS_SUSPECT) || now_ns >= forget_ns) {
		subject_clear_stale(subject, STALE_OBSERVATIONS | STALE_STATEMENTS);
		return;
	}
	hold_until(subject, forget_ns);
	// A finding that other evidence supports stays.
	if (verdict_is_good(finding->verdict))
		finding_set_unknown(finding, "EvidenceStale");
}

static void finding_set_own_doubt(struct finding *finding, const char *reason) {
	finding_set_unknown(finding, reason);
	finding->own_doubt = true;
}

// Return whether most links of this agent lose, or others found that packets to it are lost.
static bool
self_has_losses(const struct verdict_engine *engine, struct subject *subject, uint64_t now_ns) {
	const struct subject *self = subject_find(engine, engine->config.self);

	if (engine->self.loses)
		return true;
	if (self == NULL || self == subject || !losses_are_recent(self, now_ns))
		return false;
	hold_until(subject, self->lossy_but_read_ns + LOSSY_RECENT_NS);
	return true;
}

// Return whether the node was judged down before a brake that is on for lack of votes. The node
// stays suspected until it is declared dead or unreachable. An agent without a link to the node
// sees it suspected for as long as it is down.
static bool was_down_before_brake(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct finding *finding
) {
	enum verdict named = subject->flap_history.word; // last verdict other than unknown

	if (finding->state != RAS_SUSPECT || finding->verdict != named)
		return false;
	// A refusal is an answer. More than half of the view has to be heard.
	if (named == VERDICT_AGENT_DOWN)
		return brake_missed_is_below_share(engine, 2);
	return (named == VERDICT_NODE_DOWN || named == VERDICT_MGMT_NET_DOWN) &&
	       brake_missed_is_small_share(engine);
}

// Return whether the verdict holds despite the brake. An agent that just returned has no vote, so
// its own overlay brakes at the first missing node. This must not hide a node that others declared
// dead, or an alive node that cannot be read. If most nodes are missing, the brake applies: the
// first ones were declared dead before the others fell.
static bool is_valid_despite_brake(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct finding *finding
) {
	if (was_down_before_brake(engine, subject, finding))
		return true;
	if (!brake_missed_is_under_limit(engine))
		return false;
	return finding->state == RAS_DEAD ||
	       (finding->state == RAS_ALIVE && finding->verdict == VERDICT_FABRIC_DOWN);
}

static bool finding_ignores_brake(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct finding *finding
) {
	// The agent knows its own port, however many others are silent.
	bool is_own_statement = finding->is_own_statement &&
				subject_peer(engine, subject)->id == engine->config.self;

	return finding->brake_free || finding->verdict == VERDICT_AGENT_FROZEN ||
	       is_own_statement || is_valid_despite_brake(engine, subject, finding);
}

// Return the end of the settling time after this agent's last pause; 0: it was never paused.
static uint64_t own_pause_settled_ns(const struct verdict_engine *engine) {
	uint64_t paused_until_ns = engine->self.paused_until_ns;

	return paused_until_ns != 0 ? paused_until_ns + engine->config.settle_ns : 0;
}

// Replace the finding by unknown if this agent itself is in doubt: paused, cut off, braked or
// lossy. A pause of this agent does not make a report of node-busy doubtful.
static void finding_apply_own_doubt(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	uint64_t settled_ns = own_pause_settled_ns(engine);
	bool settling = now_ns < settled_ns && finding->verdict != VERDICT_NODE_BUSY;
	bool silent = finding->by_silence && !finding->is_own_statement;

	if (finding->verdict == VERDICT_NONE)
		return;
	if (subject->braked && is_valid_despite_brake(engine, subject, finding))
		hold_until(subject, now_ns + BRAKE_RECHECK_NS);
	if (!engine->self.joined) {
		finding_set_own_doubt(finding, "NotMember");
	} else if (settling && !verdict_is_good(finding->verdict)) {
		finding_set_own_doubt(finding, "OwnPause");
		hold_until(subject, settled_ns);
	} else if (subject->braked && !finding_ignores_brake(engine, subject, finding)) {
		finding_set_own_doubt(finding, "Brake");
	} else if (silent && self_has_losses(engine, subject, now_ns)) {
		finding_set_own_doubt(finding, "OwnLoss");
	}
}

// Append the verdict shown until now to the history ring. Without memory it is not recorded.
static void
history_append(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns) {
	struct verdict_past *past;
	struct verdict_view view;

	if (subject->past == NULL)
		subject->past = engine->memory.allocate(
			engine->memory.ctx, VERDICT_HISTORY_MAX * sizeof(*subject->past)
		);
	if (subject->past == NULL)
		return;
	past = &subject->past[subject->past_next];
	subject->past_next = (subject->past_next + 1) % VERDICT_HISTORY_MAX;
	if (subject->past_count < VERDICT_HISTORY_MAX)
		subject->past_count++;
	verdict_view_fill(engine, subject->peer, &view);
	past->verdict = view.verdict;
	past->since_ns = view.since_ns;
	past->until_ns = now_ns;
	snprintf(past->reason, sizeof(past->reason), "%s", view.reason);
}

static void held_fill(struct held *held, const struct finding *finding) {
	uint32_t lost_permille = finding->example != NULL ? finding->example->lost_permille : 0;

	if (held->verdict != finding->verdict)
		held->lost_permille = 0;
	held->verdict = finding->verdict;
	held->state = finding->state;
	held->both_planes = finding->both_planes;
	held->sole = finding->sole;
	held->is_own_statement = finding->is_own_statement;
	held->drainable = finding->is_own_statement || finding->bad_host_count > 1 ||
			  finding->state == RAS_DEAD;
	held->confidence = finding->is_own_statement || finding->both_planes ||
					   finding->observer_count > 1 || finding->bad > 1
				   ? VERDICT_SURE
				   : VERDICT_LIKELY;
	if (finding->sole || (finding->verdict == VERDICT_NODE_DOWN && finding->state != RAS_DEAD))
		held->confidence = VERDICT_LIKELY;
	if (verdict_is_good(finding->verdict))
		held->confidence = VERDICT_SURE;
	held->looked_ns = finding->looked_ns;
	if (held->lost_permille < lost_permille)
		held->lost_permille = lost_permille;
	held->observer_count = finding->observer_count;
	memcpy(held->observers, finding->observers, sizeof(held->observers));
	held_write_evidence(finding, held);
}

static void
report_change(struct verdict_engine *engine, struct subject *subject, enum verdict before) {
	struct verdict_change change = {.before = before};
	struct verdict_view view;

	subject->told_advice = (uint8_t)judge_advice(&subject->held, false);
	if (engine->ops.changed == NULL)
		return;
	verdict_view_fill(engine, subject->peer, &view);
	change.now = &view;
	engine->ops.changed(engine->ops_ctx, &change);
}

// Return whether the advice rose above a warning: the verdict has held long enough, the node is
// dead, or a second observer agrees.
static bool advice_is_raised(const struct subject *subject, bool was_ripe) {
	enum verdict_advice advice = judge_advice(&subject->held, false);

	if (subject->flap_history.unstable)
		return false;
	return advice > VERDICT_ADVICE_WARN && (!was_ripe || advice > subject->told_advice);
}

static void hysteresis_change(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct finding *finding,
	uint64_t now_ns
) {
	enum verdict before = subject->held.verdict;
	bool was_unstable = subject->flap_history.unstable;

	if (!was_unstable)
		history_append(engine, subject, now_ns);
	subject->held.since_ns = subject->held.told_ns = now_ns;
	held_fill(&subject->held, finding);
	subject->held.ripe = !finding->by_silence;
	unstable_record_change(subject, finding->own_doubt, now_ns);
	if (was_unstable)
		return;
	engine->counts.changes++;
	report_change(engine, subject, before);
}

// Return how long an improvement must last. Path verdicts are judged over windows, which have
// settled by SETTLE_WINDOWS_NS. The overlay withdraws a doubt only after it heard the node, and
// doubts again only after seconds of silence. A heavy packet loss ends when many packets passed at
// half of its observers, so only their reports are awaited. A light loss may seem to end by chance
// at half of them, while others are about to find it again: it waits in full.
static uint64_t
settling_time_ns(const struct verdict_engine *engine, const struct subject *subject) {
	const struct held *held = &subject->held;
	uint64_t settle_ns = engine->config.settle_ns;
	bool settling = held->verdict == VERDICT_UNKNOWN && strcmp(held->reason, "Settling") == 0;
	enum verdict before = settling ? subject->flap_history.word : held->verdict;

	if (before == VERDICT_MGMT_NET_DOWN)
		return settle_ns > SETTLE_OVERLAY_NS ? SETTLE_OVERLAY_NS : settle_ns;
	if (held->verdict == VERDICT_PATH_LOSSY && strcmp(held->reason, "PacketsLost") == 0)
		return settle_ns > SETTLE_PACKET_LOSS_NS &&
				       held->lost_permille >= HEAVY_LOSS_PERMILLE
			       ? SETTLE_PACKET_LOSS_NS
			       : settle_ns;
	if (verdict_is_of_paths(held->verdict))
		return settle_ns > SETTLE_WINDOWS_NS ? SETTLE_WINDOWS_NS : settle_ns;
	return settle_ns;
}

// Handle evidence that is better than the held verdict. A held verdict that no longer fits the peer
// state, or that is from before an own pause, becomes unknown until the evidence has settled. The
// fault may have ended early in that pause. An unknown verdict stays unknown.
static void hysteresis_better(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct finding *finding,
	uint64_t now_ns
) {
	struct held *held = &subject->held;
	// A refuted suspicion needs no settling time.
	bool suspected = held->verdict == VERDICT_UNKNOWN && strcmp(held->reason, "Suspected") == 0;
	uint64_t path_ns = held->told_ns + PATH_VERDICT_MIN_NS;
	bool is_outdated =
		!judge_verdict_fits_state(held->verdict, finding->state) ||
		(held->verdict != VERDICT_NODE_BUSY && now_ns < own_pause_settled_ns(engine));
	struct finding settling = *finding;
	uint64_t settled_ns;

	if (subject->better_since_ns == RAS_NEVER)
		subject->better_since_ns = now_ns;
	settled_ns = subject->better_since_ns + settling_time_ns(engine, subject);
	// The first observers of a slow or lossy path may have a good moment while others are about
	// to find it. Without PATH_VERDICT_MIN_NS one fault would cause four changes.
	if (verdict_is_of_paths(held->verdict) && path_ns > settled_ns)
		settled_ns = path_ns;
	if (finding->verdict == VERDICT_NONE || finding->verdict == VERDICT_UNKNOWN || suspected ||
	    now_ns >= settled_ns) {
		subject->better_since_ns = RAS_NEVER;
		hysteresis_change(engine, subject, finding, now_ns);
		return;
	}
	hold_until(subject, settled_ns);
	finding_set_unknown(&settling, "Settling");
	if (held->verdict == VERDICT_UNKNOWN)
		held_fill(held, &settling);
	else if (is_outdated)
		hysteresis_change(engine, subject, &settling, now_ns);
}

static void hysteresis_finding(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct finding *finding,
	uint64_t now_ns
) {
	// The fault changed its form while the overlay's doubt grew. Then nothing improved that
	// would have to settle.
	bool anew = finding->verdict > VERDICT_UNKNOWN && finding->state > subject->held.state;

	if (finding->verdict < subject->held.verdict && !anew) {
		hysteresis_better(engine, subject, finding, now_ns);
		return;
	}
	if (finding->verdict != subject->held.verdict) {
		subject->better_since_ns = RAS_NEVER;
		hysteresis_change(engine, subject, finding, now_ns);
		return;
	}
	// The evidence improved for a moment and is bad again. Restart the time held, so that a
	// scheduler's confirmation time restarts.
	if (subject->better_since_ns != RAS_NEVER)
		subject->held.since_ns = now_ns;
	subject->better_since_ns = RAS_NEVER;
	held_fill(&subject->held, finding);
}

// Mark the verdict as ripe for action. A falling node may be the first of many, so no node is
// drained before the brake had time to see that. A verdict that only waits for better evidence to
// settle does not ripen. A braked one does not either.
static void hysteresis_ripen(
	struct verdict_engine *engine,
	struct subject *subject,
	const struct finding *finding,
	uint64_t now_ns
) {
	uint64_t ripe_ns = subject->held.since_ns + engine->config.settle_ns;
	bool was_ripe = subject->held.ripe;

	if (finding->verdict < subject->held.verdict)
		return;
	subject->held.ripe = !finding->by_silence || (now_ns >= ripe_ns && !subject->braked);
	if (!subject->held.ripe && now_ns < ripe_ns)
		hold_until(subject, ripe_ns);
	else if (subject->held.ripe && advice_is_raised(subject, was_ripe))
		report_change(engine, subject, subject->held.verdict);
}

void hysteresis_apply(struct verdict_engine *engine, struct subject *subject, uint64_t now_ns) {
	struct finding finding;
	uint8_t stale;

	subject->next_ns = RAS_NEVER;
	stale = subject_expire(engine, subject, now_ns);
	// Observations are irrelevant if the verdict comes from the node's own statement. For
	// example, one observer did not reach a node whose check failed.
	if (subject->held.is_own_statement)
		stale &= STALE_STATEMENTS;
	if (stale != 0 && !verdict_is_good(subject->held.verdict)) {
		if (subject->stale == 0)
			subject->stale_ns = now_ns;
		subject->stale |= stale;
	}
	judge(engine, subject, now_ns, &finding);
	engine->counts.walked += finding.walked;
	brake_update_subject(engine, subject, finding.by_silence, now_ns);
	// After brake_update_subject(): a dead node fades only if counted.
	fading_update(engine, subject, finding.is_fading, now_ns);
	finding_apply_stale(engine, subject, now_ns, &finding);
	finding_apply_own_doubt(engine, subject, now_ns, &finding);
	hysteresis_finding(engine, subject, &finding, now_ns);
	hysteresis_ripen(engine, subject, &finding, now_ns);
	// End the flapping state once it is over; the held verdict is shown again.
	if (unstable_is_over(subject, now_ns)) {
		history_append(engine, subject, now_ns);
		unstable_end(subject);
		engine->counts.changes++;
		report_change(engine, subject, VERDICT_UNSTABLE);
	}
	hold_until(subject, subject_next_expiry_ns(engine, subject));
	due_queue_update(engine, subject);
}

void hysteresis_apply_all(struct verdict_engine *engine, uint64_t now_ns) {
	for (uint32_t n = 0; n < engine->subject_count; n++)
		hysteresis_apply(engine, engine->subjects[n], now_ns);
}
