// SPDX-License-Identifier: BSD-3-Clause
// PING node: sends an echo over the relay and reports its round trip.
#include "client/answers.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PING_TIMEOUT_NS (5 * RAS_NS_PER_SEC)

struct ping {
	struct overlay_ping echo;
	struct session *session;
	bool ended;
	struct ras_relay_report report;
};

static void ping_drop(void *work) {
	struct ping *ping = work;

	if (!ping->ended)
		overlay_ping_cancel(&ping->echo);
	free(ping);
}

static bool ping_step(struct session *session) {
	const struct ping *ping = session->work;
	const struct ras_relay_report *report = &ping->report;
	char name[NAMES_TEXT_BYTES], refuser[NAMES_TEXT_BYTES], waited[SHOW_BYTES];

	names_format_id(session_ras(session), report->destination, name);
	show_duration(report->round_trip_ns, waited);
	if (report->outcome == RAS_RELAY_OUTCOME_DELIVERED) {
		session_json(
			session, json_pack(
					 "{s:o,s:I,s:i,s:i}", "node", safe_string_json(name),
					 "round_trip_ns", (json_int_t)report->round_trip_ns, "hops",
					 (int)report->hops, "tries", (int)report->tries
				 )
		);
	} else if (report->refuser == 0) {
		session_fail(
			session, "%s did not answer: %s, %u tries in %s", name,
			ras_relay_reason_name(report->reason), report->tries, waited
		);
	} else {
		names_format_id(session_ras(session), report->refuser, refuser);
		session_fail(
			session, "%s was not reached: %s reports %s after %u hops, %u tries in %s",
			name, refuser, ras_relay_reason_name(report->reason), report->hops,
			report->tries, waited
		);
	}
	return true;
}

static void on_end(struct overlay_ping *echo, const struct ras_relay_report *report) {
	struct ping *ping = (struct ping *)echo;

	ping->ended = true;
	ping->report = *report;
	session_continue(ping->session, ping_step);
}

void answer_ping(struct session *session, const char *rest) {
	char name[NAMES_TEXT_BYTES];
	struct ras_peer peer;
	struct ping *ping;
	int err;

	if (!names_parse_single(session, rest, &peer) || !session_charge_question(session))
		return;
	ping = calloc(1, sizeof(*ping));
	if (!session_begin(session, NULL, ping_drop, ping))
		return;
	ping->session = session;
	ping->echo.ended = on_end;
	err = overlay_ping_start(
		session->server->overlay, peer.record->id,
		session_timeout_ns(session, PING_TIMEOUT_NS), &ping->echo
	);
	if (err == 0)
		return;
	ping->ended = true;
	session_end(session);
	names_format_record(peer.record, name);
	if (err == -EHOSTDOWN)
		session_fail(
			session, "%s %s %s and cannot answer: `tocsin why %s` tells more", name,
			peer.state == RAS_LEFT ? "has" : "is", ras_state_name(peer.state), name
		);
	else if (err == -EAGAIN)
		session_fail(session, "too many messages wait for delivery, try again");
	else
		session_fail(session, "%s: %s", name, strerrordesc_np(-err));
}
