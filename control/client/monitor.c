// SPDX-License-Identifier: BSD-3-Clause
// MONITOR: writes events for clients that follow them, and counts what they miss.
#include "client/monitor.h"

#include "client/answers.h"
#include "client/event_text.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MONITOR_READ 64

struct alias {
	enum session_group group;
	const char *name; // NCCL's name; NULL: use Tocsin's name
};

// The names that NCCL's clients know. A node that leaves is a lifecycle event, with a name that
// raises no alarm.
static const struct alias aliases[RAS_EVENT_KIND_COUNT] = {
	[RAS_EVENT_JOINED] = {SESSION_LIFECYCLE, "PEER_NEW"},
	[RAS_EVENT_REJOINED] = {SESSION_LIFECYCLE, "PEER_NEW"},
	[RAS_EVENT_DEAD] = {SESSION_LIFECYCLE, "PEER_DEAD"},
	[RAS_EVENT_LEFT] = {SESSION_LIFECYCLE, "PEER_DISCONNECTED"},
	[RAS_EVENT_ALIVE] = {SESSION_TRACE, "PEER_RECOVERED"},
	[RAS_EVENT_REFUTED] = {SESSION_TRACE, "PEER_RECOVERED"},
	[RAS_EVENT_SUSPECT] = {SESSION_TRACE, "PEER_UNRESPONSIVE"},
	[RAS_EVENT_UNREACHABLE] = {SESSION_TRACE, "PEER_UNRESPONSIVE"},
	[RAS_EVENT_LINK_UP] = {SESSION_TRACE, "PEER_CONNECTED"},
	[RAS_EVENT_LINK_RECOVERED] = {SESSION_TRACE, "PEER_RECOVERED"},
	[RAS_EVENT_LINK_DELAYED] = {SESSION_TRACE, "PEER_UNRESPONSIVE"},
	[RAS_EVENT_LINK_DOWN] = {SESSION_TRACE, "PEER_DISCONNECTED"},
	[RAS_EVENT_LINK_FALLBACK] = {SESSION_TRACE, "PEER_CONNECTING"},
	[RAS_EVENT_LINK_STUCK] = {SESSION_TRACE, "PEER_SEND_STUCK"},
};

static struct alias event_alias(const struct ras_event *event) {
	struct alias alias = aliases[event->kind];

	if (alias.name == NULL)
		return (struct alias){SESSION_TRACE, ras_event_name(event->kind)};
	if (event->kind != RAS_EVENT_LINK_DOWN)
		return alias;
	switch (event->cause) {
	case RAS_CAUSE_SILENT:
		alias.name = "PEER_KEEPALIVE_TIMEOUT";
		break;
	case RAS_CAUSE_TIMEOUT:
		alias.name = "PEER_INIT_TIMEOUT";
		break;
	case RAS_CAUSE_STUCK:
		alias.name = "PEER_SEND_STUCK";
		break;
	case RAS_CAUSE_REFUSED:
		alias.name = "PEER_RETRY";
		break;
	case RAS_CAUSE_DEATH:
		alias.name = "PEER_TIMEOUT_DEAD";
		break;
	default: // PEER_DISCONNECTED
		break;
	}
	return alias;
}

// Write the details of an event: NCCL's words for its own events, otherwise the words of EVENTS.
static void event_details_format(
	const struct overlay *overlay,
	const struct ras_event *event,
	char text[static EVENT_TEXT_BYTES]
) {
	switch (event->kind) {
	case RAS_EVENT_JOINED:
		text[0] = '\0';
		return;
	case RAS_EVENT_LINK_UP:
		snprintf(text, EVENT_TEXT_BYTES, "connection established successfully");
		return;
	case RAS_EVENT_LINK_RECOVERED:
		snprintf(text, EVENT_TEXT_BYTES, "peer responding again");
		return;
	case RAS_EVENT_LINK_DELAYED:
		snprintf(
			text, EVENT_TEXT_BYTES,
			"peer not responding for %" PRIu64 "s (keepalive warning)",
			event->value / RAS_NS_PER_SEC
		);
		return;
	default:
		event_text_detail(
			overlay_ras(overlay), event, overlay_event_text(overlay, event->sequence),
			text
		);
	}
}

static void print_event_text(
	struct session *session, const struct ras_event *event, const struct alias *alias
) {
	struct overlay *overlay = session->server->overlay;
	char when[SHOW_BYTES], details[EVENT_TEXT_BYTES], name[NAMES_TEXT_BYTES];
	char host[SOCK_ADDR_TEXT_BYTES];
	struct text *out = &session->out;
	struct ras_peer_info info;
	struct ras_peer peer;

	show_local_time(overlay_realtime_ns(overlay, event->at_ns), when);
	event_details_format(overlay, event, details);
	text_print(out, "[%s] %s: ", when, alias->name);
	if (event->peer != 0 && ras_peer_find(overlay_ras(overlay), event->peer, &peer) == 0) {
		ras_record_info(peer.record, &info);
		sock_addr_format_host(&info.addresses[0], host);
		names_sanitize_name(info.name, strlen(info.name), name);
		text_print(out, "Process %u on node %s (%s)", info.pid, host, name);
		for (uint32_t n = 0; n < info.device_count; n++) {
			names_sanitize_name(
				info.devices[n].name, strlen(info.devices[n].name), name
			);
			text_print(
				out, "%s%s",
				n > 0			? ","
				: info.device_count > 1 ? " managing devices "
							: " managing device ",
				name
			);
		}
		text_add(out, " ", 1);
	} else if (event->name[0] != '\0') {
		names_sanitize_name(event->name, strlen(event->name), name);
		text_print(out, "%s ", name);
	}
	text_print(out, "%s\n", details);
}

static void add_pretty(struct session *session, json_t *object) {
	char *dumped = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;

	if (dumped != NULL)
		text_print(&session->out, "%s\n", dumped);
	else
		session->out.failed = true;
	free(dumped);
	json_decref(object);
}

static void print_event_json(
	struct session *session, const struct ras_event *event, const struct alias *alias
) {
	struct overlay *overlay = session->server->overlay;
	char when[SHOW_BYTES], details[EVENT_TEXT_BYTES], host[SOCK_ADDR_TEXT_BYTES];
	json_t *object, *devices, *known = NULL;
	struct ras_peer_info info;
	struct ras_peer peer;

	show_local_time(overlay_realtime_ns(overlay, event->at_ns), when);
	event_details_format(overlay, event, details);
	object = json_pack(
		"{s:s,s:s,s:s}", "timestamp", when, "group",
		alias->group == SESSION_LIFECYCLE ? "LIFECYCLE" : "TRACE", "event", alias->name
	);
	if (event->peer != 0 && ras_peer_find(overlay_ras(overlay), event->peer, &peer) == 0) {
		devices = json_array();
		ras_record_info(peer.record, &info);
		sock_addr_format_host(&info.addresses[0], host);
		for (uint32_t n = 0; n < info.device_count; n++)
			json_array_append_new(devices, safe_string_json(info.devices[n].name));
		known = json_pack(
			"{s:s,s:i,s:[],s:[],s:o,s:o}", "host", host, "pid", (int)info.pid,
			"cuda_devs", "nvml_devs", "name", safe_string_json(info.name), "devices",
			devices
		);
	} else if (event->peer != 0) {
		known = json_pack("{s:o}", "name", safe_string_json(event->name));
	}
	if (event->peer != 0)
		json_object_set_new(object, "peer", known);
	json_object_set_new(object, "details", safe_string_json(details));
	add_pretty(session, object);
}

static void print_lost_events(struct session *session, uint64_t lost) {
	struct overlay *overlay = session->server->overlay;
	char when[SHOW_BYTES], details[64];

	session->monitor_lost += lost;
	session->server->counters.monitor_lost += lost;
	show_local_time(overlay_realtime_ns(overlay, overlay_now_ns(overlay)), when);
	snprintf(
		details, sizeof(details), "%" PRIu64 " events lost: read faster, or ask EVENTS",
		lost
	);
	if (session->format != SESSION_FORMAT_JSON) {
		text_print(&session->out, "[%s] EVENTS_LOST: %s\n", when, details);
		return;
	}
	add_pretty(
		session,
		json_pack(
			"{s:s,s:s,s:s,s:s,s:I}", "timestamp", when, "group", "LIFECYCLE", "event",
			"EVENTS_LOST", "details", details, "lost", (json_int_t)lost
		)
	);
}

bool monitor_has_events(const struct session *session) {
	struct ras_event next;
	uint64_t oldest;

	return session->monitor != 0 &&
	       ras_history(session_ras(session), session->monitor_next, &next, 1, &oldest) > 0;
}

void monitor_write_events(struct session *session) {
	struct ras_event read[MONITOR_READ];
	uint64_t oldest;
	uint32_t count;

	if (session->monitor == 0 || text_size(&session->out) > 0)
		return;
	count = ras_history(
		session_ras(session), session->monitor_next, read, MONITOR_READ, &oldest
	);
	if (oldest > session->monitor_next) {
		print_lost_events(session, oldest - session->monitor_next);
		session->monitor_next = oldest;
	}
	for (uint32_t n = 0; n < count; n++) {
		struct alias alias = event_alias(&read[n]);

		session->monitor_next = read[n].sequence + 1;
		if ((session->monitor & alias.group) == 0)
			continue;
		session->server->counters.monitor_events++;
		if (session->format == SESSION_FORMAT_JSON)
			print_event_json(session, &read[n], &alias);
		else
			print_event_text(session, &read[n], &alias);
	}
}

// Parse one token between commas, blanks included.
static bool read_group(const char *token, size_t length, uint32_t *groups) {
	static const struct {
		const char *name;
		uint32_t group;
	} known[] = {
		{"lifecycle", SESSION_LIFECYCLE},
		{"trace", SESSION_TRACE},
		{"all", SESSION_ALL},
	};

	for (size_t n = 0; n < sizeof(known) / sizeof(known[0]); n++) {
		if (strlen(known[n].name) == length &&
		    strncasecmp(token, known[n].name, length) == 0) {
			*groups |= known[n].group;
			return true;
		}
	}
	return false;
}

void answer_monitor(struct session *session, const char *rest) {
	uint32_t groups = 0;
	uint64_t end, oldest = 1;

	rest += strspn(rest, " ");
	while (*rest != '\0') {
		size_t length = strcspn(rest, ",");

		if (length > 0 && !read_group(rest, length, &groups)) {
			text_print(
				&session->out, "ERROR: Invalid event group '%.*s'\n", (int)length,
				rest
			);
			return;
		}
		rest += length;
		rest += strspn(rest, ",");
	}
	if (session->monitor == 0) {
		end = event_history_end(session_ras(session), &oldest);
		session->monitor_next = end > oldest ? end : oldest;
	}
	session->monitor = groups != 0 ? groups : SESSION_LIFECYCLE;
	text_print(&session->out, "OK\n");
}
