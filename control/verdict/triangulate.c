// SPDX-License-Identifier: BSD-3-Clause
// Who is to blame for what is seen of a node: one of its ports, all of it, or nobody.
//
// A port of a node is bad when as many observers as are needed see it badly, on different hosts if
// there is a choice, and nobody sees it well: a good look excuses it if it is not older than the
// bad ones by more than it takes to turn bad. Who shares the subject's host reads it without the
// fabric, which excuses nothing. A node that reads nobody is to blame if others read those it does
// not, and nobody reads it.
#include "triangulate.h"

#include <verdict/path_memory.h>

#include <string.h>

#define OBSERVERS_MAX VERDICT_SUBJECT_OBSERVATIONS_MAX

// What one subject's observations say of one of its ports, or of all.
struct tally {
	uint64_t bad[OBSERVERS_MAX];
	uint64_t bad_since[OBSERVERS_MAX]; // when each turned bad
	uint32_t bad_hosts[OBSERVERS_MAX];
	uint32_t bad_count, host_count;
	uint64_t bad_since_ns; // the latest that turned bad
	uint64_t good[OBSERVERS_MAX];
	uint64_t good_at[OBSERVERS_MAX];    // when each was
	uint64_t good_first[OBSERVERS_MAX]; // and when it looked first
	uint32_t good_count;
	uint64_t good_ns; // the latest that was good
	uint64_t newest_ns;
	bool in_process; // all bad ones
	const struct evidence *example;
};

// NULL: nobody knows it.
static const struct member_row *triangulate_row(const struct verdict_engine *engine, uint64_t id) {
	uint32_t row = members_find(&engine->members, id);

	return row != MEMBERS_NONE ? &engine->members.rows[row] : NULL;
}

bool triangulate_own_port_is_bad(const struct subject *subject) {
	for (uint32_t n = 0; subject != NULL && n < subject->said_count; n++) {
		enum verdict verdict = subject->said[n].statement.verdict;

		if (verdict == VERDICT_FABRIC_DOWN || verdict == VERDICT_DEVICE_STUCK)
			return true;
	}
	return false;
}

static bool is_held_to_blame(const struct verdict_engine *engine, uint64_t id) {
	const struct member_row *row = triangulate_row(engine, id);

	return row != NULL && row->subject != NULL &&
	       row->subject->held.verdict == VERDICT_FABRIC_DOWN;
}

bool triangulate_counts(const struct verdict_engine *engine, const struct evidence *evidence) {
	const struct observation *observation = &evidence->observation;
	const struct member_row *observer;

	if (observation->observer == engine->config.self) {
		// What we did not hear while we were stopped ourselves was not silence.
		if (observation_is_bad(observation->kind) &&
		    evidence->seen_ns < engine->self.paused_until_ns)
			return false;
		// And if it is we who are cut off, what we do not read is nobody's fault; nor do we
		// tell it, so that nobody could contradict.
		if (observation->kind == OBSERVATION_SILENT &&
		    is_held_to_blame(engine, observation->observer))
			return false;
		if (!observation_is_bad(observation->kind) || observation->own_good)
			return true;
	}
	if (observation_is_bad(observation->kind) && !observation->own_good)
		return false;
	observer = triangulate_observer(engine, evidence);
	return observer != NULL && observer->state != RAS_DEAD && observer->state != RAS_LEFT &&
	       (!observation_is_bad(observation->kind) ||
		!triangulate_own_port_is_bad(observer->subject));
}

bool triangulate_shares_host(
	const struct verdict_engine *engine, const struct evidence *evidence, uint32_t host
) {
	const struct member_row *row = triangulate_observer(engine, evidence);

	return engine->members.hosts_alive > 1 && host != NAMES_NONE && row != NULL &&
	       row->host == host;
}

uint32_t triangulate_need(const struct verdict_engine *engine, const struct subject *subject) {
	const uint32_t *of_state = engine->members.of_state;
	uint32_t able = of_state[RAS_ALIVE] + of_state[RAS_SUSPECT];
	uint8_t state = subject_peer(engine, subject)->state;

	if (state == RAS_ALIVE || state == RAS_SUSPECT)
		able--;
	return able > 1 ? 2 : 1;
}

static void tally_bad(
	const struct verdict_engine *engine, const struct evidence *evidence, struct tally *tally
) {
	const struct member_row *observer = triangulate_observer(engine, evidence);
	uint32_t host = observer != NULL ? observer->host : NAMES_NONE;
	uint32_t n;

	if (evidence->since_ns > tally->bad_since_ns || tally->bad_count == 0)
		tally->bad_since_ns = evidence->since_ns;
	if (tally->bad_count == 0)
		tally->in_process = true;
	if (evidence->observation.responder != OBSERVATION_RESPONDER_IN_PROCESS)
		tally->in_process = false;
	if (tally->example == NULL || evidence->seen_ns > tally->example->seen_ns ||
	    (evidence->seen_ns == tally->example->seen_ns &&
	     evidence->observation.observer < tally->example->observation.observer))
		tally->example = evidence;
	for (n = 0; n < tally->bad_count; n++) {
		if (tally->bad[n] != evidence->observation.observer)
			continue;
		if (evidence->since_ns < tally->bad_since[n])
			tally->bad_since[n] = evidence->since_ns;
		return;
	}
	tally->bad_since[n] = evidence->since_ns;
	tally->bad[tally->bad_count++] = evidence->observation.observer;
	for (n = 0; host != NAMES_NONE && n < tally->host_count; n++) {
		if (tally->bad_hosts[n] == host)
			return;
	}
	tally->bad_hosts[tally->host_count++] = host;
}

static void tally_good(const struct evidence *evidence, struct tally *tally) {
	uint32_t at = 0;

	if (evidence->seen_ns > tally->good_ns)
		tally->good_ns = evidence->seen_ns;
	while (at < tally->good_count && tally->good[at] != evidence->observation.observer)
		at++;
	if (at == tally->good_count) {
		tally->good[tally->good_count++] = evidence->observation.observer;
		tally->good_at[at] = 0;
		tally->good_first[at] = evidence->first_ns;
	}
	if (evidence->first_ns < tally->good_first[at])
		tally->good_first[at] = evidence->first_ns;
	if (evidence->seen_ns > tally->good_at[at])
		tally->good_at[at] = evidence->seen_ns;
}

bool triangulate_excuses(enum observation_kind look, enum observation_kind kind) {
	if (kind == OBSERVATION_SILENT)
		return look == OBSERVATION_GOOD || look == OBSERVATION_STANDING ||
		       look == OBSERVATION_DEGRADED || look == OBSERVATION_LOSSY;
	if (kind == OBSERVATION_STANDING)
		return look == OBSERVATION_GOOD || look == OBSERVATION_DEGRADED ||
		       look == OBSERVATION_LOSSY;
	return look == OBSERVATION_GOOD;
}

// A look that speaks against badness of this kind, by one who does not share the subject's host.
static bool excuses_from(
	const struct verdict_engine *engine,
	const struct evidence *look,
	enum observation_kind kind,
	uint32_t host
) {
	return triangulate_excuses(look->observation.kind, kind) &&
	       !triangulate_shares_host(engine, look, host);
}

// One without a past calls whatever it reads good. It speaks against slowness only if it reads the
// subject as fast as those did who call it slow now, and against loss only of what passed.
static bool knows_no_better(const struct observation *look, const struct observation *bad) {
	if (bad->kind == OBSERVATION_DEGRADED)
		return look->baseline_ns == 0 && bad->baseline_ns != 0 &&
		       look->median_ns * UINT64_C(1000) >=
			       (uint64_t)bad->baseline_ns * PATH_RATIO_PERMILLE;
	return observation_is_mute_about(look, bad->kind, bad->lost_bytes);
}

static bool is_of_windows(enum observation_kind kind) {
	return kind == OBSERVATION_DEGRADED || kind == OBSERVATION_LOSSY;
}

static bool
can_say(const struct subject *subject, const struct observation *look, enum observation_kind kind) {
	if (!is_of_windows(kind))
		return true;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct observation *bad = &subject->observations[n].observation;

		if (bad->kind == kind && knows_no_better(look, bad))
			return false;
	}
	return true;
}

// Whether the observer's own fault is enough to explain it: who loses is slow, who is slow loses.
// Of two nodes each is the only one who sees the other.
static bool is_of_its_own(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
) {
	return is_of_windows(evidence->observation.kind) && triangulate_need(engine, subject) > 1 &&
	       triangulate_is_hampered(triangulate_observer(engine, evidence));
}

// The subject finds that observer slow in turn, and none of the others that it reads: the path
// between them is slow. Were it slow itself all that it reads would be as slow, and it would tell
// of none of them (path_like_ns()).
static bool is_slow_between(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
) {
	const struct member_row *observer = triangulate_observer(engine, evidence);
	uint64_t self = subject_peer(engine, subject)->id;

	if (evidence->observation.kind != OBSERVATION_DEGRADED ||
	    subject->tells[OBSERVATION_DEGRADED] != 1 || observer == NULL ||
	    observer->subject == NULL || triangulate_need(engine, subject) < 2)
		return false;
	for (uint32_t n = 0; n < observer->subject->observation_count; n++) {
		const struct observation *told = &observer->subject->observations[n].observation;

		if (told->observer == self && told->kind == OBSERVATION_DEGRADED)
			return true;
	}
	return false;
}

// One that loses reads finds that a counter has advanced since the last that it got, long ago.
static bool comes_late(
	const struct verdict_engine *engine, const struct evidence *look, enum observation_kind kind
) {
	return kind == OBSERVATION_STANDING &&
	       triangulate_is_hampered(triangulate_observer(engine, look));
}

static bool speaks_against(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *look,
	enum observation_kind kind
) {
	return !comes_late(engine, look, kind) &&
	       excuses_from(engine, look, kind, subject_peer(engine, subject)->host) &&
	       can_say(subject, &look->observation, kind);
}

// Of all ports if `port` is NULL: the page is the same behind each of them.
static void tally_take(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port,
	struct tally *ret_tally
) {
	memset(ret_tally, 0, sizeof(*ret_tally));
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (port != NULL && strcmp(evidence->observation.peer_device, port) != 0)
			continue;
		if (!triangulate_counts(engine, evidence))
			continue;
		if (evidence->seen_ns > ret_tally->newest_ns)
			ret_tally->newest_ns = evidence->seen_ns;
		if (evidence->observation.kind == kind &&
		    (is_of_its_own(engine, subject, evidence) ||
		     is_slow_between(engine, subject, evidence)))
			continue;
		if (evidence->observation.kind == kind)
			tally_bad(engine, evidence, ret_tally);
		else if (speaks_against(engine, subject, evidence, kind))
			tally_good(evidence, ret_tally);
	}
}

// When so many had turned bad that it could be blamed, and more than half of them. A few who came
// later, since the overlay gave them a link there, make what was seen well in between no older:
// each of those who see well would have to say it again at once.
static uint64_t tally_turned_ns(const struct tally *tally, uint32_t need) {
	uint32_t most = tally->bad_count / 2 + 1;
	uint32_t wanted = most > need ? most : need;

	for (uint32_t n = 0; n < tally->bad_count; n++) {
		uint32_t earlier = 0;
		uint32_t same = 0;

		for (uint32_t m = 0; m < tally->bad_count; m++) {
			earlier += tally->bad_since[m] < tally->bad_since[n];
			same += tally->bad_since[m] == tally->bad_since[n];
		}
		if (earlier < wanted && wanted <= earlier + same)
			return tally->bad_since[n];
	}
	return tally->bad_since_ns;
}

// Whether a good look at what is judged over windows says anything. One that began to look when all
// that was known, since the overlay gave it a link there, calls good what its windows do not show
// yet; those who looked before have been asked by then.
static bool good_counts(const struct tally *tally, uint32_t n, uint64_t turned_ns) {
	bool came_late = tally->good_first[n] > turned_ns + COVER_WINDOWS_NS;

	if (came_late && tally->good_at[n] < tally->good_first[n] + COVER_WINDOWS_NS)
		return false;
	return tally->good_at[n] + COVER_WINDOWS_NS >= tally->bad_since_ns;
}

static bool tally_blames(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const struct tally *tally
) {
	uint32_t need = triangulate_need(engine, subject);
	uint64_t turned_ns;
	uint32_t good = 0;

	if (tally->bad_count < need)
		return false;
	// Two agents of one host are one pair of eyes, if there are three hosts to choose from.
	if (need > 1 && tally->host_count < 2 && engine->members.hosts_alive > 2)
		return false;
	if (kind == OBSERVATION_SILENT || kind == OBSERVATION_STANDING)
		return tally->good_ns == 0 ||
		       tally->good_ns + COVER_NS < tally_turned_ns(tally, need);
	// What is judged over windows not all see at once, and one that is new has no past to judge
	// it by: two thirds are enough.
	turned_ns = tally_turned_ns(tally, need);
	for (uint32_t n = 0; n < tally->good_count; n++)
		good += good_counts(tally, n, turned_ns);
	return 2 * good <= tally->bad_count;
}

bool triangulate_blames_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
) {
	struct tally tally;

	tally_take(engine, subject, kind, port, &tally);
	return tally_blames(engine, subject, kind, &tally);
}

// The first port of each name, by its first observation.
static bool is_first_of_port(const struct subject *subject, uint32_t at) {
	for (uint32_t n = 0; n < at; n++) {
		if (strcmp(subject->observations[n].observation.peer_device,
			   subject->observations[at].observation.peer_device) == 0)
			return false;
	}
	return true;
}

// Somebody who does not share its host reads a port other than this.
static bool other_port_is_read(
	const struct verdict_engine *engine, const struct subject *subject, const char *port
) {
	uint32_t host = subject_peer(engine, subject)->host;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (triangulate_excuses(evidence->observation.kind, OBSERVATION_SILENT) &&
		    strcmp(evidence->observation.peer_device, port) != 0 &&
		    triangulate_counts(engine, evidence) &&
		    !triangulate_shares_host(engine, evidence, host))
			return true;
	}
	return false;
}

// Others see this observer badly, and nobody sees it well.
static bool is_badly_seen(const struct verdict_engine *engine, uint64_t observer) {
	const struct member_row *row = triangulate_row(engine, observer);

	return row != NULL && row->subject != NULL &&
	       (triangulate_blames_port(engine, row->subject, OBSERVATION_SILENT, NULL) ||
		triangulate_blames_port(engine, row->subject, OBSERVATION_STANDING, NULL));
}

bool triangulate_is_doubtful(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look
) {
	uint32_t need = triangulate_need(engine, subject), sound = 0;
	struct tally tally;

	if (look->alone)
		return true;
	tally_take(engine, subject, look->kind, look->port, &tally);
	for (uint32_t n = 0; n < tally.bad_count && sound < need; n++)
		sound += !is_badly_seen(engine, tally.bad[n]);
	return sound < need;
}

static void look_fill(
	const struct verdict_engine *engine,
	const struct tally *tally,
	enum fabric fabric,
	struct fabric_look *look
) {
	look->fabric = fabric;
	look->bad = tally->bad_count;
	look->eyes = engine->members.hosts_alive > 1 ? tally->host_count : tally->bad_count;
	look->bad_ns = tally->bad_since_ns;
	look->in_process = tally->in_process;
	look->example = &tally->example->observation;
	look->observer_count = 0;
	for (uint32_t n = 0; n < tally->bad_count && n < VERDICT_OBSERVERS_MAX; n++)
		look->observers[look->observer_count++] = tally->bad[n];
}

static bool is_seen_as(const struct subject *subject, enum observation_kind kind) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		if (subject->observations[n].observation.kind == kind)
			return true;
	}
	return false;
}

static bool look_by_kind(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
) {
	struct tally tally;

	if (!is_seen_as(subject, kind))
		return false;
	tally_take(engine, subject, kind, NULL, &tally);
	if (!tally_blames(engine, subject, kind, &tally))
		return false;
	look_fill(engine, &tally, fabric, look);
	look->kind = kind;
	return true;
}

static bool look_by_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
) {
	if (!is_seen_as(subject, kind))
		return false;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const char *port = subject->observations[n].observation.peer_device;
		struct tally tally;

		if (port[0] == '\0' || !is_first_of_port(subject, n))
			continue;
		tally_take(engine, subject, kind, port, &tally);
		if (!tally_blames(engine, subject, kind, &tally))
			continue;
		look_fill(engine, &tally, fabric, look);
		look->kind = kind;
		look->port = port;
		return true;
	}
	return false;
}

// Whether others read the subject while this observer does not: since it turned bad, and not only
// after its latest word, for both may have been mended since.
static bool read_by_others(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *bad
) {
	uint32_t host = subject_peer(engine, subject)->host;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (evidence->observation.observer != bad->observation.observer &&
		    triangulate_excuses(evidence->observation.kind, bad->observation.kind) &&
		    !observation_is_mute_about(
			    &evidence->observation, bad->observation.kind,
			    bad->observation.lost_bytes
		    ) &&
		    triangulate_counts(engine, evidence) &&
		    !triangulate_shares_host(engine, evidence, host) &&
		    evidence->seen_ns >= bad->since_ns &&
		    evidence->seen_ns <= bad->seen_ns + COVER_NS)
			return true;
	}
	return false;
}

// What one node tells of the others, of one kind.
struct outward {
	uint32_t bad_elsewhere_good;
	uint64_t bad_since_ns;
	// The largest that passes somewhere and the largest from which on something is lost; where
	// that is not what is bad, all passes and nothing is lost.
	uint32_t passes, lost;
	const struct evidence *example;
};

static void outward_read(
	const struct verdict_engine *engine,
	const struct subject *other,
	enum observation_kind kind,
	const struct evidence *look,
	struct outward *outward
) {
	uint32_t passes = UINT32_MAX;

	if (!excuses_from(engine, look, kind, subject_peer(engine, other)->host))
		return;
	if (kind == OBSERVATION_LOSSY && look->observation.lost_bytes != 0)
		passes = look->observation.lost_bytes;
	if (passes > outward->passes)
		outward->passes = passes;
}

static void outward_weigh(
	const struct verdict_engine *engine,
	const struct subject *other,
	enum observation_kind kind,
	uint64_t observer,
	struct outward *outward
) {
	for (uint32_t n = 0; n < other->observation_count; n++) {
		const struct evidence *evidence = &other->observations[n];
		const struct observation *seen = &evidence->observation;

		if (seen->observer != observer || !triangulate_counts(engine, evidence))
			continue;
		if (seen->kind != kind)
			outward_read(engine, other, kind, evidence, outward);
		else if (kind == OBSERVATION_LOSSY && seen->lost_bytes > outward->lost)
			outward->lost = seen->lost_bytes;
	}
}

static void outward_add(
	const struct verdict_engine *engine,
	const struct subject *other,
	enum observation_kind kind,
	uint64_t observer,
	struct outward *outward
) {
	bool counted = false;

	// The other end explains it.
	if (is_of_windows(kind) && triangulate_is_hampered(subject_peer(engine, other)))
		return;
	for (uint32_t n = 0; n < other->observation_count; n++) {
		const struct evidence *evidence = &other->observations[n];

		if (evidence->observation.observer != observer ||
		    !triangulate_counts(engine, evidence))
			continue;
		if (evidence->observation.kind != kind || counted ||
		    !read_by_others(engine, other, evidence))
			continue;
		counted = true;
		outward->bad_elsewhere_good++;
		if (evidence->since_ns > outward->bad_since_ns)
			outward->bad_since_ns = evidence->since_ns;
		if (outward->example == NULL ||
		    evidence->observation.subject < outward->example->observation.subject)
			outward->example = evidence;
	}
}

// The n-th of those of whom this one told something.
static bool told_nth(
	const struct verdict_engine *engine,
	uint32_t row,
	uint32_t n,
	const struct subject **ret_told
) {
	const struct observer_index *list = engine->members.rows[row].told;

	if (list == NULL || n >= list->count)
		return false;
	*ret_told = engine->members.rows[list->rows[n]].subject;
	return true;
}

// Its own bad paths end at nodes that others see well, and nobody sees it well.
static bool look_outward(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
) {
	uint64_t self = subject_peer(engine, subject)->id;
	struct outward outward = {0};
	const struct subject *other;
	struct tally tally;

	if (subject->tells[kind] < 2)
		return false;
	// Most read somebody well, and nobody needs to know who else reads those that they do not.
	for (uint32_t n = 0; told_nth(engine, subject->peer, n, &other); n++) {
		outward_weigh(engine, other, kind, self, &outward);
		look->walked++;
		if (kind != OBSERVATION_LOSSY && outward.passes > outward.lost)
			return false;
	}
	if (outward.passes > outward.lost)
		return false;
	for (uint32_t n = 0; told_nth(engine, subject->peer, n, &other); n++) {
		outward_add(engine, other, kind, self, &outward);
		look->walked++;
	}
	tally_take(engine, subject, kind, NULL, &tally);
	if (outward.bad_elsewhere_good < 2 ||
	    (tally.good_ns != 0 && tally.good_ns + COVER_NS >= outward.bad_since_ns))
		return false;
	look->fabric = fabric;
	look->bad = look->eyes = outward.bad_elsewhere_good;
	look->bad_ns = outward.bad_since_ns;
	look->in_process = false;
	look->alone = true;
	look->example = &outward.example->observation;
	look->observer_count = 1;
	look->observers[0] = self;
	return true;
}

uint32_t triangulate_accused(
	const struct verdict_engine *engine, uint64_t observer, uint64_t *ret_since_ns
) {
	uint32_t row = members_find(&engine->members, observer);
	const struct subject *other;
	uint64_t since_ns = 0;
	uint32_t accused = 0;

	for (uint32_t n = 0; row != MEMBERS_NONE && told_nth(engine, row, n, &other); n++) {
		bool silent = false;

		if (other->held.verdict > VERDICT_HEALTHY ||
		    subject_peer(engine, other)->state != RAS_ALIVE)
			continue;
		for (uint32_t m = 0; m < other->observation_count; m++) {
			const struct evidence *evidence = &other->observations[m];

			if (evidence->observation.observer != observer ||
			    evidence->observation.kind != OBSERVATION_SILENT)
				continue;
			silent = true;
			if (evidence->since_ns > since_ns)
				since_ns = evidence->since_ns;
		}
		accused += silent;
	}
	*ret_since_ns = since_ns;
	return accused;
}

static bool evidence_outlives(const struct evidence *evidence) {
	return verdict_reach_is_unanswered(evidence->observation.reach) &&
	       evidence->seen_ns >= evidence->mute_ns + OUTLIVES_NS;
}

static void look_readers(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *look
) {
	uint64_t seen[OBSERVERS_MAX];
	uint64_t good[OBSERVERS_MAX];
	uint32_t seen_count = 0;
	uint32_t good_count = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		enum observation_kind kind = evidence->observation.kind;
		bool advances = kind == OBSERVATION_GOOD || kind == OBSERVATION_DEGRADED ||
				kind == OBSERVATION_LOSSY;
		uint32_t at = 0;

		if (kind == OBSERVATION_NO_PAIR || !triangulate_counts(engine, evidence))
			continue;
		if (evidence->seen_ns > look->newest_ns)
			look->newest_ns = evidence->seen_ns;
		while (at < seen_count && seen[at] != evidence->observation.observer)
			at++;
		if (at == seen_count)
			seen[seen_count++] = evidence->observation.observer;
		if (!advances)
			continue;
		if (evidence->seen_ns > look->good_ns)
			look->good_ns = evidence->seen_ns;
		for (at = 0; at < good_count && good[at] != evidence->observation.observer; at++)
			;
		if (at == good_count &&
		    (evidence->seen_ns >= good_after_ns || evidence_outlives(evidence)))
			good[good_count++] = evidence->observation.observer;
	}
	look->lookers = seen_count;
	look->good = good_count;
	if (look->good_ns != 0)
		look->fabric = FABRIC_READABLE;
	for (uint32_t n = 0; n < good_count && n < VERDICT_OBSERVERS_MAX; n++)
		look->observers[look->observer_count++] = good[n];
}

static void look_heard(
	const struct verdict_engine *engine, const struct subject *subject, struct fabric_look *look
) {
	if (look_by_kind(engine, subject, OBSERVATION_STANDING, FABRIC_STANDING, look) ||
	    look_outward(engine, subject, OBSERVATION_SILENT, FABRIC_PEERS, look) ||
	    look_by_port(engine, subject, OBSERVATION_SILENT, FABRIC_PORT, look) ||
	    look_by_port(engine, subject, OBSERVATION_LOSSY, FABRIC_LOSSY, look) ||
	    look_outward(engine, subject, OBSERVATION_LOSSY, FABRIC_LOSSY, look) ||
	    look_by_port(engine, subject, OBSERVATION_DEGRADED, FABRIC_SLOW, look) ||
	    look_outward(engine, subject, OBSERVATION_DEGRADED, FABRIC_SLOW, look))
		return;
}

// The worst that holds.
void triangulate(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
) {
	memset(ret_look, 0, sizeof(*ret_look));
	look_readers(engine, subject, good_after_ns, ret_look);
	if (!look_by_kind(engine, subject, OBSERVATION_SILENT, FABRIC_SILENT, ret_look))
		look_heard(engine, subject, ret_look);
}

void triangulate_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
) {
	memset(ret_look, 0, sizeof(*ret_look));
	look_readers(engine, subject, good_after_ns, ret_look);
	if (!look_by_kind(engine, subject, OBSERVATION_STANDING, FABRIC_STANDING, ret_look))
		(void)look_by_port(engine, subject, OBSERVATION_LOSSY, FABRIC_LOSSY, ret_look);
}

enum path_blame triangulate_end(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
) {
	struct fabric_look look = {0};

	if (subject == NULL)
		return PATH_BLAME_PATH;
	if (triangulate_blames_port(engine, subject, kind, port))
		return other_port_is_read(engine, subject, port) ? PATH_BLAME_PORT
								 : PATH_BLAME_NODE;
	if (look_outward(engine, subject, kind, FABRIC_PEERS, &look))
		return PATH_BLAME_NODE;
	return PATH_BLAME_PATH;
}
