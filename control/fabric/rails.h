// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: rails of this node and of its peers, and which of them belong
// together.
//
// The rails of an agent change while it runs: ports come up, addresses change. So they are not part
// of its record. Agents that make pairs ask each other, and announce changes to all peers whose
// pairs they want. Two nodes with one device each need not ask.
#pragma once

#include "fabric/rail_message.h"

#include <control/overlay.h>
#include <lib/container.h>

#define RAIL_PEERS_MAX 1024 // beyond it, the peer unused for longest is forgotten

struct fabric;
struct nic;

// Known rails of one peer.
struct rail_peer {
	struct rail_peer *next;
	uint64_t id;
	uint64_t start;	     // start counter of the agent that announced the list; 0: no list
	uint64_t said_start; // start counter in the peer's record at that time
	uint64_t since_ns;   // time of the last change of the list
	uint64_t used_ns;
	uint64_t first_ns, ask_ns, gap_ns; // first unanswered question, next question, next pause
	uint64_t told;	     // number of our own list in the last message to the peer; 0: none
	uint64_t told_start; // start counter of the peer that `told` belongs to
	uint64_t said_ns;
	bool doubted;	// a device in its list does not exist: the peer is asked again
	bool owed;	// an answer to the peer is due
	bool neighbour; // its pairs are wanted, as of the last pass
	struct rail_list list;
};

struct rails {
	struct fabric *fabric;
	struct rail_list own;
	uint64_t number;	 // number of changes of `own`
	bool record_is_outdated; // our record lacked changes of `own` in the last pass
	uint64_t begun_ns;
	struct rail_peer *peers;
	uint32_t peer_count;
	struct overlay_port port;
};

enum rail_answer {
	RAIL_FOUND,
	RAIL_WAIT,	// the peer was asked; try again later
	RAIL_NO_FABRIC, // the peer has no rail on this rail's network
};

void rails_start(struct fabric *fabric);
void rails_stop(struct fabric *fabric);
// Must be called when the facts of an own device may have changed.
void rails_own_changed(struct fabric *fabric);
// Choose the peer's rail that belongs to this own device. Asks the peer if its rails are not known.
enum rail_answer rails_choose_peer_rail(
	const struct nic *nic,
	const struct ras_record *record,
	char ret_name[static DEVICE_NAME_MAX + 1]
);
// Find the nth other rail of the peer in the same subnet. Returns false if there are fewer.
bool rails_find_other(
	const struct nic *nic,
	const struct ras_record *record,
	uint32_t nth,
	char ret_name[static DEVICE_NAME_MAX + 1]
);
// Note that the peer has no such device, although it announced it. The peer is asked again.
void rails_ask_again(struct fabric *fabric, uint64_t id);
// Begin a pass over the wanted pairs, and report one neighbour of that pass.
void rails_begin_pass(struct fabric *fabric);
void rails_note_neighbour(struct fabric *fabric, const struct ras_record *record);
// Iterate over own rails without a counterpart at a neighbour. The cursor begins at 0. Returns
// false past the last.
struct rail_missing {
	uint64_t peer;
	uint32_t device; // index in fabric->nics
	uint64_t since_ns;
};
bool rails_missing_next(
	const struct fabric *fabric, uint32_t *cursor, struct rail_missing *ret_missing
);
