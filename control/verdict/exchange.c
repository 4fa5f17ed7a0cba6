// SPDX-License-Identifier: BSD-3-Clause
// When what was seen is told to others.
//
// A path of ours is told when it turns bad or its evidence changes, and while it is bad again and
// again; when it clears, a few times, since a notice may be lost; when it is good and others say
// its end is bad, once for each time they begin to. Before it speaks an agent waits for a moment,
// so that those who wait longer hear that enough has been said.
#include "triangulate.h"

#include <lib/must.h>
#include <lib/wire.h>
#include <ras/collective.h>

#include <errno.h>
#include <string.h>

#define WAIT_NS (100 * MS)	   // at most, before anything is told
#define OUTLIVED_NS (2 * SEC)	   // then a pulse that advances unanswered is told again
#define CLEARS 1		   // more times that the end of something bad is told
#define ANSWER_AGAIN_NS (15 * SEC) // an answer that is about to be stale where it was heard
#define KEEP_NS (30 * SEC)	   // of a good path nobody asks for
#define BUDGET_WINDOW_NS SEC
#define HEARD_PER_SLOWDOWN 16 // so many more heard in a second slow us by as much again
#define BUCKETS_FIRST 16

struct own_path {
	struct observation observation;
	uint64_t seen_ns;
	uint64_t due_ns;  // to be told, RAS_NEVER: not
	uint64_t told_ns; // the last time, 0: never
	uint64_t told_seen_ns;
	enum observation_kind told_kind;
	enum verdict_reach told_reach;
	bool again; // it was told as it is more than once
	uint8_t clears;
	bool quiet; // enough others said it: it waits until that is old
	enum observation_kind quiet_kind;
	enum verdict_reach quiet_reach;
	uint32_t next; // of its bucket, plus one
};

struct own_words {
	struct statement statement;
	uint64_t due_ns, told_ns;
	uint8_t clears;
};

struct observation_exchange {
	struct verdict_engine *engine;
	uint64_t self;
	uint64_t random;
	struct ras_memory memory;
	struct observation_exchange_ops ops;
	void *ops_ctx;
	struct own_path *paths;
	uint32_t path_count, path_capacity;
	uint32_t *buckets; // by subject: path + 1
	uint32_t bucket_count;
	struct own_words words[VERDICT_STATEMENTS_MAX];
	uint32_t word_count;
	uint32_t turn;	  // the path that had to wait for the budget goes first
	uint64_t next_ns; // asked for
	// The budget: what this and the last second brought.
	uint64_t window_ns;
	uint32_t heard_now, heard_before;
	uint64_t credit; // thousandths of a observation
	uint64_t credit_ns;
	struct observation_exchange_counters counters;
};

// NOLINTNEXTLINE(readability-function-size): what any instance takes, and its seed
int observation_exchange_create(
	struct verdict_engine *engine,
	uint64_t self,
	uint64_t random_seed,
	const struct ras_memory *memory,
	const struct observation_exchange_ops *ops,
	void *ops_ctx,
	struct observation_exchange **ret_exchange
) {
	struct observation_exchange *exchange = memory->allocate(memory->ctx, sizeof(*exchange));

	if (exchange == NULL)
		return -ENOMEM;
	exchange->engine = engine;
	exchange->self = self;
	exchange->random = random_seed;
	exchange->memory = *memory;
	exchange->ops = *ops;
	exchange->ops_ctx = ops_ctx;
	exchange->next_ns = RAS_NEVER;
	exchange->credit = OBSERVATION_BUDGET * UINT64_C(1000);
	*ret_exchange = exchange;
	return 0;
}

struct observation_exchange *observation_exchange_destroy(struct observation_exchange *exchange) {
	struct ras_memory memory;

	if (exchange == NULL)
		return NULL;
	memory = exchange->memory;
	array_release(&memory, exchange->paths, exchange->path_capacity, sizeof(*exchange->paths));
	array_release(
		&memory, exchange->buckets, exchange->bucket_count, sizeof(*exchange->buckets)
	);
	memory.release(memory.ctx, exchange, sizeof(*exchange));
	return NULL;
}

const struct observation_exchange_counters *
observation_exchange_counters(const struct observation_exchange *exchange) {
	return &exchange->counters;
}

// splitmix64
static uint64_t exchange_draw(struct observation_exchange *exchange, uint64_t below) {
	uint64_t z = exchange->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % below;
}

static void exchange_wake(struct observation_exchange *exchange, uint64_t at_ns) {
	if (at_ns >= exchange->next_ns)
		return;
	exchange->next_ns = at_ns;
	exchange->ops.wake(exchange->ops_ctx, at_ns);
}

// Own paths, by subject.

static uint32_t bucket_of(const struct observation_exchange *exchange, uint64_t subject) {
	return (uint32_t)((subject * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
	       (exchange->bucket_count - 1);
}

static struct own_path *
path_find(struct observation_exchange *exchange, const struct observation *observation) {
	uint32_t at;

	if (exchange->bucket_count == 0)
		return NULL;
	at = exchange->buckets[bucket_of(exchange, observation->subject)];
	for (; at != 0; at = exchange->paths[at - 1].next) {
		struct own_path *path = &exchange->paths[at - 1];

		if (path->observation.subject == observation->subject &&
		    strcmp(path->observation.device, observation->device) == 0 &&
		    strcmp(path->observation.peer_device, observation->peer_device) == 0)
			return path;
	}
	return NULL;
}

static void paths_index(struct observation_exchange *exchange) {
	memset(exchange->buckets, 0, exchange->bucket_count * sizeof(*exchange->buckets));
	for (uint32_t n = 0; n < exchange->path_count; n++) {
		uint32_t bucket = bucket_of(exchange, exchange->paths[n].observation.subject);

		exchange->paths[n].next = exchange->buckets[bucket];
		exchange->buckets[bucket] = n + 1;
	}
}

static int path_add(
	struct observation_exchange *exchange,
	const struct observation *observation,
	struct own_path **ret_path
) {
	uint32_t buckets = exchange->bucket_count > 0 ? 2 * exchange->bucket_count : BUCKETS_FIRST;
	struct own_path *path;
	uint32_t bucket;
	int err;

	err = array_grow(
		&exchange->memory, (void **)&exchange->paths, &exchange->path_capacity,
		exchange->path_count + 1, sizeof(*exchange->paths)
	);
	if (err != 0)
		return err;
	if (exchange->path_count >= exchange->bucket_count) {
		uint32_t *made =
			exchange->memory.allocate(exchange->memory.ctx, buckets * sizeof(*made));

		if (made == NULL)
			return -ENOMEM;
		array_release(
			&exchange->memory, exchange->buckets, exchange->bucket_count, sizeof(*made)
		);
		exchange->buckets = made;
		exchange->bucket_count = buckets;
		paths_index(exchange);
	}
	bucket = bucket_of(exchange, observation->subject);
	path = &exchange->paths[exchange->path_count];
	*path = (struct own_path
	){.observation = *observation, .due_ns = RAS_NEVER, .next = exchange->buckets[bucket]};
	exchange->buckets[bucket] = ++exchange->path_count;
	*ret_path = path;
	return 0;
}

static bool speaks_against(const struct observation *observation) {
	return observation_is_bad(observation->kind) || observation->reach > VERDICT_REACH_ANSWERS;
}

static bool told_against(const struct own_path *path) {
	return path->told_ns != 0 &&
	       (observation_is_bad(path->told_kind) || path->told_reach > VERDICT_REACH_ANSWERS);
}

static const struct subject *subject_of(const struct observation_exchange *exchange, uint64_t id) {
	uint32_t row = members_find(&exchange->engine->members, id);

	return row != MEMBERS_NONE ? exchange->engine->members.rows[row].subject : NULL;
}

static uint64_t cover_of(enum observation_kind kind) {
	return kind == OBSERVATION_DEGRADED || kind == OBSERVATION_LOSSY ? COVER_WINDOWS_NS
									 : COVER_NS;
}

// Whether so many others say that the end of this good path is bad that its node would be blamed,
// or that node says it of so many itself, and ours has not answered that: what it told was seen
// before they began, or will soon be too old where it was heard.
static bool is_asked(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
) {
	const struct subject *subject = subject_of(exchange, path->observation.subject);
	uint64_t since_ns = 0;
	uint64_t cover_ns = 0;
	uint64_t last = 0;
	uint32_t others = 0;

	if (path->observation.kind != OBSERVATION_GOOD || subject == NULL)
		return false;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (!observation_is_bad(evidence->observation.kind) ||
		    evidence->observation.observer == exchange->self ||
		    observation_is_mute_about(
			    &path->observation, evidence->observation.kind,
			    evidence->observation.lost_bytes
		    ) ||
		    path->seen_ns + cover_of(evidence->observation.kind) < evidence->since_ns)
			continue;
		others += evidence->observation.observer != last;
		last = evidence->observation.observer;
		if (evidence->since_ns + cover_of(evidence->observation.kind) >
		    since_ns + cover_ns) {
			since_ns = evidence->since_ns;
			cover_ns = cover_of(evidence->observation.kind);
		}
	}
	if (others < triangulate_need(exchange->engine, subject)) {
		if (subject->tells_bad < 2 ||
		    triangulate_accused(exchange->engine, path->observation.subject, &since_ns) <
			    2 ||
		    path->seen_ns + COVER_NS < since_ns)
			return false;
		cover_ns = COVER_NS;
	}
	return path->told_ns == 0 || path->told_seen_ns + cover_ns < since_ns ||
	       now_ns >= path->told_ns + ANSWER_AGAIN_NS;
}

// Others have found that it is we who are cut off: what we do not read is nobody's fault.
static bool is_to_blame(const struct observation_exchange *exchange) {
	const struct subject *self = subject_of(exchange, exchange->self);

	return self != NULL && self->held.verdict == VERDICT_FABRIC_DOWN;
}

// How many others have said the same since.
static uint32_t said_by_others(
	const struct observation_exchange *exchange,
	const struct observation *observation,
	uint64_t since_ns
) {
	const struct subject *subject = subject_of(exchange, observation->subject);
	uint32_t count = 0;

	for (uint32_t n = 0; subject != NULL && n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		count += evidence->observation.observer != exchange->self &&
			 evidence->observation.kind == observation->kind &&
			 evidence->observation.reach == observation->reach &&
			 strcmp(evidence->observation.peer_device, observation->peer_device) == 0 &&
			 evidence->seen_ns >= since_ns;
	}
	return count;
}

// A pulse that advances while the overlay is not answered proves something only if it goes on: it
// was told once, and nobody knows yet.
static bool path_may_outlive(const struct own_path *path) {
	bool advances = path->observation.kind == OBSERVATION_GOOD ||
			path->observation.kind == OBSERVATION_DEGRADED ||
			path->observation.kind == OBSERVATION_LOSSY;

	return advances && verdict_reach_is_unanswered(path->observation.reach) && !path->again;
}

static uint64_t path_repeat_ns(const struct own_path *path) {
	return path_may_outlive(path) ? OUTLIVED_NS : OBSERVATION_REPEAT_NS;
}

// When it is to be told next.
static void
path_plan(struct observation_exchange *exchange, struct own_path *path, uint64_t now_ns) {
	bool against = speaks_against(&path->observation);
	bool news;

	if (against)
		news = !told_against(path) || path->told_kind != path->observation.kind ||
		       path->told_reach != path->observation.reach;
	else
		news = told_against(path) || is_asked(exchange, path, now_ns);
	if (told_against(path) && !against)
		path->clears = CLEARS;
	if (against)
		path->clears = 0;
	if (path->quiet && path->due_ns != RAS_NEVER &&
	    path->quiet_kind == path->observation.kind &&
	    path->quiet_reach == path->observation.reach)
		return;
	path->quiet = false;
	if (news && path->due_ns > now_ns + WAIT_NS)
		path->due_ns = now_ns + exchange_draw(exchange, WAIT_NS);
	else if (!news && path->due_ns == RAS_NEVER && (against || path->clears > 0))
		path->due_ns =
			path->told_ns + path_repeat_ns(path) + exchange_draw(exchange, WAIT_NS);
	exchange_wake(exchange, path->due_ns);
}

int observation_exchange_own(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	const struct observation *observation
) {
	struct own_path *path = path_find(exchange, observation);
	int err;

	must(observation->observer == exchange->self);
	err = verdict_observation(exchange->engine, now_ns, observation);
	// As many others, and fresher: ours may still be what somebody else lacks.
	if (err != 0 && err != -ENOSPC)
		return err;
	if (path == NULL) {
		err = path_add(exchange, observation, &path);
		if (err != 0)
			return err;
	}
	path->observation = *observation;
	path->seen_ns =
		now_ns - (now_ns > observation->age_ms * MS ? observation->age_ms * MS : now_ns);
	path_plan(exchange, path, now_ns);
	return 0;
}

int observation_exchange_say(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
) {
	struct own_words *words;
	uint32_t at = 0;
	int err;

	must(statement->subject == exchange->self);
	err = verdict_statement(exchange->engine, now_ns, statement);
	if (err != 0)
		return err;
	while (at < exchange->word_count &&
	       strcmp(exchange->words[at].statement.reason, statement->reason) != 0)
		at++;
	if (at == exchange->word_count && statement->verdict == VERDICT_HEALTHY)
		return 0;
	if (at == VERDICT_STATEMENTS_MAX)
		return -ENOSPC;
	words = &exchange->words[at];
	if (at == exchange->word_count)
		exchange->words[exchange->word_count++] = (struct own_words){.due_ns = RAS_NEVER};
	else if (words->statement.verdict == statement->verdict &&
		 strcmp(words->statement.evidence, statement->evidence) == 0)
		return 0;
	words->statement = *statement;
	words->clears = statement->verdict == VERDICT_HEALTHY ? CLEARS : 0;
	if (words->due_ns > now_ns + WAIT_NS)
		words->due_ns = now_ns + exchange_draw(exchange, WAIT_NS);
	exchange_wake(exchange, words->due_ns);
	return 0;
}

// All of our paths to the subject: others have said something of it.
static void paths_to(struct observation_exchange *exchange, uint64_t subject, uint64_t now_ns) {
	uint32_t at = 0;

	if (exchange->bucket_count > 0)
		at = exchange->buckets[bucket_of(exchange, subject)];
	for (; at != 0; at = exchange->paths[at - 1].next) {
		if (exchange->paths[at - 1].observation.subject == subject)
			path_plan(exchange, &exchange->paths[at - 1], now_ns);
	}
}

// Who says that others are bad may be what is bad about them.
static void observation_heard(
	struct observation_exchange *exchange,
	const struct observation *observation,
	uint64_t now_ns
) {
	paths_to(exchange, observation->subject, now_ns);
	if (observation_is_bad(observation->kind))
		paths_to(exchange, observation->observer, now_ns);
}

static void budget_window(struct observation_exchange *exchange, uint64_t now_ns) {
	if (now_ns < exchange->window_ns + BUDGET_WINDOW_NS)
		return;
	exchange->heard_before =
		now_ns < exchange->window_ns + 2 * BUDGET_WINDOW_NS ? exchange->heard_now : 0;
	exchange->heard_now = 0;
	exchange->window_ns = now_ns;
}

int observation_exchange_heard(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	uint64_t origin,
	uint64_t number,
	const void *bytes,
	size_t size
) {
	struct wire_reader reader;
	struct told told;
	int err;

	budget_window(exchange, now_ns);
	wire_reader_init(&reader, bytes, size);
	while ((err = told_get(&reader, &told)) == 0) {
		bool observation = told.kind == TOLD_OBSERVATION;

		if ((observation ? told.observation.observer : told.statement.subject) != origin ||
		    origin == exchange->self) {
			exchange->counters.heard_forged++;
			continue;
		}
		exchange->counters.heard++;
		exchange->heard_now++;
		told.observation.number = number;
		if (!observation)
			(void)verdict_statement(exchange->engine, now_ns, &told.statement);
		else if (verdict_observation(exchange->engine, now_ns, &told.observation) == 0)
			observation_heard(exchange, &told.observation, now_ns);
	}
	if (err == -ENODATA)
		return 0;
	exchange->counters.heard_bad++;
	return -EBADMSG;
}

// One from the budget, which is the smaller the more everybody has to hear.
static bool budget_take(struct observation_exchange *exchange, uint64_t now_ns) {
	uint64_t heard = exchange->heard_now > exchange->heard_before ? exchange->heard_now
								      : exchange->heard_before;
	uint64_t most = OBSERVATION_BUDGET * UINT64_C(1000);
	uint64_t rate = most * HEARD_PER_SLOWDOWN / (HEARD_PER_SLOWDOWN + heard) + 1;
	uint64_t passed_ns = now_ns - exchange->credit_ns;
	uint64_t earned;

	budget_window(exchange, now_ns);
	if (passed_ns > 60 * SEC) {
		exchange->credit_ns = now_ns - 60 * SEC;
		passed_ns = 60 * SEC;
	}
	// Paths may be due each microsecond: time that was not worth a thousandth yet is kept.
	earned = rate * passed_ns / SEC;
	exchange->credit += earned;
	exchange->credit_ns += earned * SEC / rate;
	if (exchange->credit > most)
		exchange->credit = most;
	if (exchange->credit < 1000)
		return false;
	exchange->credit -= 1000;
	return true;
}

// What is collected for one notice.
struct notice {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	struct wire_writer writer;
	bool full;
	bool waits; // some path does, for the budget or for room
};

static void notice_tell(struct observation_exchange *exchange, struct notice *notice) {
	size_t size;

	if (wire_writer_finish(&notice->writer, &size) != 0 || size == 0)
		return;
	exchange->counters.told_bytes += size;
	exchange->ops.tell(exchange->ops_ctx, notice->bytes, size);
}

static void path_told(
	struct observation_exchange *exchange, struct own_path *path, uint64_t now_ns, bool repeated
) {
	bool against = speaks_against(&path->observation);

	exchange->counters.told++;
	exchange->counters.repeated += repeated;
	exchange->counters.answered += !against && !told_against(path) && path->clears == 0;
	if (!against && !told_against(path) && path->clears > 0)
		path->clears--;
	path->again = repeated;
	path->told_ns = now_ns;
	path->told_seen_ns = path->seen_ns;
	path->told_kind = path->observation.kind;
	path->told_reach = path->observation.reach;
	path->due_ns = RAS_NEVER;
	path_plan(exchange, path, now_ns);
}

// Enough others said it, and nothing that we said contradicts it.
static bool path_is_said(
	const struct observation_exchange *exchange, const struct own_path *path, uint64_t now_ns
) {
	bool against = speaks_against(&path->observation);
	bool changed = path->told_ns != 0 && path->told_ns + KEEP_NS > now_ns &&
		       (told_against(path) != against ||
			triangulate_excuses(path->told_kind, path->observation.kind));
	uint64_t since_ns = now_ns > OBSERVATION_REPEAT_NS ? now_ns - OBSERVATION_REPEAT_NS : 0;

	if (against && is_to_blame(exchange))
		return true;
	// What others saw when it was told first is not what it is told again for.
	if (path_may_outlive(path) && told_against(path) && since_ns < path->told_ns + OUTLIVES_NS)
		since_ns = path->told_ns + OUTLIVES_NS;
	return !changed && path->clears == 0 &&
	       said_by_others(exchange, &path->observation, since_ns) >= OBSERVATION_ENOUGH;
}

static void path_due(
	struct observation_exchange *exchange,
	struct own_path *path,
	uint64_t now_ns,
	struct notice *notice
) {
	bool against = speaks_against(&path->observation);
	bool repeated = told_against(path) && against &&
			path->told_kind == path->observation.kind &&
			path->told_reach == path->observation.reach;
	struct observation observation = path->observation;
	int err;

	path->due_ns = RAS_NEVER;
	// What it was to be told for is over, or too old.
	if (!against && !told_against(path) && path->clears == 0 &&
	    !is_asked(exchange, path, now_ns))
		return;
	if (now_ns >= path->seen_ns + KEEP_NS)
		return;
	if (path_is_said(exchange, path, now_ns)) {
		exchange->counters.suppressed++;
		path->quiet = true;
		path->quiet_kind = path->observation.kind;
		path->quiet_reach = path->observation.reach;
		path->due_ns = now_ns + OBSERVATION_REPEAT_NS + exchange_draw(exchange, WAIT_NS);
		return;
	}
	if (notice->full || !budget_take(exchange, now_ns)) {
		exchange->counters.held_by_budget++;
		path->due_ns = now_ns + WAIT_NS;
		if (!notice->waits)
			exchange->turn = (uint32_t)(path - exchange->paths);
		notice->waits = true;
		return;
	}
	observation.age_ms = (uint32_t)((now_ns - path->seen_ns) / MS);
	err = observation_put(&notice->writer, &observation);
	if (err == 0) {
		path_told(exchange, path, now_ns, repeated);
		return;
	}
	// No reader would take it, ever; others wait behind what does not fit only.
	if (err == -EINVAL)
		return;
	notice->full = true;
	path->due_ns = now_ns + WAIT_NS;
}

// Words stand until they are taken back: here they never become stale.
static void words_due(
	struct observation_exchange *exchange,
	struct own_words *words,
	uint64_t now_ns,
	struct notice *notice
) {
	bool bad = words->statement.verdict != VERDICT_HEALTHY;
	int err;

	words->statement.age_s = 0;
	if (bad)
		(void)verdict_statement(exchange->engine, now_ns, &words->statement);
	err = statement_put(&notice->writer, &words->statement);
	if (err != 0) {
		words->due_ns = err == -EINVAL ? RAS_NEVER : now_ns + WAIT_NS;
		return;
	}
	exchange->counters.told++;
	exchange->counters.repeated += words->told_ns != 0 && bad;
	words->told_ns = now_ns;
	words->due_ns = RAS_NEVER;
	if (bad || words->clears-- > 0)
		words->due_ns = now_ns + OBSERVATION_REPEAT_NS;
}

static void path_drop(struct observation_exchange *exchange, uint32_t at) {
	exchange->paths[at] = exchange->paths[--exchange->path_count];
}

void observation_exchange_forget(struct observation_exchange *exchange, uint64_t subject) {
	bool gone = false;

	for (uint32_t n = exchange->path_count; n-- > 0;) {
		if (exchange->paths[n].observation.subject != subject)
			continue;
		path_drop(exchange, n);
		gone = true;
	}
	if (gone)
		paths_index(exchange);
}

// Good paths that nobody asks for, and what has not been looked at for long.
static void paths_forget(struct observation_exchange *exchange, uint64_t now_ns) {
	bool gone = false;

	for (uint32_t n = exchange->path_count; n-- > 0;) {
		const struct own_path *path = &exchange->paths[n];

		if (now_ns < path->seen_ns + KEEP_NS || path->due_ns != RAS_NEVER)
			continue;
		path_drop(exchange, n);
		gone = true;
	}
	if (gone)
		paths_index(exchange);
}

void observation_exchange_tick(struct observation_exchange *exchange, uint64_t now_ns) {
	struct notice notice;

	wire_writer_init(&notice.writer, notice.bytes, sizeof(notice.bytes));
	notice.full = notice.waits = false;
	exchange->next_ns = RAS_NEVER;
	for (uint32_t n = 0; n < exchange->word_count; n++) {
		if (exchange->words[n].due_ns <= now_ns)
			words_due(exchange, &exchange->words[n], now_ns, &notice);
	}
	for (uint32_t n = exchange->word_count; n-- > 0;) {
		if (exchange->words[n].due_ns == RAS_NEVER)
			exchange->words[n] = exchange->words[--exchange->word_count];
	}
	for (uint32_t n = 0, from = exchange->turn; n < exchange->path_count; n++) {
		struct own_path *path = &exchange->paths[(from + n) % exchange->path_count];

		if (path->due_ns <= now_ns)
			path_due(exchange, path, now_ns, &notice);
	}
	notice_tell(exchange, &notice);
	paths_forget(exchange, now_ns);
	for (uint32_t n = 0; n < exchange->word_count; n++)
		exchange_wake(exchange, exchange->words[n].due_ns);
	for (uint32_t n = 0; n < exchange->path_count; n++)
		exchange_wake(exchange, exchange->paths[n].due_ns);
}
