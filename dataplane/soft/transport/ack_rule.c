// SPDX-License-Identifier: BSD-3-Clause
// Decides when a responder acknowledges. It saves packets and never delays a waiting peer.
#include "transport/ack_rule.h"

void ack_rule_note_request(struct ack_rule *rule, uint64_t now_ns, bool single) {
	if (!single || !rule->answered)
		rule->volleys = 0;
	else if (rule->volleys < ACK_VOLLEYS_MIN << ACK_SETBACKS_MAX)
		rule->volleys++;
	rule->answered = false;
	rule->latest_ns = now_ns;
	if (rule->count++ == 0)
		rule->since_ns = now_ns;
}

void ack_rule_note_sent_packet(struct ack_rule *rule) {
	rule->answered = true;
}

bool ack_rule_is_held(struct ack_rule *rule, uint64_t now_ns) {
	uint64_t held_ns = now_ns - rule->since_ns;

	if (rule->count == 0 || rule->volleys < ACK_VOLLEYS_MIN << rule->setbacks)
		return false;
	if (now_ns - rule->latest_ns >= ACK_STALL_NS) {
		// Count a setback: a peer that has our answer and sends nothing may be waiting for
		// the acknowledgement.
		if (rule->answered) {
			rule->volleys = 0;
			if (rule->held && rule->setbacks < ACK_SETBACKS_MAX)
				rule->setbacks++;
			rule->held = false;
		}
		return false;
	}
	if (held_ns >= 2 * ACK_HOLD_NS)
		return false;
	if (rule->answered && (held_ns >= ACK_HOLD_NS || rule->count >= ACK_HOLD_REQUESTS))
		return false;
	rule->held = true;
	return true;
}

void ack_rule_note_ack(struct ack_rule *rule) {
	if (rule->held && rule->count > 1 && rule->setbacks > 0)
		rule->setbacks--;
	rule->count = 0;
	rule->held = false;
}
