// SPDX-License-Identifier: BSD-3-Clause
// PEERS: a node of the peer table.
#pragma once

#include <lib/record.h>

#define PEER_NODE_BYTES 64
#define PEER_ADDRESS_BYTES 80

struct peer_row {
	char node[PEER_NODE_BYTES];
	char id[20];
	const char *state;
	const char *cause;
	bool sole, maint, self;
	const char *since; // NULL if unknown
	uint64_t for_ns;
	uint64_t start;
	uint64_t refutations;
	json_t *observers;
	char address[PEER_ADDRESS_BYTES];
	char host[PEER_NODE_BYTES];
	uint32_t pid;
	char version[PEER_NODE_BYTES];
	char key[20];
	const char *verdict;
	uint32_t devices;
};

extern const struct record peer_record;
extern const struct record peer_key_record;	// a table of the same rows, for --keys
extern const struct record peer_version_record; // the same for --versions
