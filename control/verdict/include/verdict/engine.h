// SPDX-License-Identifier: BSD-3-Clause
// From evidence of several observers to one verdict per node, and to paths that are to blame.
//
// Pure, as the protocol core: no socket, clock, thread or allocator of its own. The agent feeds it
// from the overlay and the fabric, the simulator feeds thousands; same inputs, same verdicts.
//
// A path fault is not a node fault. A path is bad when one end says so; a node is to blame when
// two observers with good own ports see it badly and nobody sees it well (or all who can look do,
// where only one can), or when its own bad paths end at nodes that others see well. What remains is
// the path's own. Two who see badly do not suffice at once: for 0.4 s those who see well are heard.
//
// What the overlay does is known by its states, and by what each observer's own link says beside
// what it reads: agents that enough observers find mute are judged as suspect ones. Of a dead one
// what was seen when it died explains it for as long as it is dead.
//
// Hysteresis: a verdict for the worse holds from the moment its evidence suffices; one for the
// better once its evidence has been better for `settle_ns`. Evidence older than `stale_ns` counts
// no more, and a verdict that rested on nothing else becomes unknown, never healthy.
#pragma once

#include <ras/memory.h>
#include <verdict/observation.h>
#include <verdict/verdict.h>

struct verdict_engine;

// Kept of one subject: of each path the newest. Five observers of a node with eight ports have 40.
// Beyond it those give way who told most, the oldest first.
#define VERDICT_SUBJECT_OBSERVATIONS_MAX 64
#define VERDICT_STATEMENTS_MAX 16 // kept of one subject
#define VERDICT_HISTORY_MAX 8	  // changes kept of one subject

struct verdict_config {
	uint64_t self;
	uint64_t settle_ns;	 // 0: 5 s
	uint64_t stale_ns;	 // 0: 30 s
	uint32_t brake_nodes;	 // fabric-, node-, mgmt-net-down, agent-frozen of more nodes than
	uint32_t brake_permille; // this, and this share of the view, at once are unknown; 0: 8, 200
};

// Told when a verdict changes, and when its advice is no longer held back, since it has held for
// `settle_ns`, is of a dead node, or has a second observer: then `before` is the same. From inside
// an input; must not call back into the engine.
struct verdict_change {
	enum verdict before;
	const struct verdict_view *now;
};

// What our own links say at this moment.
#define VERDICT_QUIET_NS (1250 * RAS_NS_PER_MS) // an agent that lives is heard each second
struct verdict_links {
	uint32_t quiet;	    // links that said nothing for so long, of peers that the overlay
	bool peer_is_quiet; // holds for alive; and whether that of the peer asked for is one
};

struct verdict_ops {
	void (*changed)(void *ctx, const struct verdict_change *change);
	// When verdict_tick() is to be called; RAS_NEVER: not before the next input.
	void (*wake)(void *ctx, uint64_t at_ns);
	// From inside an input, as the others. NULL: no link is ever quiet.
	void (*links)(void *ctx, uint64_t peer, struct verdict_links *ret_links);
};

// -ENOMEM.
int verdict_engine_create(
	const struct verdict_config *config,
	const struct ras_memory *memory,
	const struct verdict_ops *ops,
	void *ops_ctx,
	struct verdict_engine **ret_engine
);
struct verdict_engine *verdict_engine_destroy(struct verdict_engine *engine);

// A peer as the overlay has it now, the agent itself included; the same again changes nothing.
// -ENOMEM, and nothing has changed.
struct verdict_peer {
	uint64_t id;
	uint64_t incarnation;
	enum ras_state state;
	enum ras_cause cause;
	bool sole;
	bool maint;
	enum verdict_reach reach;
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	const char *host; // of the record; peers of one host share what they show. "": not known
	const char *leaf; // of the topology file; "": not known
};

int verdict_peer(struct verdict_engine *engine, uint64_t now_ns, const struct verdict_peer *peer);
void verdict_forget(struct verdict_engine *engine, uint64_t now_ns, uint64_t id);

// Own or another's. -ENOENT: the subject is no peer; -ESTALE: of a past incarnation, or older than
// what is held; -ENOSPC: as many observers as are kept, all fresher; -ENOMEM.
int verdict_observation(
	struct verdict_engine *engine, uint64_t now_ns, const struct observation *observation
);
int verdict_statement(
	struct verdict_engine *engine, uint64_t now_ns, const struct statement *statement
);

// Of this agent: it was paused for so long, it is (no) member, the overlay's brake holds.
struct verdict_self {
	bool joined;
	bool brake;
	uint32_t silent; // whom all together do not reach, by the count behind the brake
	bool loses;	 // most of its links lose packets: what it does not hear is no silence
	uint64_t paused_until_ns; // evidence seen before it is not judged by silence after it
};
void verdict_self(struct verdict_engine *engine, uint64_t now_ns, const struct verdict_self *self);

void verdict_tick(struct verdict_engine *engine, uint64_t now_ns);

// To look at. -ENOENT.
int verdict_of(const struct verdict_engine *engine, uint64_t id, struct verdict_view *ret_view);
// Those that are neither healthy nor none, worst first is not promised. The cursor begins at 0;
// false past the last.
bool verdict_next(
	const struct verdict_engine *engine, uint32_t *cursor, struct verdict_view *ret_view
);

struct verdict_counts {
	uint32_t of[VERDICT_COUNT];
	uint32_t maint;
	uint64_t changes;
	uint64_t observations, observations_stale, observations_unknown, observations_dropped,
		statements;
	uint64_t walked; // others that were looked at to judge who told of them
	bool brake;	 // too many at once: drains are held
};
// Of a look at every peer.
void verdict_counts(const struct verdict_engine *engine, struct verdict_counts *ret_counts);
// The `brake` of the counts alone, which costs nothing.
bool verdict_brakes(const struct verdict_engine *engine);

// The evidence of one subject, newest first of each observer; for `why`.
bool verdict_observation_next(
	const struct verdict_engine *engine,
	uint64_t subject,
	uint32_t *cursor,
	struct observation *ret_observation,
	uint64_t *ret_seen_ns
);
bool verdict_statement_next(
	const struct verdict_engine *engine,
	uint64_t subject,
	uint32_t *cursor,
	struct statement *ret_statement,
	uint64_t *ret_said_ns
);

struct verdict_past {
	enum verdict verdict;
	char reason[VERDICT_REASON_MAX + 1];
	uint64_t since_ns, until_ns;
};
bool verdict_past_next(
	const struct verdict_engine *engine,
	uint64_t subject,
	uint32_t *cursor,
	struct verdict_past *ret_past
);

// Paths that are bad by themselves: no node is blamed for them. What several share is named.
enum path_blame {
	PATH_BLAME_PATH,
	PATH_BLAME_NODE, // of `node`: its own verdict says so
	PATH_BLAME_PORT, // one device of `node`
	PATH_BLAME_HOST, // several agents of one host
	PATH_BLAME_LEAF, // of the topology file
};

struct verdict_path_view {
	struct observation observation;
	uint64_t seen_ns;
	uint64_t since_ns; // the first observation of this kind on this path
	enum path_blame blame;
	uint64_t node;	  // blamed, 0 if none
	const char *what; // port, host or leaf in words
};
bool verdict_path_next(
	const struct verdict_engine *engine, uint32_t *cursor, struct verdict_path_view *ret_view
);

// When what was seen is told to others. Pure, too: the agent sends what it is handed.
//
// Own observations that turn bad, change or clear are told after a short random wait, and again
// each OBSERVATION_REPEAT_NS while they are bad; a observation of ours that is good is told when so
// many others say that the same subject is bad that it would be blamed. What OBSERVATION_ENOUGH
// others said already is not said again, nor what we do not read by those who hold us to blame for
// it; nobody tells more than OBSERVATION_BUDGET a second, and all together less, the more is heard.
#define OBSERVATION_REPEAT_NS (10 * RAS_NS_PER_SEC)
#define OBSERVATION_ENOUGH 4
#define OBSERVATION_BUDGET 8

struct observation_exchange;

struct observation_exchange_ops {
	// To be flooded (ras_notice); at most RAS_NOTICE_BYTES_MAX.
	void (*tell)(void *ctx, const void *bytes, size_t size);
	void (*wake)(void *ctx, uint64_t at_ns);
};

int observation_exchange_create(
	struct verdict_engine *engine,
	uint64_t self,
	uint64_t random_seed,
	const struct ras_memory *memory,
	const struct observation_exchange_ops *ops,
	void *ops_ctx,
	struct observation_exchange **ret_exchange
);
struct observation_exchange *observation_exchange_destroy(struct observation_exchange *exchange);
// What this agent sees now of a path: handed to the engine, and told when it has to be. To be
// called after each look, also if nothing changed: who is asked answers with its last look.
int observation_exchange_own(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	const struct observation *observation
);
// The subject was forgotten: nothing that was seen of it is told again. When it comes back, it is
// to be seen anew.
void observation_exchange_forget(struct observation_exchange *exchange, uint64_t subject);
int observation_exchange_say(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
);
// A notice that came, with its number (ras_notice_number()). An observation in another's name than
// `origin`'s is counted and dropped. -EBADMSG: it is malformed; what was before the bad part has
// been taken.
int observation_exchange_heard(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	uint64_t origin,
	uint64_t number,
	const void *bytes,
	size_t size
);
void observation_exchange_tick(struct observation_exchange *exchange, uint64_t now_ns);

struct observation_exchange_counters {
	uint64_t told, told_bytes, repeated, answered, suppressed, held_by_budget;
	uint64_t heard, heard_bad, heard_forged;
};
const struct observation_exchange_counters *
observation_exchange_counters(const struct observation_exchange *exchange);
