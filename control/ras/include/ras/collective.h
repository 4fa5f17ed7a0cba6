// SPDX-License-Identifier: BSD-3-Clause
// Questions to every node, and news for every node.
//
// A collective goes out once over every good link and is answered up the tree it came down.
// It always ends: when the last leg has answered or was given up, by its deadline, or by a
// cancel. Each node is counted once, and who is missing is named with the reason.
#pragma once

#include <ras/types.h>

struct ras;
struct ras_collected; // what has arrived, private

#define RAS_COLLECT_BYTES_MAX (16u << 20) // of payload kept at the root; the rest is cut, and said
#define RAS_COLLECT_TIMEOUT_MAX_NS (3600 * RAS_NS_PER_SEC)
#define RAS_COLLECT_PARTS_MAX 64 // of one node; a part fits in a frame with its header
#define RAS_COLLECT_PART_BYTES_MAX (RAS_FRAME_MAX - 256)
#define RAS_COLLECT_SKIP_MAX 1024 // communicators named in one request
#define RAS_NOTICE_BYTES_MAX 4096
#define RAS_NOTICE_OWN_MIN 256 // kinds below belong to the core

enum ras_collect_kind {
	RAS_COLLECT_CONNS = 1, // links and pairs: travel times, bytes, errors, retransmits
	RAS_COLLECT_COMMS,     // communicators: ranks, missing ranks, operation counts
	RAS_COLLECT_PATHS = 4, // latency summaries; no kind has the number 3
	RAS_COLLECT_KIND_END,
};

// The three hashes by which the processes of a job know one communicator.
struct ras_comm_id {
	uint64_t hash;
	uint64_t host_hash; // of its rank 0
	uint64_t pid_hash;
};

// What ras_ops.contribute is asked for. A share that does not fit in one writer is given in
// parts: 0, 1, … until the answer is false.
struct ras_contribution {
	uint32_t kind;
	uint32_t part;
	// COMMS: nodes above have already listed the missing ranks of these; sorted.
	const struct ras_comm_id *skip;
	uint32_t skip_count;
};

// Why a member of the view did not answer. The first that applies is given.
enum ras_missing {
	RAS_MISSING_DEAD,	 // declared dead before or meanwhile
	RAS_MISSING_LEFT,	 // said goodbye meanwhile
	RAS_MISSING_UNREACHABLE, // left out by us: the brake holds its verdict
	RAS_MISSING_SUSPECT,	 // left out by us: evidence against it is being confirmed
	RAS_MISSING_REFUSED,	 // it runs as many collectives as it can
	RAS_MISSING_TIMED_OUT,	 // it was asked and its leg expired
	RAS_MISSING_LEG_LOST,	 // it was asked and its link went away or turned silent
	RAS_MISSING_CUT_SHORT,	 // a part of its share came, not all
	RAS_MISSING_BEHIND,	 // asked by nobody we heard from, and legs were lost: behind one
	RAS_MISSING_NOT_ASKED,	 // no link led to it
	RAS_MISSING_COUNT,
};

struct ras_missing_peer {
	uint64_t id;
	enum ras_missing reason;
};

// How a collective ended. Valid during the call of ras_ops.collected only.
struct ras_collective_result {
	uint64_t id;
	uint32_t kind;
	uint64_t view_number; // of the view whose members were counted, at the start
	uint64_t view_digest;
	uint32_t member_count; // we included
	uint32_t answered;     // members whose whole share came, we included
	uint32_t agreeing;     // of these, with our view's digest
	uint32_t missing_count;
	const struct ras_missing_peer *missing; // members + dead - answered, by id
	uint32_t legs_timed_out;
	uint32_t legs_lost;
	uint32_t legs_refused;
	uint32_t surplus;   // parts left out: from strangers to the view, or sent twice
	uint32_t truncated; // parts left out because RAS_COLLECT_BYTES_MAX were reached
	uint32_t hops_max;
	bool by_deadline; // legs were still out
	uint64_t elapsed_ns;
	const struct ras_collected *collected;
};

struct ras_collected_part {
	uint64_t node;
	uint64_t incarnation;
	const void *payload; // ras/payload.h reads it
	size_t size;
};

// Steps through the parts in order of arrival; the cursor starts zeroed. False past the last.
struct ras_collected_cursor {
	const void *chunk;
	size_t at;
};

bool ras_collected_next(
	const struct ras_collected *collected,
	struct ras_collected_cursor *cursor,
	struct ras_collected_part *ret_part
);

// Asks everybody; ras_ops.collected answers once, never from inside this call, no later than
// the timeout and the profile's grace. A timeout of 0 is the profile's; a longer one than
// RAS_COLLECT_TIMEOUT_MAX_NS is shortened to it.
// -EINVAL (kind), -EAGAIN (not started or leaving), -EBUSY (as many run as may), -ENOMEM.
int ras_collect(
	struct ras *ras, uint64_t now_ns, uint32_t kind, uint64_t timeout_ns, uint64_t *ret_id
);
// Ends it here and, where the word arrives, everywhere, without a result. -ENOENT if it has
// ended already.
int ras_collect_cancel(struct ras *ras, uint64_t now_ns, uint64_t id);

// Tells everybody else once, over every good link: ras_ops.notice there. Best effort: who is
// cut off now does not hear it later. -EINVAL (a kind of the core's), -EMSGSIZE, -EAGAIN (not
// started or leaving).
int ras_notice(struct ras *ras, uint64_t now_ns, uint32_t kind, const void *payload, size_t size);
// Inside ras_ops.notice: the number of that notice, which grows with what one origin tells, also
// over its starts. Notices come in another order where a link on the way lost packets.
uint64_t ras_notice_number(const struct ras *ras);

const char *ras_missing_name(enum ras_missing reason);

struct ras_collect_counters {
	uint64_t started, finished, cancelled, by_deadline; // as the root
	uint64_t served, abandoned; // for others; abandoned: the asker went away or cancelled
	uint64_t requests_repeated; // answered empty: known already
	uint64_t requests_refused;  // no room for another
	uint64_t requests_forged;   // in our own name, or from a start of the origin yet to come
	uint64_t answers_late;	    // for what has ended, or a leg already given up
	uint64_t answers_foreign;   // from a link that was not asked
	uint64_t cancels_foreign;   // from a link that did not ask
	uint64_t legs_lost, legs_timed_out;
	uint64_t contributions_cut; // our own share did not fit in RAS_COLLECT_PARTS_MAX parts
	uint64_t notices_sent, notices_delivered, notices_repeated;
	uint32_t running, running_max;
};

const struct ras_collect_counters *ras_collect_counters(const struct ras *ras);
