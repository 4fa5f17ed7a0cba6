// SPDX-License-Identifier: BSD-3-Clause
// Finds members by the name that a client gives, and replaces unsafe bytes in names of other
// agents.
#include "client/names.h"

#include "client/server.h"

#include <lib/escape.h>
#include <lib/record.h>
#include <lib/show.h>
#include <lib/suggestion.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Above this number of known names, an error suggests a similar one instead of listing all.
#define NAMES_LISTED_MAX 16
#define NAMES_QUOTE_BYTES 96
#define NAMES_READ 64

void names_sanitize_text(const char *text, size_t length, char *clean, size_t size) {
	struct escape_unit unit;
	size_t used = 0;

	for (size_t at = 0; at < length; at += unit.taken_bytes) {
		bool shown;

		escape_next(text + at, length - at, &unit);
		shown = unit.text_size == unit.taken_bytes || text[at] == '"' || text[at] == '\\';
		if (used + (shown ? unit.taken_bytes : 1) >= size)
			break;
		if (!shown) {
			clean[used++] = '?';
			continue;
		}
		memcpy(clean + used, text + at, unit.taken_bytes);
		used += unit.taken_bytes;
	}
	clean[used] = '\0';
}

void names_sanitize_name(const char *text, size_t length, char name[static NAMES_TEXT_BYTES]) {
	names_sanitize_text(text, length, name, NAMES_TEXT_BYTES);
}

void names_format_record(const struct ras_record *record, char name[static NAMES_TEXT_BYTES]) {
	names_sanitize_name(record->name, record->name_length, name);
}

void names_format_host(const struct ras_record *record, char host[static NAMES_TEXT_BYTES]) {
	names_sanitize_name(record->host, record->host_length, host);
}

// Find the last event about this peer id. If `name` is not NULL, find the last one about a node
// with this name.
static bool
find_last_event(const struct ras *ras, uint64_t id, const char *name, struct ras_event *ret_event) {
	struct ras_event read[NAMES_READ];
	uint64_t next = 0, oldest;
	bool found = false;
	uint32_t count;

	do {
		count = ras_history(ras, next, read, NAMES_READ, &oldest);
		for (uint32_t n = 0; n < count; n++) {
			next = read[n].sequence + 1;
			if (name != NULL ? strcmp(read[n].name, name) != 0
					 : read[n].peer != id || read[n].name[0] == '\0')
				continue;
			*ret_event = read[n];
			found = true;
		}
	} while (count == NAMES_READ);
	return found;
}

void names_format_id(const struct ras *ras, uint64_t id, char name[static NAMES_TEXT_BYTES]) {
	struct ras_event event;
	struct ras_peer peer;

	if (ras_peer_find(ras, id, &peer) == 0)
		names_format_record(peer.record, name);
	else if (find_last_event(ras, id, NULL, &event)) // no longer in the table
		names_sanitize_name(event.name, strlen(event.name), name);
	else
		snprintf(name, NAMES_TEXT_BYTES, "#%016" PRIx64, id);
}

void names_format_observers(
	const struct ras *ras,
	const uint64_t *ids,
	uint32_t count,
	char text[static NAMES_PAIR_BYTES]
) {
	char name[NAMES_TEXT_BYTES];
	int used = 0;

	text[0] = '\0';
	for (uint32_t n = 0; n < count && n < RAS_OBSERVERS_MAX; n++) {
		names_format_id(ras, ids[n], name);
		used += snprintf(
			text + used, (size_t)(NAMES_PAIR_BYTES - used), "%s%s",
			n > 0 ? " and " : "", name
		);
	}
}

uint64_t names_refutations(uint64_t incarnation) {
	uint64_t refutations = incarnation & RAS_REFUTATIONS_MAX;

	return refutations != RAS_REFUTATIONS_MAX ? refutations : RECORD_UNKNOWN;
}

bool names_fail_former_node(struct session *session, const char *word) {
	const struct overlay *overlay = session->server->overlay;
	char when[SHOW_BYTES], name[NAMES_TEXT_BYTES], quoted[NAMES_QUOTE_BYTES];
	bool missing = overlay_roster_has_node(overlay, word, strlen(word));
	struct ras_event event;
	bool past = find_last_event(session_ras(session), 0, word, &event);

	names_sanitize_name(word, strlen(word), name);
	escape_quote(word, strlen(word), quoted, sizeof(quoted));
	if (past)
		show_time(overlay_realtime_ns(overlay, event.at_ns), when);
	if (missing)
		session_fail(
			session,
			"%s is missing: [overlay] expect names it, but the peer table does "
			"not%s%s%s%s%s",
			name, past ? "; its last event was " : "",
			past ? ras_event_name(event.kind) : "", past ? ", " : "", past ? when : "",
			session->verb == VERB_MAINT
				? "; maintenance needs a node of the peer table: start its agent, "
				  "or remove the node from [overlay] expect"
				: ""
		);
	else if (past)
		session_fail(
			session, "node %s is no longer known: its last event was %s, %s", quoted,
			ras_event_name(event.kind), when
		);
	return missing || past;
}

void names_fail_unknown_node(struct session *session, const char *word) {
	const struct ras *ras = session_ras(session);
	char listed[NAMES_LISTED_MAX][NAMES_TEXT_BYTES]; // sorted
	char quoted[NAMES_QUOTE_BYTES], name[NAMES_TEXT_BYTES];
	struct suggestion suggestion;
	uint32_t known = 0, place;
	struct ras_peer peer;
	struct ras_view view;

	if (names_fail_former_node(session, word))
		return;
	escape_quote(word, strlen(word), quoted, sizeof(quoted));
	ras_view(ras, &view);
	suggestion_init(&suggestion, word);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) < 0)
			continue;
		names_format_record(peer.record, name);
		place = known++;
		if (place >= NAMES_LISTED_MAX) {
			suggestion_add(&suggestion, name, strlen(name));
			continue;
		}
		for (; place > 0 && strverscmp(listed[place - 1], name) > 0; place--)
			memcpy(listed[place], listed[place - 1], NAMES_TEXT_BYTES);
		snprintf(listed[place], NAMES_TEXT_BYTES, "%s", name);
	}
	for (uint32_t n = 0; n < known && n < NAMES_LISTED_MAX; n++)
		suggestion_add(&suggestion, listed[n], strlen(listed[n]));
	if (suggestion.nearest_size > 0 || known <= NAMES_LISTED_MAX)
		session_fail(
			session, "no node %s is known, %s", quoted, suggestion_text(&suggestion)
		);
	else
		session_fail(
			session,
			"no node %s is known, and none of the %u nodes that `tocsin peers` lists "
			"has a similar name",
			quoted, known
		);
}

// Two names may have the same id, and the table holds only one of them, so compare the names.
static bool name_find(struct session *session, const char *word, struct ras_peer *ret_peer) {
	return ras_peer_find(session_ras(session), ras_id(word, strlen(word)), ret_peer) == 0 &&
	       ret_peer->record->name_length == strlen(word) &&
	       memcmp(ret_peer->record->name, word, strlen(word)) == 0;
}

bool names_is_known(struct session *session, const char *word) {
	struct ras_peer peer;

	return name_find(session, word, &peer);
}

bool names_parse_next(struct session *session, const char **rest, struct ras_peer *ret_peer) {
	const struct command *command = &commands[session->verb];
	char word[CLIENT_LINE_BYTES_MAX];
	struct ras_peer peer;

	if (!command_word(rest, word, sizeof(word))) {
		session_fail(
			session, "%s needs the name of a node: %s %s", command->name, command->name,
			command->arguments
		);
		return false;
	}
	if (!name_find(session, word, &peer)) {
		names_fail_unknown_node(session, word);
		return false;
	}
	*ret_peer = peer;
	return true;
}

bool names_parse_single(struct session *session, const char *rest, struct ras_peer *ret_peer) {
	const struct command *command = &commands[session->verb];
	char quoted[NAMES_QUOTE_BYTES];
	struct ras_peer peer;

	if (!names_parse_next(session, &rest, &peer))
		return false;
	if (*rest != '\0') {
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(session, "%s takes one node, but %s follows", command->name, quoted);
		return false;
	}
	*ret_peer = peer;
	return true;
}
