// SPDX-License-Identifier: BSD-3-Clause
// Who may be drained: one count for the whole cluster, so that no number of controllers, node
// checks and feeds together take more out of service than the cluster can spare.
//
// Each agent holds a verdict on every node, and all come to the same, so nobody has to ask: one
// member, the granter, looks at its own verdicts and grants drains, which are flooded, and told
// again for as long as the verdict holds. A drain that nobody granted is a warning, and says why.
//
// The granter is the member of the lowest id that has been alive for GRANTS_KNOWN_NS and is not
// critical itself. Each works that out from its own table, and acts if it is the one: while two
// tables differ, two may grant, and each counts what it hears of the other's. Whoever takes over
// has heard all grants, since they are told anew when somebody joins and each GRANTS_TELL_NS.
//
// More that fall silent within a minute than may be drained in ten are one event, of what they
// share: none of them is drained for it before it has lasted for ten minutes. So are more that
// several do not read, although others do: the fabric fell apart, and a node whose observers are
// all on the other side is not bad.
//
// A grant is of one run of a node (its start), not of one verdict, and never makes a verdict: what
// a liar grants drains nobody whom the agent that is asked finds well, and it can make others count
// no more than twice the rate. It ends soon after the verdict that it was for; the node counts as
// out of service until it is healthy, whatever became of its grant.
//
// Pure, as the engine: no socket, clock, thread or allocator of its own. One thread.
#pragma once

#include <ras/memory.h>
#include <verdict/engine.h>

#define GRANTS_INTERVAL_NS (600 * RAS_NS_PER_SEC) // in which so many are granted at most
#define GRANTS_LAST_NS (90 * RAS_NS_PER_SEC)	  // if it is not told again
#define GRANTS_TELL_NS (30 * RAS_NS_PER_SEC)
#define GRANTS_KNOWN_NS (10 * RAS_NS_PER_SEC)
#define GRANTS_MAX 4096

// Why a drain is not granted, as it looks from here.
enum grant {
	GRANT_GIVEN,
	GRANT_NOT_MEMBER, // this agent is none
	GRANT_BRAKE,	  // too many fell silent at once, or lost their ports
	GRANT_MINORITY,	  // no more than half of the nodes are alive
	GRANT_TOGETHER,	  // more fell silent with it than may be drained, not ten minutes ago
	GRANT_RATE,	  // as many as may be were granted in the last ten minutes
	GRANT_OUT,	  // as many as may be are out of service
	GRANT_BETTER,	  // the evidence is better already than the verdict that still holds
	GRANT_FULL,	  // GRANTS_MAX are kept
	GRANT_NOBODY,	  // no member is fit to grant
	GRANT_AWAITED,	  // nothing of that: the granter has not said so yet
	GRANT_COUNT,
};

// A sentence, or half of one.
const char *grant_words(enum grant grant);

struct grants;

struct grants_config {
	uint64_t self;
	uint32_t rate_percent; // of the nodes in GRANTS_INTERVAL_NS, one at least
	uint32_t out_percent;  // of the nodes out of service at a time, one at least; 33: a third
};

struct grants_ops {
	// To be flooded (ras_notice); at most RAS_NOTICE_BYTES_MAX.
	void (*tell)(void *ctx, const void *bytes, size_t size);
	// When grants_tick() is to be called. False if that cannot be had: it is asked for again.
	bool (*wake)(void *ctx, uint64_t at_ns);
	// A drain is granted from now on, by whomever. Must not call back.
	void (*given)(void *ctx, uint64_t id);
	// Whether this verdict asks for a drain now: what the caller confirms first is confirmed.
	bool (*wants)(void *ctx, uint64_t now_ns, const struct verdict_view *view);
};

// The engine outlives it. -ENOMEM.
int grants_create(
	const struct verdict_engine *engine,
	const struct grants_config *config,
	const struct ras_memory *memory,
	const struct grants_ops *ops,
	void *ops_ctx,
	struct grants **ret_grants
);
struct grants *grants_destroy(struct grants *grants);

// How many nodes the cluster is to have, 0 if nobody says; and whether this agent is alone although
// it knows of others. A part of them is no cluster.
void grants_expect(struct grants *grants, uint32_t nodes, bool alone);
// Somebody is alive since now, ourselves as well. Best effort without memory: it is no granter
// before its time, or is one too early.
void grants_alive(struct grants *grants, uint64_t now_ns, uint64_t id);
// A verdict changed, or the state of a member: look soon.
void grants_look_soon(struct grants *grants, uint64_t now_ns);
void grants_tick(struct grants *grants, uint64_t now_ns);
// A notice of a member's. -EBADMSG: it is malformed, and nothing was taken; one of a newer format
// is counted and left.
int grants_heard(struct grants *grants, uint64_t now_ns, const void *bytes, size_t size);

// Of a node that is to be drained: whether it may be.
enum grant grants_of(const struct grants *grants, uint64_t now_ns, uint64_t id);
// Who grants, as it looks from here; 0: nobody, or this agent is no member.
uint64_t grants_granter(const struct grants *grants, uint64_t now_ns);
// Whether this agent grants now.
bool grants_are_ours(const struct grants *grants, uint64_t now_ns);

struct grants_counters {
	uint64_t given, withheld, told, heard, heard_bad, heard_newer;
	uint32_t kept;
};
const struct grants_counters *grants_counters(const struct grants *grants);
