// SPDX-License-Identifier: BSD-3-Clause
// Verdict engine: turns the evidence of several observers into one verdict per node, and names bad
// paths.
//
// The engine is pure, like the protocol core: no socket, clock, thread or allocator of its own. The
// agent feeds it from overlay and fabric, the simulator feeds thousands. The same inputs give the
// same verdicts.
//
// A path fault is not a node fault. A path is bad when one end reports it. A node is blamed when
// two observers with good own ports read it badly and no observer reads it well. One observer is
// enough if only one can read the node. A node is also blamed when its own bad paths end at nodes
// that other observers read well. All other bad paths stay path faults. Before two bad reports
// suffice, observers with good reads get 0.4 s to answer.
//
// The overlay contributes its peer states, and each observer's own link state in its observations.
// A node that enough observers find mute is judged like a suspected one. Evidence seen at the death
// of a node explains the death for as long as it lasts.
//
// Hysteresis: a worse verdict holds as soon as its evidence suffices. A better one holds once its
// evidence has lasted `settle_ns`. Evidence older than `stale_ns` expires. A verdict without any
// other evidence then becomes unknown, never healthy.
#pragma once

#include <ras/memory.h>
#include <verdict/observation.h>
#include <verdict/verdict.h>

struct verdict_engine;

// Observations kept per subject: the newest of each path. Five observers of a node with eight ports
// have 40 paths. When the table is full, the observer with most entries loses its oldest one.
#define VERDICT_SUBJECT_OBSERVATIONS_MAX 64
#define VERDICT_STATEMENTS_MAX 16 // statements kept per subject
#define VERDICT_HISTORY_MAX 8	  // past verdicts kept per subject

struct verdict_config {
	uint64_t self;
	uint64_t settle_ns; // time that an improvement must last; 0: 5 s
	uint64_t stale_ns;  // age at which evidence expires; 0: 30 s
	// The brake counts nodes that are bad by silence. It acts when they are more than this
	// count and more than this share of the view. Their verdicts then become unknown, except
	// agent-frozen. 0: 8 nodes, 200 per mille.
	uint32_t brake_nodes;
	uint32_t brake_permille;
};

// Change of a verdict, or of its advice alone: then `before` equals the current verdict. Advice
// rises when the verdict has held for `settle_ns`, has a second observer, or its node is dead. The
// engine calls `changed` from inside an input; the callback must not call the engine.
struct verdict_change {
	enum verdict before;
	const struct verdict_view *now;
};

#define VERDICT_QUIET_NS (1250 * RAS_NS_PER_MS) // a live agent sends at least once a second
// State of this agent's own overlay links now.
struct verdict_links {
	// Links silent for VERDICT_QUIET_NS whose peer the overlay holds alive.
	uint32_t quiet;
	// Whether the link to the requested peer is one of them.
	bool peer_is_quiet;
};

struct verdict_ops {
	void (*changed)(void *ctx, const struct verdict_change *change);
	// Request a verdict_tick() at this time; RAS_NEVER: none is needed before the next input.
	void (*wake)(void *ctx, uint64_t at_ns);
	// Return the state of the links; called from inside an input. NULL: no link is ever quiet.
	void (*links)(void *ctx, uint64_t peer, struct verdict_links *ret_links);
};

// Create an engine. Returns 0 or -ENOMEM.
int verdict_engine_create(
	const struct verdict_config *config,
	const struct ras_memory *memory,
	const struct verdict_ops *ops,
	void *ops_ctx,
	struct verdict_engine **ret_engine
);
struct verdict_engine *verdict_engine_destroy(struct verdict_engine *engine);

// Pass the overlay's current record of a member, this agent included. An unchanged record has no
// effect. Returns 0, or -ENOMEM with nothing changed.
struct verdict_peer_update {
	uint64_t id;
	uint64_t incarnation;
	enum ras_state state;
	enum ras_cause cause;
	bool sole;
	bool maint;
	enum verdict_reach reach;
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	// Host name from the member's record, "" if unknown; peers of one host share one fault
	// domain.
	const char *host;
	const char *leaf; // leaf switch from the topology file, "" if unknown
};

int verdict_peer_update(
	struct verdict_engine *engine, uint64_t now_ns, const struct verdict_peer_update *peer
);
void verdict_peer_forget(struct verdict_engine *engine, uint64_t now_ns, uint64_t id);
// Note that the agent of a known member started with another key.
void verdict_peer_key_changed(struct verdict_engine *engine, uint64_t now_ns, uint64_t id);

// Add an observation of this agent or of another one. Returns 0, or -ENOENT if the subject is no
// member. -ESTALE: the observation belongs to an earlier incarnation, or is older than the stored
// one. -ENOSPC: the table is full of fresher observations, or of statements that are not less
// important. -ENOMEM: out of memory.
int verdict_observation(
	struct verdict_engine *engine, uint64_t now_ns, const struct observation *observation
);
int verdict_statement(
	struct verdict_engine *engine, uint64_t now_ns, const struct statement *statement
);

// Facts that this agent knows about itself.
struct verdict_self_update {
	bool joined;
	bool brake;
	// Members that the latest census did not reach, while the overlay's brake is on; else 0.
	uint32_t silent;
	// Most links of this agent lose packets, so that silence at them proves nothing.
	bool loses;
	// End of this agent's last pause, with some grace. Its own bad reads before that time do
	// not count.
	uint64_t paused_until_ns;
	uint64_t paused_ns; // duration of that pause
};
void verdict_self_update(
	struct verdict_engine *engine, uint64_t now_ns, const struct verdict_self_update *self
);

void verdict_tick(struct verdict_engine *engine, uint64_t now_ns);

// Return the current verdict of one node. Returns 0, or -ENOENT if the node is unknown.
int verdict_view_get(
	const struct verdict_engine *engine, uint64_t id, struct verdict_view *ret_view
);
// Iterate over the verdicts other than healthy and none, in no particular order. The cursor begins
// at 0; false past the last.
bool verdict_unhealthy_next(
	const struct verdict_engine *engine, uint32_t *cursor, struct verdict_view *ret_view
);

struct verdict_counts {
	uint32_t of[VERDICT_COUNT];
	uint32_t maint;
	uint64_t changes;
	uint64_t observations, observations_stale, observations_unknown, observations_dropped,
		statements;
	uint64_t walked; // subjects visited to judge observers by their own reads
	bool brake;	 // too many nodes turned bad together: drains are withheld
};
// Count the verdicts. The call visits every member.
void verdict_counts(const struct verdict_engine *engine, struct verdict_counts *ret_counts);
// Return the `brake` field of struct verdict_counts without a visit to every member.
bool verdict_brake_is_on(const struct verdict_engine *engine);

// Iterate over the observations of one subject, newest first; for `tocsin why`.
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

// Cause of a bad path. Paths that no node explains are compared: what several bad paths share is
// named.
enum path_blame {
	PATH_BLAME_PATH,
	PATH_BLAME_NODE, // `node`, whose own verdict says so
	PATH_BLAME_PORT, // one device of `node`
	PATH_BLAME_HOST, // several agents of one host
	PATH_BLAME_LEAF, // a leaf switch of the topology file
};

struct verdict_path_view {
	struct observation observation;
	uint64_t seen_ns;
	uint64_t since_ns; // first observation of this kind on this path
	enum path_blame blame;
	uint64_t node;	  // blamed node, 0 if none
	const char *what; // name of the port, host or leaf
};
bool verdict_bad_path_next(
	const struct verdict_engine *engine, uint32_t *cursor, struct verdict_path_view *ret_view
);

// Exchange of observations: decides when this agent publishes what it sees. Pure: the caller sends
// the bytes.
//
// A path is published after a short random wait when it turns bad, changes or clears. While it is
// bad, it is repeated every OBSERVATION_REPEAT_NS. A good path is published when so many others
// call its end bad that they could blame it.
//
// The exchange suppresses a report that OBSERVATION_ENOUGH others made already. It also suppresses
// failed reads while others blame this agent for them. An agent publishes at most
// OBSERVATION_BUDGET reports a second, and fewer while it receives many.
#define OBSERVATION_REPEAT_NS (10 * RAS_NS_PER_SEC)
#define OBSERVATION_ENOUGH 4
#define OBSERVATION_BUDGET 8

struct observation_exchange;

struct observation_exchange_ops {
	// Flood these bytes (ras_notice); at most RAS_NOTICE_BYTES_MAX.
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
// Pass this agent's current observation of a path to the engine, and publish it if needed. Call it
// after each read, even if nothing changed: answers to others use the last read.
int observation_exchange_update(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	const struct observation *observation
);
// Drop all observations of a subject that was forgotten. If it returns, it must be observed anew.
void observation_exchange_forget(struct observation_exchange *exchange, uint64_t subject);
int observation_exchange_statement(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
);
// Publish all statements of this agent again soon. Call it when this agent took a new start number:
// the other agents dropped what its earlier start said.
void observation_exchange_repeat_statements(struct observation_exchange *exchange, uint64_t now_ns);
// Take a received notice; `number` is that of ras_notice_number(). Counts and drops items that
// are not of `origin` itself, or are of this agent. Returns 0, or -EBADMSG if malformed: items
// before the bad one have been taken.
int observation_exchange_receive(
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
