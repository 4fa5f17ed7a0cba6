// SPDX-License-Identifier: BSD-3-Clause
// MAINT node on|off: begins or ends maintenance. MAINTENANCE: the nodes in maintenance and the
// orders behind them.
#include "client/answers.h"
#include "client/command.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/order.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/escape.h>
#include <lib/parse.h>
#include <lib/show.h>
#include <records/maintenance.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define QUOTED_BYTES 96
#define FOR_MAX_S ((int64_t)(OVERLAY_MAINTENANCE_FOR_MAX_NS / RAS_NS_PER_SEC))

// Read "seconds user [reason]" after `on`. An agent of an earlier build gave nothing there.
static bool
order_parse(struct session *session, const char *rest, struct overlay_maintenance_order *order) {
	char seconds[24] = "0", user[sizeof(order->user)] = "-";
	struct parse_error error;
	int64_t for_s = 0;

	*order = (struct overlay_maintenance_order){.for_ns = RAS_NEVER, .uid = session->uid};
	if (*rest == '\0')
		return true;
	if (!command_word(&rest, seconds, sizeof(seconds)) ||
	    !command_word(&rest, user, sizeof(user)) || !escape_text_is_plain(user, strlen(user)) ||
	    parse_i64(seconds, strlen(seconds), 0, FOR_MAX_S, &error, &for_s) != 0) {
		session_fail(
			session,
			"MAINT node on takes a time in seconds, 0 to %" PRId64
			" (0: without end), and a user name of at most %zu bytes",
			FOR_MAX_S, sizeof(user) - 1
		);
		return false;
	}
	if (strlen(rest) >= sizeof(order->reason) || !escape_text_is_plain(rest, strlen(rest))) {
		session_fail(
			session,
			"the reason of MAINT is one line of UTF-8 text of at most %zu bytes",
			sizeof(order->reason) - 1
		);
		return false;
	}
	if (for_s > 0)
		order->for_ns = (uint64_t)for_s * RAS_NS_PER_SEC;
	if (strcmp(user, "-") != 0)
		memcpy(order->user, user, strlen(user));
	memcpy(order->reason, rest, strlen(rest));
	return true;
}

void answer_maint(struct session *session, const char *rest) {
	char word[8] = "", quoted[QUOTED_BYTES];
	struct overlay_maintenance_order order;
	struct order_target target;
	const char *after;
	struct ras_peer peer;
	bool on;
	int err;

	if (!names_parse_next(session, &rest, &peer))
		return;
	after = rest;
	command_word(&after, word, sizeof(word));
	on = strcasecmp(word, "on") == 0;
	if (!on && strcasecmp(rest, "off") != 0) {
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(session, "MAINT takes on or off after the node, not %s", quoted);
		return;
	}
	if (on && !order_parse(session, after, &order))
		return;
	order_target_init(&peer, &target);
	err = overlay_set_maintenance(session->server->overlay, target.id, on ? &order : NULL);
	if (err == -EOVERFLOW)
		session_fail(
			session,
			"a member claims that the maintenance of %s was switched %u times, which "
			"is the limit: `tocsin forget %s` after its agent has ended, and look for "
			"FORGED events",
			target.name, RAS_MAINT_VERSION_MAX, target.name
		);
	else if (err == -ENOSPC)
		session_fail(
			session,
			"%u nodes are in maintenance, which is the limit: end some first "
			"(`tocsin maint` lists them)",
			STATE_ORDERS_MAX
		);
	else
		order_finish(session, &target, on ? "maint on" : "maint off", err);
}

struct maintenances {
	struct listing listing;
	struct peer_list_row *rows;
};

static void maintenances_drop(void *work) {
	struct maintenances *maintenances = work;

	free(maintenances->rows);
	free(maintenances);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct maintenances *maintenances = work;
	char node[NAMES_TEXT_BYTES], since[SHOW_BYTES];
	struct overlay *overlay = session->server->overlay;
	struct overlay_maintenance_order order = {.for_ns = RAS_NEVER};
	struct maintenance_row row = {
		.node = node,
		.for_ns = RECORD_UNKNOWN,
		.left_ns = RECORD_UNKNOWN,
		.uid = RECORD_UNKNOWN,
	};
	struct ras_peer peer;

	if (!peer_list_find_peer(session_ras(session), &maintenances->rows[n], &peer) ||
	    !peer.maint)
		return json_null();
	names_format_record(peer.record, node);
	row.version = peer.maint_version;
	if (overlay_maintenance_find(overlay, &peer, &order, &row.for_ns)) {
		int64_t now_ns = overlay_realtime_ns(overlay, loop_now_ns(session->server->loop));

		show_time(now_ns - (int64_t)row.for_ns, since);
		row.since = since;
		if (order.for_ns != RAS_NEVER)
			row.left_ns = order.for_ns;
		if (order.uid != SESSION_NO_UID)
			row.uid = order.uid;
		row.user = order.user[0] != '\0' ? order.user : NULL;
		row.reason = order.reason[0] != '\0' ? order.reason : NULL;
	}
	return record_to_json(&maintenance_record, &row);
}

static const struct listing_ops ops = {.key = "maintenance", .row_json = row_json};

static bool is_in_maintenance(const struct ras_peer *peer, const void *ctx) {
	(void)ctx;
	return peer->maint;
}

void answer_maintenance(struct session *session, const char *rest) {
	const struct peer_list_filter wish = {.keep = is_in_maintenance};
	struct maintenances *maintenances = calloc(1, sizeof(*maintenances));

	(void)rest;
	if (!session_begin(session, listing_step, maintenances_drop, maintenances))
		return;
	maintenances->listing.ops = &ops;
	if (peer_list_make(
		    session_ras(session), &wish, &maintenances->rows, &maintenances->listing.count
	    ) < 0) {
		session_end(session);
		session_fail(session, "out of memory");
	}
}
