// SPDX-License-Identifier: BSD-3-Clause
// How long an acknowledgement is held while two ends play ping-pong. Pure.
//
// In a ping-pong an acknowledgement costs both ends as much as the data, and nobody waits for it:
// one for several requests will do. It is held only where history shows a ping-pong (each request
// of one packet, each after something of ours was sent), and only while the peer goes on without
// it; a peer that stops may be waiting for it, and then the next one is held after twice as many
// volleys. Only turns of callers hold: who leaves or sleeps has the engine send it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Of volleys in a row before the first is held, doubled by each setback, and the most of those.
#define ACK_VOLLEYS UINT32_C(4)
#define ACK_SETBACKS_MAX 6
// The peer goes on without it within this, or it may be waiting for it.
#define ACK_STALL_NS UINT64_C(20000)
// It leaves behind the first data that are sent after this, or with so many requests, and in any
// case after twice the time: less than any probe or timeout of the peer (requester_retry.c).
#define ACK_HOLD_NS UINT64_C(20000)
#define ACK_HOLD_REQUESTS 16

struct ack_rule {
	uint64_t since_ns;  // the oldest request that is owed one came; count > 0
	uint64_t latest_ns; // the latest came
	uint32_t count;	    // of requests that are owed one
	uint32_t volleys;   // in a row
	uint32_t setbacks;  // left to be made good
	bool answered;	    // we have sent something since the latest request
	bool held;	    // it was, since it is owed
};

// A request came that is owed an acknowledgement; single: of one packet, and in order.
void ack_rule_request(struct ack_rule *rule, uint64_t now_ns, bool single);
// Something of ours was sent.
void ack_rule_answered(struct ack_rule *rule);
// Is it held in this turn?
bool ack_rule_holds(struct ack_rule *rule, uint64_t now_ns);
// It was sent, or is owed no more.
void ack_rule_sent(struct ack_rule *rule);
