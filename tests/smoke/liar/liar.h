// SPDX-License-Identifier: BSD-3-Clause
// tocsind-liar: a stock agent that lies to the other members.
//
// The linker wraps three functions of the protocol core, see liar.c. The lies are in lies_*.c, one
// function each. Everything runs in the control thread.
//
// Environment:
//	TOCSIN_LIE=NAME[,NAME...]  lies to tell; a name that is not in the table ends the program
//	TOCSIN_LIE_VICTIM=NODE     member about which, or in whose name, the liar speaks
//	TOCSIN_LIE_BEGIN=PATH      the liar is honest until this file exists
//
// The log has one line `lies_told sent=NAME:FRAMES,...` a second.
#pragma once

#include "core/core.h"
#include "payloads.h"

#define LIAR_TURNS_PER_SECOND 10
#define LIAR_GAP_NS (RAS_NS_PER_SEC / LIAR_TURNS_PER_SECOND) // between two turns
// Version, kind, communicator and attempt of a notice about a job. The size is in the four bytes
// before the attempt.
#define LIAR_COMM_HEAD_BYTES 38
#define LIAR_COMM_SIZE_AT 30
#define LIAR_REPLAY_FRAMES_MAX 16 // notices of the victim that are kept for a replay
#define LIAR_KEPT_BYTES_MAX 512

struct liar_kept {
	size_t size;
	uint8_t frame[LIAR_KEPT_BYTES_MAX];
};

struct liar {
	struct ras *ras;
	struct ras_ops ops; // of the agent, before the liar replaced `send`
	void *ops_ctx;
	uint64_t now_ns;
	uint64_t victim; // id
	uint32_t turn;	 // turns since the lies began
	uint64_t sent;	 // frames of the lie that is being told
	// Head of the latest notice about a job. Its second byte is the kind.
	uint8_t comm_head[LIAR_COMM_HEAD_BYTES];
	bool has_comm;
	uint32_t comm_size; // ranks
	struct liar_kept kept[LIAR_REPLAY_FRAMES_MAX];
	uint32_t kept_count;
	bool replays; // kept notices are being sent, which no lie changes
};

struct lie {
	const char *name;
	// Tell the lie; called every LIAR_GAP_NS. NULL: the lie only changes frames.
	void (*tell)(struct liar *liar);
	// Change a frame that this agent sends, in place. Returns true if it was changed.
	bool (*change)(struct liar *liar, uint8_t *frame, size_t size);
};

// lies_notice.c and lies_member.c; each ends with a row without name.
extern const struct lie lies_of_notices[];
extern const struct lie lies_of_members[];

// liar.c: tools of the lies.

// Send a frame over all good links.
void liar_send_all(struct liar *liar, const void *frame, size_t size);
// Send a frame to one member if it is linked. Returns false if it is not.
bool liar_send_to(struct liar *liar, uint64_t peer, const void *frame, size_t size);
// Send a notice in the name of another agent, signed with the key of this one.
void liar_forge_notice(
	struct liar *liar, uint64_t id, uint32_t kind, const void *payload, size_t size
);
// Send a notice of this agent itself.
void liar_send_notice(struct liar *liar, uint32_t kind, const void *payload, size_t size);
// Send one item of news about a member.
void liar_send_news(struct liar *liar, const struct peer_news *news);
// Return the entry of the victim, or NULL if the victim is unknown.
struct peer_entry *liar_victim_entry(const struct liar *liar);
// Return the latest id that the victim gave to a notice, as far as known here.
uint64_t liar_victim_latest_id(const struct liar *liar);
