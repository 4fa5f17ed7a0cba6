// SPDX-License-Identifier: BSD-3-Clause
// Decides how long an acknowledgement is held back in a ping-pong of two ends. Pure functions.
//
// In a ping-pong an acknowledgement costs both ends as much as the data. No thread waits for it, so
// one acknowledgement can cover several requests. It is held only if the history shows a ping-pong:
// each request is one packet and follows a packet of ours. It is held only while the peer continues
// without it. A peer that stops may be waiting for it; then the next hold needs twice as many
// volleys. Only turns of callers hold it. When the caller leaves or sleeps, the engine sends it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Volleys in a row before the first hold; each setback doubles them, up to this number of setbacks.
#define ACK_VOLLEYS_MIN UINT32_C(4)
#define ACK_SETBACKS_MAX 6
// A peer that sends nothing for this long may be waiting for the acknowledgement.
#define ACK_STALL_NS UINT64_C(20000)
// The acknowledgement follows the first data sent after this time, or after this many requests.
// After twice the time it is always sent. That is sooner than any probe or timeout of the peer
// (requester_retry.c).
#define ACK_HOLD_NS UINT64_C(20000)
#define ACK_HOLD_REQUESTS 16

struct ack_rule {
	uint64_t since_ns;  // arrival of the oldest unacknowledged request; valid if count > 0
	uint64_t latest_ns; // arrival of the latest request
	uint32_t count;	    // unacknowledged requests
	uint32_t volleys;   // volleys in a row
	uint32_t setbacks;  // setbacks not yet made good
	bool answered;	    // a packet was sent since the latest request
	bool held;	    // the acknowledgement was held back at least once
};

// Record a request that needs an acknowledgement; single: it has one packet and arrived in order.
void ack_rule_note_request(struct ack_rule *rule, uint64_t now_ns, bool single);
// Record that a packet was sent.
void ack_rule_note_sent_packet(struct ack_rule *rule);
// Return true if the acknowledgement is held back in this turn.
bool ack_rule_is_held(struct ack_rule *rule, uint64_t now_ns);
// Record that the acknowledgement was sent or is no longer needed.
void ack_rule_note_ack(struct ack_rule *rule);
