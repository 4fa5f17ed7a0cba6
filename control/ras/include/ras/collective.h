// SPDX-License-Identifier: BSD-3-Clause
// Collectives: questions to every node, and notices for every node.
//
// A collective goes out once over every good link; the answers return along the tree by which it
// went out. A leg is one link over which a node forwarded the question. A collective always ends:
// when the last leg answered or was given up, at its deadline, or by a cancel. Each node is counted
// once. Each missing node is named with the reason.
#pragma once

#include <ras/types.h>

struct ras;
struct ras_collected; // parts that have arrived; private

#define RAS_COLLECT_BYTES_MAX (16u << 20) // payload kept at the root; the rest is cut and counted
#define RAS_COLLECT_TIMEOUT_MAX_NS (3600 * RAS_NS_PER_SEC)
#define RAS_COLLECT_PARTS_MAX 64 // parts of one node; a part fits in a frame with its header
#define RAS_COLLECT_PART_BYTES_MAX (RAS_FRAME_MAX - 256)
#define RAS_COLLECT_SKIP_MAX 1024 // communicators named in one request
#define RAS_NOTICE_BYTES_MAX 4096
#define RAS_NOTICE_OWN_MIN 256 // smaller kinds belong to the core

enum ras_collect_kind {
	RAS_COLLECT_CONNS = 1, // links and pairs: round trips, bytes, errors, retransmits
	RAS_COLLECT_COMMS,     // communicators: ranks, missing ranks, operation counts
	RAS_COLLECT_PATHS = 4, // latency summaries; number 3 is unused
	RAS_COLLECT_KIND_END,
};

// Three hashes by which the processes of a job identify one communicator.
struct ras_comm_id {
	uint64_t hash;
	uint64_t host_hash; // host of rank 0
	uint64_t pid_hash;
};

// Request to ras_ops.contribute. A share that exceeds one writer is given in parts 0, 1, … until
// the operation returns false.
struct ras_contribution {
	uint32_t kind;
	uint32_t part;
	// COMMS: nodes closer to the root have already listed the missing ranks of these; sorted.
	const struct ras_comm_id *skip;
	uint32_t skip_count;
};

// Reason why a member of the view did not answer. The first one that applies is given.
enum ras_missing {
	RAS_MISSING_DEAD,	 // declared dead before or during the collective
	RAS_MISSING_LEFT,	 // left during the collective
	RAS_MISSING_UNREACHABLE, // not asked: the brake holds its death back
	RAS_MISSING_SUSPECT,	 // not asked: evidence against it is being confirmed
	RAS_MISSING_REFUSED,	 // runs as many collectives as it can
	RAS_MISSING_TIMED_OUT,	 // asked, but its leg expired
	RAS_MISSING_LEG_LOST,	 // asked, but its link was lost or became silent
	RAS_MISSING_CUT_SHORT,	 // only a part of its share arrived
	RAS_MISSING_BEHIND,	 // not asked by any node that answered; probably behind a lost leg
	RAS_MISSING_NOT_ASKED,	 // no link led to the node
	RAS_MISSING_COUNT,
};

struct ras_missing_peer {
	uint64_t id;
	enum ras_missing reason;
};

// Result of one collective. Valid during the call of ras_ops.collected only.
struct ras_collective_result {
	uint64_t id;
	uint32_t kind;
	uint64_t view_number; // the view whose members were counted, at the start
	uint64_t view_digest;
	uint32_t member_count; // includes this agent
	uint32_t answered;     // members whose whole share arrived, including this agent
	uint32_t agreeing;     // members of `answered` that have the same view digest
	uint32_t missing_count;
	const struct ras_missing_peer *missing; // members + dead - answered, sorted by id
	uint32_t legs_timed_out;
	uint32_t legs_lost;
	uint32_t legs_refused;
	uint32_t surplus;   // parts ignored: sent twice, or by a node outside the view
	uint32_t truncated; // parts ignored because RAS_COLLECT_BYTES_MAX was reached
	uint32_t hops_max;
	bool by_deadline; // some legs had not answered at the deadline
	uint64_t elapsed_ns;
	const struct ras_collected *collected;
};

struct ras_collected_part {
	uint64_t node;
	uint64_t incarnation;
	const void *payload; // read by ras/payload.h
	size_t size;
};

// Step through the parts in order of arrival; zero the cursor first. Returns false past the last
// part.
struct ras_collected_cursor {
	const void *chunk;
	size_t at;
};

bool ras_collected_next(
	const struct ras_collected *collected,
	struct ras_collected_cursor *cursor,
	struct ras_collected_part *ret_part
);

// Ask all members. ras_ops.collected answers once, never from inside this call. The answer comes at
// the latest after the timeout and the grace time of the profile. A timeout of 0 selects the
// default of the profile; RAS_COLLECT_TIMEOUT_MAX_NS is the maximum. Returns 0, -EINVAL (kind),
// -EAGAIN (not started or leaving), -EBUSY (too many are running) or -ENOMEM.
int ras_collect(
	struct ras *ras, uint64_t now_ns, uint32_t kind, uint64_t timeout_ns, uint64_t *ret_id
);
// Cancel a collective here and wherever the cancel arrives; there is no result. Returns 0, or
// -ENOENT if the collective has ended.
int ras_collect_cancel(struct ras *ras, uint64_t now_ns, uint64_t id);

// Send a notice once to all other members, over every good link: ras_ops.notice receives it there.
// Best effort: a node that is cut off now does not receive the notice later. Returns 0, -EINVAL (a
// kind of the core), -EMSGSIZE or -EAGAIN (not started or leaving).
int ras_notice(struct ras *ras, uint64_t now_ns, uint32_t kind, const void *payload, size_t size);
// Return the number of the notice; call it inside ras_ops.notice only. The numbers of one origin
// increase, also over its restarts. Notices may arrive out of order if a link on the way lost
// packets.
uint64_t ras_notice_number(const struct ras *ras);

const char *ras_missing_name(enum ras_missing reason);

struct ras_collect_counters {
	uint64_t started, finished, cancelled, by_deadline; // as the root
	// For other roots; abandoned: asker lost, or it cancelled
	uint64_t served, abandoned;
	uint64_t requests_repeated; // known already, answered empty
	uint64_t requests_refused;  // no room for another collective
	// Refused: the origin is this agent, or the id has a newer start than the origin's record
	uint64_t requests_forged;
	uint64_t answers_late;	  // collective ended, or leg given up
	uint64_t answers_foreign; // from a link that was not asked
	uint64_t cancels_foreign; // from a link that did not ask
	uint64_t legs_lost, legs_timed_out;
	uint64_t contributions_cut; // own share exceeded RAS_COLLECT_PARTS_MAX parts
	uint64_t notices_sent, notices_delivered, notices_repeated;
	uint64_t notices_dropped;  // delivered but not forwarded, because there are too many
	uint64_t notices_forged;   // not signed by their origin
	uint64_t notices_unproven; // the key of their origin is unknown here
	uint32_t running, running_max;
};

const struct ras_collect_counters *ras_collect_counters(const struct ras *ras);
