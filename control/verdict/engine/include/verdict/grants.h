// SPDX-License-Identifier: BSD-3-Clause
// Grants: a cluster-wide limit on drains. However many controllers, node checks and feeds there
// are, together they drain no more nodes than the cluster can spare.
//
// Every agent reaches the same verdicts, so agents need not ask each other. One member, the
// granter, grants drains by its own verdicts. Grants are flooded, and repeated while the verdict
// holds. A drain without a grant is a warning that names the reason.
//
// The granter is the member with the lowest id that has been alive for GRANTS_MEMBER_MIN_AGE_NS and
// is not critical itself. Each agent finds the granter in its own table. While two tables differ,
// two members may grant, and each counts the other's grants. A new granter knows all grants: they
// are repeated when a member joins and every GRANTS_REPEAT_NS.
//
// If more nodes fall silent within a minute than may be drained in ten minutes, they count as one
// event. None of them is drained for it during the first ten minutes. The same holds when more
// nodes than that are unread by several observers but read by others. Then the fabric is
// partitioned, and a node whose observers are on the other side is not bad.
//
// A node whose agent started with another key is not drained on its own word for
// GRANTS_NEW_KEY_NS. Until then another node may have taken its name.
//
// A grant belongs to one run of a node (its start), not to one verdict, and never creates a
// verdict. A false grant cannot drain a node that the queried agent finds healthy. It can make
// other agents count at most twice the rate. A grant ends soon after its verdict. The node counts
// as out of service until it is healthy, even without a grant.
//
// The module is pure, like the engine: no socket, clock, thread or allocator of its own.
// Single-threaded.
#pragma once

#include <ras/memory.h>
#include <verdict/engine.h>

#define GRANTS_INTERVAL_NS (600 * RAS_NS_PER_SEC) // window of the rate limit
#define GRANTS_LIFETIME_NS (90 * RAS_NS_PER_SEC)  // lifetime of a grant that is not repeated
#define GRANTS_REPEAT_NS (30 * RAS_NS_PER_SEC)
#define GRANTS_MEMBER_MIN_AGE_NS (10 * RAS_NS_PER_SEC)
#define GRANTS_NEW_KEY_NS (600 * RAS_NS_PER_SEC)
#define GRANTS_MAX 4096

// Answer to a request for a drain, from this agent's view.
enum grant {
	GRANT_GIVEN,
	GRANT_NOT_MEMBER,   // this agent is no member
	GRANT_BRAKE,	    // too many nodes fell silent or lost their ports at once
	GRANT_MINORITY,	    // at most half of the nodes are alive
	GRANT_COMMON_EVENT, // fell silent with too many others, less than ten minutes ago
	GRANT_RATE_LIMIT,   // the limit of grants in ten minutes is reached
	GRANT_TOO_MANY_OUT, // the limit of nodes out of service is reached
	GRANT_KEY_CHANGED,  // its key is new, and only the node itself observes the fault
	GRANT_IMPROVING,    // the evidence has improved, the verdict still waits to settle
	GRANT_TABLE_FULL,   // GRANTS_MAX grants are kept
	GRANT_NO_GRANTER,   // no member may grant
	GRANT_PENDING,	    // the granter has not answered yet
	GRANT_COUNT,
};

// Return a sentence, or a part of one, that explains the answer.
const char *grant_reason_text(enum grant grant);

struct grants;

struct grants_config {
	uint64_t self;
	uint32_t rate_percent; // per cent of the nodes per GRANTS_INTERVAL_NS, at least one
	uint32_t out_percent;  // per cent of the nodes out of service, at least one; 33: a third
};

struct grants_ops {
	// Flood these bytes (ras_notice); at most RAS_NOTICE_BYTES_MAX.
	void (*tell)(void *ctx, const void *bytes, size_t size);
	// Request a grants_tick() at this time. Returns false if that failed; the table asks again.
	bool (*wake)(void *ctx, uint64_t at_ns);
	// A drain of `id` is granted from now on, by any granter. The callback must not call the
	// table.
	void (*given)(void *ctx, uint64_t id);
	// Return whether this verdict requests a drain now, after the caller's own confirmation
	// time.
	bool (*wants)(void *ctx, uint64_t now_ns, const struct verdict_view *view);
};

// Create a table of grants. The engine must outlive the table. Returns 0 or -ENOMEM.
int grants_create(
	const struct verdict_engine *engine,
	const struct grants_config *config,
	const struct ras_memory *memory,
	const struct grants_ops *ops,
	void *ops_ctx,
	struct grants **ret_grants
);
struct grants *grants_destroy(struct grants *grants);

// Set the expected number of nodes, 0 if unknown. `alone`: this agent knows of other members but
// reaches none. An agent on one side of a partition must not take its side for the cluster.
void grants_expect(struct grants *grants, uint32_t nodes, bool alone);
// Record that a member, or this agent, is alive since now. Best effort: without memory the member
// may act as granter too early.
void grants_member_alive(struct grants *grants, uint64_t now_ns, uint64_t id);
// Check for drains soon, since a verdict or the state of a member changed.
void grants_check_soon(struct grants *grants, uint64_t now_ns);
void grants_tick(struct grants *grants, uint64_t now_ns);
// Take a notice of another member. Returns 0, or -EBADMSG if malformed, with nothing taken. A
// notice of a newer format is counted and skipped.
int grants_receive(struct grants *grants, uint64_t now_ns, const void *bytes, size_t size);

// Return GRANT_GIVEN if a node that needs a drain may be drained now, else the reason why not.
enum grant grants_decide(const struct grants *grants, uint64_t now_ns, uint64_t id);
// Return the granter by this agent's table; 0: there is none, or this agent is no member.
uint64_t grants_current_granter(const struct grants *grants, uint64_t now_ns);
// Return whether this agent is the granter now.
bool grants_are_ours(const struct grants *grants, uint64_t now_ns);

struct grants_counters {
	uint64_t given, withheld, told, heard, heard_bad, heard_newer;
	uint32_t kept;
};
const struct grants_counters *grants_counters(const struct grants *grants);
