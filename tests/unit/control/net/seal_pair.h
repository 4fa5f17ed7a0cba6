// SPDX-License-Identifier: BSD-3-Clause
// Both ends of one sealed stream, with assertions at every step.
//
// A test fills the pair by pair_setup_...(), or by keys and pair_start(). pair_teardown() wipes
// both ends, asserts that they released their keys, and releases pair->keys.
#pragma once

#include "net/seal.h"

#include <lib/seal_secret.h>

#define CLUSTER "alps"
#define HELLO_BYTES 74
#define ANSWER_BYTES 123
#define FINISH_BYTES 56

struct seal_pair {
	const struct seal_keys *keys;
	struct seal connects, accepts;
	struct seal_reply hello, answer, finish;
};

const struct seal_keys *pair_make_keys(void);
// Access to the contents of keys, for tests only.
struct seal_keys *pair_keys_inside(const struct seal_keys *keys);

// Send the hello; it is not received yet.
void pair_start(
	struct seal_pair *pair,
	const struct seal_keys *connecting,
	const struct seal_keys *accepting
);
// Receive the hello and send the answer.
void pair_answer(struct seal_pair *pair);
// Receive the answer, and then the finish: both sides have proven the key.
void pair_finish(struct seal_pair *pair);
// Create a key and run the handshake up to that step.
void pair_setup_spoken(struct seal_pair *pair);
void pair_setup_proven(struct seal_pair *pair);
void pair_teardown(struct seal_pair *pair);

// Call seal_receive() with a message of the expected size.
int pair_take(struct seal *seal, const struct seal_reply *said, struct seal_reply *ret_reply);
// Return a copy of the state with its own reference to the keys.
struct seal pair_twin(const struct seal *seal);

bool is_all_zero(const void *bytes, size_t size);

// Check that the session is over: it expects no message, has none to send, and holds no secrets.
void pair_expect_over(struct seal *seal);
// Check that the message is rejected with err without a reply, and that the session is over.
void pair_expect_refused(struct seal *seal, const struct seal_reply *said, int err);
// Check that a random frame of this size arrives intact.
void pair_expect_frame(struct seal *from, struct seal *to, size_t size);
void pair_expect_both_ways(struct seal_pair *pair);
