// SPDX-License-Identifier: BSD-3-Clause
// Mistakes in the configuration of nodes that show only beside other nodes. Another agent may
// answer at a node's address. Several machines may have one host identity, because they were booted
// from one image with one machine id. Two agents may have one key, because a state directory was
// copied. Two machines may have one address (shared_addresses.c). The roster may lack a member. A
// message names all nodes involved, because any of them may be the wrong one.
#include "overlay/inside.h"

#include <lib/container.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Delay of a pass after a change. A host that was rebooted counts twice until its old agents are
// declared dead.
#define MISTAKES_DELAY_NS (15 * RAS_NS_PER_SEC)

void overlay_node_name(
	const struct overlay *overlay, uint64_t id, char name[static RAS_NAME_MAX + 1]
) {
	struct ras_peer peer;

	snprintf(name, RAS_NAME_MAX + 1, "another agent");
	if (ras_peer_find(overlay->ras, id, &peer) == 0)
		snprintf(
			name, RAS_NAME_MAX + 1, "%.*s", (int)peer.record->name_length,
			peer.record->name
		);
}

void overlay_stranger_words(
	const struct overlay *overlay,
	uint64_t peer,
	uint64_t found,
	const struct sock_addr *address,
	char ret_words[static STATE_TEXT_BYTES]
) {
	char name[RAS_NAME_MAX + 1], other[RAS_NAME_MAX + 1], text[SOCK_ADDR_TEXT_BYTES];

	overlay_node_name(overlay, peer, name);
	overlay_node_name(overlay, found, other);
	sock_addr_format(address, text);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"at %s, the address of %.48s, %.48s answers: check listen and advertise of both "
		"nodes",
		text, name, other
	);
}

void overlay_conflict_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
) {
	char held[SOCK_ADDR_TEXT_BYTES], other[SOCK_ADDR_TEXT_BYTES];
	struct ras_peer peer;

	ret_words[0] = '\0';
	if (event->other.family == SOCK_ADDR_NONE ||
	    ras_peer_find(overlay->ras, event->peer, &peer) != 0 ||
	    sock_addr_equal(&peer.record->address, &event->other))
		return;
	sock_addr_format(&peer.record->address, held);
	overlay_other_address_words(event, other);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"the agent at %s has this name, and another agent at %s uses it, too", held, other
	);
}

void overlay_forged_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
) {
	char name[RAS_NAME_MAX + 1];

	overlay_node_name(overlay, event->value, name);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"%.63s sent a notice in the name of %.63s that %.63s did not sign", event->name,
		name, name
	);
}

void overlay_key_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
) {
	bool changed = event->kind == RAS_EVENT_KEY_CHANGED;
	struct ras_peer peer;

	ret_words[0] = '\0';
	if (ras_peer_find(overlay->ras, event->peer, &peer) != 0)
		return;
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		changed ? "key %016" PRIx64 " replaced key %016" PRIx64
			  ": the agent may have lost its state directory"
			: "key %016" PRIx64 " keeps the name; key %016" PRIx64 " was refused",
		ras_key_fingerprint(peer.record->key), event->value
	);
}

// Hosts

struct claim {
	uint64_t host_name_id, host_id;
	uint64_t peer;
};

static int claims_compare(const void *a, const void *b) {
	const struct claim *left = a, *right = b;

	if (left->host_name_id != right->host_name_id)
		return left->host_name_id < right->host_name_id ? -1 : 1;
	if (left->host_id != right->host_id)
		return left->host_id < right->host_id ? -1 : 1;
	return (left->peer > right->peer) - (left->peer < right->peer);
}

// Count the boots with one host name, and record the host if there are several.
static void
host_record_clones(struct overlay *overlay, const struct claim *claims, uint32_t count) {
	struct overlay_clones clones = {
		.host_name_id = claims[0].host_name_id, .ids = {claims[0].peer}, .count = 1};

	for (uint32_t n = 1; n < count; n++) {
		if (claims[n].host_id == claims[n - 1].host_id)
			continue;
		if (clones.count == 1)
			clones.ids[1] = claims[n].peer;
		clones.count++;
	}
	if (clones.count > 1 && overlay->clones_count < OVERLAY_CLONES)
		overlay->clones[overlay->clones_count++] = clones;
}

static void clones_words(
	const struct overlay *overlay,
	const struct overlay_clones *clones,
	char ret_words[static STATE_TEXT_BYTES]
) {
	char first[RAS_NAME_MAX + 1], second[RAS_NAME_MAX + 1], more[32] = "";

	overlay_node_name(overlay, clones->ids[0], first);
	overlay_node_name(overlay, clones->ids[1], second);
	if (clones->count > 2)
		snprintf(more, sizeof(more), " (and %u more)", clones->count - 2);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"%.63s and %.63s%s have the same host identity but run on different machines: "
		"set [node] host on each",
		first, second, more
	);
}

// Agent keys

static int keys_compare(const void *a, const void *b) {
	const struct ras_record *left = *(const struct ras_record *const *)a;
	const struct ras_record *right = *(const struct ras_record *const *)b;
	int order = memcmp(left->key, right->key, sizeof(left->key));

	if (order != 0)
		return order;
	return (left->id > right->id) - (left->id < right->id);
}

static void
key_twins_words(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]) {
	char first[RAS_NAME_MAX + 1], second[RAS_NAME_MAX + 1], more[32] = "";

	overlay_node_name(overlay, overlay->key_twins[0], first);
	overlay_node_name(overlay, overlay->key_twins[1], second);
	if (overlay->key_twins_count > 2)
		snprintf(more, sizeof(more), " (%u nodes share keys)", overlay->key_twins_count);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"%.48s and %.48s have one agent key and can speak for each other%s: remove "
		"agent.key from the state directory of one, and restart its agent",
		first, second, more
	);
}

// Find live members whose key another live member has, too: their state directories are copies.
static void key_twins_find(struct overlay *overlay, uint32_t slots) {
	static const uint8_t none[RAS_KEY_BYTES];
	const struct ras_record **records = calloc(slots, sizeof(struct ras_record *));
	struct ras_peer peer;
	uint32_t count = 0, end;

	if (records == NULL)
		return; // the next change tries again
	for (uint32_t slot = 0; slot < slots; slot++) {
		if (ras_peer_at(overlay->ras, slot, &peer) == 0 && peer.state == RAS_ALIVE &&
		    memcmp(peer.record->key, none, sizeof(none)) != 0)
			records[count++] = peer.record;
	}
	qsort(records, count, sizeof(struct ras_record *), keys_compare);
	overlay->key_twins_count = 0;
	for (uint32_t n = 0; n < count; n = end) {
		for (end = n + 1; end < count; end++) {
			if (memcmp(records[end]->key, records[n]->key, RAS_KEY_BYTES) != 0)
				break;
		}
		if (end - n > 1 && overlay->key_twins_count == 0) {
			overlay->key_twins[0] = records[n]->id;
			overlay->key_twins[1] = records[n + 1]->id;
		}
		if (end - n > 1)
			overlay->key_twins_count += end - n;
	}
	free(records);
}

// Report the members found, unless the same two were reported, and their number has not grown.
static void key_twins_report(struct overlay *overlay, uint32_t slots) {
	const uint64_t before[2] = {overlay->key_twins[0], overlay->key_twins[1]};
	uint32_t count = overlay->key_twins_count;
	struct ras_event note = {.kind = RAS_EVENT_KEY_SHARED, .cause = RAS_CAUSE_CONFLICT};
	char words[STATE_TEXT_BYTES];

	key_twins_find(overlay, slots);
	if (overlay->key_twins_count == 0 ||
	    (overlay->key_twins_count <= count &&
	     memcmp(before, overlay->key_twins, sizeof(before)) == 0))
		return;
	note.peer = overlay->key_twins[0];
	note.value = overlay->key_twins_count;
	key_twins_words(overlay, words);
	(void)overlay_note(overlay, &note, words);
}

// Members beside the roster

static int names_compare(const struct ras_record *a, const struct ras_record *b) {
	size_t shorter = a->name_length < b->name_length ? a->name_length : b->name_length;
	int order = memcmp(a->name, b->name, shorter);

	return order != 0 ? order : (int)a->name_length - (int)b->name_length;
}

static void roster_find_unlisted(struct overlay *overlay, uint32_t slots) {
	const struct ras_record *first = NULL;
	struct ras_peer peer;

	overlay->unlisted_count = 0;
	for (uint32_t slot = 0; slot < slots && overlay_roster_count(overlay) > 0; slot++) {
		if (ras_peer_at(overlay->ras, slot, &peer) != 0 || peer.state != RAS_ALIVE ||
		    overlay_roster_has_node(overlay, peer.record->name, peer.record->name_length))
			continue;
		if (first == NULL || names_compare(peer.record, first) < 0)
			first = peer.record;
		overlay->unlisted_count++;
	}
	overlay->unlisted_first = first != NULL ? first->id : 0;
}

static void unlisted_words(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]) {
	char name[RAS_NAME_MAX + 1], more[32] = "";

	overlay_node_name(overlay, overlay->unlisted_first, name);
	if (overlay->unlisted_count > 1)
		snprintf(more, sizeof(more), " and %u more", overlay->unlisted_count - 1);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"members missing in [overlay] expect: %.63s%s; add them there, or stop "
		"their agents",
		name, more
	);
}

// Return whether the same two agents were reported before, and their number has not grown.
static bool clones_were_reported(
	const struct overlay_clones *before, uint32_t count, const struct overlay_clones *clones
) {
	for (uint32_t n = 0; n < count; n++) {
		if (before[n].host_name_id == clones->host_name_id &&
		    before[n].ids[0] == clones->ids[0] && before[n].ids[1] == clones->ids[1])
			return clones->count <= before[n].count;
	}
	return false;
}

static void mistakes_find(struct overlay *overlay) {
	struct overlay_clones before[OVERLAY_CLONES];
	uint32_t before_count = overlay->clones_count;
	char words[STATE_TEXT_BYTES];
	struct claim *claims;
	struct ras_view view;
	struct ras_peer peer;
	uint32_t count = 0, end;

	memcpy(before, overlay->clones, sizeof(before));
	ras_view(overlay->ras, &view);
	claims = calloc(view.slots_max, sizeof(*claims));
	roster_find_unlisted(overlay, view.slots_max);
	key_twins_report(overlay, view.slots_max);
	if (claims == NULL)
		return; // the next change tries again
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(overlay->ras, slot, &peer) != 0 || peer.state != RAS_ALIVE ||
		    peer.record->host_id == peer.record->host_name_id)
			continue; // the boot is unknown, so it cannot be compared
		claims[count++] = (struct claim
		){peer.record->host_name_id, peer.record->host_id, peer.record->id};
	}
	qsort(claims, count, sizeof(*claims), claims_compare);
	overlay->clones_count = 0;
	for (uint32_t n = 0; n < count; n = end) {
		for (end = n + 1; end < count; end++) {
			if (claims[end].host_name_id != claims[n].host_name_id)
				break;
		}
		host_record_clones(overlay, claims + n, end - n);
	}
	free(claims);
	for (uint32_t n = 0; n < overlay->clones_count; n++) {
		const struct ras_event note = {
			.kind = RAS_EVENT_HOST_SHARED,
			.peer = overlay->clones[n].ids[0],
			.cause = RAS_CAUSE_CONFLICT,
			.value = overlay->clones[n].count,
		};

		if (clones_were_reported(before, before_count, &overlay->clones[n]))
			continue;
		clones_words(overlay, &overlay->clones[n], words);
		(void)overlay_note(overlay, &note, words);
	}
}

bool overlay_host_has_several_boots(const struct overlay *overlay, uint64_t host_name_id) {
	for (uint32_t n = 0; n < overlay->clones_count; n++) {
		if (overlay->clones[n].host_name_id == host_name_id)
			return true;
	}
	return false;
}

static void on_configuration_check_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, clones_timer);

	(void)now_ns;
	overlay->clones_due = false;
	mistakes_find(overlay);
	overlay_shared_addresses_find(overlay);
}

void overlay_mistakes_schedule(struct overlay *overlay) {
	if (overlay->clones_due)
		return;
	overlay->clones_timer.expired = on_configuration_check_timer;
	overlay->clones_due = loop_timer_set(
				      overlay->loop, &overlay->clones_timer,
				      loop_now_ns(overlay->loop) + MISTAKES_DELAY_NS
			      ) == 0;
}

void overlay_mistakes_event(struct overlay *overlay, const struct ras_event *event) {
	switch (event->kind) {
	case RAS_EVENT_JOIN_DONE:
	case RAS_EVENT_JOINED:
	case RAS_EVENT_REJOINED:
	case RAS_EVENT_DEAD:
	case RAS_EVENT_LEFT:
	case RAS_EVENT_FORGOTTEN:
		overlay_mistakes_schedule(overlay);
		return;
	default:
		return;
	}
}

void overlay_mistakes_stop(struct overlay *overlay) {
	loop_timer_cancel(overlay->loop, &overlay->clones_timer);
	overlay_shared_addresses_stop(overlay);
}

bool overlay_mistake_next(
	const struct overlay *overlay, uint32_t *cursor, char ret_words[static STATE_TEXT_BYTES]
) {
	struct ras_stranger stranger;
	uint32_t place;
	int err;

	while ((place = (*cursor)++) < OVERLAY_MISTAKES_STRANGERS) {
		err = ras_stranger_at(overlay->ras, place, &stranger);
		if (err == 0) {
			overlay_stranger_words(
				overlay, stranger.peer, stranger.found, &stranger.address, ret_words
			);
			return true;
		}
		if (err == -ENOENT)
			*cursor = OVERLAY_MISTAKES_STRANGERS;
	}
	place -= OVERLAY_MISTAKES_STRANGERS;
	if (place < overlay->clones_count) {
		clones_words(overlay, &overlay->clones[place], ret_words);
		return true;
	}
	place -= overlay->clones_count;
	if (overlay_shared_address_at(overlay, place, ret_words))
		return true;
	place -= overlay->shared_address_count;
	if (place == 0 && overlay->unlisted_count > 0) {
		unlisted_words(overlay, ret_words);
		return true;
	}
	if (place == 0) { // no member beside the roster: skip this place
		place++;
		(*cursor)++;
	}
	if (place == 1 && overlay->key_twins_count > 0) {
		key_twins_words(overlay, ret_words);
		return true;
	}
	if (place == 1) { // no shared key: skip this place
		place++;
		(*cursor)++;
	}
	for (place -= 2; place < OVERLAY_OWN_COUNT; place++, (*cursor)++) {
		if (overlay->own_mistake_words[place][0] == '\0')
			continue;
		snprintf(ret_words, STATE_TEXT_BYTES, "%s", overlay->own_mistake_words[place]);
		return true;
	}
	return false;
}

void overlay_set_own_problem(
	struct overlay *overlay, enum overlay_own_problem own, const char *words
) {
	snprintf(overlay->own_mistake_words[own], STATE_TEXT_BYTES, "%s", words);
}
