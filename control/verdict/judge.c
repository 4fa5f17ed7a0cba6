// SPDX-License-Identifier: BSD-3-Clause
// The tables of the design, row by row: what overlay and data plane say of one node, together.
#include "inside.h"
#include "triangulate.h"

#include <string.h>

#define LIKELY_OBSERVERS \
	4 // as many as are told (OBSERVATION_ENOUGH), or more than half of who looked

// How many observers say how its host takes the overlay's connections.
struct votes {
	uint32_t of[VERDICT_REACH_COUNT];
	uint32_t against; // accepts, refuses or none
	uint64_t newest_ns;
};

// The same observer may have several paths: its best word counts.
static bool observer_outvoted(const struct subject *subject, uint32_t at) {
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

// When somebody last found it not to answer.
static uint64_t
votes_against_ns(const struct verdict_engine *engine, const struct subject *subject) {
	uint64_t newest_ns = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (verdict_reach_is_unanswered(evidence->observation.reach) &&
		    triangulate_counts(engine, evidence) && evidence->seen_ns > newest_ns)
			newest_ns = evidence->seen_ns;
	}
	if (verdict_reach_is_unanswered(subject->reach) && subject->reach_ns > newest_ns)
		newest_ns = subject->reach_ns;
	return newest_ns;
}

static void votes_take(
	const struct verdict_engine *engine, const struct subject *subject, struct votes *ret_votes
) {
	bool own = false;

	memset(ret_votes, 0, sizeof(*ret_votes));
	ret_votes->newest_ns = votes_against_ns(engine, subject);
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		enum verdict_reach reach = evidence->observation.reach;

		if (reach == VERDICT_REACH_UNKNOWN || !triangulate_counts(engine, evidence) ||
		    observer_outvoted(subject, n))
			continue;
		// What is lost on the way was answered in the end.
		if (reach == VERDICT_REACH_LOSES)
			reach = VERDICT_REACH_ANSWERS;
		// It answered before others found that it does not.
		if (reach == VERDICT_REACH_ANSWERS &&
		    evidence->seen_ns + COVER_NS < ret_votes->newest_ns)
			continue;
		own = own || evidence->observation.observer == engine->config.self;
		ret_votes->of[reach]++;
	}
	if (!own && subject->reach != VERDICT_REACH_UNKNOWN &&
	    (verdict_reach_is_unanswered(subject->reach) ||
	     subject->reach_ns + COVER_NS >= ret_votes->newest_ns))
		ret_votes->of[subject->reach]++;
	ret_votes->against = ret_votes->of[VERDICT_REACH_ACCEPTS] +
			     ret_votes->of[VERDICT_REACH_REFUSES] +
			     ret_votes->of[VERDICT_REACH_NONE];
	// One whose own link is bad is outvoted, and so is one whose beat was under way.
	if (ret_votes->against > ret_votes->of[VERDICT_REACH_ANSWERS])
		ret_votes->of[VERDICT_REACH_ANSWERS] = 0;
}

static void finding_set(struct finding *finding, enum verdict verdict, const char *reason) {
	finding->verdict = verdict;
	finding->reason = reason;
}

static void find_by_silence(struct finding *finding, enum verdict verdict, const char *reason) {
	finding_set(finding, verdict, reason);
	finding->by_silence = true;
}

// What the observers of the data plane have to say for it.
static void find_observers(struct finding *finding, const struct fabric_look *look) {
	finding->bad = look->bad;
	finding->eyes = look->eyes;
	finding->good = look->good;
	finding->lookers = look->lookers;
	finding->example = look->example;
	finding->walked = look->walked;
	finding->observer_count = look->observer_count;
	memcpy(finding->observers, look->observers, sizeof(finding->observers));
	if (look->newest_ns > finding->looked_ns)
		finding->looked_ns = look->newest_ns;
}

static void find_overlay(struct finding *finding, const struct subject *subject) {
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

// The overlay holds it for dead, and not because connections are refused.
static void judge_silent_death(
	const struct fabric_look *look, const struct votes *votes, struct finding *finding
) {
	bool unread = look->fabric == FABRIC_SILENT;

	if (look->fabric == FABRIC_STANDING)
		find_by_silence(finding, VERDICT_AGENT_FROZEN, "PulseStands");
	else if (look->good > 0)
		find_by_silence(finding, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	else if (votes->of[VERDICT_REACH_REFUSES] > 0)
		finding_set(finding, VERDICT_AGENT_DOWN, "AgentGone");
	else if (votes->of[VERDICT_REACH_ACCEPTS] > 0)
		find_by_silence(finding, VERDICT_AGENT_FROZEN, "AgentMute");
	else if (unread && (!look->in_process || votes->of[VERDICT_REACH_NONE] > 0)) {
		find_by_silence(finding, VERDICT_NODE_DOWN, "NodeSilent");
		finding->both_planes = true;
	} else if (votes->of[VERDICT_REACH_NONE] > 0)
		find_by_silence(finding, VERDICT_NODE_DOWN, "OverlaySilent");
	else
		finding_set(finding, VERDICT_UNKNOWN, "HostOrAgent");
}

static const struct evidence *newest_of(
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

// Of a dead one a single observer is enough where two of the overlay stand behind it already. Who
// reads a page that stands outweighs who reads nothing, unless that came later.
static void look_at_death(
	const struct verdict_engine *engine, const struct subject *subject, struct fabric_look *look
) {
	const struct evidence *standing;
	const struct evidence *silent;
	const struct evidence *found;

	if (look->fabric == FABRIC_SILENT || look->fabric == FABRIC_STANDING)
		return;
	standing = newest_of(engine, subject, OBSERVATION_STANDING, look->good_ns);
	silent = newest_of(engine, subject, OBSERVATION_SILENT, look->good_ns);
	found = standing;
	if (found == NULL || (silent != NULL && standing->seen_ns + COVER_NS < silent->since_ns))
		found = silent;
	if (found == NULL)
		return;
	look->bad = look->eyes = 1;
	look->example = &found->observation;
	look->observer_count = 1;
	look->observers[0] = found->observation.observer;
	look->in_process = found->observation.responder == OBSERVATION_RESPONDER_IN_PROCESS;
	look->fabric = found == standing ? FABRIC_STANDING : FABRIC_SILENT;
}

// The overlay takes far longer to hold a silent one for dead, so what was read a moment ago was
// read in its silence, and the next read need not be waited for.
static uint64_t read_at_death_ns(const struct subject *subject) {
	return subject->state_ns > LAST_READ_NS ? subject->state_ns - LAST_READ_NS : 0;
}

// One agent alone says so, and may be the one that is cut off. What its host or its NIC do answer
// is no silence of that agent's own making: that is told, and nobody acts by it.
static void judge_sole(struct finding *finding) {
	finding->sole = true;
	if (finding->verdict != VERDICT_NODE_DOWN && finding->verdict != VERDICT_UNKNOWN)
		return;
	finding->both_planes = false;
	finding->by_silence = false;
	finding_set(finding, VERDICT_UNKNOWN, "SoleObserver");
}

// It has to send much again that it sends there, or it loses reads of one that the overlay does not
// hear: of one that is alive those are judged for themselves.
static bool loses_packets(const struct observation *observation, enum ras_state state) {
	return observation->reach == VERDICT_REACH_LOSES ||
	       (state != RAS_ALIVE && observation->kind == OBSERVATION_LOSSY);
}

// Those who lose packets, each once.
struct losers {
	uint32_t hosts[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t ids[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint32_t bad, eyes;
	uint32_t good; // who lost some, and no longer
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

// Two who send it much again, on different hosts if there is a choice: packets to it are lost, or
// from it; unless half of those who did do no longer. Whose links all lose says nothing
// (<verdict/loss.h>), so of a bad path only its ends do.
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

static bool is_read(const struct fabric_look *look) {
	return look->good > 0 && look->fabric != FABRIC_STANDING;
}

// One that loses packets and is read by some is held for dead by what of its beats is lost: neither
// its agent nor its network is gone.
static void judge_dead(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	const struct member_row *peer = subject_peer(engine, subject);
	struct losers losers;
	struct fabric_look look;
	struct votes votes;

	triangulate(engine, subject, read_at_death_ns(subject), &look);
	look_at_death(engine, subject, &look);
	votes_take(engine, subject, &votes);
	find_observers(finding, &look);
	find_overlay(finding, subject);
	if (ras_cause_is_gone(peer->cause) || peer->cause == RAS_CAUSE_RESET ||
	    peer->cause == RAS_CAUSE_REFUSED)
		finding_set(finding, VERDICT_AGENT_DOWN, "AgentGone");
	else if (is_read(&look) && is_losing(engine, subject, RAS_ALIVE, &losers))
		find_losses(&losers, finding);
	else
		judge_silent_death(&look, &votes, finding);
	if (peer->sole)
		judge_sole(finding);
}

// The overlay was refused twice, and nobody has said since that it lives.
static bool is_refused(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	const struct votes *votes
) {
	const struct member_row *peer = subject_peer(engine, subject);

	if (peer->state != RAS_SUSPECT || peer->cause != RAS_CAUSE_GONE ||
	    votes->of[VERDICT_REACH_REFUSES] == 0)
		return false;
	if (now_ns >= subject->state_ns + GATHER_NS)
		return true;
	hold_until(subject, subject->state_ns + GATHER_NS);
	return false;
}

// What loses many packets is silent to some for a moment.
static bool is_said_by_few(uint32_t bad, uint32_t lookers) {
	return bad < LIKELY_OBSERVERS && 2 * bad <= lookers;
}

// Overlay, pulse and kernel are silent to two: named before the overlay has decided, as likely, and
// nobody acts on it. So long as most are heard: who is in the smaller part of a split, or in
// neither, is not told which part is down.
static bool is_likely_down(
	const struct finding *finding, const struct votes *votes, const struct heard *heard
) {
	if (finding->bad > 0 && is_said_by_few(finding->bad, finding->lookers))
		return false;
	return (finding->state == RAS_SUSPECT || finding->state == RAS_UNREACHABLE) &&
	       votes->of[VERDICT_REACH_NONE] >= 2 && votes->of[VERDICT_REACH_REFUSES] == 0 &&
	       votes->of[VERDICT_REACH_ACCEPTS] == 0 && heard->most;
}

// Somebody heard its agent after its pulse had fallen silent. Who read it well until then, and does
// not look now, heard it before.
static bool is_heard_since(
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

// Its pulse is not to be read. What was heard of it before our link fell quiet says nothing of now.
static void judge_unread(
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
		find_by_silence(finding, VERDICT_FABRIC_DOWN, "PulseUnread");
	} else if (finding->state == RAS_SUSPECT && votes->of[VERDICT_REACH_ACCEPTS] > 0) {
		find_by_silence(finding, VERDICT_AGENT_FROZEN, "AgentMute");
	} else if (is_likely_down(finding, votes, heard)) {
		find_by_silence(finding, VERDICT_NODE_DOWN, "NodeSilent");
	} else {
		finding_set(finding, VERDICT_UNKNOWN, "SilentBothWays");
	}
}

// Others, or we ourselves, cannot talk to it.
static void judge_suspect(
	struct subject *subject,
	uint64_t now_ns,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	struct finding *finding
) {
	uint64_t woken_ns = subject->blame_ns + WOKEN_NS;
	bool woken = look->good > 0 && now_ns < woken_ns;
	// Whoever hears few has lost the network itself, unless kernels still answer it.
	bool cut_off = !heard->most && (look->good > 0 || votes->of[VERDICT_REACH_ACCEPTS] == 0);
	bool says = !woken && !cut_off;

	if (woken)
		hold_until(subject, woken_ns);
	if (says && look->good > 0) {
		find_by_silence(finding, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	} else if (says && votes->of[VERDICT_REACH_ACCEPTS] > 0) {
		find_by_silence(finding, VERDICT_AGENT_FROZEN, "AgentMute");
	} else if (says && look->lookers == 0 && is_likely_down(finding, votes, heard)) {
		find_by_silence(finding, VERDICT_NODE_DOWN, "OverlaySilent");
	} else {
		finding_set(finding, VERDICT_UNKNOWN, "Suspected");
	}
}

// What has stood for WOKEN_NS waits for nothing: GATHER_DOUBT_NS is no less.

// What there is against it must have stood for a moment: who sees well is being heard.
static enum fabric evidence_stands(
	const struct verdict_engine *engine,
	struct subject *subject,
	const struct fabric_look *look,
	bool against,
	uint64_t now_ns
) {
	uint8_t blame = look->fabric > FABRIC_READABLE ? (uint8_t)look->fabric : FABRIC_UNSEEN;
	uint64_t wait_ns = GATHER_NS;

	if (blame == FABRIC_UNSEEN && against) {
		blame = FABRIC_READABLE;
		wait_ns = WOKEN_NS;
	}
	if (blame != subject->blame) {
		subject->blame = blame;
		subject->blame_ns = now_ns;
	}
	if (blame == FABRIC_UNSEEN || now_ns >= subject->blame_ns + GATHER_DOUBT_NS)
		return look->fabric;
	if (blame != FABRIC_READABLE && triangulate_is_doubtful(engine, subject, look))
		wait_ns = GATHER_DOUBT_NS;
	if (now_ns >= subject->blame_ns + wait_ns)
		return look->fabric;
	hold_until(subject, subject->blame_ns + wait_ns);
	return FABRIC_UNSEEN;
}

static bool loses_some(const struct verdict_engine *engine, const struct subject *subject) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (loses_packets(&evidence->observation, RAS_SUSPECT) &&
		    triangulate_counts(engine, evidence) &&
		    !triangulate_is_hampered(triangulate_observer(engine, evidence)))
			return true;
	}
	return false;
}

// It is suspected for what its losses keep from being heard.
static bool is_leaky_suspect(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	const struct finding *finding
) {
	if (finding->state != RAS_SUSPECT || votes->of[VERDICT_REACH_ACCEPTS] > 0)
		return false;
	if (look->good == 0 && is_likely_down(finding, votes, heard))
		return false;
	return loses_some(engine, subject);
}

static bool find_losing(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	struct losers losers;

	if (!is_losing(engine, subject, finding->state, &losers))
		return false;
	find_losses(&losers, finding);
	return true;
}

// By what most of those say who lose reads of it.
static const char *
lossy_reason(const struct verdict_engine *engine, const struct subject *subject) {
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

// What is sent to one that is about to fall silent is sent again, too.
static bool find_loss_alone(
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

// Whether it loses packets and is read by some nevertheless.
static void leaky_note(
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

bool judge_is_leaky(const struct subject *subject, uint64_t now_ns) {
	return subject->leaky_ns != 0 && now_ns < subject->leaky_ns + LEAKY_NS;
}

// Its silence, to whomever, is of what it loses: that its host accepts connections on which nothing
// is said neither.
static bool is_leaky_silence(
	struct subject *subject, enum fabric fabric, enum ras_state state, uint64_t now_ns
) {
	bool silent = fabric == FABRIC_SILENT || fabric == FABRIC_PEERS || fabric == FABRIC_PORT;

	if (!(silent || state == RAS_SUSPECT) || !judge_is_leaky(subject, now_ns))
		return false;
	hold_until(subject, subject->leaky_ns + LEAKY_NS);
	return true;
}

// What is heard of it now and then is what gets through: neither its network nor its agent is gone.
static void judge_leaky_suspect(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	if (find_losing(engine, subject, finding))
		return;
	if (subject->held.verdict == VERDICT_PATH_LOSSY)
		finding_set(finding, VERDICT_PATH_LOSSY, "PacketsLost");
	else
		finding_set(finding, VERDICT_UNKNOWN, "Suspected");
}

static void judge_seen(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	uint32_t need = triangulate_need(engine, subject);
	struct fabric_look look;
	struct votes votes;
	struct heard heard = {.peer = true, .alone = true, .most = true};
	uint64_t good_after_ns;
	enum fabric fabric;
	bool leaky, is_alive;

	votes_take(engine, subject, &votes);
	if (finding->state == RAS_ALIVE && votes.of[VERDICT_REACH_ANSWERS] == 0 &&
	    votes.against >= need)
		finding->state = RAS_SUSPECT;
	good_after_ns = subject_peer(engine, subject)->state == RAS_SUSPECT ? subject->state_ns
									    : votes.newest_ns;
	triangulate(engine, subject, good_after_ns, &look);
	if (look.fabric == FABRIC_SILENT && is_said_by_few(look.bad, look.lookers) &&
	    loses_some(engine, subject))
		triangulate_lossy(engine, subject, good_after_ns, &look);
	leaky_note(engine, subject, &look, now_ns);
	finding->is_fading = look.fabric == FABRIC_SILENT || (votes.of[VERDICT_REACH_NONE] > 1 &&
							      votes.of[VERDICT_REACH_ANSWERS] == 0);
	fabric = evidence_stands(engine, subject, &look, finding->state == RAS_SUSPECT, now_ns);
	if (fabric == FABRIC_UNSEEN && look.fabric != FABRIC_UNSEEN &&
	    subject_peer(engine, subject)->state == RAS_ALIVE)
		finding->state = RAS_ALIVE;
	if (fabric == FABRIC_SILENT && now_ns < look.bad_ns + ALIVE_PROOF_NS)
		hold_until(subject, look.bad_ns + ALIVE_PROOF_NS);
	find_observers(finding, &look);
	if (fabric == FABRIC_SILENT || finding->state == RAS_SUSPECT)
		hear_links(engine, subject, now_ns, &heard);
	heard.now = heard.peer && heard.alone &&
		    (heard.named || is_heard_since(engine, subject, look.bad_ns));
	is_alive = finding->state == RAS_ALIVE;
	leaky = fabric != FABRIC_SILENT &&
		is_leaky_suspect(engine, subject, &look, &votes, &heard, finding);
	if (fabric == FABRIC_STANDING && votes.of[VERDICT_REACH_ANSWERS] > 0 &&
	    finding->state == RAS_ALIVE) {
		finding_set(finding, VERDICT_UNKNOWN, "PulseContradicts");
	} else if (fabric == FABRIC_STANDING) {
		finding->state = RAS_SUSPECT;
		find_by_silence(finding, VERDICT_AGENT_FROZEN, "PulseStands");
	} else if (is_refused(engine, subject, now_ns, &votes) && look.good == 0) {
		// Many at once may be refused by a firewall of our own.
		find_by_silence(finding, VERDICT_AGENT_DOWN, "AgentGone");
		finding->overlay = votes.of[VERDICT_REACH_REFUSES];
	} else if (is_leaky_silence(subject, fabric, finding->state, now_ns) || leaky) {
		judge_leaky_suspect(engine, subject, finding);
	} else if (fabric == FABRIC_SILENT) {
		judge_unread(subject, now_ns, &look, &votes, &heard, finding);
	} else if (finding->state == RAS_SUSPECT) {
		judge_suspect(subject, now_ns, &look, &votes, &heard, finding);
	} else if (fabric == FABRIC_PEERS || fabric == FABRIC_PORT) {
		find_by_silence(
			finding, VERDICT_FABRIC_DOWN,
			fabric == FABRIC_PEERS ? "PeersUnread" : "PortUnread"
		);
	} else if (fabric == FABRIC_LOSSY) {
		finding_set(finding, VERDICT_PATH_LOSSY, lossy_reason(engine, subject));
	} else if (is_alive && find_loss_alone(engine, subject, now_ns, finding)) {
		return;
	} else if (fabric == FABRIC_SLOW) {
		finding_set(finding, VERDICT_PATH_DEGRADED, "PulseSlow");
	}
}

// Its kernel answers two, or its NIC does; of one that was found so before, one that still finds
// it, unless that is the only agent that is left. Where a gap has just closed a connection is
// accepted a moment before the agent answers on it.
static bool is_frozen(
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
		subject->blame_ns = now_ns;
	}
	if (blame == FABRIC_UNSEEN)
		return false;
	if (was_found || now_ns >= subject->blame_ns + WOKEN_NS)
		return true;
	hold_until(subject, subject->blame_ns + WOKEN_NS);
	return false;
}

// The brake holds its death. That is of silence: that its kernel answers, or its NIC, says which of
// them stands still, however many others do. What else it was called before is still so where most
// are heard and nobody else is missed: of three agents two may know that, and have no votes.
static void judge_unreachable(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
) {
	enum verdict named = subject->swings.word; // the last that was no doubt
	struct fabric_look look;
	struct votes votes;
	struct heard heard;
	bool was_down;

	votes_take(engine, subject, &votes);
	triangulate(engine, subject, read_at_death_ns(subject), &look);
	find_observers(finding, &look);
	find_overlay(finding, subject);
	hear_links(engine, subject, now_ns, &heard);
	heard.most = heard.most && brake_missed(engine) == 1;
	finding->brake_free = true;
	was_down = look.good == 0 && named == VERDICT_NODE_DOWN;
	if (is_frozen(engine, subject, now_ns, &look, &votes)) {
		find_by_silence(
			finding, VERDICT_AGENT_FROZEN,
			look.fabric == FABRIC_STANDING ? "PulseStands" : "AgentMute"
		);
	} else if (look.good > 0 && heard.most && named == VERDICT_MGMT_NET_DOWN) {
		find_by_silence(finding, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	} else if (was_down && is_likely_down(finding, &votes, &heard)) {
		find_by_silence(
			finding, VERDICT_NODE_DOWN,
			look.fabric == FABRIC_SILENT ? "NodeSilent" : "OverlaySilent"
		);
	} else {
		finding_set(finding, VERDICT_UNKNOWN, "Unreachable");
		finding->own_doubt = true;
	}
}

static bool said_is_worse(const struct said *a, const struct said *b) {
	if (a->statement.verdict != b->statement.verdict)
		return a->statement.verdict > b->statement.verdict;
	return strcmp(a->statement.reason, b->statement.reason) < 0;
}

static void judge_words(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
) {
	const struct said *worst = NULL;

	for (uint32_t n = 0; n < subject->said_count; n++) {
		if (worst == NULL || said_is_worse(&subject->said[n], worst))
			worst = &subject->said[n];
	}
	if (worst == NULL || worst->statement.verdict < finding->verdict)
		return;
	finding_set(finding, worst->statement.verdict, worst->statement.reason);
	// A port that is down may be one of many, of a switch that restarts.
	finding->by_silence = worst->statement.verdict == VERDICT_FABRIC_DOWN;
	finding->own_words = true;
	finding->both_planes = false;
	finding->statement = &worst->statement;
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
		judge_seen(engine, subject, now_ns, ret_finding);
		// One that reads nobody is silent as those are whom nobody reads.
		if (ret_finding->verdict <= VERDICT_HEALTHY)
			ret_finding->by_silence = subject->tells_blind > 1;
		judge_words(engine, subject, ret_finding);
		return;
	}
}

bool judge_goes_with(enum verdict verdict, enum ras_state state) {
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
		       verdict == VERDICT_AGENT_FROZEN || verdict == VERDICT_NODE_DOWN;
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
