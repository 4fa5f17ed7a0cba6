// SPDX-License-Identifier: BSD-3-Clause
// Logs what the relay dropped or rejected, one line per reason every 10 s at most: the latest
// message, and the number since the last line.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>

#define INCIDENTS_INTERVAL_NS (10 * RAS_NS_PER_SEC)

static struct log_field name_field(const struct overlay *overlay, const char *key, uint64_t id) {
	struct ras_peer peer;

	if (id == 0)
		return log_str(key, "-");
	if (ras_peer_find(overlay->ras, id, &peer) != 0)
		return log_u64(key, id);
	return log_bytes(key, peer.record->name, peer.record->name_length);
}

static void incidents_log(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, incidents);

	for (int n = 0; n < RAS_RELAY_REASON_COUNT; n++) {
		enum ras_relay_reason reason = (enum ras_relay_reason)n;
		const struct ras_relay_incident *incident =
			ras_relay_incident(overlay->ras, reason);
		uint64_t fresh;

		// Messages that end for these reasons are normal work of the relay.
		if (incident == NULL || reason == RAS_RELAY_REASON_NONE ||
		    reason == RAS_RELAY_DUPLICATE || reason == RAS_RELAY_LATE)
			continue;
		fresh = incident->count - overlay->incidents_told[n];
		overlay->incidents_told[n] = incident->count;
		if (fresh == 0)
			continue;
		log_event(
			LOG_LEVEL_INFO, "relay_refused",
			log_str("reason", ras_relay_reason_name(reason)), log_u64("count", fresh),
			log_str("class", ras_relay_class_name(incident->class)),
			name_field(overlay, "source", incident->source),
			name_field(overlay, "destination", incident->destination),
			name_field(overlay, "from", incident->from),
			name_field(overlay, "hop", incident->hop)
		);
	}
	if (loop_timer_set(overlay->loop, timer, now_ns + INCIDENTS_INTERVAL_NS) != 0)
		log_event(LOG_LEVEL_WARN, "relay_unwatched", log_errno("error", ENOMEM));
}

void overlay_incidents_start(struct overlay *overlay) {
	overlay->incidents.expired = incidents_log;
	incidents_log(&overlay->incidents, loop_now_ns(overlay->loop));
}

void overlay_incidents_stop(struct overlay *overlay) {
	loop_timer_cancel(overlay->loop, &overlay->incidents);
}
