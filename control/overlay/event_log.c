// SPDX-License-Identifier: BSD-3-Clause
// Logs the events of the overlay: events of peers always, events of links at debug level. A
// tracepoint shows every link event.
#include "overlay/inside.h"

#include <lib/log.h>
#include <lib/parse.h>
#include <lib/show.h>
#include <lib/tracepoint.h>
#include <verdict/verdict.h>

#include <stdio.h>
#include <string.h>

#define OBSERVERS_BYTES (RAS_OBSERVERS_MAX * (RAS_NAME_MAX + 1) + 1)

enum value_meaning {
	VALUE_NOTHING,
	VALUE_TIME,
	VALUE_COUNT,
};

struct log_row {
	enum log_level level;
	enum value_meaning value;
};

static const struct log_row log_rows[RAS_EVENT_KIND_COUNT] = {
	[RAS_EVENT_JOINED] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_ALIVE] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_SUSPECT] = {LOG_LEVEL_INFO, VALUE_TIME},
	[RAS_EVENT_REFUTED] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_UNREACHABLE] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_DEAD] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_LEFT] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_REJOINED] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_FORGOTTEN] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_CONFLICT] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_MAINT] = {LOG_LEVEL_INFO, VALUE_COUNT},
	[RAS_EVENT_LINK_UP] = {LOG_LEVEL_DEBUG, VALUE_TIME},
	[RAS_EVENT_LINK_RECOVERED] = {LOG_LEVEL_DEBUG, VALUE_TIME},
	[RAS_EVENT_LINK_DELAYED] = {LOG_LEVEL_DEBUG, VALUE_TIME},
	[RAS_EVENT_LINK_DOWN] = {LOG_LEVEL_DEBUG, VALUE_NOTHING},
	[RAS_EVENT_LINK_FALLBACK] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_LINK_STUCK] = {LOG_LEVEL_WARN, VALUE_TIME},
	[RAS_EVENT_BRAKE_ON] = {LOG_LEVEL_WARN, VALUE_COUNT},
	[RAS_EVENT_BRAKE_OFF] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_PAUSED] = {LOG_LEVEL_WARN, VALUE_TIME},
	[RAS_EVENT_JOIN_WAITING] = {LOG_LEVEL_WARN, VALUE_COUNT},
	[RAS_EVENT_JOIN_DONE] = {LOG_LEVEL_INFO, VALUE_TIME},
	[RAS_EVENT_JOIN_REFUSED] = {LOG_LEVEL_ERROR, VALUE_NOTHING},
	[RAS_EVENT_JOIN_DROPPED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_DECLARED_DEAD] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_CLOCK_OFFSET] = {LOG_LEVEL_WARN, VALUE_TIME},
	[RAS_EVENT_CLOCK_AGREES] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_DIVERGED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_FLAPPING] = {LOG_LEVEL_WARN, VALUE_COUNT},
	[RAS_EVENT_ADDRESS_CHANGED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_KEY_CHANGED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_KEY_REFUSED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_FORGED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_REPORTED] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_ADDRESS_UNPROVEN] = {LOG_LEVEL_ERROR, VALUE_NOTHING},
	[RAS_EVENT_ADDRESS_PROVEN] = {LOG_LEVEL_INFO, VALUE_NOTHING},
	[RAS_EVENT_HOST_SHARED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_KEY_SHARED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_ADDRESS_SHARED] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_RAILS_CHANGED] = {LOG_LEVEL_INFO, VALUE_COUNT},
	[RAS_EVENT_VERDICT] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_OTHER_VERSION] = {LOG_LEVEL_WARN, VALUE_NOTHING},
	[RAS_EVENT_ADDRESS_OTHER] = {LOG_LEVEL_WARN, VALUE_NOTHING},
};

static void
observer_names(const struct overlay *overlay, const struct ras_event *event, char *names) {
	size_t used = 0;

	names[0] = '\0';
	for (uint32_t n = 0; n < event->observer_count; n++) {
		struct ras_peer peer;

		if (ras_peer_find(overlay->ras, event->observers[n], &peer) != 0)
			continue;
		used += (size_t)snprintf(
			names + used, OBSERVERS_BYTES - used, "%s%.*s", used > 0 ? "," : "",
			(int)peer.record->name_length, peer.record->name
		);
	}
}

// Format the protocol versions of the peer and of this node.
static void event_format_versions(
	const struct overlay *overlay,
	const struct ras_event *event,
	char theirs_text[static SHOW_BYTES],
	char ours_text[static SHOW_BYTES]
) {
	struct ras_versions theirs = ras_versions_unpack(event->value);
	struct ras_view view;

	ras_view(overlay->ras, &view);
	show_range(theirs.min, theirs.max, theirs_text);
	show_range(view.versions.min, view.versions.max, ours_text);
}

// Find the peer's address, for events after which an operator asks for it.
static bool event_find_address(
	const struct overlay *overlay,
	const struct ras_event *event,
	char text[static SOCK_ADDR_TEXT_BYTES]
) {
	bool wanted = event->kind == RAS_EVENT_JOINED || event->kind == RAS_EVENT_REJOINED ||
		      event->kind == RAS_EVENT_CONFLICT;
	struct ras_peer peer;

	if (!wanted || ras_peer_find(overlay->ras, event->peer, &peer) != 0)
		return false;
	sock_addr_format(&peer.record->address, text);
	return true;
}

// A verdict that is absent, good or unknown needs no warning: the bad one before it was logged.
static enum log_level event_log_level(const struct ras_event *event) {
	if (event->kind == RAS_EVENT_VERDICT &&
	    (event->value <= VERDICT_HEALTHY || event->value == VERDICT_UNKNOWN))
		return LOG_LEVEL_INFO;
	return log_rows[event->kind].level;
}

// Leave out keys without a value, because people read these lines first.
void overlay_log_event(const struct overlay *overlay, const struct ras_event *event) {
	const struct log_row *log_row = &log_rows[event->kind];
	const char *text = overlay_note_text(overlay, event);
	struct log_field fields[12] = {0};
	char observers[OBSERVERS_BYTES];
	char address[SOCK_ADDR_TEXT_BYTES], other[SOCK_ADDR_TEXT_BYTES];
	char after[PARSE_TEXT_BYTES], theirs[SHOW_BYTES], ours[SHOW_BYTES];
	// Each kind has its own rate limit: a hundred joins must not suppress one death.
	static struct log_site sites[RAS_EVENT_KIND_COUNT];
	size_t used = 0;

	if (event->kind >= RAS_EVENT_LINK_UP && event->kind <= RAS_EVENT_LINK_STUCK)
		TRACEPOINT(
			link_state, event->peer, event->name, event->kind, event->cause,
			event->value
		);
	if (!log_enabled(event_log_level(event)))
		return;
	fields[used++] = log_str("event", ras_event_name(event->kind));
	if (event->name[0] != '\0')
		fields[used++] = log_str("peer", event->name);
	if (event_find_address(overlay, event, address))
		fields[used++] = log_str("address", address);
	if (event->other.family != SOCK_ADDR_NONE) {
		overlay_other_address_words(event, other);
		fields[used++] = log_str("other", other);
	}
	if (event->cause != RAS_CAUSE_NONE)
		fields[used++] = log_str("cause", ras_cause_name(event->cause));
	if (log_row->value == VALUE_TIME) {
		format_duration_ns(event->value - event->value % RAS_NS_PER_MS, after);
		fields[used++] = log_str("after", after);
	} else if (log_row->value == VALUE_COUNT) {
		fields[used++] = log_u64("count", event->value);
	}
	if (event->cause == RAS_CAUSE_VERSION) {
		event_format_versions(overlay, event, theirs, ours);
		fields[used++] = log_str("theirs", theirs);
		fields[used++] = log_str("ours", ours);
	}
	observer_names(overlay, event, observers);
	if (observers[0] != '\0')
		fields[used++] = log_str("observers", observers);
	if (text != NULL)
		fields[used++] = log_str("text", text);
	log_write(&sites[event->kind], event_log_level(event), "overlay", fields);
}
