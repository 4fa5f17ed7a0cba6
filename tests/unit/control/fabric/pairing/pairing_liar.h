// SPDX-License-Identifier: BSD-3-Clause
// A node, and a peer whose messages are written by the test.
#pragma once

#include "control/fabric/pairing/pairing_net.h"

#include <support/cmocka.h>

#define NODE 0
#define LIAR 1 // sends by net_inject() only; messages to it are not processed

struct liar_heard {
	struct pairing_message message;
	uint32_t count;
};

extern struct pairing_key liar_key;  // from the node to the liar
extern struct liar_heard liar_heard; // the last message to the liar

int liar_begin(void **state);
// Check that the node still works and can pair with honest peers.
int liar_end(void **state);
#define LIAR_TEST(name) cmocka_unit_test_setup_teardown(name, liar_begin, liar_end)

// Return a valid message for a test to spoil.
struct pairing_message liar_message(enum pairing_message_type type);
int liar_say(const struct pairing_message *message);
// Return the node's generation of the pair.
uint32_t node_generation(void);
// Make a ready pair with the liar's generation 100.
void liar_be_ready(void);
