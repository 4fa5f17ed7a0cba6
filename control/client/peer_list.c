// SPDX-License-Identifier: BSD-3-Clause
// Lists the members for a client, worst first.
#include "client/peer_list.h"

#include "client/names.h"
#include "client/server.h"

#include <control/finding.h>
#include <lib/escape.h>
#include <lib/moment.h>
#include <lib/parse.h>
#include <lib/show.h>
#include <records/peers.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sort entry. The record is valid until the next input of the core.
struct entry {
	const struct ras_record *record;
	uint32_t slot;
	uint32_t badness;
};

static uint32_t badness_of_state(const struct ras_peer *peer, const void *ctx) {
	static const uint32_t badness[] = {
		[RAS_DEAD] = 5,	 [RAS_UNREACHABLE] = 4, [RAS_SUSPECT] = 3,
		[RAS_ALIVE] = 2, [RAS_LEFT] = 1,	[RAS_UNKNOWN] = 0,
	};

	(void)ctx;
	return badness[peer->state];
}

static void name_terminate(const struct ras_record *record, char name[static RAS_NAME_MAX + 1]) {
	memcpy(name, record->name, record->name_length);
	name[record->name_length] = '\0';
}

static int rows_compare(const void *left, const void *right) {
	const struct entry *a = left;
	const struct entry *b = right;
	char name_a[RAS_NAME_MAX + 1], name_b[RAS_NAME_MAX + 1];

	if (a->badness != b->badness)
		return a->badness > b->badness ? -1 : 1;
	name_terminate(a->record, name_a);
	name_terminate(b->record, name_b);
	return strverscmp(name_a, name_b); // sorts n2 before n10
}

int peer_list_make(
	const struct ras *ras,
	const struct peer_list_filter *wish,
	struct peer_list_row **ret_rows,
	uint32_t *ret_count
) {
	uint32_t (*badness)(const struct ras_peer *, const void *) =
		wish->badness != NULL ? wish->badness : badness_of_state;
	struct entry *entries;
	struct peer_list_row *rows;
	struct ras_peer peer;
	struct ras_view view;
	uint32_t count = 0;

	ras_view(ras, &view);
	entries = calloc((size_t)view.slots_max + 1, sizeof(*entries));
	rows = calloc((size_t)view.slots_max + 1, sizeof(*rows));
	if (entries == NULL || rows == NULL) {
		free(entries);
		free(rows);
		return -ENOMEM;
	}
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) == 0 &&
		    (wish->keep == NULL || wish->keep(&peer, wish->ctx)))
			entries[count++] =
				(struct entry){peer.record, slot, badness(&peer, wish->ctx)};
	}
	qsort(entries, count, sizeof(*entries), rows_compare);
	for (uint32_t n = 0; n < count; n++)
		rows[n] = (struct peer_list_row){entries[n].record->id, entries[n].slot};
	free(entries);
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

bool peer_list_find_peer(
	const struct ras *ras, const struct peer_list_row *row, struct ras_peer *ret_peer
) {
	struct ras_peer peer;

	if (ras_peer_at(ras, row->slot, &peer) < 0 || peer.record->id != row->id)
		return false;
	*ret_peer = peer;
	return true;
}

uint64_t time_age_ns(struct session *session, uint64_t since_ns) {
	uint64_t now_ns = overlay_now_ns(session->server->overlay);

	return now_ns > since_ns ? now_ns - since_ns : 0;
}

uint64_t time_for_ns(struct session *session, uint64_t since_ns) {
	return since_ns != 0 ? time_age_ns(session, since_ns) : RECORD_UNKNOWN;
}

const char *time_text(struct session *session, uint64_t at_ns, char text[static SHOW_BYTES]) {
	show_time(overlay_realtime_ns(session->server->overlay, at_ns), text);
	return text;
}

bool time_parse(struct session *session, const char *text, size_t size, int64_t *ret_ns) {
	const struct overlay *overlay = session->server->overlay;
	int64_t now_ns = overlay_realtime_ns(overlay, overlay_now_ns(overlay));
	uint64_t ago_ns;

	return (text[0] == '@' || parse_duration_ns(text, size, 1, INT64_MAX, NULL, &ago_ns) == 0
	       ) &&
	       moment_parse(text, size, now_ns, NULL, ret_ns) == 0;
}

// Return a name as a JSON string. A name from another agent, or a text cut within a character, may
// not be valid UTF-8; it is quoted as in error messages.
json_t *safe_string_json(const char *name) {
	char quoted[4 * CLIENT_LINE_BYTES_MAX];
	json_t *string = json_string(name);

	if (string != NULL)
		return string;
	escape_quote(name, strlen(name), quoted, sizeof(quoted));
	return json_string(quoted);
}

json_t *node_names_json(const struct ras *ras, const uint64_t *ids, uint32_t count, uint32_t max) {
	json_t *array = json_array();
	char name[NAMES_TEXT_BYTES];

	for (uint32_t n = 0; n < count && n < max; n++) {
		names_format_id(ras, ids[n], name);
		json_array_append_new(array, safe_string_json(name));
	}
	return array;
}

json_t *peer_list_json(struct session *session, const struct ras_peer *peer) {
	const struct ras *ras = session_ras(session);
	char since[SHOW_BYTES];
	struct peer_row row = {
		.state = ras_state_name(peer->state),
		.cause = ras_cause_name(peer->cause),
		.sole = peer->sole,
		.maint = peer->maint,
		.self = peer->record->id == ras_self_id(ras),
		.since = peer->since_ns != 0 ? time_text(session, peer->since_ns, since) : NULL,
		.for_ns = time_for_ns(session, peer->since_ns),
		.start = ras_incarnation_start(peer->incarnation),
		.refutations = names_refutations(peer->incarnation),
		.observers = node_names_json(
			ras, peer->observers, peer->observer_count, RAS_OBSERVERS_MAX
		),
	};
	struct ras_peer_info info;
	struct finding finding;

	ras_record_info(peer->record, &info);
	finding_for_peer(session->server->config.health, peer, &finding);
	snprintf(row.node, sizeof(row.node), "%s", info.name);
	snprintf(row.id, sizeof(row.id), "0x%016" PRIx64, peer->record->id);
	sock_addr_format(&peer->record->address, row.address);
	snprintf(row.host, sizeof(row.host), "%s", info.host);
	snprintf(row.key, sizeof(row.key), "%016" PRIx64, ras_key_fingerprint(peer->record->key));
	row.pid = info.pid;
	snprintf(row.version, sizeof(row.version), "%s", info.version);
	row.verdict = finding.verdict;
	row.devices = info.device_count;
	return record_to_json(&peer_record, &row);
}
