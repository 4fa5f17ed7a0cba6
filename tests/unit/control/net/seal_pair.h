// SPDX-License-Identifier: BSD-3-Clause
// Two ends of one sealed stream and what they say to each other, every step asserted.
//
// A test fills the pair by pair_setup_...(), or by keys and pair_start(); pair_teardown() wipes the
// ends, asserts that they gave their keys back, and puts pair->keys.
#pragma once

#include "net/seal.h"
#include "net/seal_keys_inside.h"

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
// What a test may do to keys and nobody else.
struct seal_keys *pair_keys_inside(const struct seal_keys *keys);

// The hello is said, and not heard yet.
void pair_start(
	struct seal_pair *pair,
	const struct seal_keys *connecting,
	const struct seal_keys *accepting
);
// It is heard and answered.
void pair_answer(struct seal_pair *pair);
// The answer is heard, and the finish: both have proven.
void pair_finish(struct seal_pair *pair);
// A fresh key, then the steps up to there.
void pair_setup_spoken(struct seal_pair *pair);
void pair_setup_proven(struct seal_pair *pair);
void pair_teardown(struct seal_pair *pair);

// seal_receive() of a message that has the size which is wanted.
int pair_take(struct seal *seal, const struct seal_reply *said, struct seal_reply *ret_reply);
// A second one in the same state, with a reference of its own.
struct seal pair_twin(const struct seal *seal);

bool is_all_zero(const void *bytes, size_t size);

// Nothing wanted, nothing given, nothing left.
void pair_expect_over(struct seal *seal);
// Takes what was said and fails with err, in silence, and is over.
void pair_expect_refused(struct seal *seal, const struct seal_reply *said, int err);
// A random frame of this size passes.
void pair_expect_frame(struct seal *from, struct seal *to, size_t size);
void pair_expect_both_ways(struct seal_pair *pair);
