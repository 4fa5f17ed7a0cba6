// SPDX-License-Identifier: BSD-3-Clause
// Explains why this node is alone, and which strangers were rejected. The log reports both when
// they happen; this file answers questions about them.
#include "overlay/inside.h"

#include <stdio.h>

void overlay_set_join_names_error(struct overlay *overlay, const char *words) {
	snprintf(overlay->join_names, sizeof(overlay->join_names), "%s", words);
}

// Describe the last failed connection. A node has one address and reaches no other family, so both
// addresses are named. The host of an unknown agent may not be ours, so an exit is described as a
// refusal.
static void
failed_connect_words(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]) {
	const struct transport_last_failures *trouble = transport_last_failures(overlay->transport);
	struct sock_addr own = overlay_address(overlay);
	char address[SOCK_ADDR_TEXT_BYTES], own_address[SOCK_ADDR_TEXT_BYTES];
	enum ras_cause cause =
		trouble->cause == RAS_CAUSE_EXITED ? RAS_CAUSE_REFUSED : trouble->cause;

	sock_addr_format(&trouble->failed, address);
	sock_addr_format(&own, own_address);
	if (trouble->failed.family != own.family)
		snprintf(
			ret_words, STATE_TEXT_BYTES,
			"%s cannot be reached from this node's address %s: it is of another family",
			address, own_address
		);
	else if (trouble->cause == RAS_CAUSE_PROOF)
		snprintf(
			ret_words, STATE_TEXT_BYTES,
			"this node has another key or cluster name than the agent at %s", address
		);
	else
		snprintf(ret_words, STATE_TEXT_BYTES, "%s: %s", address, ras_cause_text(cause));
}

bool overlay_join_problem(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]) {
	const struct transport_last_failures *trouble = transport_last_failures(overlay->transport);
	char address[SOCK_ADDR_TEXT_BYTES];
	struct ras_view view;

	ras_view(overlay->ras, &view);
	if (overlay_is_alone(overlay) && trouble->cause != RAS_CAUSE_PROOF) {
		overlay_alone_words(overlay, ret_words);
		return true;
	}
	// A node that is the first join address founds a ring, even if the other nodes reject it.
	if (view.joined && (view.alive > 1 || trouble->cause != RAS_CAUSE_PROOF))
		return false;
	if (!view.joined && overlay->join_names[0] != '\0') {
		snprintf(
			ret_words, STATE_TEXT_BYTES, "no join address can be used: %.*s",
			STATE_TEXT_BYTES - 32, overlay->join_names
		);
		return true;
	}
	if (!view.joined && overlay->remember.name_conflict_at.family != SOCK_ADDR_NONE) {
		sock_addr_format(&overlay->remember.name_conflict_at, address);
		snprintf(
			ret_words, STATE_TEXT_BYTES,
			"another live agent holds this node's name, as the agent at %s reports",
			address
		);
		return true;
	}
	if (trouble->failed.family == SOCK_ADDR_NONE)
		return false;
	failed_connect_words(overlay, ret_words);
	return true;
}

bool overlay_strangers(const struct overlay *overlay, struct overlay_strangers *ret_strangers) {
	const struct transport_last_failures *trouble = transport_last_failures(overlay->transport);
	uint64_t now_ns = loop_now_ns(overlay->loop);

	if (trouble->strangers == 0 || now_ns - trouble->stranger_ns > TRANSPORT_STRANGERS_NS)
		return false;
	*ret_strangers = (struct overlay_strangers
	){trouble->strangers, trouble->stranger, trouble->stranger_ns};
	return true;
}
