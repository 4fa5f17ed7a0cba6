// SPDX-License-Identifier: BSD-3-Clause
// An echo is an empty message to a port that every agent serves: its acknowledgement is the answer.
#include "overlay/inside.h"

#include <errno.h>

static void unlink_ping(struct overlay_ping *ping) {
	struct overlay_ping **at = &ping->overlay->pings;

	while (*at != NULL && *at != ping)
		at = &(*at)->next;
	if (*at != NULL)
		*at = ping->next;
}

int overlay_ping_start(
	struct overlay *overlay, uint64_t node, uint64_t timeout_ns, struct overlay_ping *ping
) {
	struct ras_relay_message message = {
		.destination = node,
		.class = RAS_RELAY_CONTROL,
		.flags = RAS_RELAY_REPORT,
		.flow = OVERLAY_PORT_PING,
		.port = OVERLAY_PORT_PING,
		.life_ns = timeout_ns < RAS_RELAY_LIFE_MAX_NS ? timeout_ns : RAS_RELAY_LIFE_MAX_NS,
	};
	int err =
		ras_relay_send(overlay->ras, overlay_now_ns(overlay), &message, &ping->message_id);

	if (err != 0)
		return err;
	ping->overlay = overlay;
	ping->next = overlay->pings;
	overlay->pings = ping;
	return 0;
}

void overlay_ping_cancel(struct overlay_ping *ping) {
	struct overlay *overlay = ping->overlay;

	if (overlay == NULL)
		return;
	unlink_ping(ping);
	ping->overlay = NULL;
	(void)ras_relay_cancel(overlay->ras, overlay_now_ns(overlay), ping->message_id);
}

bool overlay_ping_report(struct overlay *overlay, const struct ras_relay_report *report) {
	for (struct overlay_ping *ping = overlay->pings; ping != NULL; ping = ping->next) {
		if (ping->message_id != report->message_id)
			continue;
		unlink_ping(ping);
		ping->overlay = NULL;
		ping->ended(ping, report);
		return true;
	}
	return false;
}

void overlay_ping_fini(struct overlay *overlay) {
	while (overlay->pings != NULL)
		overlay_ping_cancel(overlay->pings);
}
