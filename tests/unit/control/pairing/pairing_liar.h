// SPDX-License-Identifier: BSD-3-Clause
// A node, and a peer of it that says what the test makes it say.
#pragma once

#include "control/pairing/pairing_net.h"

#include <support/cmocka.h>

#define NODE 0
#define LIAR 1 // speaks by net_inject() alone; what is said to it goes nowhere

struct liar_heard {
	struct pairing_message message;
	uint32_t count;
};

extern struct pairing_key liar_key;  // of the node to the liar
extern struct liar_heard liar_heard; // what was said to the liar, the last of it

int liar_begin(void **state);
// The node goes on, and has pairs with honest ones.
int liar_end(void **state);
#define LIAR_TEST(name) cmocka_unit_test_setup_teardown(name, liar_begin, liar_end)

// A sound one, for a test to spoil.
struct pairing_message liar_message(enum pairing_message_type type);
int liar_say(const struct pairing_message *message);
// The node's generation of the pair.
uint32_t node_generation(void);
// A pair that is ready, of the liar's generation 100.
void liar_be_ready(void);
