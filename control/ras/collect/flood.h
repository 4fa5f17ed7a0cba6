// SPDX-License-Identifier: BSD-3-Clause
// Notices (broadcasts to all members), and duplicate detection for notices and collectives.
//
// The origin signs each notice. A member checks the signature once: before the notice enters the
// window of its origin, is delivered or is forwarded. So a forged notice goes one link far, speaks
// for nobody and hides no later notice. Collectives are not signed and have windows of their own.
//
// Every notice and collective is named by (origin, id). The ids of an origin grow, also over
// restarts: the start number is their upper half. Floods over different ways overtake each other,
// so a lower id is not always a duplicate. Like a receiver of sequenced packets, a node keeps a
// window of the last 64 ids per origin. An id below the window is treated as a replay.
#pragma once

#include "collect/flood_limit.h"

#include <ras/collective.h>
#include <ras/types.h>

struct collect_notice;
struct link;
struct census_result;
struct ras;

#define FLOOD_WINDOW 64
#define FLOOD_ORIGINS_MAX 1024 // if full, the least recently used origin is evicted

// Kinds of notices of the core itself, with their payload.
enum flood_notice_kind {
	// u64 id, u64 incarnation: remove this peer, see ras_forget_apply().
	FLOOD_NOTICE_FORGET = 1,
	// Result of a census, see flood_send_census().
	FLOOD_NOTICE_CENSUS,
	// No payload: an order to forget all unreachable peers. Each member sends FORGET notices.
	FLOOD_NOTICE_FORGET_UNREACHABLE,
};

struct flood_origin {
	uint64_t origin;
	uint64_t highest;
	uint64_t window;	    // bit n is set if id `highest - n` was seen
	uint64_t used;		    // value of flood_seen.clock at the last use
	uint32_t second, forwarded; // flood_limit.c: notices forwarded in that second
};

struct flood_seen {
	struct flood_origin *origins; // sorted by origin
	uint32_t count, capacity;
	uint64_t clock; // number of look-ups so far
};

struct flood {
	struct flood_seen notices, collectives;
	uint64_t last_id;   // latest id of our own
	uint64_t delivered; // id of the latest notice passed to ops.notice
	struct flood_limit limit;
	// Start of the signature of own notice `id`, at id % FLOOD_WINDOW: tells an echo of our own
	// notice from a forged one.
	uint64_t own_signatures[FLOOD_WINDOW];
	uint64_t next_forged_ns; // observed time before which no further event FORGED is emitted
};

void flood_fini(struct ras *ras);

// Return a new id for a notice or collective of our own.
uint64_t flood_next_id(struct ras *ras);
// Record the id. Returns true the first time. Returns false without memory, too: an unrecorded
// flood would circulate for ever.
bool flood_record_first(struct ras *ras, struct flood_seen *seen, uint64_t origin, uint64_t id);
// Return false if the id of a collective is forged: it names an own id that was never used, or a
// start of the origin too far ahead of the known one.
bool flood_id_is_plausible(const struct ras *ras, uint64_t origin, uint64_t id);

// Write the bytes that the origin of a notice signs, and return their number. The hops are left
// out, since each member changes them.
#define FLOOD_SIGNED_BYTES_MAX (16 + 8 + 8 + 8 + 4 + RAS_NOTICE_BYTES_MAX)
size_t flood_signed_bytes(
	uint64_t cluster,
	const struct collect_notice *notice,
	uint8_t ret_bytes[static FLOOD_SIGNED_BYTES_MAX]
);

// Process a NOTICE frame, including its type byte. Returns 0 or an error as in collective.h.
int flood_notice(struct ras *ras, struct link *link, const void *frame, size_t size);
// Order all other members to remove this peer. The caller removes its own entry.
void flood_send_forget(struct ras *ras, uint64_t id, uint64_t incarnation);
// Order all other members to forget their unreachable peers and to announce each of them.
void flood_send_forget_unreachable(struct ras *ras);
// Send the result of our own census to all other members.
void flood_send_census(struct ras *ras, const struct census_result *result);
