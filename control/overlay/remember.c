// SPDX-License-Identifier: BSD-3-Clause
// Members that this node remembers over a restart: members on different hosts, from the current
// table.
//
// The list is updated a second after an event that may change it, and each hour. It is written when
// it has changed, at most once a minute. It is also written when its times are an hour old, and at
// the end. The state directory's own thread writes it. So a full, hanging or read-only disk costs
// the list only.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPDATE_DELAY_NS RAS_NS_PER_SEC
#define WRITE_INTERVAL_NS (60 * RAS_NS_PER_SEC)
#define UPDATE_INTERVAL_NS (10 * RAS_NS_PER_SEC) // a pass may read the whole table
#define TIMES_FRESH_NS \
	(3600 * RAS_NS_PER_SEC) // times on the disk are no older, except after a crash
#define ALONE_NAMES 3		// names in a message
// After a boot the clock may be off by years until the network corrects it. No member expires for
// this long.
#define CLOCK_SETTLE_NS (600 * RAS_NS_PER_SEC)

static bool
member_find_peer(const struct overlay *overlay, const char *name, struct ras_peer *ret_peer) {
	return ras_peer_find(overlay->ras, ras_id(name, strlen(name)), ret_peer) == 0;
}

static bool member_is_self(const struct overlay *overlay, const struct member *member) {
	struct ras_peer self;

	return ras_peer_find(overlay->ras, ras_self_id(overlay->ras), &self) == 0 &&
	       (sock_addr_equal(&member->address, &self.record->address) ||
		ras_id(member->name, strlen(member->name)) == self.record->id);
}

// Updating.

static void remember_set_timer(struct overlay *overlay, uint64_t at_ns) {
	struct overlay_remember *remember = &overlay->remember;
	uint64_t earliest_ns = remember->written_ns + WRITE_INTERVAL_NS;

	if (remember->looked_ns != 0 && at_ns < remember->looked_ns + UPDATE_INTERVAL_NS)
		at_ns = remember->looked_ns + UPDATE_INTERVAL_NS;
	if (remember->written_ns != 0 && at_ns < earliest_ns)
		at_ns = earliest_ns;
	if (remember->due_ns != 0 && remember->due_ns <= at_ns)
		return;
	remember->due_ns = at_ns;
	if (loop_timer_set(overlay->loop, &remember->due, at_ns) != 0)
		remember->due_ns = 0; // the next event tries again
}

static void members_write(struct overlay *overlay) {
	struct overlay_remember *remember = &overlay->remember;
	char *text;

	if (overlay->state == NULL)
		return;
	text = member_list_format(&remember->list, remember->cluster, remember->node);
	if (text == NULL)
		return; // the next write may find memory
	remember->written_digest = member_list_digest(&remember->list);
	remember->written_ns = overlay_now_ns(overlay);
	state_save_text(overlay->state, STATE_MEMBERS, text);
}

static void
member_from_peer(const struct ras_peer *peer, uint64_t now_s, struct member *ret_member) {
	struct member member = {.address = peer->record->address, .proven_s = now_s};

	memcpy(member.name, peer->record->name, peer->record->name_length);
	memcpy(member.host, peer->record->host, peer->record->host_length);
	*ret_member = member;
}

// Begin at a different slot on each node, so that not all nodes remember the same members.
static void members_add_more(struct overlay *overlay, uint64_t now_s) {
	struct member_list *list = &overlay->remember.list;
	struct ras_view view;
	uint32_t first;

	ras_view(overlay->ras, &view);
	first = (uint32_t)(ras_self_id(overlay->ras) % view.slots_max);
	for (uint32_t n = 0; n < view.slots_max && !member_list_is_full(list, now_s); n++) {
		uint32_t slot = (first + n) % view.slots_max;
		struct member member;
		struct ras_peer peer;

		if (ras_peer_at(overlay->ras, slot, &peer) != 0 || peer.state != RAS_ALIVE)
			continue;
		member_from_peer(&peer, now_s, &member);
		if (!member_is_self(overlay, &member) &&
		    member_list_find(list, member.name) == NULL)
			member_list_put(list, &member);
	}
}

// Remove members that were not proven for long. A node that is alone keeps all, because they may be
// its way back.
static void members_expire(struct overlay *overlay, const struct ras_view *view, uint64_t now_s) {
	struct member_list *list = &overlay->remember.list;
	struct member_list before = *list;

	if (view->alive <= 1 ||
	    overlay_now_ns(overlay) - overlay->remember.started_ns < CLOCK_SETTLE_NS ||
	    member_list_expire(list, now_s) == 0)
		return;
	for (uint32_t n = 0; n < before.count; n++) {
		if (member_list_find(list, before.members[n].name) == NULL)
			ras_remembered_drop(overlay->ras, &before.members[n].address);
	}
}

static void list_refresh(struct overlay *overlay) {
	int64_t realtime_ns = overlay_realtime_ns(overlay, overlay_now_ns(overlay));
	// 0 if the clock is before 1970, which gives no ages
	uint64_t now_s = realtime_ns > 0 ? (uint64_t)realtime_ns / RAS_NS_PER_SEC : 0;
	struct member_list *list = &overlay->remember.list;
	struct ras_view view;

	ras_view(overlay->ras, &view);
	// Soon after a boot the clock may be off by years. The times in the list stay as they are
	// until we are a member.
	if (!view.joined)
		return;
	// Update the listed members: the address and time of live ones, and which ones left.
	for (uint32_t n = list->count; n-- > 0;) {
		struct member *member = &list->members[n];
		struct ras_peer peer;

		if (!member_find_peer(overlay, member->name, &peer))
			continue;
		if (peer.state == RAS_ALIVE)
			member_from_peer(&peer, now_s, member);
		else
			member->left = peer.state == RAS_LEFT;
	}
	members_expire(overlay, &view, now_s);
	members_add_more(overlay, now_s);
}

static bool list_has_changed(const struct overlay_remember *remember) {
	return member_list_digest(&remember->list) != remember->written_digest;
}

static void on_remember_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, remember.due);
	struct overlay_remember *remember = &overlay->remember;
	uint64_t clock_ns = overlay_now_ns(overlay);

	remember->due_ns = 0;
	remember->looked_ns = clock_ns;
	list_refresh(overlay);
	if (list_has_changed(remember) || remember->written_ns == 0 ||
	    clock_ns - remember->written_ns >= TIMES_FRESH_NS)
		members_write(overlay);
	remember_set_timer(overlay, now_ns + TIMES_FRESH_NS);
}

void overlay_remember_event(struct overlay *overlay, const struct ras_event *event) {
	struct member_list *list = &overlay->remember.list;
	const struct member *member;

	switch (event->kind) {
	case RAS_EVENT_JOIN_DROPPED:
		if (event->cause == RAS_CAUSE_CONFLICT)
			overlay->remember.name_conflict_at = event->other;
		// Remove a member that belongs to another cluster now. Another reason may be our
		// own mistake (a wrong key, an old program), so a later start may succeed.
		for (uint32_t n = list->count; n-- > 0 && event->cause == RAS_CAUSE_CLUSTER;) {
			if (sock_addr_equal(&list->members[n].address, &event->other))
				member_list_remove_at(list, n);
		}
		break;
	case RAS_EVENT_FORGOTTEN:
		// A person forgot the peer if the value is 0.
		member = event->value == 0 ? member_list_find(list, event->name) : NULL;
		if (member != NULL)
			member_list_remove_at(list, (uint32_t)(member - list->members));
		break;
	case RAS_EVENT_JOIN_DONE:
	case RAS_EVENT_JOINED:
	case RAS_EVENT_REJOINED:
	case RAS_EVENT_LEFT:
		break;
	default:
		return;
	}
	if (overlay->state != NULL)
		remember_set_timer(overlay, overlay_now_ns(overlay) + UPDATE_DELAY_NS);
}

void overlay_remember_end(struct overlay *overlay) {
	struct ras_view view;

	ras_view(overlay->ras, &view);
	list_refresh(overlay);
	if (overlay->state != NULL && (view.joined || list_has_changed(&overlay->remember)))
		members_write(overlay);
	loop_timer_cancel(overlay->loop, &overlay->remember.due);
}

// Use.

static int members_use(struct overlay *overlay) {
	const struct member_list *list = &overlay->remember.list;
	struct sock_addr addresses[MEMBER_LIST_MAX];

	for (uint32_t n = 0; n < list->count; n++)
		addresses[n] = list->members[n].address;
	return ras_remembered(overlay->ras, addresses, list->count);
}

static void members_read(struct overlay *overlay) {
	struct overlay_remember *remember = &overlay->remember;
	struct member_list *list = &remember->list;
	const char *reason = "";
	char *text = NULL;
	int err = state_read_text(overlay->state, STATE_MEMBERS, &text);

	if (err == -ENOENT)
		return;
	if (err == 0)
		err = member_list_parse(list, text, remember->cluster, remember->node, &reason);
	free(text);
	if (err != 0) {
		log_event(
			LOG_LEVEL_WARN, "remembered_members_ignored", log_errno("error", err),
			log_str("reason", reason),
			log_str("effect", "this start joins through configured addresses only")
		);
		return;
	}
	remember->written_digest = member_list_digest(list);
	for (uint32_t n = list->count; n-- > 0;) {
		if (member_is_self(overlay, &list->members[n]))
			member_list_remove_at(list, n);
	}
	if (list->count > 0)
		log_event(LOG_LEVEL_INFO, "members_remembered", log_u64("count", list->count));
}

int overlay_remember_start(struct overlay *overlay, const char *cluster, const char *node) {
	struct overlay_remember *remember = &overlay->remember;

	snprintf(remember->node, sizeof(remember->node), "%s", node);
	remember->cluster = strdup(cluster);
	remember->due.expired = on_remember_timer;
	remember->started_ns = overlay_now_ns(overlay);
	if (remember->cluster == NULL)
		return -ENOMEM;
	if (overlay->state == NULL)
		return 0;
	members_read(overlay);
	return members_use(overlay);
}

void overlay_remember_fini(struct overlay *overlay) {
	loop_timer_cancel(overlay->loop, &overlay->remember.due);
	free(overlay->remember.cluster);
	overlay->remember.cluster = NULL;
}

uint32_t overlay_remembered_count(const struct overlay *overlay) {
	return overlay->remember.list.count;
}

uint32_t overlay_forget_remembered(struct overlay *overlay) {
	struct overlay_remember *remember = &overlay->remember;
	uint32_t count = remember->list.count;

	remember->list.count = 0;
	members_use(overlay); // an empty list needs no memory
	members_write(overlay);
	return count;
}

// Reports.

// List the members that may run without us: not in our table, and without a goodbye. Returns their
// number.
static uint32_t
members_list_missing(const struct overlay *overlay, char names[static STATE_TEXT_BYTES]) {
	const struct member_list *list = &overlay->remember.list;
	uint32_t count = 0;
	size_t used = 0;

	names[0] = '\0';
	for (uint32_t n = 0; n < list->count; n++) {
		const struct member *member = &list->members[n];
		struct ras_peer peer;

		if (member->left || member_find_peer(overlay, member->name, &peer))
			continue;
		if (count++ < ALONE_NAMES)
			used += (size_t)snprintf(
				names + used, STATE_TEXT_BYTES - used, "%s%.*s",
				used > 0 ? ", " : "", RAS_NAME_MAX, member->name
			);
	}
	if (count > ALONE_NAMES)
		snprintf(names + used, STATE_TEXT_BYTES - used, ", ...");
	return count;
}

bool overlay_is_alone(const struct overlay *overlay) {
	char names[STATE_TEXT_BYTES];
	struct ras_view view;
	uint32_t cursor = 0;

	ras_view(overlay->ras, &view);
	return view.joined && view.alive == 1 &&
	       (members_list_missing(overlay, names) > 0 ||
		overlay_missing_next(overlay, &cursor) != NULL);
}

void overlay_alone_words(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]) {
	char names[STATE_TEXT_BYTES];
	uint32_t count = members_list_missing(overlay, names);

	if (count > 0)
		snprintf(
			ret_words, STATE_TEXT_BYTES,
			"this node is alone, but remembers %u other members: %.*s", count,
			STATE_TEXT_BYTES - 80, names
		);
	else
		snprintf(
			ret_words, STATE_TEXT_BYTES,
			"this node is alone, but %u nodes are expected",
			overlay_roster_count(overlay)
		);
}

void overlay_dropped_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
) {
	const struct member_list *list = &overlay->remember.list;
	char address[SOCK_ADDR_TEXT_BYTES];
	const char *name = "";

	for (uint32_t n = 0; n < list->count; n++) {
		if (sock_addr_equal(&list->members[n].address, &event->other))
			name = list->members[n].name;
	}
	sock_addr_format(&event->other, address);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"the agent at %s, remembered as %.*s, refused this node", address, RAS_NAME_MAX,
		name
	);
}
