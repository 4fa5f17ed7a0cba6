// SPDX-License-Identifier: BSD-3-Clause
// Checks whether our announced address leads to us. An agent can join in spite of a wrong
// `advertise`, a firewall or an address translation, because it connects itself. The fault shows
// much later, when another agent must connect to it. So other members are asked to connect at once.
// An open connection proves nothing, because another agent may listen there.
//
// A round asks one member, and a second one if the first does not reach us. Members on other hosts
// come first. Until a member has reached us, rounds repeat after growing pauses, because the way
// may open later.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/wire.h>

#include <sodium.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIRST_ROUND_NS \
	(2 * RAS_NS_PER_SEC) // after joining: the members that are asked know us by then
#define PAUSE_FIRST_NS (5 * RAS_NS_PER_SEC)
#define PAUSE_MAX_NS (300 * RAS_NS_PER_SEC)
// The other node takes at most OVERLAY_REACH_TRY_NS.
#define CALL_TIMEOUT_NS (2 * OVERLAY_REACH_TRY_NS)

// Words of the other node's answer, and their meaning here.
static const struct {
	const char *word;
	enum ras_cause cause; // NONE: reached
	const char *sentence;
} outcomes[] = {
	{"reached", RAS_CAUSE_NONE, "reached it"},
	{"refused", RAS_CAUSE_REFUSED, "was refused"},
	{"timeout", RAS_CAUSE_TIMEOUT, "got no answer"},
	{"unreachable", RAS_CAUSE_UNREACHABLE, "found no route"},
	{"stranger", RAS_CAUSE_PROOF, "found a server that does not prove the key"},
	{"other", RAS_CAUSE_CONFLICT, "found"},
};
#define OUTCOME_COUNT (sizeof(outcomes) / sizeof(outcomes[0]))

const char *overlay_reach_outcome_word(enum ras_cause cause) {
	switch (cause) {
	case RAS_CAUSE_NONE:
		return "reached";
	case RAS_CAUSE_REFUSED:
	case RAS_CAUSE_RESET:
		return "refused";
	case RAS_CAUSE_TIMEOUT:
	case RAS_CAUSE_SILENT: // connected, but nothing was received
		return "timeout";
	case RAS_CAUSE_PROOF:
	case RAS_CAUSE_PROTOCOL:
	case RAS_CAUSE_CLUSTER:
		return "stranger";
	case RAS_CAUSE_CONFLICT:
		return "other";
	case RAS_CAUSE_UNREACHABLE:
		return "unreachable";
	default:
		return "busy"; // our own fault says nothing about the asker
	}
}

const struct overlay_reach *overlay_reach(const struct overlay *overlay) {
	return &overlay->reach;
}

static void reach_set_timer(struct overlay *overlay, uint64_t after_ns) {
	if (loop_timer_set(
		    overlay->loop, &overlay->reach_ask.due, loop_now_ns(overlay->loop) + after_ns
	    ) != 0)
		log_event(LOG_LEVEL_WARN, "address_unchecked", log_errno("error", ENOMEM));
}

static struct sock_addr announced_address(const struct overlay *overlay) {
	struct sock_addr address = {0};
	struct ras_peer self;

	if (ras_peer_find(overlay->ras, ras_self_id(overlay->ras), &self) == 0)
		address = self.record->address;
	return address;
}

// End of a round.

static void round_note(struct overlay *overlay, enum ras_event_kind kind, const char *words) {
	const struct overlay_reach_ask *ask = &overlay->reach_ask;
	struct ras_event event = {.kind = kind, .peer = ras_self_id(overlay->ras)};

	if (kind == RAS_EVENT_ADDRESS_UNPROVEN) {
		event.cause = ask->cause;
		event.observer_count = ask->failed_count;
		memcpy(event.observers, ask->failed, sizeof(ask->failed));
	}
	(void)overlay_note(overlay, &event, words);
}

static void round_prove(struct overlay *overlay) {
	enum overlay_reach_state before = overlay->reach.state;
	struct sock_addr address = announced_address(overlay);
	char text[SOCK_ADDR_TEXT_BYTES], words[STATE_TEXT_BYTES];

	overlay->reach.state = OVERLAY_REACH_PROVEN;
	overlay->reach.words[0] = '\0';
	overlay->reach_ask.pause_ns = 0;
	sock_addr_format(&address, text);
	if (before == OVERLAY_REACH_UNPROVEN) {
		snprintf(words, sizeof(words), "%s: %s", text, overlay->reach_ask.words);
		round_note(overlay, RAS_EVENT_ADDRESS_PROVEN, words);
	} else if (before == OVERLAY_REACH_UNKNOWN) {
		log_event(
			LOG_LEVEL_INFO, "address_proven", log_str("address", text),
			log_str("by", overlay->reach_ask.words)
		);
	}
}

// Choice of a member.

static bool member_was_asked(const struct overlay_reach_ask *ask, uint64_t id) {
	for (uint32_t n = 0; n < ask->asked_count; n++) {
		if (ask->asked[n] == id)
			return true;
	}
	return false;
}

// Choose a random member that was not asked yet; one on our own host only if there is no other.
// Returns 0 if there is none.
static uint64_t prover_choose(const struct overlay *overlay) {
	struct ras_peer self, peer;
	uint64_t on_our_host = 0;
	struct ras_view view;
	uint32_t first;

	ras_view(overlay->ras, &view);
	if (ras_peer_find(overlay->ras, ras_self_id(overlay->ras), &self) != 0)
		return 0;
	first = randombytes_uniform(view.slots_max);
	for (uint32_t n = 0; n < view.slots_max; n++) {
		uint32_t slot = (first + n) % view.slots_max;

		if (ras_peer_at(overlay->ras, slot, &peer) != 0 || peer.state != RAS_ALIVE ||
		    peer.record->id == self.record->id ||
		    member_was_asked(&overlay->reach_ask, peer.record->id))
			continue;
		if (peer.record->host_id != self.record->host_id)
			return peer.record->id;
		on_our_host = peer.record->id;
	}
	return on_our_host;
}

// Asking.

static int answer_take_piece(struct overlay_call *call, const void *data, size_t size) {
	struct overlay_reach_ask *ask = container_of(call, struct overlay_reach_ask, call);

	if (size >= sizeof(ask->answer) - ask->answer_size)
		return -EMSGSIZE;
	memcpy(ask->answer + ask->answer_size, data, size);
	ask->answer_size += size;
	ask->answer[ask->answer_size] = '\0';
	return 0;
}

// Parse "refused 10.0.0.2 10.0.0.1:28030", or "other 10.0.0.2 10.0.0.1:28030 n7". Another node
// sends this, so it may be anything. Returns false if it is not about our announced address.
static bool answer_parse(
	const struct overlay *overlay,
	size_t *ret_outcome,
	char from[static SOCK_ADDR_TEXT_BYTES],
	const char **ret_found
) {
	const char *word = overlay->reach_ask.answer;
	struct sock_addr own = announced_address(overlay);
	struct sock_addr source, tried;
	size_t length = strcspn(word, " ");
	size_t n = 0;

	while (n < OUTCOME_COUNT &&
	       (strlen(outcomes[n].word) != length || memcmp(outcomes[n].word, word, length) != 0))
		n++;
	if (n == OUTCOME_COUNT || word[length] == '\0')
		return false;
	word += length + 1;
	length = strcspn(word, " ");
	if (word[length] == '\0' || sock_addr_parse(word, length, 0, NULL, &source) != 0)
		return false;
	word += length + 1;
	own.scope_id = 0;
	length = strcspn(word, " ");
	if (sock_addr_parse(word, length, 0, NULL, &tried) != 0)
		return false;
	*ret_found = word[length] != '\0' ? word + length + 1 : "";
	tried.scope_id = 0;
	if (!sock_addr_equal(&tried, &own))
		return false; // the other node knows another start of ours
	sock_addr_format_host(&source, from);
	*ret_outcome = n;
	return true;
}

// Append "n2 from 10.0.0.2 was refused" or "n2 from 10.0.0.2 found n7" to the words.
static void
words_add_outcome(struct overlay *overlay, size_t outcome, const char *from, const char *found) {
	struct overlay_reach_ask *ask = &overlay->reach_ask;
	size_t used = strlen(ask->words);
	bool is_other = outcomes[outcome].cause == RAS_CAUSE_CONFLICT;
	size_t found_length = strlen(found);
	const char *name = "?";
	struct ras_peer peer;
	int length = 1;

	// Another node sent the name, so it may be no valid text.
	if (found_length == 0 || found_length > RAS_NAME_MAX ||
	    !wire_utf8_valid(found, found_length))
		found = "another agent";
	if (ras_peer_find(overlay->ras, ask->call.node, &peer) == 0) {
		name = peer.record->name;
		length = peer.record->name_length;
	}
	snprintf(
		ask->words + used, sizeof(ask->words) - used, "%s%.*s from %s %s%s%s",
		used == 0 ? "" : "; ", length, name, from, outcomes[outcome].sentence,
		is_other ? " " : "", is_other ? found : ""
	);
}

static void prover_ask_next(struct overlay *overlay);

static void prover_answered(struct overlay_call *call, int err) {
	struct overlay_reach_ask *ask = container_of(call, struct overlay_reach_ask, call);
	struct overlay *overlay = container_of(ask, struct overlay, reach_ask);
	struct overlay_reach_counters *counters = &overlay->reach.counters;
	char from[SOCK_ADDR_TEXT_BYTES];
	const char *found = "";
	size_t outcome;

	ask->asking = false;
	// The end of the overlay never comes here, because overlay_reach_stop() runs first.
	if (err != 0 || !answer_parse(overlay, &outcome, from, &found)) {
		counters->unanswered++;
	} else if (outcomes[outcome].cause == RAS_CAUSE_NONE) {
		counters->reached++;
		ask->words[0] = '\0';
		words_add_outcome(overlay, outcome, from, found);
		round_prove(overlay);
		return;
	} else {
		counters->not_reached++;
		if (ask->failed_count == 0)
			ask->cause = outcomes[outcome].cause;
		ask->failed[ask->failed_count++] = ask->asked[ask->asked_count - 1];
		words_add_outcome(overlay, outcome, from, found);
	}
	prover_ask_next(overlay);
}

// Ask another member, or end the round if enough members were asked.
static void prover_ask_next(struct overlay *overlay) {
	struct overlay_reach_ask *ask = &overlay->reach_ask;
	char text[SOCK_ADDR_TEXT_BYTES];
	struct sock_addr address;
	bool is_first;

	while (ask->asked_count < OVERLAY_REACH_ASKED) {
		uint64_t id = prover_choose(overlay);

		ask->alone = id == 0 && ask->asked_count == 0;
		if (ask->alone)
			return; // until a member joins
		if (id == 0)
			break;
		ask->asked[ask->asked_count++] = id;
		ask->answer_size = 0;
		ask->answer[0] = '\0';
		ask->call.piece = answer_take_piece;
		ask->call.ended = prover_answered;
		overlay->reach.counters.asked++;
		if (overlay_call_start(
			    overlay, id, OVERLAY_REACH_LINE, CALL_TIMEOUT_NS, &ask->call
		    ) == 0) {
			ask->asking = true;
			return;
		}
		overlay->reach.counters.unanswered++;
	}
	ask->pause_ns = ask->pause_ns == 0		   ? PAUSE_FIRST_NS
			: ask->pause_ns < PAUSE_MAX_NS / 2 ? 2 * ask->pause_ns
							   : PAUSE_MAX_NS;
	reach_set_timer(overlay, ask->pause_ns);
	if (ask->failed_count == 0)
		return; // no member could tell
	is_first = overlay->reach.state != OVERLAY_REACH_UNPROVEN;
	overlay->reach.state = OVERLAY_REACH_UNPROVEN;
	address = announced_address(overlay);
	sock_addr_format(&address, text);
	snprintf(
		overlay->reach.words, sizeof(overlay->reach.words), "%s is unreachable: %s", text,
		ask->words
	);
	if (is_first)
		round_note(overlay, RAS_EVENT_ADDRESS_UNPROVEN, overlay->reach.words);
}

static void on_reach_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay_reach_ask *ask = container_of(timer, struct overlay_reach_ask, due);
	struct overlay *overlay = container_of(ask, struct overlay, reach_ask);

	(void)now_ns;
	if (ask->asking)
		return;
	ask->asked_count = 0;
	ask->failed_count = 0;
	ask->words[0] = '\0';
	prover_ask_next(overlay);
}

void overlay_reach_event(struct overlay *overlay, const struct ras_event *event) {
	struct overlay_reach_ask *ask = &overlay->reach_ask;
	// The event may bring a member to ask, after there was none.
	bool may_bring_prover = event->kind == RAS_EVENT_JOINED ||
				event->kind == RAS_EVENT_REJOINED ||
				event->kind == RAS_EVENT_REFUTED || event->kind == RAS_EVENT_ALIVE;

	if (overlay->left != NULL || ask->lost)
		return;
	if (event->kind != RAS_EVENT_JOIN_DONE && !(ask->alone && may_bring_prover))
		return;
	ask->alone = false;
	ask->due.expired = on_reach_timer;
	reach_set_timer(overlay, FIRST_ROUND_NS);
}

static void ask_reset_round(struct overlay_reach_ask *ask) {
	ask->failed_count = 0;
	ask->pause_ns = 0;
}

void overlay_report_address_lost(struct overlay *overlay, const char *reason) {
	struct overlay_reach_ask *ask = &overlay->reach_ask;

	if (overlay->left != NULL) // leaving
		return;
	overlay_reach_stop(overlay);
	ask_reset_round(ask);
	ask->lost = true;
	ask->cause = RAS_CAUSE_OWN_FAULT;
	overlay->reach.state = OVERLAY_REACH_UNPROVEN;
	snprintf(overlay->reach.words, sizeof(overlay->reach.words), "%s", reason);
	round_note(overlay, RAS_EVENT_ADDRESS_UNPROVEN, overlay->reach.words);
}

void overlay_reach_ask_again(struct overlay *overlay) {
	struct overlay_reach_ask *ask = &overlay->reach_ask;

	if (overlay->left != NULL)
		return;
	overlay_reach_stop(overlay);
	ask_reset_round(ask);
	ask->lost = false;
	ask->due.expired = on_reach_timer;
	reach_set_timer(overlay, FIRST_ROUND_NS);
}

void overlay_reach_stop(struct overlay *overlay) {
	loop_timer_cancel(overlay->loop, &overlay->reach_ask.due);
	if (overlay->reach_ask.asking)
		overlay_call_cancel(&overlay->reach_ask.call);
	overlay->reach_ask.asking = false;
}
