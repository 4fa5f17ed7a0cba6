// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: the rails of this node, those of peers, and which belong together.
//
// What an agent says of its rails changes while it runs (ports come up, addresses change), so it is
// no part of its record: agents that make pairs ask each other, and tell what changed to all whose
// pairs they want. Between two nodes with one device each there is nothing to ask.
#pragma once

#include "fabric/rail_message.h"

#include <control/overlay.h>
#include <lib/container.h>

#define RAIL_PEERS_MAX 1024 // beyond it the one that was not used for longest is forgotten

struct fabric;
struct nic;

// What is known of the rails of one peer.
struct rail_peer {
	struct rail_peer *next;
	uint64_t id;
	uint64_t start;	     // of the agent that said it; 0: nobody did
	uint64_t said_start; // of its record then
	uint64_t since_ns;   // of what is known
	uint64_t used_ns;
	uint64_t first_ns, ask_ns, gap_ns; // first asked, to be asked again, the next pause
	uint64_t told;			   // the number of our own list that it was told last
	uint64_t told_start;		   // the start that was told it
	uint64_t said_ns;
	bool doubted;	// what it told: a device of it was not there
	bool owed;	// it has asked, and our own list was not complete
	bool neighbour; // its pairs are wanted, in the last look
	struct rail_list list;
};

struct rails {
	struct fabric *fabric;
	struct rail_list own;
	uint64_t number; // of changes of it
	bool moved;	 // in the last look: it is not what our record says
	uint64_t begun_ns;
	struct rail_peer *peers;
	uint32_t peer_count;
	struct overlay_port port;
};

enum rail_answer {
	RAIL_FOUND,
	RAIL_WAIT,	// it was asked
	RAIL_NO_FABRIC, // none of theirs is on its network
};

void rails_start(struct fabric *fabric);
void rails_stop(struct fabric *fabric);
// Facts of an own device may have changed.
void rails_own_changed(struct fabric *fabric);
// The rail of this peer that belongs to an own one; asks for them if need be.
enum rail_answer rails_choose(
	const struct nic *nic,
	const struct ras_record *record,
	char ret_name[static DEVICE_NAME_MAX + 1]
);
// The nth of its others that are in the same subnet.
bool rails_across(
	const struct nic *nic,
	const struct ras_record *record,
	uint32_t nth,
	char ret_name[static DEVICE_NAME_MAX + 1]
);
// A pair with this peer was refused for a device of which it has told.
void rails_doubt(struct fabric *fabric, uint64_t id);
// Begins a look at whose pairs are wanted, and one of them.
void rails_look(struct fabric *fabric);
void rails_neighbour(struct fabric *fabric, const struct ras_record *record);
// Own rails without one at a neighbour; the cursor begins at 0, false past the last.
struct rail_missing {
	uint64_t peer;
	uint32_t device;
	uint64_t since_ns;
};
bool rails_missing_next(
	const struct fabric *fabric, uint32_t *cursor, struct rail_missing *ret_missing
);
