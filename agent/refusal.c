// SPDX-License-Identifier: BSD-3-Clause
// Handles a refusal by the cluster: logs who refused and why, and exits with a special status. A
// retry cannot succeed, so tocsind.service tells systemd not to restart the agent.
#include "agent.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/show.h>

#include <stdio.h>

#define REASON_BYTES 256

static void refusal_explain(
	const struct ras_event *event, struct ras_versions ours, char text[static REASON_BYTES]
) {
	struct ras_versions theirs = ras_versions_unpack(event->value);
	char theirs_text[SHOW_BYTES], ours_text[SHOW_BYTES];

	switch (event->cause) {
	case RAS_CAUSE_CONFLICT:
		snprintf(
			text, REASON_BYTES,
			"another live agent has this name; give this agent another [node] name, or stop the other agent"
		);
		break;
	case RAS_CAUSE_CLUSTER:
		snprintf(
			text, REASON_BYTES,
			"the cluster there has another name; see [overlay] cluster and join"
		);
		break;
	default:
		show_range(theirs.min, theirs.max, theirs_text);
		show_range(ours.min, ours.max, ours_text);
		snprintf(
			text, REASON_BYTES,
			"the other agent speaks version %s of the protocol, this agent %s; upgrade through a release that speaks both",
			theirs_text, ours_text
		);
		break;
	}
}

// Record the refusal. A listener must not call back into the overlay, so the agent leaves at the
// end of the turn.
static void on_join_refused(struct overlay_listener *listener, const struct ras_event *event) {
	struct agent *agent = container_of(listener, struct agent, refusals);
	const struct ras *ras = overlay_ras(agent->overlay);
	struct sock_addr own = overlay_address(agent->overlay);
	char own_text[SOCK_ADDR_TEXT_BYTES], by_text[SOCK_ADDR_TEXT_BYTES] = "unknown";
	char reason[REASON_BYTES];
	struct ras_view view;
	struct ras_peer self;

	if (event->kind != RAS_EVENT_JOIN_REFUSED || agent->refusal != AGENT_EXIT_DONE ||
	    ras_peer_find(ras, ras_self_id(ras), &self) != 0)
		return;
	ras_view(ras, &view);
	sock_addr_format(&own, own_text);
	if (view.refused_by.family != SOCK_ADDR_NONE)
		sock_addr_format(&view.refused_by, by_text);
	refusal_explain(event, view.versions, reason);
	log_event(
		LOG_LEVEL_ERROR, "refused",
		log_bytes("node", self.record->name, self.record->name_length),
		log_str("address", own_text), log_str("by", by_text),
		log_str("cause", ras_cause_name(event->cause)), log_str("reason", reason)
	);
	agent->refusal =
		event->cause == RAS_CAUSE_CONFLICT ? AGENT_EXIT_CONFLICT : AGENT_EXIT_REFUSED;
	loop_defer(agent->loop, &agent->give_up);
}

static void give_up(struct loop_job *job) {
	struct agent *agent = container_of(job, struct agent, give_up);

	if (!agent->leaving)
		agent_leave(agent, agent->refusal);
}

int refusal_start(struct agent *agent) {
	agent->refusals.event = on_join_refused;
	agent->give_up.run = give_up;
	overlay_listen(agent->overlay, &agent->refusals);
	return 0;
}

void refusal_stop(struct agent *agent) {
	overlay_unlisten(agent->overlay, &agent->refusals);
	loop_undefer(agent->loop, &agent->give_up);
}
